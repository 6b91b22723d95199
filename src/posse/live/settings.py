"""How an agent is set up, as data: kept in its journal."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from posse.core.encoder import Encoder
from posse.core.episode import anytime
from posse.core.learner import deciding
from posse.core.protocols import Policy
from posse.core.shipped import register
from posse.core.statistics import GramStatistics
from posse.numerics.checks import check_choice, check_integer, check_number
from posse.policies import Shared

# Settings that say what was learned from which events: they stay as they are as long as the journal lives.
LASTING = ("policy", "encoder", "rewards", "reward_wait", "default_reward", "control_policy")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How an agent decides, learns and guards itself; `Agent` says what each setting means."""

    policy: Policy = field(default_factory=Shared)
    encoder: Encoder | None = None
    rewards: str = "first"
    reward_wait: float | None = None
    default_reward: float | None = None
    mode: str = "live"
    control: float = 0.0
    control_arm: str | int | None = None
    control_policy: Policy | None = None
    floor: float | dict[str, float] = 0.01
    features: str = "chosen"
    refits: str = "background"
    publish: str = "auto"
    keep: int = 10

    def __post_init__(self) -> None:
        self._check_kinds()
        check_choice("`rewards` of Agent", self.rewards, ["first", "last", "sum"])
        check_choice("`mode` of Agent", self.mode, ["live", "shadow"])
        check_choice("`features` of Agent", self.features, ["chosen", "all"])
        check_choice("`refits` of Agent", self.refits, ["background", "inline", "never"])
        check_choice("`publish` of Agent", self.publish, ["auto", "manual"])
        check_integer("`keep` of Agent", self.keep, 1)
        if self.reward_wait is not None:
            check_number("`reward_wait` of Agent", self.reward_wait, 0.0, open_low=True)
        if self.default_reward is not None:
            check_number("`default_reward` of Agent", self.default_reward, -1e75, 1e75)
            if self.reward_wait is None:
                raise ValueError(
                    "`reward_wait` of Agent must say when `default_reward` begins to count. Got None."
                )
        check_number("`control` of Agent", self.control, 0.0, 1.0)
        for least in self.floor.values() if isinstance(self.floor, dict) else [self.floor]:
            check_number("`floor` of Agent", least, 0.0, 1.0)
        if not self.amends and self.rewards != "first" and self.reward_wait is None:
            raise ValueError(
                f"`reward_wait` of Agent must be given for rewards={self.rewards!r} with a policy that "
                f"forgets, as such a decision is learned from once. Got None, and {self.policy!r}."
            )
        if self.publish == "manual" and not self.amends:
            raise ValueError(
                "`publish` of Agent must be 'auto' with a policy that forgets, as there is no way back to "
                f"an earlier state. Got 'manual', and {self.policy!r}."
            )

    def _check_kinds(self) -> None:
        """Raise if a value is not what its name says."""
        _check_policy("`policy` of Agent", self.policy)
        if self.control_policy is not None:
            _check_policy("`control_policy` of Agent", self.control_policy)
            if not remembers_all(self.control_policy):
                raise ValueError(
                    f"`control_policy` of Agent must remember all rows. Got {self.control_policy!r}."
                )
            if self.control_arm is not None:
                raise ValueError(
                    f"`control_arm` of Agent must be None beside `control_policy`. Got {self.control_arm!r}."
                )
        if not isinstance(self.encoder, Encoder | None):
            raise ValueError(f"`encoder` of Agent must be an Encoder or None. Got {self.encoder!r:.200}.")
        if not isinstance(self.control_arm, str | int | None):
            raise ValueError(
                f"`control_arm` of Agent must be a name or a row. Got {self.control_arm!r:.200}."
            )

    @property
    def amends(self) -> bool:
        """Whether a reward that was learned from can be replaced: whether all rows count alike, for ever."""
        return remembers_all(self.policy)

    @property
    def at_the_end(self) -> bool:
        """Whether decisions are learned from when nobody waits for further rewards, and not before."""
        return self.rewards != "first" and not self.amends

    @property
    def keeps_offers(self) -> bool:
        """Whether the features of all arms are kept: shadow mode has to know that of any arm played."""
        return self.features == "all" or self.mode == "shadow"


def remembers_all(policy: Any) -> bool:
    """Return whether all rows count alike for a policy, for ever."""
    return getattr(policy, "memory", "all") == "all" and policy.statistics is GramStatistics


def _check_policy(name: str, policy: Any) -> None:
    """Raise if this is no policy that an agent can decide by."""
    if isinstance(policy, type) or not hasattr(policy, "statistics"):
        raise ValueError(f"{name} must be a policy, as Shared(). Got {policy!r:.200}.")
    deciding(policy)
    anytime(policy)


register(Settings, name="posse.live.Settings")

NAMES = tuple(item.name for item in fields(Settings))

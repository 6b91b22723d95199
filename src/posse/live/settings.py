"""How an agent is set up, as data: kept in its journal."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
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
LASTING = ("policy", "encoder", "rewards", "reward_wait", "default_reward", "control_policy", "salt")
# Units are hashed into so many buckets; a control group is the first of them.
BUCKETS = 1024
# Bytes that a hash takes beside what is hashed.
MOST_SALT = 64


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
    salt: str = ""

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
        self._check_control()
        self._check_floor()
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
        if not isinstance(self.salt, str) or len(self.salt.encode()) > MOST_SALT:
            raise ValueError(
                f"`salt` of Agent must be text of at most {MOST_SALT} bytes. Got {self.salt!r:.200}."
            )

    def _check_control(self) -> None:
        """Raise if nobody could be in the control group, or its arm be none, whatever is on offer."""
        check_number("`control` of Agent", self.control, 0.0, 1.0)
        if self.control and not self.n_held:
            raise ValueError(
                f"`control` of Agent must be 0 or round to 1/{BUCKETS} at least, as units are in {BUCKETS:,} "
                f"buckets. Got {self.control!r}."
            )
        arm = self.control_arm
        row = isinstance(arm, int) and not isinstance(arm, bool) and arm >= 0
        if not (row or isinstance(arm, str | None)):
            raise ValueError(f"`control_arm` of Agent must be a name or a row from 0 on. Got {arm!r:.200}.")
        if isinstance(arm, str):
            self._check_name("`control_arm` of Agent", arm)

    def _check_floor(self) -> None:
        """Raise if a floor is no number, or that of no arm that there can be."""
        if not isinstance(self.floor, dict):
            check_number("`floor` of Agent", self.floor, 0.0, 1.0)
            return
        for name, least in self.floor.items():
            if not isinstance(name, str):
                raise ValueError(
                    f"`floor` of Agent must be a number, or by names of arms. Got {name!r:.200}."
                )
            self._check_name("an arm in `floor` of Agent", name)
            check_number("`floor` of Agent", least, 0.0, 1.0)

    def _check_name(self, what: str, name: str) -> None:
        """Raise if the encoder names the arms, and this is none of them."""
        if self.encoder is not None and self.encoder.arms:
            check_choice(what, name, self.encoder.arms)

    def check_offer(self, named: bool) -> None:
        """Raise if arms on offer are named, or rows of a matrix, and a setting speaks of the other kind."""
        if not named and self.floor and isinstance(self.floor, dict):
            raise ValueError(
                f"`arms` must have names, as those in `floor` of Agent, {list(self.floor)}. Got rows."
            )
        arm = self.control_arm if self.control else None
        if arm is not None and isinstance(arm, str) != named:
            wanted, found = ("have names", "rows") if isinstance(arm, str) else ("be rows", "names")
            raise ValueError(f"`arms` must {wanted}, as `control_arm` of Agent, {arm!r}. Got {found}.")

    @property
    def n_held(self) -> int:
        """How many buckets of units are in the control group."""
        return round(self.control * BUCKETS)

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


def known_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return settings by name as they are, or say which of the names is none."""
    for name in options:
        check_choice("an option of Agent", name, NAMES)
    return options


def salt_of(seed: int | None) -> str:
    """Return the salt of a new agent: fresh, or what its seed says.

    Examples
    --------
    >>> salt_of(0), len(salt_of(None))
    ('5feceb66ffc86f38', 16)
    """
    return secrets.token_hex(8) if seed is None else sha256(str(seed).encode()).hexdigest()[:16]

"""An experiment of a service, as data: what its arms look like, and how its agent decides and learns."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from posse.core.columns import NumberColumn
from posse.core.encoder import Encoder
from posse.core.errors import PosseError
from posse.core.extras import extra
from posse.core.protocols import Policy
from posse.lab.foreign import is_imported
from posse.lab.registry import PolicyOptions, find_policy
from posse.lab.syntax import parse_call
from posse.live.settings import Settings

with extra("serve"):
    import msgspec

DEFAULT = "default"
# So many features a space has at most: what is known of one task takes memory in proportion to their square.
MOST_FEATURES = 1000
# What a name of a space may be made of, as it is part of the names of files and of schemas.
NAME = r"^[a-z][a-z0-9_-]{0,39}$"
# Fields that say what an agent learns from: another value needs another agent.
LASTING = (
    "features",
    "arms",
    "context",
    "vectors",
    "model",
    "policy",
    "rewards",
    "reward_wait",
    "default_reward",
    "mode",
)

Name = Annotated[
    str,
    msgspec.Meta(pattern=NAME, description="Of small letters, digits, - and _; it begins with a letter."),
]


class UnknownError(PosseError):
    """What a request names is not there."""


class Space(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An experiment: its features, its policy, its floor and the rules of its rewards.

    A space with none of `features`, `arms`, `vectors` and `model` is fixed by the first ask.

    Attributes
    ----------
    name : str
    features : tuple of str
        The numbers that every arm has, by name. The agent adds a constant.
    arms : tuple of str
        Arms with parameters of their own, asked for by name.
    context : tuple of str
        Numbers that all arms of a request have in common, with parameters of their own for each arm.
    vectors : bool
        Whether arms are given by lists of numbers, without names.
    model : bool
        Whether features are those of the model that the space began with.
    policy : str
        A name of `posse list`, with parameters or without.
    floor, rewards, reward_wait, default_reward, mode, control, control_arm, publish
        As of `posse.Agent`.
    log : "chosen" or "all"
        Whether the journal keeps the features of the chosen arm, or of all.
    """

    name: Name
    features: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    vectors: bool = False
    model: bool = False
    policy: str = "shared"
    floor: float | dict[str, float] = 0.01
    rewards: Literal["first", "last", "sum"] = "first"
    reward_wait: float | None = None
    default_reward: float | None = None
    mode: Literal["live", "shadow"] = "live"
    control: float = 0.0
    control_arm: str | int | None = None
    publish: Literal["auto", "manual"] = "auto"
    log: Literal["chosen", "all"] = "chosen"

    @property
    def fixed(self) -> bool:
        """Whether it is known what arms look like."""
        return bool(self.features or self.arms or self.vectors or self.model)

    def encoder(self) -> Encoder | None:
        """Return how arms become features; None where they are lists of numbers or a model knows it."""
        if self.vectors or self.model or not self.fixed:
            return None
        columns = tuple(NumberColumn(name=name) for name in (*self.features, *self.context))
        return Encoder(columns=columns, arms=self.arms, own=self.context if self.arms else ())

    def options(self) -> dict[str, Any]:
        """Return the settings of the agent of this space by name, as `Agent.open` takes them."""
        return {
            "encoder": self.encoder(),
            "floor": self.floor,
            "rewards": self.rewards,
            "reward_wait": self.reward_wait,
            "default_reward": self.default_reward,
            "mode": self.mode,
            "control": self.control,
            "control_arm": self.control_arm,
            "publish": self.publish,
            "features": self.log,
        }

    def same_agent(self, other: Space) -> bool:
        """Return whether an agent of this space can go on as one of the other."""
        return all(getattr(self, name) == getattr(other, name) for name in LASTING)


def agent_options(space: Space) -> Any:
    """Return the settings of the agent of a space, as `Agent.open` takes them: a model brings its encoder."""
    options = space.options()
    if space.model:
        del options["encoder"]
    return options


def check_space(space: Space) -> Space:
    """Return a space as it is, or say what of it cannot be."""
    kinds = [name for name in ("features", "arms", "vectors", "model") if getattr(space, name)]
    if space.vectors and len(kinds) > 1:
        raise ValueError(f"`vectors` of a space must be false where its features have names. Got {kinds!r}.")
    if space.context and not space.arms:
        raise ValueError(f"`context` of a space must belong to named `arms`. Got {space.context!r:.200}.")
    for name in ("features", "arms", "context"):
        for text in getattr(space, name):
            if not 0 < len(text) <= 200:
                raise ValueError(
                    f"`{name}` of a space must be names of 1 to 200 characters. Got {text!r:.99}."
                )
    options = space.options()
    if space.encoder() is not None and (dim := options["encoder"].dim) > MOST_FEATURES:
        raise ValueError(
            f"a space must have at most {MOST_FEATURES} features, where each of `arms` has one and one more "
            f"for each of `context`. Got {dim}."
        )
    Settings(policy=policy_of(space.policy), **options)
    return space


def policy_of(text: str) -> Policy:
    """Return a policy by its name in `posse list`, if that need not know the problem.

    Examples
    --------
    >>> policy_of("shared-thompson")
    SharedThompson()
    """
    if is_imported(text):
        raise ValueError(f"`policy` of a space must be a name of `posse list`. Got {text!r:.200}.")
    entry, typed = find_policy(text, "`policy` of a space")
    nothing: Any = None
    try:
        return entry.make(parse_call(text)[0], typed, nothing, PolicyOptions())
    except (AttributeError, TypeError):
        raise ValueError(
            f"`policy` of a space must be one that need not know the problem. Got {text!r:.200}."
        ) from None


def first_seen(space: Space, arms: Any, context: Mapping[str, Any] | None) -> Space:
    """Return a space as its first request fixes it.

    Parameters
    ----------
    space : Space
    arms : mapping of str to mappings or lists, list of str, or list of lists
    context : mapping, optional
        Of numbers by name.
    """
    if isinstance(arms, Mapping) and arms:
        row = next(iter(arms.values()))
        if not isinstance(row, Mapping):
            return msgspec.structs.replace(space, vectors=True)
        names = (*row, *(context or {}))
        if not names:
            return msgspec.structs.replace(space, arms=tuple(arms))
        return msgspec.structs.replace(space, features=tuple(dict.fromkeys(names)))
    if arms and isinstance(arms[0], str):
        return msgspec.structs.replace(space, arms=tuple(arms), context=tuple(context or ()))
    return msgspec.structs.replace(space, vectors=True)


def read_spaces(path: Path) -> list[tuple[Space, Path | None]]:
    """Return the spaces that a TOML file describes, and the file of the model that each begins with.

    Parameters
    ----------
    path : Path
        With a table `[spaces.NAME]` for each, whose keys are the fields of `Space`; `model` is the path of a
        fitted model, from the folder of the file.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"the file of spaces must be TOML: {path}: {error}.") from None
    unknown = [key for key in content if key != "spaces"]
    if unknown:
        raise ValueError(f"the file of spaces must have tables [spaces.NAME] only. Got {unknown!r:.200}.")
    found = []
    for name, fields in content.get("spaces", {}).items():
        model = fields.pop("model", None)
        try:
            space = msgspec.convert({**fields, "name": name, "model": model is not None}, Space)
        except msgspec.ValidationError as error:
            raise ValueError(f"space {name!r} of {path} must be as documented: {error}.") from None
        found.append((check_space(space), None if model is None else path.parent / str(model)))
    return found

"""What goes over the wire: requests and answers, as types that are checked while they are read."""

from __future__ import annotations

from typing import Annotated, Literal

from posse.core.extras import extra
from posse.live.records import UNKNOWN, Asked, Decision
from posse.serve.spaces import MOST_FEATURES

with extra("serve"):
    import msgspec
    from msgspec import Meta, Struct

# So many rows come in one batch at most.
MOST_ROWS = 1000

Text = Annotated[str, Meta(min_length=1, max_length=200)]
Number = Annotated[float, Meta(ge=-1e75, le=1e75)]
# Names and numbers of features have no limits here: a space knows their names, an agent their size, and to
# check each would take a third of the time of reading a request.
Value = bool | float | str | None
Features = Annotated[dict[str, Value], Meta(max_length=MOST_FEATURES)]
Row = Annotated[list[float], Meta(min_length=1, max_length=MOST_FEATURES)]
Arms = (
    Annotated[dict[Text, Features | Row], Meta(min_length=1, max_length=10_000)]
    | Annotated[list[Text | Row], Meta(min_length=1, max_length=10_000)]
)


class Ask(Struct, kw_only=True, forbid_unknown_fields=True):
    """A request for a decision.

    `arms` are features by the names of arms, lists of numbers by names or without, or names alone. A repeated
    `id` gets the decision that was made.
    """

    task: Text
    arms: Arms
    context: Features | None = None
    id: Text | None = None
    unit: Text | None = None
    shown: bool = True
    space: Text = "default"


class Answer(Struct, kw_only=True):
    """A decision. Propensities are by name, or in the order of arms that have no names."""

    id: str
    arm: str | int
    propensity: float
    propensities: dict[str, float] | list[float]
    version: int
    task: str
    space: str


class Tell(Struct, kw_only=True, forbid_unknown_fields=True):
    """A reward of a decision; told again, it changes nothing.

    `event` names which of several it is, `at` is when it came about in seconds since 1970, `played` is the
    arm that was played in shadow mode.
    """

    id: Text
    reward: Number
    event: Text | None = None
    at: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    played: str | int | None = None
    space: Text | None = None


class AskRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """One of many requests of a batch."""

    task: Text
    arms: Arms
    context: Features | None = None
    id: Text | None = None


class AskMany(Struct, kw_only=True, forbid_unknown_fields=True):
    """Many requests of one space: all are decided, or none."""

    asks: Annotated[list[AskRow], Meta(min_length=1, max_length=MOST_ROWS)]
    space: Text = "default"


class Answers(Struct, kw_only=True):
    """The decisions of a batch, in its order."""

    decisions: list[Answer]


class TellRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """One of many rewards of a batch."""

    id: Text
    reward: Number
    event: Text | None = None
    at: Annotated[float, Meta(ge=0, le=1e11)] | None = None


class TellMany(Struct, kw_only=True, forbid_unknown_fields=True):
    """Many rewards: those of one agent are told all, or none."""

    tells: Annotated[list[TellRow], Meta(min_length=1, max_length=MOST_ROWS)]
    space: Text | None = None


class Shown(Struct, kw_only=True, forbid_unknown_fields=True):
    """Says that a decision was shown which was asked for with `shown` false."""

    id: Text
    space: Text | None = None


class Turn(Struct, kw_only=True, forbid_unknown_fields=True):
    """Names a version to decide by."""

    version: Annotated[int, Meta(ge=0, le=2**31)]
    space: Text = "default"


class Freeze(Struct, kw_only=True, forbid_unknown_fields=True):
    """Stops learning, or goes on with it."""

    on: bool = True
    space: Text = "default"


class Done(Struct, kw_only=True):
    """Says that what was asked for has happened, and is in the journal."""

    ok: bool = True


class Ready(Struct, kw_only=True):
    """Says that decisions are made. While the store is away, rewards and changes are refused with 503."""

    ok: bool = True
    store: Literal["here", "away"] = "here"


class Told(Struct, kw_only=True):
    """A reward of a decision."""

    event: str | None
    reward: float
    at: float


class Record(Struct, kw_only=True):
    """A decision as it is kept, with its rewards so far."""

    id: str
    space: str
    task: str
    at: float
    arm: str | int
    propensity: float
    propensities: dict[str, float] | list[float]
    version: int
    shown: bool
    control: bool
    played: str | int | None
    rewards: list[Told]


class Problem(Struct, kw_only=True):
    """What was wrong, as RFC 9457 has it: `detail` says what must be, and what was found."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"


def propensities_of(asked: Asked) -> dict[str, float] | list[float]:
    """Return the propensities of a decision by the names of its arms, or in their order."""
    chances: list[float] = asked.chances.tolist()
    return chances if asked.names is None else dict(zip(asked.names, chances, strict=True))


def record_of(space: str, asked: Asked) -> Record:
    """Return what is known of a decision."""
    decision = asked.decision
    return Record(
        id=asked.id,
        space=space,
        task=asked.task,
        at=asked.at,
        arm=decision.arm,
        propensity=decision.propensity,
        propensities=propensities_of(asked),
        version=asked.version,
        shown=asked.shown,
        control=asked.control,
        played=_played(asked),
        rewards=[
            Told(event=reward.event or None, reward=reward.value, at=reward.at)
            for reward in sorted(asked.rewards)
        ],
    )


def _played(asked: Asked) -> str | int | None:
    if asked.played == UNKNOWN:
        return None
    place = asked.played if asked.played >= 0 else asked.arm
    return place if asked.names is None else asked.names[place]


def answer_of(space: str, decision: Decision, arms: dict[str, object] | list[object]) -> Answer:
    """Return the answer to a request, from its decision and the arms as they were sent."""
    chances: list[float] = decision.propensities.tolist()
    named = isinstance(arms, dict) or isinstance(arms[0], str)
    return Answer(
        id=decision.id,
        arm=decision.arm,
        propensity=decision.propensity,
        propensities=dict(zip(arms, chances, strict=True)) if named else chances,  # type: ignore[arg-type]
        version=decision.version,
        task=decision.task,
        space=space,
    )


encode = msgspec.json.Encoder().encode

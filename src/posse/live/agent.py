"""Live decisions: ask for an arm, tell the reward when it comes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypedDict, Unpack

from posse.core.encoder import Encoder
from posse.core.model import Model
from posse.core.protocols import Policy
from posse.live import events as happened
from posse.live.batches import ask_many, tell_many
from posse.live.controls import Controls
from posse.live.desk import Desk, check_played, check_reward, check_time
from posse.live.files import changed, keep_settings, open_desk
from posse.live.ids import check_text
from posse.live.journal import MemoryJournal
from posse.live.records import Asked, Decision
from posse.live.refits import fitter_of
from posse.live.settings import Settings, known_options, salt_of
from posse.numerics.checks import Array


class Options(TypedDict, total=False):
    """Settings of an agent by name, as `Agent` explains them."""

    encoder: Encoder | None
    rewards: str
    reward_wait: float | None
    default_reward: float | None
    mode: str
    control: float
    control_arm: str | int | None
    control_policy: Policy | None
    floor: float | dict[str, float]
    features: str
    refits: str
    publish: str
    keep: int
    salt: str


class Agent(Controls):
    """A policy behind live traffic: it decides, waits for rewards, learns, and keeps an account of all of it.

    `Agent(...)` lives in memory; `Agent.open(path, ...)` keeps a journal in a file, from which it goes on.
    It may be used by many threads.

    Parameters
    ----------
    policy : Policy, optional
        Any that a `Learner` takes; `Shared()` by default.
    model : Model, optional
        Fitted to a log: what to begin with. It brings its encoder.
    seed : int, optional
        For exploration; fresh by default. With a seed, decisions depend on what was asked and told alone.
    clock : callable
        Returns seconds since 1970.
    **options
        encoder : Encoder, optional
            How names of arms and a context become features.
        rewards : "first", "last" or "sum"
            Which of a decision's rewards count, by the times at which they came about.
        reward_wait : float, optional
            Seconds after a decision in which rewards count; for ever by default.
        default_reward : float, optional
            What a decision counts with that has no reward by then; by default it does not count.
        mode : "live" or "shadow"
            In shadow mode the caller plays arms of its own choice, and tells which.
        control : float
            The share of units that are held back: they play `control_arm`, or by `control_policy`.
        control_arm : str or int, optional
            An arm by name or row; by default any, with equal probabilities. So it is where the arm is not on
            offer, or forbidden for a task; the status has an alarm if that is so for most decisions.
        control_policy : Policy, optional
            What the control group plays by, without a floor. It learns from the rewards of that group alone,
            and its refits are made in the call that finds them due.
        floor : float or dict of str to float
            The least probability of every arm on offer, or of arms by their names, all others having 0.
            Together they take at most half of the choices.
        features : "chosen" or "all"
            Whether the journal keeps the features of the arm that was chosen, or of all arms.
        refits : "background", "inline" or "never"
            Where the prior that tasks share is learned anew: in a process beside this one, or in the call
            that finds it due.
        publish : "auto" or "manual"
            Whether a refit is decided by as soon as it is there, or once it is promoted.
        keep : int
            Of how many versions the states are kept, to go back to.
        salt : str
            By what units are drawn for the control group: agents with equal salts hold back the same units.
            A new agent draws one of its own by default, from the seed if it has one.

    Examples
    --------
    >>> import numpy as np
    >>> agent = Agent(refits="inline", seed=0)
    >>> decision = agent.ask("shop 17", {"red": [1.0, 0.0], "blue": [0.0, 1.0]})
    >>> decision.arm, decision.propensities
    ('blue', array([0.5, 0.5]))
    >>> agent.tell(decision.id, 1.0)
    >>> agent.status().rewards
    1
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        model: Model | None = None,
        seed: int | None = None,
        clock: Callable[[], float] = time.time,
        **options: Unpack[Options],
    ) -> None:
        settings = settings_of(policy, model, options, seed)
        self._begin_at(Desk(settings, MemoryJournal(), fitter_of(settings), model, seed, clock))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        policy: Policy | None = None,
        *,
        model: Model | None = None,
        durability: str = "process",
        snapshot_every: int = 20_000,
        seed: int | None = None,
        clock: Callable[[], float] = time.time,
        **options: Unpack[Options],
    ) -> Self:
        """Open the agent of a file, or make one.

        What is not given is as it was when the file was made.

        Parameters
        ----------
        path : path
            A SQLite file on a local disk; states are kept in a folder beside it, `path` and "-states".
        policy, model, seed, clock, **options
            As of `Agent`. What says what was learned from which events cannot be another than before.
        durability : "process" or "power"
            What an answer promises: that nothing is lost if the process is killed, or not even if the power
            fails.
        snapshot_every : int
            After so many events the state is saved, so that opening the file again is quick.
        """
        given = dict(options) if policy is None else {"policy": policy, **options}
        agent = cls.__new__(cls)
        agent._begin_at(open_desk(path, given, model, durability, snapshot_every, seed, clock, settings_of))
        return agent

    def change(self, **options: Unpack[Options]) -> None:
        """Change settings while others ask and tell; each decision is made by those of before or of after.

        Parameters
        ----------
        **options
            As of `Agent`, but for what says what is learned from which events, and for `refits`. Another
            `publish` decides from now on whether refits are adopted, also after `rollback`.
        """
        desk = self._desk
        with self._lock:
            desk.check()
            settings = changed(desk.settings, options, "")
            if settings.refits != desk.settings.refits:
                raise ValueError(
                    f"`refits` of change must be {desk.settings.refits!r}, as it was opened. "
                    f"Got {settings.refits!r}."
                )
            turned = settings.publish != desk.settings.publish
            keep_settings(desk.journal, settings)
            desk.change(settings)
            if turned and self._engine.versions:
                self._turn(self._engine.live, settings.publish == "auto")
            elif turned:
                self._engine.automatic = settings.publish == "auto"
            desk.publish()
        desk.acknowledge()

    def ask(
        self,
        task: str,
        arms: Any,
        context: Mapping[str, Any] | None = None,
        id: str | None = None,
        *,
        unit: str | None = None,
        shown: bool = True,
    ) -> Decision:
        """Decide for a task.

        Parameters
        ----------
        task : str
            One that was never seen starts from what is known of new tasks.
        arms : (K, d), mapping of str to (d,) or to columns, or sequence of str
            What is on offer: features, one row for each arm; features or columns by the arms' names; or
            names, whose features the encoder knows.
        context : mapping, optional
            Columns that all arms have in common, for the encoder.
        id : str, optional
            The decision's; a repeated one gets the decision that was made.
        unit : str, optional
            What is held back or not as a whole, with `control`; the task by default.
        shown : bool
            False if it is not certain yet that the decision is shown: it counts once `activate` says so.
        """
        desk = self._desk
        with self._lock:
            desk.check()
            asked = None if id is None else desk.known(check_text("`id` of ask", id))
            if asked is None:
                asked = self._decide(task, arms, context, id, unit, shown)
        desk.acknowledge()  # a decision that was known, too: another thread may still wait for it
        return asked.decision

    def _decide(
        self,
        task: str,
        arms: Any,
        context: Mapping[str, Any] | None,
        id: str | None,
        unit: str | None,
        shown: bool,
    ) -> Asked:
        """Make a decision and record it."""
        desk, engine = self._desk, self._engine
        now = desk.now()
        if engine.queue and engine.queue[0][0] < now:
            desk.expire(now)
        if type(task) is not str:
            task = check_text("`task` of ask", task)
        number = engine.numbers.get(task)
        offer = desk.offers.read(arms, context, None if engine.learner is None else engine.learner.dim)
        if number is None:
            number = desk.number_of(check_text("`task` of ask", task), offer.features.shape[1], now)
        learner = engine.learner
        assert learner is not None
        desk.dice.place(engine.counts["decisions"])
        chosen = desk.guard.choose(
            learner,
            engine.holdback,
            task,
            number,
            offer,
            task if unit is None else check_text("`unit` of ask", unit),
            engine.forbidden.get(task),
            desk.dice.rng,
        )
        named = desk.ids.next(now) if id is None else str(id)
        asked = desk.guard.record(named, now, task, offer, chosen, engine.live, shown)
        desk.record(asked)
        return asked

    def tell(
        self,
        id: str,
        reward: float,
        event: str | None = None,
        at: float | None = None,
        *,
        played: int | str | None = None,
    ) -> None:
        """Tell a reward of a decision; told again, it changes nothing.

        Parameters
        ----------
        id : str
            Of the decision.
        reward : float
        event : str, optional
            Which of the decision's rewards this is, if there are several.
        at : float, optional
            When it came about, in seconds since 1970; now by default.
        played : int or str, optional
            In shadow mode: the arm that was played.
        """
        desk, engine = self._desk, self._engine
        with self._lock:
            desk.check()
            now = desk.now()
            told = self._check_told(id, reward, event, at, played, now)
            if told is not None:
                desk.record(told)
                if engine.queue and engine.queue[0][0] < now:
                    desk.expire(now)
                desk.refit_if_due()
        desk.acknowledge()

    def _check_told(
        self, id: str, reward: Any, event: str | None, at: float | None, played: int | str | None, now: float
    ) -> happened.Told | None:
        """Return what to record of a reward; None if that was told before."""
        value = check_reward(reward)
        asked = self._engine.find(check_text("`id` of tell", id))
        if asked is None:
            raise ValueError(f"`id` of tell must be that of a decision. Got {id!r}, which is unknown.")
        if event is not None:
            event = check_text("`event` of tell", event)
        place = check_played(asked, played)
        before = asked.told(event or "")
        if before is None:
            return happened.Told(asked.id, event or "", now if at is None else check_time(at), value, place)
        if before.value != value:
            which = "" if event is None else f" for event {event!r}"
            raise ValueError(
                f"`reward` of decision {id!r} must be {before.value}, as told before{which}. Got {value}."
            )
        return None

    def ask_many(
        self,
        tasks: Sequence[str],
        arms: Sequence[Any] | Array,
        contexts: Sequence[Mapping[str, Any] | None] | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Decide for m rows at once, faster than one after the other; a task may come several times.

        Parameters
        ----------
        tasks : sequence of str
        arms : sequence
            What is on offer in each row, as of `ask`; or features (m, K, d).
        contexts, ids : sequence, optional
            As of `ask`, one for each row.
        """
        with self._lock:
            decisions = ask_many(self._desk, tasks, arms, contexts, ids)
        self._desk.acknowledge()
        return decisions

    def tell_many(
        self,
        ids: Sequence[str],
        rewards: Sequence[float],
        events: Sequence[str | None] | None = None,
        ats: Sequence[float | None] | None = None,
    ) -> None:
        """Tell many rewards at once: all of them, or none if one is wrong.

        Parameters
        ----------
        ids, rewards, events, ats : sequence
            As of `tell`, one for each reward.
        """
        with self._lock:
            tell_many(self._desk, self._check_told, ids, rewards, events, ats)
        self._desk.acknowledge()

    def activate(self, id: str) -> None:
        """Say that a decision was shown which was asked for with `shown=False`: from now on it counts."""
        with self._lock:
            self._desk.check()
            asked = self._engine.find(check_text("`id` of activate", id))
            if asked is None:
                raise ValueError(
                    f"`id` of activate must be that of a decision. Got {id!r}, which is unknown."
                )
            if not asked.shown and id in self._engine.waiting:
                self._desk.record(happened.Shown(self._desk.now(), id))
                self._desk.refit_if_due()
        self._desk.acknowledge()


def settings_of(
    policy: Policy | None, model: Model | None, options: Mapping[str, Any], seed: int | None
) -> Settings:
    """Return the settings of a new agent."""
    known = {"salt": salt_of(seed), **known_options(options)}
    known.pop("policy", None)
    policy = options.get("policy", policy)
    if model is not None:
        if not isinstance(model, Model):
            raise ValueError(
                f"`model` of Agent must be a Model, as `posse.load` gives it. Got {model!r:.200}."
            )
        if known.get("encoder") not in (None, model.encoder):
            raise ValueError("`encoder` of Agent must be None or that of the model. Got another.")
        known["encoder"] = model.encoder
    settings = Settings(**known)
    return settings if policy is None else replace(settings, policy=policy)

"""Many decisions or rewards in one call, and in one transaction of the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from posse.live.desk import Desk
from posse.live.events import Told
from posse.live.guards import Chosen, floors_of, mixed
from posse.live.ids import check_text
from posse.live.offers import Offer
from posse.live.records import Asked, Decision
from posse.numerics.checks import Array


def ask_many(
    desk: Desk,
    tasks: Sequence[str],
    arms: Sequence[Any] | Array,
    contexts: Sequence[Mapping[str, Any] | None] | None,
    ids: Sequence[str] | None,
) -> list[Decision]:
    """Decide for m rows; `Agent.ask_many` says what each argument is.

    Rows with equally many arms are decided by one call of the learner, unless there is a control group, a
    forbidden arm or a floor of single arms: then they are decided one after the other.
    """
    n_rows = len(tasks)
    check_lengths("ask_many", n_rows, arms=arms, contexts=contexts, ids=ids)
    desk.check()
    now = desk.now()
    desk.expire(now)
    named, known = _named(desk, n_rows, ids, now)
    offers, whole = _read(desk, arms, contexts, n_rows)
    tasks = [check_text("`tasks` of ask_many", task) for task in tasks]
    numbers = [desk.number_of(task, offers[0].features.shape[1], now) for task in tasks]
    new = [row for row in range(n_rows) if named[row] not in known]
    rows = [(tasks[row], numbers[row], offers[row]) for row in new]
    chosen = _choose(desk, rows, whole if len(new) == n_rows else None) if rows else []
    record, version = desk.guard.record, desk.engine.live
    made = [
        record(named[row], now, tasks[row], offers[row], choice, version, True)
        for row, choice in zip(new, chosen, strict=True)
    ]
    if made:
        desk.record(*made)
    known |= {asked.id: asked for asked in made}
    return [known[id].decision for id in named]


def _named(
    desk: Desk, n_rows: int, ids: Sequence[str] | None, now: float
) -> tuple[list[str], dict[str, Asked]]:
    """Return the ids of rows, those that were given or new ones, and decisions that were made for them."""
    if ids is None:
        return [desk.ids.next(now) for _ in range(n_rows)], {}
    named = [check_text("`ids` of ask_many", id) for id in ids]
    if len(set(named)) < n_rows:
        raise ValueError("`ids` of ask_many must be different from each other. Got one twice.")
    found = {id: desk.known(id) for id in named}
    return named, {id: asked for id, asked in found.items() if asked is not None}


def check_lengths(owner: str, n_rows: int, **given: Sequence[Any] | Array | None) -> None:
    """Raise if an argument of a batch is not of its length."""
    for name, values in given.items():
        if values is not None and len(values) != n_rows:
            raise ValueError(f"`{name}` of {owner} must be one for each of {n_rows} rows. Got {len(values)}.")


def _read(
    desk: Desk,
    arms: Sequence[Any] | Array,
    contexts: Sequence[Mapping[str, Any] | None] | None,
    n_rows: int,
) -> tuple[list[Offer], Array | None]:
    """Return what is on offer in every row, and all of it (m, K, d) where it came in one piece."""
    learner = desk.engine.learner
    dim = None if learner is None else learner.dim
    if isinstance(arms, np.ndarray) and arms.ndim == 3 and contexts is None and arms.size:
        whole = np.ascontiguousarray(arms, dtype=np.float64)
        desk.offers.read(whole.reshape(-1, arms.shape[2]), None, dim)
        return [Offer(None, whole[row]) for row in range(n_rows)], whole
    found = _read_at_once(desk, arms, dim) if contexts is None else None
    if found is not None:
        return found
    offers = []
    for row in range(n_rows):
        offer = desk.offers.read(arms[row], None if contexts is None else contexts[row], dim)
        dim = offer.features.shape[1]
        offers.append(offer)
    return offers, None


def _read_at_once(
    desk: Desk, arms: Sequence[Any] | Array, dim: int | None
) -> tuple[list[Offer], Array | None] | None:
    """Return what `_read` does, if all that is on offer can be read in one go."""
    found = desk.offers.read_many(arms, dim) if isinstance(arms, list) and arms else None
    if found is None:
        return None
    offers, whole = found
    alike = len({len(offer.features) for offer in offers}) == 1
    return offers, whole.reshape(len(offers), -1, whole.shape[1]) if alike else None


def _choose(desk: Desk, rows: list[tuple[str, int, Offer]], whole: Array | None) -> list[Chosen]:
    """Return choices for tasks, by names and numbers, and what each is offered."""
    engine, settings = desk.engine, desk.settings
    learner, rng = engine.learner, desk.dice.rng
    assert learner is not None
    desk.dice.place(engine.counts["decisions"])
    alike = len({len(offer.features) for _, _, offer in rows}) == 1
    if not alike or settings.control or engine.forbidden or isinstance(settings.floor, dict):
        return [
            desk.guard.choose(
                learner, engine.holdback, task, number, offer, task, engine.forbidden.get(task), rng
            )
            for task, number, offer in rows
        ]
    stacked = np.stack([offer.features for _, _, offer in rows]) if whole is None else whole
    choice = learner.select(np.array([number for _, number, _ in rows]), stacked)
    arm, chances = mixed(choice, floors_of(settings, rows[0][2], None), rng)
    return [Chosen(int(arm[row]), chances[row], -1, False) for row in range(len(rows))]


def tell_many(
    desk: Desk,
    check: Callable[[str, Any, str | None, float | None, int | str | None, float], Told | None],
    ids: Sequence[str],
    rewards: Sequence[float],
    events: Sequence[str | None] | None,
    ats: Sequence[float | None] | None,
) -> None:
    """Tell many rewards; `Agent.tell_many` says what each argument is."""
    n_rows = len(ids)
    check_lengths("tell_many", n_rows, rewards=rewards, events=events, ats=ats)
    desk.check()
    now = desk.now()
    told: dict[tuple[str, str], Told] = {}
    for row in range(n_rows):
        event = None if events is None else events[row]
        found = check(ids[row], rewards[row], event, None if ats is None else ats[row], None, now)
        if found is None:
            continue
        before = told.setdefault((found.id, found.event), found)
        if before.value != found.value:
            raise ValueError(
                f"`reward` of {found.id!r} must be {before.value}, as told before. Got {found.value}."
            )
    if told:
        desk.record(*told.values())
    desk.expire(now)
    desk.refit_if_due()

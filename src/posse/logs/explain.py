"""Why a task's parameters are what they are: its own data, the other tasks, and how much each weighs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from posse.core.columns import DAY, DateColumn, NumberColumn, level_of
from posse.core.encoder import Encoder
from posse.core.model import Model
from posse.core.posterior import MovingPosterior
from posse.core.statistics import GramStatistics
from posse.estimators import FactorEstimate, Ridge
from posse.logs.levels import with_levels, without_levels
from posse.numerics.checks import Array, check_choice

# A variance that is larger by less than this share is as large.
ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a feature is worth in one task, and who says so.

    Attributes
    ----------
    feature : str
    own, own_deviation : float
        What the task's own rows say, with its standard deviation; NaN where they say nothing.
    others, others_deviation : float
        What the tasks of the log make one expect of a task that was never seen.
    together, together_deviation : float
        What both together say.
    weight : float
        How much the task's own rows weigh, from 0 to 1: the share of the variance before them that they
        have removed. NaN where they removed none, though they say something: what is known of a new task
        takes one prior for certain, and what is known of this one counts that others are possible.
    scale : float or None
        One of the feature is so many units of its column: its standard deviation, or that of time in days.
        None where a feature has no other unit, as a category.
    """

    feature: str
    own: float
    own_deviation: float
    others: float
    others_deviation: float
    together: float
    together_deviation: float
    weight: float
    scale: float | None = None

    @property
    def per_unit(self) -> float | None:
        """What both together say of one unit of the column; None where a feature has no other unit."""
        return None if self.scale is None else self.together / self.scale


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What is known of one task of a model, by feature.

    Attributes
    ----------
    task : str
    rows : float
        Rows of the task, or what they weigh.
    noise : float
        The standard deviation of a single reward around its mean.
    alone : float or None
        The probability that the task has nothing in common with the others; None where the model does not
        say, or tasks share no direction.
    effects : tuple of Effect
        One for each feature, in order.
    """

    task: str
    rows: float
    noise: float
    alone: float | None
    effects: tuple[Effect, ...]


def explain(model: Model, task: str) -> Explanation:
    """Say what is known of a task by its own rows, by those of all other tasks, and by both.

    Its own rows speak through ridge regression, with the penalty that they make likeliest and a level that
    nothing shrinks. What others say is what a model believes of a task that was never seen.

    Parameters
    ----------
    model : Model
        As `fit` returns it.
    task : str
        The name of one of its tasks.

    Examples
    --------
    >>> import pandas as pd
    >>> from posse.logs import fit
    >>> log = pd.DataFrame({"shop": ["oslo", "bergen"] * 50, "price": [1.0, 2.0, 3.0, 4.0] * 25})
    >>> log["sold"] = 8.0 - log["price"] + [0.1, -0.1, -0.1, 0.1, 0.3] * 20
    >>> known = explain(fit(log, task="shop", reward="sold"), "oslo")
    >>> known.rows, [effect.feature for effect in known.effects]
    (50.0, ['(constant)', 'price'])
    >>> round(known.effects[1].own, 1), round(known.effects[1].per_unit, 1)
    (-1.1, -1.0)
    """
    place = _place(model, task)
    posterior = model.estimate.posterior
    assert isinstance(posterior, MovingPosterior)
    mine = model.statistics.take(np.array([place]))
    theta, root, deviation = (part[place] for part in posterior.beliefs(model.estimate.theta).parts)
    new_theta, new_root, new_deviation = (part[0] for part in posterior.newcomer().parts)
    variance = deviation**2 * np.sum(root**2, axis=1)
    before = new_deviation**2 * np.sum(new_root**2, axis=1)
    left = np.divide(variance, before, out=np.ones_like(variance), where=before > 0)
    weight = np.where(left > 1.0 + ROUNDING, np.nan, np.maximum(1.0 - left, 0.0))
    own = _own(mine, model.encoder.constant)
    columns = own[0], own[1], new_theta, np.sqrt(before), theta, np.sqrt(variance), weight
    names = (
        "own",
        "own_deviation",
        "others",
        "others_deviation",
        "together",
        "together_deviation",
        "weight",
    )
    scales = scales_of(model.encoder)
    return Explanation(
        task=model.tasks[place],
        rows=float(mine.count[0]),
        noise=float(deviation),
        alone=_alone(model, place),
        effects=tuple(
            Effect(
                feature=feature,
                scale=scales.get(feature),
                **dict(zip(names, map(float, values), strict=True)),
            )
            for feature, values in zip(model.encoder.features, np.stack(columns, axis=1), strict=True)
        ),
    )


def _place(model: Model, task: str) -> int:
    name = level_of(task)
    check_choice("a task of the model", name or "", model.tasks)
    return model.tasks.index(name or "")


def _alone(model: Model, place: int) -> float | None:
    estimate = model.estimate
    if not isinstance(estimate, FactorEstimate) or estimate.rank == 0:
        return None
    return float(estimate.alone[place])


def _own(statistics: GramStatistics, constant: int | None) -> tuple[Array, Array]:
    """Return what the rows of one task say of its parameters, and standard deviations, (d,) each.

    NaN stands for features that do not vary in the task.
    """
    inside = without_levels(statistics, constant)
    effects, deviations = np.zeros((1, inside.dim)), np.zeros((1, inside.dim))
    variance = float(np.divide(inside.square, inside.count)[0]) if inside.count[0] > 0 else np.nan
    carried = 0.0  # by the uncertainty of effects, to that of the level
    if inside.dim and inside.count[0] > 0:
        estimate = Ridge().fit(inside)
        posterior = estimate.posterior
        assert isinstance(posterior, MovingPosterior)
        beliefs, covariance = posterior.beliefs(estimate.theta), estimate.covariance[0]
        effects, variance = estimate.theta, float(beliefs.deviation[0] ** 2)
        deviations = np.sqrt(np.diag(covariance))[None]
        if constant is not None:
            means = np.delete(statistics.gram[0, constant], constant) / statistics.gram[0, constant, constant]
            carried = float(means @ covariance @ means)
    silent = np.diag(inside.gram[0]) == 0.0
    theta = with_levels(effects, statistics, constant)[0]
    spread, quiet = deviations[0], silent
    if constant is not None:
        level = np.sqrt(variance / statistics.gram[0, constant, constant] + carried)
        spread, quiet = np.insert(spread, constant, level), np.insert(silent, constant, False)
    return np.where(quiet, np.nan, theta), np.where(quiet, np.nan, spread)


def scales_of(encoder: Encoder) -> Mapping[str, float]:
    """Return how many units of its column one of a feature is, by the names of features that have units.

    A number has the units of its column, the trend of dates has days.

    Examples
    --------
    >>> scales_of(Encoder(columns=(NumberColumn(name="price", mean=10.0, scale=2.0),), arms=("a", "b")))
    {'price': 2.0, 'a: price': 2.0, 'b: price': 2.0}
    """
    found: dict[str, float] = {}
    for column in encoder.columns:
        if isinstance(column, NumberColumn):
            found[column.name] = column.scale
        elif isinstance(column, DateColumn) and "trend" in column.parts:
            found[f"{column.name} trend"] = column.scale / DAY
    own = {f"{arm}: {name}": scale for arm in encoder.arms for name, scale in found.items()}
    return found | own

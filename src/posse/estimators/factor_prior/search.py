"""Find the likeliest factor prior of a given rank: quasi-Newton steps in coordinates of equal curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel
from posse.estimators.factor_prior.information import information
from posse.numerics.checks import Array
from posse.numerics.compiled import loading

# The variance outside of the shared directions, in units of noise and of features' mean square: as far as
# data can tell, the least of these is none, and the largest is noise-free.
LEAST_RATIO, LARGEST_RATIO = 1e-8, 1e8
# Where there is no variance outside, what is divided by it is divided by this.
LEAST_BEND = 1e-100
# The logarithm of a task's scale never leaves this interval.
LARGEST_LOG_SCALE = 12.0
# New coordinates are taken after this many steps.
STEPS_PER_STAGE, MOST_STEPS = 40, 240
# New directions are tried with these shares of the strength that they would have if all features were alike.
SHARES = (1.0, 0.25, 0.06, 0.015)
# Climbing ends where a step gains less than this in deviance, and at the latest with a stage that gains
# less than the second: no data could tell the difference.
STEP_GAIN, STAGE_GAIN = 1e-9, 0.1
# A goal is out of reach if, after some steps, it is farther than so many times the slope's square: that is
# twice the gain that it promises where curvatures are 1.
LEAST_STEPS, REACH = 8, 20.0


@dataclass(frozen=True)
class Found:
    """A fitted model, its deviance and how it was reached."""

    model: FactorModel
    deviance: float
    slope: float
    n_iter: int
    converged: bool


def maximise_evidence(
    evidence: FactorEvidence,
    start: FactorModel,
    *,
    learn_mean: bool = False,
    step_gain: float = STEP_GAIN,
    most_steps: int = MOST_STEPS,
    goal: float = np.inf,
) -> Found:
    """Climb from a model to the likeliest of its rank, until a step gains less than `step_gain`.

    It is given up where the deviance is out of reach of a goal.
    """
    with loading():  # a third of a second, and only who learns a prior needs it
        from scipy.optimize import minimize

    model, n_iter, converged, hopeless = start, 0, False, False
    while not (converged or hopeless) and n_iter < most_steps:
        coordinates = _Coordinates(evidence, model, learn_mean=learn_mean)
        before, slope = coordinates.at_origin
        if coordinates.size == 0:
            return Found(model, before, 0.0, 0, True)
        steps = min(STEPS_PER_STAGE, most_steps - n_iter)
        objective = _Objective(coordinates, goal)
        bounds = coordinates.bounds() / objective.unit
        result = minimize(
            objective,
            np.zeros(coordinates.size),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=objective.give_up if np.isfinite(goal) else None,
            options={
                "maxiter": steps,
                "maxcor": 20,
                "ftol": max(step_gain / max(abs(before), 1.0), np.finfo(float).eps),
                "gtol": objective.unit * np.sqrt(step_gain),
            },
        )
        n_iter += int(result.nit)
        model, slope = coordinates.model(objective.unit * result.x), result.jac / objective.unit
        slope = _projected(slope, objective.unit * result.x, objective.unit * bounds)
        hopeless = objective.hopeless
        converged = not hopeless and bool(result.nit < steps or before - result.fun < STAGE_GAIN)
    return Found(model, float(result.fun), float(np.abs(slope).max()), n_iter, converged)


def _projected(slope: Array, point: Array, bounds: Array) -> Array:
    """Return how far a step down the slope (n,) leads from a point (n,) within its intervals (n, 2)."""
    return np.asarray(point - np.clip(point - slope, *bounds.T))


class _Objective:
    """The deviance in a chart whose coordinates count in units, with a goal.

    The first step of L-BFGS has length 1, whatever the slope. Where curvatures are 1 the slope itself is the
    right step, so its length is the unit; but far from the end they are not, and a step of 1 in each
    coordinate is enough.
    """

    def __init__(self, coordinates: _Coordinates, goal: float) -> None:
        self.coordinates, self.goal = coordinates, goal
        self.n_steps, self.hopeless = 0, False
        self.slope = coordinates.at_origin[1]
        length = np.linalg.norm(self.slope)
        self.unit = float(np.clip(length, np.finfo(float).tiny, np.sqrt(self.slope.size)))

    def __call__(self, point: Array) -> tuple[float, Array]:
        value, self.slope = self.coordinates.deviance(self.unit * point)
        return value, self.unit * self.slope

    def give_up(self, intermediate_result: Any) -> None:
        """Stop after a few steps, where the slope promises far less than what is missing."""
        self.n_steps += 1
        missing = intermediate_result.fun - self.goal
        self.hopeless = self.n_steps >= LEAST_STEPS and missing > REACH * float(self.slope @ self.slope)
        if self.hopeless:
            raise StopIteration


def add_directions(evidence: FactorEvidence, model: FactorModel, n: int) -> FactorModel:
    """Return a model with n more shared directions: those in which what it leaves unexplained agrees most.

    Where all tasks have the same statistics X'X = h I this is the closed form of probabilistic principal
    components.
    """
    excess, directions, information = _unexplained(evidence, model)
    strengths = np.sqrt(np.maximum(excess[:n], 0.05) / information)
    candidates = (
        replace(model, factors=np.hstack([model.factors, share * strengths * directions[:n].T]))
        for share in SHARES
    )
    return min(candidates, key=lambda candidate: evidence.deviance(candidate)[0])


def count_directions(evidence: FactorEvidence, model: FactorModel) -> int:
    """Return in how many directions what a model leaves unexplained agrees more than by chance.

    T vectors in d dimensions agree by chance up to (1 + sqrt(d / T))^2 (Marchenko and Pastur).
    """
    excess, _, _ = _unexplained(evidence, model)
    return int(np.count_nonzero(excess + 1.0 > (1.0 + np.sqrt(evidence.dim / evidence.n_tasks)) ** 2))


def _unexplained(evidence: FactorEvidence, model: FactorModel) -> tuple[Array, Array, float]:
    """Return how much more residuals agree in some directions than noise does, the directions, and a unit.

    Returns
    -------
    excess : (m,)
        Largest first; 0 is what noise and the model's own variance make.
    directions : (m, d)
    information : float
        What a task's data tell on average about one direction.
    """
    solved = evidence.solve(model)
    whitened = np.exp(0.5 * model.log_scales)[:, None] * solved.residual
    _, lengths, directions = np.linalg.svd(whitened, full_matrices=False)
    information = max(float(solved.spread.mean() / evidence.values.shape[1]), np.finfo(float).tiny)
    excess = lengths**2 / (evidence.n_tasks * evidence.noise(solved) * information) - 1.0
    return excess, directions, information


class _Coordinates:
    """A linear chart around a model, scaled so that all curvatures are about 1.

    Factors move inside their span in shares of themselves, since T tasks tell a variance to a share of
    1 / sqrt(2 T); and out of it by what the information in all tasks resolves.
    """

    def __init__(self, evidence: FactorEvidence, model: FactorModel, *, learn_mean: bool) -> None:
        rank, n_tasks, dim = model.rank, evidence.n_tasks, evidence.dim
        self.basis, strengths, _ = np.linalg.svd(model.factors, full_matrices=False)
        model = replace(model, factors=self.basis * strengths)
        self.evidence, self.origin = evidence, model
        solved = evidence.solve(model)
        noise = evidence.noise(solved)
        self.inside = strengths[:, None] / np.sqrt(2.0 * n_tasks)
        along, between = information(evidence, model, solved)
        amounts, self.mix = np.linalg.eigh(between)
        self.axes = evidence.pooled[1]
        self.outside = 1.0 / np.sqrt(2.0 * (np.outer(along, amounts) + 1.0 / model.strength))
        by_ratio, within = evidence.curvatures(model, solved)
        drift = by_ratio / (by_ratio + within) if model.heavy else np.zeros(n_tasks)
        self.ratio = np.arcsinh(np.exp(model.log_ratio) / evidence.resolution)
        bend = self._bend(model)
        self.drift = bend * drift
        known = float(np.sum((1.0 - drift) * by_ratio)) / bend**2
        self.by_ratio = np.sqrt(2.0 / max(known, 1.0))
        self.by_scale = np.sqrt(2.0 / (model.degrees + evidence.freedom(model, solved)))
        floor = 1e-6 * float(along.max())
        self.by_mean = np.sqrt(noise / (2.0 * n_tasks * np.maximum(along, floor)))
        sizes = {"inside": rank * rank, "outside": dim * rank}
        if np.isfinite(model.log_ratio):
            sizes["ratio"] = 1
        if model.heavy:
            sizes["scales"] = n_tasks
        if learn_mean:
            sizes["mean"] = dim
        ends = list(accumulate(sizes.values()))
        self.size = ends[-1]
        self.places = {name: slice(end - sizes[name], end) for name, end in zip(sizes, ends, strict=True)}
        self.at_origin = self._chart(model, *evidence.deviance(model, solved))

    def bounds(self) -> Array:
        """Return the ends of each coordinate's interval, (n, 2)."""
        bounds = np.tile([-np.inf, np.inf], (self.size, 1))
        if "ratio" in self.places:
            ratios = np.array([LEAST_RATIO, LARGEST_RATIO]) / self.evidence.unit
            low, high = (np.arcsinh(ratios / self.evidence.resolution) - self.ratio) / self.by_ratio
            bounds[self.places["ratio"]] = min(low, 0.0), max(high, 0.0)
        if "scales" in self.places:
            ends = np.array([-LARGEST_LOG_SCALE, LARGEST_LOG_SCALE]) - self.origin.log_scales[:, None]
            bounds[self.places["scales"]] = ends / self.by_scale[:, None]
        return bounds

    def model(self, point: Array) -> FactorModel:
        """Return the model at a point of the chart."""
        parts = {name: point[place] for name, place in self.places.items()}
        origin, step = self.origin, 0.0
        leaving = self.axes @ (self.outside * parts["outside"].reshape(self.outside.shape)) @ self.mix.T
        leaving -= self.basis @ (self.basis.T @ leaving)
        leaving += self.basis @ (self.inside * parts["inside"].reshape(self.mix.shape))
        ratio, scales, mean = origin.log_ratio, origin.log_scales, origin.mean
        if "ratio" in parts:
            step = float(self.by_ratio * parts["ratio"][0])
            ratio = float(np.log(self.evidence.resolution * np.sinh(self.ratio + step)))
        if "scales" in parts:
            scales = scales + self.by_scale * parts["scales"] - self.drift * step
        if "mean" in parts:
            mean = mean + self.axes @ (self.by_mean * parts["mean"])
        return FactorModel(
            origin.factors + leaving, ratio, scales, mean, degrees=origin.degrees, strength=origin.strength
        )

    def deviance(self, point: Array) -> tuple[float, Array]:
        """Return the deviance at a point and its slope there."""
        if not point.any():
            return self.at_origin
        model = self.model(point)
        return self._chart(model, *self.evidence.deviance(model))

    def _chart(self, model: FactorModel, value: float, slope: FactorModel) -> tuple[float, Array]:
        """Return a deviance and its slope along the coordinates."""
        along = self.basis.T @ slope.factors
        leaving = slope.factors - self.basis @ along
        slopes = [self.inside * along, self.outside * (self.axes.T @ leaving @ self.mix)]
        if "ratio" in self.places:
            by_ratio = slope.log_ratio / self._bend(model) - float(self.drift @ slope.log_scales)
            slopes.append(np.array([self.by_ratio * by_ratio]))
        if "scales" in self.places:
            slopes.append(self.by_scale * slope.log_scales)
        if "mean" in self.places:
            slopes.append(self.by_mean * (self.axes.T @ slope.mean))
        return value, np.concatenate([part.ravel() for part in slopes])

    def _bend(self, model: FactorModel) -> float:
        """Return how fast log a changes with arsinh(a / resolution)."""
        ratio = np.exp(model.log_ratio) / self.evidence.resolution
        return max(float(ratio / np.hypot(1.0, ratio)), LEAST_BEND)

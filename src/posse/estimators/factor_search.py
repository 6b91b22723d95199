"""Find the likeliest factor prior of a given rank: quasi-Newton steps in coordinates of equal curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from posse.estimators.factor_evidence import FactorEvidence, FactorModel
from posse.validation import Array

# The variance outside of the shared directions, in units of noise and of features' mean square: as far as
# data can tell, the least of these is none, and the largest is noise-free.
LEAST_RATIO, LARGEST_RATIO = 1e-8, 1e8
# The logarithm of a task's scale never leaves this interval.
LARGEST_LOG_SCALE = 12.0
# New coordinates are taken after this many steps.
STEPS_PER_STAGE, MOST_STEPS = 40, 240
# New directions are tried with these shares of the strength that they would have if all features were alike.
SHARES = (1.0, 0.25, 0.06, 0.015)
# Climbing ends where a step gains less than this in deviance, and at the latest with a stage that gains
# less than the second: no data could tell the difference.
STEP_GAIN, STAGE_GAIN = 1e-9, 0.1


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
) -> Found:
    """Climb from a model to the likeliest of its rank, until a step gains less than `step_gain`."""
    model, n_iter, converged = start, 0, False
    while not converged and n_iter < most_steps:
        coordinates = _Coordinates(evidence, model, learn_mean=learn_mean)
        origin = np.zeros(coordinates.size)
        before, _ = coordinates.deviance(origin)
        if coordinates.size == 0:
            return Found(model, before, 0.0, 0, True)
        steps = min(STEPS_PER_STAGE, most_steps - n_iter)
        result = minimize(
            coordinates.deviance,
            origin,
            jac=True,
            method="L-BFGS-B",
            bounds=coordinates.bounds(),
            options={
                "maxiter": steps,
                "maxcor": 20,
                "ftol": max(step_gain / max(abs(before), 1.0), np.finfo(float).eps),
                "gtol": np.sqrt(step_gain),
            },
        )
        n_iter += int(result.nit)
        model = coordinates.model(result.x)
        converged = bool(result.nit < steps or before - result.fun < STAGE_GAIN)
    slope = float(np.abs(result.jac).max(initial=0.0))
    return Found(model, float(result.fun), slope, n_iter, converged)


def add_directions(evidence: FactorEvidence, model: FactorModel, n: int) -> FactorModel:
    """Return a model with n more shared directions: those in which what it leaves unexplained agrees most.

    Where all tasks have the same statistics X'X = h I this is the closed form of probabilistic principal
    components.
    """
    solved = evidence.solve(model)
    _, lengths, directions = np.linalg.svd(evidence.own_parts(model, solved), full_matrices=False)
    information = max(float(solved.spread.mean()), np.finfo(float).tiny)
    excess = lengths[:n] ** 2 / (evidence.n_tasks * evidence.noise(solved) * information) - 1.0
    strengths = np.sqrt(np.maximum(excess, 0.05) / information)
    candidates = (
        replace(model, factors=np.hstack([model.factors, share * strengths * directions[:n].T]))
        for share in SHARES
    )
    return min(candidates, key=lambda candidate: evidence.deviance(candidate)[0])


class _Coordinates:
    """A linear chart around a model, scaled so that all curvatures are about 1.

    Factors move inside their span in shares of themselves, since T tasks tell a variance to a share of
    1 / sqrt(2 T); and out of it by what the information in all tasks resolves.
    """

    def __init__(self, evidence: FactorEvidence, model: FactorModel, *, learn_mean: bool) -> None:
        self.evidence, self.origin = evidence, model
        rank, n_tasks, dim = model.rank, evidence.n_tasks, evidence.dim
        solved = evidence.solve(model)
        noise = evidence.noise(solved)
        basis, strengths, turn = np.linalg.svd(model.factors, full_matrices=False)
        self.basis = basis
        self.inside = strengths[:, None] / np.sqrt(2.0 * n_tasks)
        along, between = evidence.information(model, solved)
        amounts, self.mix = np.linalg.eigh(turn @ between @ turn.T)
        self.start = basis * strengths
        self.axes = evidence.pooled[1]
        self.outside = 1.0 / np.sqrt(2.0 * (np.outer(along, amounts) + 1.0 / evidence.strength))
        freedom = evidence.freedom(model, solved)
        known = n_tasks * (model.degrees + rank) if model.heavy else float(freedom.sum())
        self.by_ratio = np.sqrt(2.0 / max(known, 1.0))
        self.by_scale = np.sqrt(2.0 / (model.degrees + freedom))
        floor = 1e-6 * float(along.max())
        self.by_mean = np.sqrt(noise / (2.0 * n_tasks * np.maximum(along, floor)))
        self.shapes: dict[str, tuple[int, ...]] = {"inside": (rank, rank), "outside": (dim, rank)}
        if np.isfinite(model.log_ratio):
            self.shapes["ratio"] = (1,)
        if model.heavy:
            self.shapes["scales"] = (n_tasks,)
        if learn_mean:
            self.shapes["mean"] = (dim,)
        self.size = sum(int(np.prod(shape)) for shape in self.shapes.values())

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Return the interval of each coordinate."""
        log_unit = np.log(self.evidence.unit)
        ratio = np.log([LEAST_RATIO, LARGEST_RATIO]) - log_unit - self.origin.log_ratio
        bounds: list[tuple[float | None, float | None]] = []
        for name, shape in self.shapes.items():
            if name == "ratio":
                low, high = ratio / self.by_ratio
                bounds.append((min(low, 0.0), max(high, 0.0)))
            elif name == "scales":
                ends = np.array([[-LARGEST_LOG_SCALE], [LARGEST_LOG_SCALE]]) - self.origin.log_scales
                bounds += [tuple(pair) for pair in (ends / self.by_scale).T.tolist()]
            else:
                bounds += [(None, None)] * int(np.prod(shape))
        return bounds

    def model(self, point: Array) -> FactorModel:
        """Return the model at a point of the chart."""
        parts = self._split(point)
        leaving = self.axes @ (self.outside * parts["outside"]) @ self.mix.T
        leaving -= self.basis @ (self.basis.T @ leaving)
        factors = self.start + self.basis @ (self.inside * parts["inside"]) + leaving
        model = replace(self.origin, factors=factors)
        if "ratio" in parts:
            model = replace(model, log_ratio=float(model.log_ratio + self.by_ratio * parts["ratio"][0]))
        if "scales" in parts:
            moved = self.by_scale * parts["scales"] + self._drift(model)
            model = replace(model, log_scales=model.log_scales + moved)
        if "mean" in parts:
            model = replace(model, mean=model.mean + self.axes @ (self.by_mean * parts["mean"]))
        return model

    def deviance(self, point: Array) -> tuple[float, Array]:
        """Return the deviance at a point and its slope there."""
        value, slope = self.evidence.deviance(self.model(point), learn_mean="mean" in self.shapes)
        along = self.basis.T @ slope.factors
        leaving = slope.factors - self.basis @ along
        by_ratio = slope.log_ratio - (slope.log_scales.sum() if "scales" in self.shapes else 0.0)
        slopes: dict[str, Array] = {
            "inside": self.inside * along,
            "outside": self.outside * (self.axes.T @ leaving @ self.mix),
            "ratio": np.array([self.by_ratio * by_ratio]),
            "scales": self.by_scale * slope.log_scales,
            "mean": self.by_mean * (self.axes.T @ slope.mean),
        }
        return value, np.concatenate([slopes[name].ravel() for name in self.shapes])

    def _drift(self, model: FactorModel) -> float:
        """Return how scales move with the ratio: what each task has outside of F stays as it is."""
        return self.origin.log_ratio - model.log_ratio if "ratio" in self.shapes else 0.0

    def _split(self, point: Array) -> dict[str, Array]:
        parts, first = {}, 0
        for name, shape in self.shapes.items():
            last = first + int(np.prod(shape))
            parts[name] = point[first:last].reshape(shape)
            first = last
        return parts

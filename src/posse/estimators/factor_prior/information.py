"""What the data of all tasks tell about the directions that they share, and what each task told of it."""

from __future__ import annotations

import numpy as np

from posse.estimators.factor_prior.evidence import FactorEvidence, FactorModel, Solved
from posse.numerics.checks import Array


def information(evidence: FactorEvidence, model: FactorModel, solved: Solved) -> tuple[Array, Array]:
    """Return what the data tell about F: along the pooled axes, (d,), times between columns, (k, k).

    Equation (12), with its K_t pooled.

    Half of the deviance's expected curvature is sum_t q K_t kron (q w w' / s2), where K_t is Q h Q' less
    what the task's own weights take up, q Q h Y M^-1 Y'h Q'. Here Q h Q' stands at what the pooled
    statistics would make of it, times the share of its trace outside of F that the weights leave.
    """
    loads = _loads(evidence, model, solved)
    values, _ = evidence.pooled
    return values / (1.0 + np.exp(model.log_ratio) * values), np.asarray(loads.T @ loads)


def _loads(evidence: FactorEvidence, model: FactorModel, solved: Solved) -> Array:
    """Return how far each task bears on the columns of F, (T, k): `between` is the sum of their squares."""
    shares = np.exp(2.0 * model.log_scales) * _left(model, solved) / evidence.noise(solved)
    return np.asarray(np.sqrt(shares)[:, None] * solved.weights)


def prices(evidence: FactorEvidence, model: FactorModel, solved: Solved) -> Array:
    """Return what of each task's evidence is due to its own share in learning F, (T,), in nats.

    With h_t its share in the information about F, between 0 and 1, and f the numbers of F that the data
    tell, the evidence without the task is less by about f h_t, to first order.
    """
    along, between = information(evidence, model, solved)
    amounts, mix = np.linalg.eigh(between)
    amounts = np.maximum(amounts, np.finfo(float).tiny)
    told = np.outer(along, amounts)
    known = np.sum(told / (told + 1.0 / model.strength), axis=0)
    shares = (_loads(evidence, model, solved) @ mix) ** 2 / amounts
    return np.asarray(shares @ known)


def _left(model: FactorModel, solved: Solved) -> Array:
    """Return how much of each task's information outside of F its weights leave, from 0 to 1, (T,)."""
    per_length = np.linalg.pinv(model.factors.T @ model.factors)
    outside = solved.spread - np.sum(solved.inner * per_length, axis=(1, 2))
    inside = np.sum((solved.inner @ solved.inverse) * per_length, axis=(1, 2))
    left = solved.spread - solved.taken - inside
    share = np.divide(left, outside, out=np.zeros_like(left), where=outside > 0)
    return np.asarray(np.clip(share, 0.0, 1.0))

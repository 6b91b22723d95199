"""Rows, one task each: the probabilities with which rules play arms, in loops that are compiled.

Arms are scored one after the other in the same order of sums, so that equal arms have equal scores.
"""

from __future__ import annotations

import numpy as np

from posse.numerics.checks import Array, BoolArray, IntArray
from posse.numerics.compiled import compiled


@compiled
def upper_chances(
    theta: Array,
    root: Array,
    deviation: Array,
    scale: float,
    tasks: IntArray,
    arms: Array,
    available: BoolArray,
    chances: Array,
) -> None:
    """Fill `chances` (m, K): equal for the arms of the largest <x, theta_t> + scale s_t |R_t'x|, else 0.

    A row with a score that is not a number is filled with NaN, a row without an arm on offer with 0.

    Parameters
    ----------
    theta : (T, d)
    root : (T, d, d)
        R_t, in units of the noise.
    deviation : (T,)
        s_t.
    scale : float
        At 0 roots are not looked at.
    tasks : (m,)
    arms : (m, K, d)
    available : (m, K), or empty if all arms are on offer
    """
    n_rows, n_arms, dim = arms.shape
    scores, projected = np.empty(n_arms), np.empty(dim)
    for n in range(n_rows):
        t, best, n_best, broken = tasks[n], -np.inf, 0, False
        for k in range(n_arms):
            if available.size > 0 and not available[n, k]:
                continue
            score = 0.0
            for i in range(dim):
                score += arms[n, k, i] * theta[t, i]
            if scale > 0.0:
                for j in range(dim):
                    projected[j] = 0.0
                for i in range(dim):
                    x = arms[n, k, i]
                    for j in range(dim):
                        projected[j] += x * root[t, i, j]
                length = 0.0
                for j in range(dim):
                    length += projected[j] * projected[j]
                score += scale * deviation[t] * np.sqrt(length)
            scores[k] = score
            broken = broken or np.isnan(score)
            if score > best or n_best == 0:
                best, n_best = score, 1
            elif score == best:
                n_best += 1
        for k in range(n_arms):
            offered = available.size == 0 or available[n, k]
            if broken:
                chances[n, k] = np.nan
            else:
                chances[n, k] = 1.0 / n_best if offered and scores[k] == best else 0.0


@compiled
def sampled_chances(
    theta: Array,
    root: Array,
    deviation: Array,
    scale: float,
    floor: float,
    tasks: IntArray,
    arms: Array,
    available: BoolArray,
    normal: Array,
    chances: Array,
) -> None:
    """Fill `chances` (m, K) with f + (1 - K f) s, where s is the share of posterior draws that an arm wins.

    A row with a score that is not a number is filled with NaN, a row without an arm on offer with 0.

    Parameters
    ----------
    theta : (T, d)
    root : (T, d, d)
        R_t, in units of the noise.
    deviation : (T,)
        s_t.
    scale : float
        By which draws are spread.
    floor : float
        f.
    tasks : (m,)
    arms : (m, K, d)
    available : (m, K), or empty if all arms are on offer
    normal : (m, d, n)
        Standard normal numbers, n draws of each row.
    """
    n_rows, n_arms, dim = arms.shape
    n_draws = normal.shape[2]
    scores, best, ties = np.empty((n_arms, n_draws)), np.empty(n_draws), np.empty(n_draws)
    projected = np.empty(dim)
    for n in range(n_rows):
        t, n_offered, broken = tasks[n], 0, False
        spread = scale * deviation[t]
        for s in range(n_draws):
            best[s], ties[s] = -np.inf, 0.0
        for k in range(n_arms):
            chances[n, k] = 0.0
            if available.size > 0 and not available[n, k]:
                continue
            n_offered += 1
            middle = 0.0
            for j in range(dim):
                projected[j] = 0.0
            for i in range(dim):
                x = arms[n, k, i]
                middle += x * theta[t, i]
                for j in range(dim):
                    projected[j] += x * root[t, i, j]
            for s in range(n_draws):
                scores[k, s] = middle
            for j in range(dim):
                along = spread * projected[j]
                for s in range(n_draws):
                    scores[k, s] += along * normal[n, j, s]
            for s in range(n_draws):
                score = scores[k, s]
                broken = broken or np.isnan(score)
                ties[s] = 1.0 if score > best[s] else ties[s] + (1.0 if score == best[s] else 0.0)
                best[s] = score if score > best[s] else best[s]
        for k in range(n_arms):
            if broken:
                chances[n, k] = np.nan
            elif available.size == 0 or available[n, k]:
                won = 0.0
                for s in range(n_draws):
                    won += 1.0 / ties[s] if scores[k, s] == best[s] else 0.0
                chances[n, k] = floor + (1.0 - n_offered * floor) * won / n_draws


def check_floor(floor: float, arms: Array, available: BoolArray) -> None:
    """Raise if a floor leaves nothing for the best of the arms (m, K, d) on offer."""
    most = int(available.sum(axis=1).max()) if available.size else arms.shape[1]
    if floor * most > 1.0:
        raise ValueError(
            f"`floor` of Thompson must be at most 1 / K for K = {most} arms on offer. Got {floor}."
        )

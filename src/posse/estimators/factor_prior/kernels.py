"""Loops over tasks that averages over priors spend their time in, compiled.

In an eigenbasis Q (d, m) of each task, with D and b (m,) along it; g = 1 / (s + aqD) is `damping`.
"""

from __future__ import annotations

import numpy as np

from posse.numerics.checks import Array
from posse.numerics.compiled import compiled

# One logarithm is taken of many factors, before their product is too large.
LARGE_PRODUCT = 1e100


@compiled
def draw_weights(
    vectors: Array,
    turned: Array,
    values: Array,
    moment: Array,
    damping: Array,
    spread: Array,
    scales: Array,
    factors: Array,
    normal: Array,
    weights: Array,
    count: bool,
    total: Array,
    square: Array,
) -> bool:
    """Fill w (T, k) with draws given F, and add first and second moments of theta_t given F.

    Of the second only the lower triangle is added. The answer is False where a covariance has no width.

    Parameters
    ----------
    vectors, turned : (T, d, m) and (T, m, d)
        Q and Q'.
    values, moment, damping : (T, m)
    spread, scales : (T,)
        aq and q.
    factors : (k, d)
        F'.
    normal : (T, k)
        Random numbers.
    weights : (T, k)
    count : bool
        Whether moments are added.
    total, square : (T, d) and (T, d, d)
        They leave out what spread outside of F leaves of the identity and of the task's own axes.
    """
    n_tasks, dim, n_axes = vectors.shape
    rank = factors.shape[0]
    along, damped = np.empty((rank, n_axes)), np.empty((rank, n_axes))
    root, linear, solved = np.empty((rank, rank)), np.empty(rank), np.empty(rank)
    raw, lever, own, mean = np.empty((rank, dim)), np.empty(dim), np.empty(n_axes), np.empty(dim)
    for t in range(n_tasks):
        for c in range(rank):
            for j in range(n_axes):
                along[c, j] = 0.0
            for i in range(dim):
                factor = factors[c, i]
                for j in range(n_axes):
                    along[c, j] += factor * vectors[t, i, j]
            linear[c] = 0.0
            for j in range(n_axes):
                damped[c, j] = values[t, j] * damping[t, j] * along[c, j]
                linear[c] += damping[t, j] * moment[t, j] * along[c, j]
        for c in range(rank):  # the root L of the precision
            for e in range(c + 1):
                entry = 1.0 / scales[t] if c == e else 0.0
                for j in range(n_axes):
                    entry += along[c, j] * damped[e, j]
                for f in range(e):
                    entry -= root[c, f] * root[e, f]
                if c > e:
                    root[c, e] = entry / root[e, e]
                elif entry > 0.0:
                    root[c, c] = np.sqrt(entry)
                else:
                    return False
        for c in range(rank):  # L^-1 in its place
            for e in range(c):
                entry = 0.0
                for f in range(e, c):
                    entry -= root[c, f] * root[f, e]
                root[c, e] = entry / root[c, c]
            root[c, c] = 1.0 / root[c, c]
        for c in range(rank):
            solved[c] = 0.0
            for e in range(c + 1):
                solved[c] += root[c, e] * linear[e]
        for c in range(rank):
            linear[c], weights[t, c] = 0.0, 0.0
            for e in range(c, rank):
                linear[c] += root[e, c] * solved[e]
                weights[t, c] += root[e, c] * normal[t, e]
            weights[t, c] += linear[c]
        if not count:
            continue
        for j in range(n_axes):
            own[j] = moment[t, j]
        for i in range(dim):
            mean[i] = 0.0
        for c in range(rank):
            for j in range(n_axes):
                own[j] -= values[t, j] * along[c, j] * linear[c]
            for i in range(dim):
                mean[i] += factors[c, i] * linear[c]
                raw[c, i] = factors[c, i]
        if spread[t] > 0.0:
            for j in range(n_axes):
                size = spread[t] * damping[t, j] * own[j]
                for i in range(dim):
                    mean[i] += size * turned[t, j, i]
                for c in range(rank):
                    size = spread[t] * damped[c, j]
                    for i in range(dim):
                        raw[c, i] -= size * turned[t, j, i]
        for e in range(-1, rank):
            for i in range(dim):
                lever[i] = mean[i] if e < 0 else 0.0
            for c in range(e + 1):
                size = root[e, c]
                for i in range(dim):
                    lever[i] += size * raw[c, i]
            for i in range(dim):
                size = lever[i]
                for h in range(i + 1):
                    square[t, i, h] += size * lever[h]
        for i in range(dim):
            total[t, i] += mean[i]
    return True


@compiled
def add_log_likelihoods(
    vectors: Array,
    values: Array,
    moment: Array,
    noises: Array,
    scales: Array,
    factors: Array,
    tried: Array,
    likely: Array,
) -> None:
    """Add log p (n,) of all rewards given F, up to a constant, for every a of `tried` (n,).

    Weights and what lies outside of F are integrated out: theta_t ~ N(0, q (F F' + a I)).

    Parameters
    ----------
    vectors : (T, d, m)
        Q.
    values, moment : (T, m)
    noises, scales : (T,)
        s and q.
    factors : (k, d)
        F'.
    tried, likely : (n,)
    """
    n_tasks, dim, n_axes = vectors.shape
    rank, n = factors.shape[0], len(tried)
    along, root, solved = np.empty((rank, n_axes)), np.empty((rank, rank)), np.empty(rank)
    damping = np.empty(n_axes)
    for t in range(n_tasks):
        for c in range(rank):
            for j in range(n_axes):
                along[c, j] = 0.0
            for i in range(dim):
                factor = factors[c, i]
                for j in range(n_axes):
                    along[c, j] += factor * vectors[t, i, j]
        for p in range(n):
            spread, found, product = tried[p] * scales[t], 0.0, 1.0
            for j in range(n_axes):
                damping[j] = 1.0 / (noises[t] + spread * values[t, j])
                found += spread / noises[t] * damping[j] * moment[t, j] ** 2
                product *= noises[t] * damping[j]
                if product < 1.0 / LARGE_PRODUCT:
                    found += np.log(product)
                    product = 1.0
            for c in range(rank):  # the root of I + q F'QD^1/2 g D^1/2 Q'F, and its inverse times F'Q g b
                solved[c] = 0.0
                for j in range(n_axes):
                    solved[c] += damping[j] * moment[t, j] * along[c, j]
                for e in range(c + 1):
                    entry = 0.0
                    for j in range(n_axes):
                        entry += along[c, j] * damping[j] * values[t, j] * along[e, j]
                    entry *= scales[t]
                    if c == e:
                        entry += 1.0
                    for f in range(e):
                        entry -= root[c, f] * root[e, f]
                    if c > e:
                        root[c, e] = entry / root[e, e]
                        solved[c] -= root[c, e] * solved[e]
                    else:
                        product /= max(entry, 1.0)
                        root[c, c] = np.sqrt(max(entry, 1.0))
                solved[c] /= root[c, c]
                found += scales[t] * solved[c] ** 2
                if product < 1.0 / LARGE_PRODUCT:
                    found += np.log(product)
                    product = 1.0
            likely[p] += 0.5 * (found + np.log(product))

"""Placeholder while the solver is built (temporary, simple alternation)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.estimators.estimate import Estimate
from posse.linalg import solve_symmetric
from posse.statistics import GramStatistics


@dataclass(frozen=True, kw_only=True)
class LowRank:
    rank: int

    def fit(self, s: GramStatistics) -> Estimate:
        k = self.rank
        T, d = s.n_tasks, s.dim
        if not s.count.any():
            return Estimate(np.zeros((T, d)))
        th = solve_symmetric(s.gram, s.moment)
        L = np.linalg.cholesky(s.gram.mean(0))
        u, _, _ = np.linalg.svd((th @ L).T, full_matrices=False)
        B = np.linalg.qr(np.linalg.solve(L.T, u[:, :k]))[0]
        f0 = np.inf
        for _ in range(200):
            M = B.T @ s.gram @ B
            W = np.linalg.solve(M, (s.moment @ B)[..., None])[..., 0]
            f = -(W * (s.moment @ B)).sum()
            if f0 - f < 1e-9 * abs(f):
                break
            f0 = f
            H = np.einsum("ta,tb,tij->aibj", W, W, s.gram, optimize=True).reshape(d * k, d * k)
            g = (W.T @ s.moment).reshape(-1)
            B = np.linalg.qr(np.linalg.solve(H, g).reshape(k, d).T)[0]
        M = B.T @ s.gram @ B
        W = np.linalg.solve(M, (s.moment @ B)[..., None])[..., 0]
        return Estimate(W @ B.T, B, W)

"""The low-rank ridge problem once more, by another method, from raw features and rewards.

Minimises sum_t |y_t - X_t theta_t|^2 + penalty |Theta|^2 over Theta (T x d) of rank k. Each step is a
ridge regression restricted to the tangent space of the rank-k matrices at the present one, solved in
the dual, where it has one unknown per round; then the singular values after the k-th are cut off. The
penalty falls by factors of ten. It shares no code with posse.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Factors = tuple[Array, Array, Array]


def truncate(theta: Array, rank: int) -> Factors:
    left, values, right = np.linalg.svd(theta, full_matrices=False)
    return left[:, :rank], values[:rank], right[:rank]


class TangentRidge:
    """A data set: features (n, d) of all rounds, the task of each, and rewards (n,)."""

    def __init__(self, x: Array, task: NDArray[np.intp], y: Array, rank: int) -> None:
        self.x, self.y, self.rank = x, y, rank
        self.member = np.eye(task.max() + 1)[task]
        self.kernel = x @ x.T
        self.scale = float((x**2).sum()) / (self.member.shape[1] * x.shape[1])

    def residual(self, theta: Array) -> Array:
        return np.asarray(self.y - np.vecdot(self.x, self.member @ theta))

    def objective(self, theta: Array, penalty: float) -> float:
        return float((self.residual(theta) ** 2).sum() + penalty * (theta**2).sum())

    def regress(self, factors: Factors, penalty: float) -> Array:
        """Return the ridge estimate among the matrices tangent to U S V': those U A' + C V'."""
        U, _, V = factors
        inside, rows = (self.x @ V.T) @ (self.x @ V.T).T, self.member @ U
        K = (self.member @ self.member.T) * inside + (rows @ rows.T) * (self.kernel - inside)
        dual = np.linalg.solve(K + penalty * np.eye(len(K)), self.y)
        pulled = self.member.T @ (dual[:, None] * self.x)
        along = pulled @ V.T @ V
        return np.asarray(along + U @ (U.T @ (pulled - along)))

    def descend(self, theta: Array, penalty: float, tol: float, max_iter: int = 500) -> Array:
        for _ in range(max_iter):
            change = self.regress(truncate(theta, self.rank), penalty) - theta
            value, step = self.objective(theta, penalty), 1.0
            while True:
                U, S, V = truncate(theta + step * change, self.rank)
                moved = (U * S) @ V
                if step < 1e-4 or self.objective(moved, penalty) <= value:
                    break
                step /= 2
            if step < 1e-4:
                break
            theta = moved
            if np.linalg.norm(change) <= tol * np.linalg.norm(theta):
                break
        return theta

    def solve(self, penalty: float, first: float, rng: np.random.Generator, tol: float = 1e-6) -> Array:
        """Go from a random start at `first` down to `penalty`, both relative to the mean eigenvalue."""
        U, S, V = truncate(self.member.T @ (rng.standard_normal((len(self.y), 1)) * self.x), self.rank)
        theta = (U * S) @ V
        while first > 3.0 * penalty:
            theta = self.descend(theta, first * self.scale, 1e-2, 50)
            first /= 10.0
        return self.descend(theta, penalty * self.scale, tol)

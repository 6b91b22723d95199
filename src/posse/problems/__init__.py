"""Where actions and rewards come from."""

from posse.problems.gaussian import GaussianProblem
from posse.problems.protocol import Problem

__all__ = ["GaussianProblem", "Problem"]

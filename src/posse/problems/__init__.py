"""Where actions and rewards come from."""

from posse.problems.ellipsoid import Assumptions, EllipsoidProblem
from posse.problems.gaussian import GaussianProblem
from posse.problems.protocol import Problem, StaticProblem

__all__ = ["Assumptions", "EllipsoidProblem", "GaussianProblem", "Problem", "StaticProblem"]

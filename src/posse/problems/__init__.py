"""Where actions and rewards come from."""

from posse.problems.digits import ClassPairs
from posse.problems.ellipsoid import Assumptions, EllipsoidProblem
from posse.problems.gaussian import GaussianProblem
from posse.problems.protocol import Problem, StaticProblem

__all__ = ["Assumptions", "ClassPairs", "EllipsoidProblem", "GaussianProblem", "Problem", "StaticProblem"]

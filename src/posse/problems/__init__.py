"""Where simulated actions and rewards come from."""

from posse.core.protocols import Problem, StaticProblem, TimedProblem, deal_actions
from posse.problems.class_pairs import ClassPairs
from posse.problems.ellipsoid import Assumptions, EllipsoidProblem
from posse.problems.gaussian import GaussianProblem
from posse.problems.hard import FixedArms, GreedyTrap, NarrowContexts
from posse.problems.parameters import STRUCTURES
from posse.problems.stream import StreamProblem
from posse.problems.timed import LateTasks, MovingBasis, TimedActions
from posse.problems.uneven import Clicks, UnevenTasks

__all__ = [
    "STRUCTURES",
    "Assumptions",
    "ClassPairs",
    "Clicks",
    "EllipsoidProblem",
    "FixedArms",
    "GaussianProblem",
    "GreedyTrap",
    "LateTasks",
    "MovingBasis",
    "NarrowContexts",
    "Problem",
    "StaticProblem",
    "StreamProblem",
    "TimedActions",
    "TimedProblem",
    "UnevenTasks",
    "deal_actions",
]

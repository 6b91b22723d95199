"""Who plays, what exactly, and in which environment."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks.environments import environment

REQUIREMENTS = {
    "mabwiser": ("mabwiser",),
    "contextualbandits": ("contextualbandits",),
    "coba": ("coba", "numpy"),
    "river": ("river",),
    "vowpalwabbit": ("vowpalwabbit", "numpy"),
    "bayesianbandits": ("bayesianbandits",),
}


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One row of the tables.

    Attributes
    ----------
    name : str
    library : str
        Its name for pip, and that of its file in `players`.
    player : str
        What in that file makes the player.
    plays : str
        What it plays, exactly.
    exact : bool
        Whether that is greedy ridge regression with penalty 1, so that regret is that of NumPy.
    batches : tuple of int
        The tables it is in.
    most_rounds : int, optional
        How many rounds it gets, if it is slow.
    """

    name: str
    library: str
    player: str
    plays: str
    exact: bool = True
    batches: tuple[int, ...] = (1, 10)
    most_rounds: int | None = None


POSSE = Contender(name="posse", library="posse", player="ridge", plays="greedy ridge, all tasks in one call")
NUMPY = Contender(
    name="NumPy by hand",
    library="numpy",
    player="AllTasks",
    plays="greedy ridge, all tasks at once, inverses updated in place",
)

CONTENDERS = (
    POSSE,
    Contender(
        name="posse, task by task",
        library="posse",
        player="one_by_one",
        plays="greedy ridge, one Learner, a call for each decision and each reward",
    ),
    Contender(
        name="posse, SharedGreedy",
        library="posse",
        player="shared",
        plays="greedy by the learned prior: tasks learn from each other",
        exact=False,
        batches=(10,),
    ),
    Contender(
        name="posse, SharedGreedy as it comes",
        library="posse",
        player="shared_own_schedule",
        plays="the same, updated when rounds have grown by a fifth",
        exact=False,
        batches=(10,),
    ),
    NUMPY,
    Contender(
        name="NumPy, task by task",
        library="numpy",
        player="one_by_one",
        plays="greedy ridge, a loop over tasks",
        batches=(1,),
    ),
    Contender(
        name="contextualbandits",
        library="contextualbandits",
        player="ridge",
        plays="greedy ridge: its linreg.LinearRegression, the caller takes the best arm",
    ),
    Contender(
        name="river",
        library="river",
        player="ridge",
        plays="greedy ridge: its BayesianLinearRegression, the caller takes the best arm",
    ),
    Contender(
        name="coba",
        library="coba",
        player="greedy",
        plays="greedy ridge: LinUCBLearner with alpha 0 on features of actions",
        batches=(1,),
    ),
    Contender(
        name="MABWiser",
        library="mabwiser",
        player="greedy",
        plays="greedy ridge: LinGreedy with a single arm as scorer, the caller takes the best arm",
    ),
    Contender(
        name="bayesianbandits",
        library="bayesianbandits",
        player="ridge",
        plays="greedy ridge: its NormalRegressor, the caller takes the best arm",
    ),
    Contender(
        name="bayesianbandits, agent",
        library="bayesianbandits",
        player="agent",
        plays="nearly greedy: LipschitzContextualAgent, means estimated from 1000 draws",
        exact=False,
        most_rounds=200,
    ),
    Contender(
        name="Vowpal Wabbit",
        library="vowpalwabbit",
        player="greedy",
        plays="greedy, linear, by gradient steps, not ridge: cb_explore_adf, a workspace per task",
        exact=False,
        batches=(1,),
    ),
    Contender(
        name="Vowpal Wabbit, one workspace",
        library="vowpalwabbit",
        player="one_workspace",
        plays="the same with all tasks in one workspace",
        exact=False,
        batches=(1,),
    ),
)


def interpreter(library: str) -> str:
    """Return the Python that has a library, after making an environment for it if there is none."""
    return environment(library, REQUIREMENTS[library]) if library in REQUIREMENTS else sys.executable

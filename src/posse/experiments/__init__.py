"""Many runs: what to run, how to run it, and what the results say."""

from posse.experiments.claims import Claim, Evidence
from posse.experiments.grid import Experiment, GridError, Progress, play_seeds, run_experiments, saved_results
from posse.experiments.paper import COMPARISONS, FIGURES, Comparison, Figure

__all__ = [
    "COMPARISONS",
    "FIGURES",
    "Claim",
    "Comparison",
    "Evidence",
    "Experiment",
    "Figure",
    "GridError",
    "Progress",
    "play_seeds",
    "run_experiments",
    "saved_results",
]

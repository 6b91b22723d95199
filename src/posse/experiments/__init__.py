"""Many runs: what to run, how to run it, and what the results say."""

from posse.experiments.claims import Claim, Evidence
from posse.experiments.grid import Experiment, GridError, Progress, play_seeds, run_experiments, saved_results
from posse.experiments.paper import COMPARISONS, FIGURES, ON_IMAGES, Comparison, Drawing, Figure, variant

__all__ = [
    "COMPARISONS",
    "FIGURES",
    "ON_IMAGES",
    "Claim",
    "Comparison",
    "Drawing",
    "Evidence",
    "Experiment",
    "Figure",
    "GridError",
    "Progress",
    "play_seeds",
    "run_experiments",
    "saved_results",
    "variant",
]

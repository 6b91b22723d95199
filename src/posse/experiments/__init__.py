"""Many runs: what to run, how to run it, and what the results say."""

from posse.experiments.claims import Claim, Evidence
from posse.experiments.engines import ENGINES, GridError, check_engine
from posse.experiments.grid import Experiment, Progress, play_seeds, run_experiments, saved_results
from posse.experiments.paper import COMPARISONS, FIGURES, ON_IMAGES, Comparison, Drawing, Figure, variant
from posse.experiments.suite import SCENARIOS, Scenario, compare_scenarios, headlines

__all__ = [
    "COMPARISONS",
    "ENGINES",
    "FIGURES",
    "ON_IMAGES",
    "SCENARIOS",
    "Claim",
    "Comparison",
    "Drawing",
    "Evidence",
    "Experiment",
    "Figure",
    "GridError",
    "Progress",
    "Scenario",
    "check_engine",
    "compare_scenarios",
    "headlines",
    "play_seeds",
    "run_experiments",
    "saved_results",
    "variant",
]

"""Many runs: what to run, how to run it, and what the results say."""

from posse.experiments.claims import Claim, Evidence
from posse.experiments.engines import ENGINES, GridError, check_engine
from posse.experiments.figures import Comparison, Drawing, Figure
from posse.experiments.grid import Experiment, Progress, play_seeds, run_experiments, saved_results
from posse.experiments.guarantees import GUARANTEES, measure_guarantees, write_guarantees
from posse.experiments.paper import BESIDE, COMPARISONS, FIGURES, ON_IMAGES, variant
from posse.experiments.suite import SCENARIOS, Scenario, compare_scenarios, headlines

__all__ = [
    "BESIDE",
    "COMPARISONS",
    "ENGINES",
    "FIGURES",
    "GUARANTEES",
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
    "measure_guarantees",
    "play_seeds",
    "run_experiments",
    "saved_results",
    "variant",
    "write_guarantees",
]

"""Many runs: what to run, how to run it, and what the results say."""

from posse.experiments.claims import Claim, Evidence
from posse.experiments.grid import Experiment, GridError, Progress, run_experiment
from posse.experiments.paper import FIGURES, Figure

__all__ = ["FIGURES", "Claim", "Evidence", "Experiment", "Figure", "GridError", "Progress", "run_experiment"]

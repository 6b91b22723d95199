"""The benchmark suite: scenarios that a good policy must cope with, and who wins where, by how much."""

from posse.suite.comparison import (
    Suite,
    compare,
    compare_scenarios,
    headlines,
    relative_regrets,
    write_comparison,
)
from posse.suite.scenarios import SCENARIOS, Scenario
from posse.suite.sharing import Watch, promise, worse_off, worst_off_regrets

__all__ = [
    "SCENARIOS",
    "Scenario",
    "Suite",
    "Watch",
    "compare",
    "compare_scenarios",
    "headlines",
    "promise",
    "relative_regrets",
    "worse_off",
    "worst_off_regrets",
    "write_comparison",
]

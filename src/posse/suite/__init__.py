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

__all__ = [
    "SCENARIOS",
    "Scenario",
    "Suite",
    "compare",
    "compare_scenarios",
    "headlines",
    "relative_regrets",
    "write_comparison",
]

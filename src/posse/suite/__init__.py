"""The league: scenarios that a good policy must cope with, and who wins where, by how much."""

from posse.suite.comparison import Suite, compare, compare_scenarios, headlines, relative_regrets
from posse.suite.league import Standing, Table, Verdict, league_tables, verdict
from posse.suite.scenario import Scenario
from posse.suite.scenarios import SCENARIOS
from posse.suite.sharing import Watch, promise, worse_off, worst_off_regrets

__all__ = [
    "SCENARIOS",
    "Scenario",
    "Standing",
    "Suite",
    "Table",
    "Verdict",
    "Watch",
    "compare",
    "compare_scenarios",
    "headlines",
    "league_tables",
    "promise",
    "relative_regrets",
    "verdict",
    "worse_off",
    "worst_off_regrets",
]

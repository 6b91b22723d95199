"""Who plays in the league: every policy that a kind of action set admits, those told the truth apart."""

from __future__ import annotations

# `shared` is `shared-ucb` on lists, and `shared-thompson` elsewhere.
SHARED = ("shared", "shared-greedy", "shared-thompson")
INDEPENDENT = ("independent-greedy", "independent-thompson", "independent-ucb", "naive")
# ARMUL and the spectral method have no bandit of their own: in the paper's epochs, and with all data.
WITH_ALL_DATA = "schedule=geometric, memory=all"
RIVALS = (
    "trace-norm",
    "armul",
    f"armul({WITH_ALL_DATA})",
    "tian-spectral",
    f"tian-spectral({WITH_ALL_DATA})",
    "hier-thompson",
    "ebm-thompson",
    "ebm-ucb",
    "ebm-ucb(scale=1)",
    "club",
)
FORGETFUL = ("shared-greedy(schedule=100, memory=0.9995)", "independent-greedy(schedule=100, memory=0.9995)")
ON_LISTS = (*SHARED, "mlingreedy", *INDEPENDENT, *RIVALS)
AND_ORACLES = (*ON_LISTS, "oracle-greedy", "oracle-thompson")
ON_ELLIPSOIDS = (
    "shared",
    "shared-greedy",
    "e2tc",
    "e2tc(subspace=spectral)",
    "e2tc(subspace=pairs)",
    "pege",
    "pege-tau",
    "independent-greedy",
    "independent-thompson",
    "hier-thompson",
    "ebm-thompson",
    "oracle-thompson",
    "oracle-commit",
)
# Without two that `sphere` has shown: greedy play, which is stuck on a ball, and PEGE in cycles.
ON_STREAMS_OF_BALLS = (
    "shared",
    "baron",
    "bress",
    "seqrepl",
    "pege-tau",
    "independent-thompson",
    "hier-thompson",
    "pege-oracle",
)

"""One run: a problem deals rounds, policies play them, regret is counted."""

from posse.play.player import Trace
from posse.play.simulation import check_start, simulate, simulate_all
from posse.play.stream import StreamTrace

__all__ = ["StreamTrace", "Trace", "check_start", "simulate", "simulate_all"]

"""One run: a problem deals rounds, policies play them, regret is counted."""

from posse.play.simulation import Trace, simulate, simulate_all

__all__ = ["Trace", "simulate", "simulate_all"]

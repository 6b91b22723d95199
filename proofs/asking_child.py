"""A process that asks and tells through PostgreSQL, every reward twice, until it is done or killed."""

from __future__ import annotations

import numpy as np

from posse.live.asker import Asker


def main(address: str, seed: str, n_decisions: str) -> None:
    """Ask, tell, and say what was acknowledged, a line at a time."""
    rng = np.random.default_rng(int(seed))
    asker = Asker(address, refresh_every=0.2)
    for number in range(int(n_decisions)):
        decision = asker.ask(f"shop {rng.integers(5)}", rng.standard_normal((4, 3)), id=f"{seed}-{number}")
        reward = float(rng.standard_normal())
        asker.tell(decision.id, reward)
        print("told", decision.id, repr(reward), flush=True)
        asker.tell(decision.id, reward)
    asker.close()

"""A process that learns from what others write to PostgreSQL, until it is killed."""

from __future__ import annotations

import time

import numpy as np

from posse.live import Agent


def main(address: str, seed: str) -> None:
    """Take events of others, a few at a time, with refits and snapshots in between."""
    rng = np.random.default_rng(int(seed))
    agent = Agent.open(address, refits="inline", seed=0, snapshot_every=40)
    while True:
        if agent.learn(int(rng.integers(1, 30))):
            print("learned", agent.status().rewards, flush=True)
        else:
            time.sleep(0.001)

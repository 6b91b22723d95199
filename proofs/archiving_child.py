"""A process that moves old decisions to a file, until it is done or killed."""

from __future__ import annotations

import pyarrow.parquet as parquet

from posse import Agent


def main(path: str, out: str, before: str) -> None:
    """Archive what was decided before a time, and say so."""
    assert parquet  # loaded before it is killed
    agent = Agent.open(path, refits="inline")
    print("open", flush=True)
    print("archived", agent.archive(out, float(before)), flush=True)

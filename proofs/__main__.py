"""Run all proofs whole, and store what they found with the date and the commit: `make prove`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proofs import (
    coverage,
    default_policy,
    diagnose,
    diagnose_ugly,
    evaluation,
    evaluation_choice,
    kills,
    limits,
    live,
    long_stream,
    processes,
    promise,
    propensities,
    soak,
    two_speeds,
)

PROOFS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "coverage": coverage.prove,
    "default-contenders": default_policy.prove_again,
    "default-policy": default_policy.prove,
    "diagnose": diagnose.prove,
    "diagnose-ugly": diagnose_ugly.prove,
    "evaluation-choice": evaluation_choice.prove_choice,
    "evaluation-intervals": evaluation.prove_intervals,
    "evaluation-sharing": evaluation.prove_sharing,
    "evaluation-whole": evaluation.prove_whole,
    "kills": kills.prove,
    "kills-postgres": kills.prove_two,
    "limits": limits.prove,
    "live": live.prove,
    "long-stream": long_stream.prove,
    "processes": processes.prove,
    "promise": promise.prove,
    "propensities": propensities.prove,
    "soak": soak.prove,
    "two-speeds": two_speeds.prove,
}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the proofs that are named on the command line, or all."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    for name in sys.argv[1:] or PROOFS:
        clock = time.perf_counter()
        found = PROOFS[name]()
        when = {"date": datetime.now(UTC).date().isoformat(), "commit": commit.strip()}
        result = {**when, "seconds": max(1, round(time.perf_counter() - clock)), **found}
        text = json.dumps(result, indent=2)
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{name}: {text}")


if __name__ == "__main__":
    main()

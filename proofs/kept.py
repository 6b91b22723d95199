"""What was played is kept in small files, so that a proof of hours can be made in pieces."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from itertools import count, takewhile
from pathlib import Path

import numpy as np

from posse.core.files import write_json
from posse.numerics.checks import Array

ROOT = Path(__file__).parent.parent
# What is learned, played and drawn is made by these rooms.
ROOMS = ("core", "estimators", "numerics", "play", "policies", "problems")


def folder_of(proof: Path) -> Path:
    """Return where a proof, a module, keeps what it played: another folder after any change of its code."""
    sources = [path for room in ROOMS for path in sorted((ROOT / "src" / "posse" / room).rglob("*.py"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (proof, *sources)))
    return ROOT / "results" / proof.stem / digest.hexdigest()[:12]


def play(
    function: Callable[[str, int, int | None], Array],
    case: str,
    seed: int,
    rounds: int | None,
    folder: Path,
    deadline: float,
) -> None:
    """Keep what a function makes of a case, a seed and a number of rounds, unless it is kept, or too late."""
    path = path_of(function, case, seed, folder)
    if time.time() < deadline and not path.exists():
        write_json(path, function(case, seed, rounds).tolist())


def known(function: Callable[..., Array], case: str, folder: Path) -> Array:
    """Return what is kept of a function and a case, for the seeds 0, 1, ... up to the first that is not."""
    paths = (path_of(function, case, seed, folder) for seed in count())
    return np.array([json.loads(path.read_text("utf-8")) for path in takewhile(Path.exists, paths)])


def path_of(function: Callable[..., Array], case: str, seed: int, folder: Path) -> Path:
    """Return the file of a function, a case and a seed."""
    return folder / f"{function.__name__}-{re.sub(r'[^A-Za-z0-9]+', '-', case)}-{seed}.json"

"""Environments of their own for libraries that posse is measured beside, and the conditions of a run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = ROOT / ".venv-peers"
ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class InstallError(Exception):
    """A library that pip did not install."""


def environment(library: str, requirements: Sequence[str]) -> str:
    """Return the Python that has a library, after making an environment for it if there is none."""
    home = ENVIRONMENTS / library
    python, done = str(home / "bin" / "python"), home / ".installed"
    if not done.exists():
        make = [sys.executable, "-m", "venv", str(home)]
        install = [python, "-m", "pip", "install", "--quiet", *requirements]
        if any(subprocess.run(command, capture_output=True).returncode for command in (make, install)):
            raise InstallError(f"pip did not install {library}")
        done.touch()
    return python

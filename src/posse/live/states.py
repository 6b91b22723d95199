"""States beside a journal, in files: snapshots, so that opening is quick, and versions, to go back to."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from posse.core.codec import load, save

# So many snapshots are kept: the last one may be damaged by a power failure.
SNAPSHOTS = 2
MOST_BYTES = 2**40


class States:
    """The folder of an agent's states. What is in it can be learned anew from the journal, but for archives.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: threading.Thread | None = None
        self._saved = -1

    def save_version(self, number: int, state: Any) -> None:
        """Save the state of a version."""
        save(state, self._version(number))

    def load_version(self, number: int) -> Any:
        """Return the state of a version; None if there is none, or it is damaged."""
        return self._load(self._version(number))

    def drop_version(self, number: int) -> None:
        """Remove the state of a version."""
        self._version(number).unlink(missing_ok=True)

    def _version(self, number: int) -> Path:
        return self.folder / f"version-{number:08d}.posse"

    def save_snapshot(self, number: int, state: Any, *, wait: bool, alone: bool) -> bool:
        """Save a snapshot as of an event; return whether that is done or, unless told to wait, has begun.

        It is written beside other work. One that is being written is not overtaken. Alone: all others are
        removed.
        """
        if self._writer is not None and self._writer.is_alive():
            if not wait:
                return False
            self._writer.join()
        writer = threading.Thread(target=self._write, args=(number, state, alone), daemon=True)
        self._writer = writer
        writer.start()
        if wait:
            writer.join()
        return not wait or self._saved == number

    def _write(self, number: int, state: Any, alone: bool) -> None:
        path = self.folder / f"snapshot-{number:016d}.posse"
        try:
            save(state, path)
            sync(path)
        except OSError:  # a full disk: the journal has all that the snapshot would have
            return
        self._saved = number
        kept = 1 if alone else SNAPSHOTS
        for old in self._snapshots()[kept:]:
            old.unlink(missing_ok=True)

    def load_snapshot(self, upto: int) -> Any:
        """Return the last snapshot that is whole, as of an event up to that number; None if there is none."""
        known = (path for path in self._snapshots() if _number(path) <= upto)
        return next(filter(None, map(self._load, known)), None)

    def drop_snapshots(self, after: int) -> None:
        """Remove snapshots of events that the journal lost: others will have their numbers."""
        for path in self._snapshots():
            if _number(path) > after:
                path.unlink()

    def _snapshots(self) -> list[Path]:
        return sorted(self.folder.glob("snapshot-*.posse"), reverse=True)

    def _load(self, path: Path) -> Any:
        try:
            return load(path, most_bytes=MOST_BYTES)
        except (OSError, ValueError):
            return None

    def wait(self) -> None:
        """Wait until the snapshot that is being written is there."""
        if self._writer is not None:
            self._writer.join()


def sync(path: Path) -> None:
    """Return when a new file is on the disk, under its name, so that a loss of power leaves it there."""
    for place in (path, path.parent):
        file = os.open(place, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _number(path: Path) -> int:
    """Return the number of the event that a snapshot is of."""
    return int(path.stem.removeprefix("snapshot-"))

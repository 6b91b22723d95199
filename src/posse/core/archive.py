"""A text and some arrays in one file: a zip archive that is read with distrust."""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from posse.core.files import write_atomically

TEXT, ENDING = "posse.json", ".npy"
# The text, once parsed, takes many times its length.
MOST_TEXT = 2**26
# Kinds of numbers and their bytes that have one meaning on every machine.
DTYPES = frozenset(["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
# The head of an array file, as NumPy writes it for plain numbers. Anything else is not worth parsing.
HEAD = re.compile(
    rb"\{'descr': '(?P<order>[<>|])(?P<dtype>[biuf]\d)', 'fortran_order': (?:True|False), "
    rb"'shape': \((?P<shape>[\d, ]{0,999})\), \} *\n"
)
MAGIC = b"\x93NUMPY\x01\x00"
# What `zipfile` raises on archives that are damaged or of a kind that it cannot read.
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    IndexError,
    OverflowError,
    RuntimeError,
)


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Return whether an array file may hold numbers of a dtype: bool, integers, floats of up to 8 bytes."""
    return dtype.str[1:] in DTYPES


def in_a_line(error: Exception) -> str:
    """Return what an error says in one line, or its name if it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def write_archive(path: Path, text: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write a text of ASCII and plain arrays, whole or not at all.

    Members are not compressed and have no date, so that equal content gives equal bytes on every machine.
    """
    if len(text) > MOST_TEXT:
        raise ValueError(
            f"what is saved must take at most {MOST_TEXT} bytes beside its arrays. Got {len(text)}: "
            "hold long lists of numbers as arrays."
        )

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_member(TEXT), text)
            for name, array in arrays.items():
                large = array.nbytes > 2**30
                with archive.open(_member(name + ENDING), "w", force_zip64=large) as stream:
                    np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)

    write_atomically(path, write)


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    member.create_system, member.external_attr = 3, 0o644 << 16
    return member


def read_archive(path: Path, most_bytes: int) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """Read a text and arrays.

    Parameters
    ----------
    path : Path
    most_bytes : int
        What members may take in memory, all together. Sizes are checked before anything is unpacked.

    Raises
    ------
    ValueError
        If the file is none that `write_archive` writes.
    OSError
        If it cannot be opened or read.
    """
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                _check_kinds(members)
                _check_sizes(members, os.fstat(file.fileno()).st_size, most_bytes)
                text = archive.read(TEXT)
                names = [member.filename for member in members if member.filename.endswith(ENDING)]
                return text, {name.removesuffix(ENDING): _read_array(archive, name) for name in names}
        except BROKEN as error:
            raise ValueError(f"it must be a zip archive that is whole. Got: {in_a_line(error)}") from error


def _check_kinds(members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    if TEXT not in names or len(set(names)) < len(names):
        raise ValueError(f"it must hold {TEXT}, and each name once. Got {', '.join(names[:9]) or 'nothing'}.")
    if foreign := [member.filename for member in members if not _is_readable(member)]:
        raise ValueError(f"{foreign[0]!r} in it must be stored or deflated. Got another kind.")


def _check_sizes(members: list[zipfile.ZipInfo], file_bytes: int, most_bytes: int) -> None:
    if (length := sum(member.file_size for member in members if member.filename == TEXT)) > MOST_TEXT:
        raise ValueError(f"{TEXT} in it must take at most {MOST_TEXT} bytes. Got {length}.")
    if (packed := sum(member.compress_size for member in members)) > file_bytes:
        raise ValueError(
            f"its {file_bytes} bytes must be enough for what it holds. Got {packed} in its list."
        )
    if (needed := sum(member.file_size for member in members)) > most_bytes:
        raise ValueError(f"it must take at most `most_bytes`={most_bytes} in memory. Got {needed}.")


def _is_readable(member: zipfile.ZipInfo) -> bool:
    if member.header_offset < 0 or member.flag_bits & 0x1:  # outside of the file, or encrypted
        return False
    if member.compress_type == zipfile.ZIP_STORED:
        return member.compress_size == member.file_size
    return member.compress_type == zipfile.ZIP_DEFLATED


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as stream:
        _check_head(stream, name, archive.getinfo(name).file_size)
    with archive.open(name) as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        return array


def _check_head(stream: IO[bytes], name: str, member_bytes: int) -> None:
    """Refuse an array file whose head is not NumPy's, or claims more or less than there is."""
    start = stream.read(len(MAGIC) + 2)
    length = int.from_bytes(start[len(MAGIC) :], "little")
    head = HEAD.fullmatch(stream.read(length)) if start.startswith(MAGIC) else None
    if head is None or head["dtype"].decode() not in DTYPES:
        raise ValueError(
            f"{name!r} in it must be an array of numbers in NumPy's format 1.0. Got another head."
        )
    shape = tuple(int(size) for size in head["shape"].decode().replace(",", " ").split())
    claimed = len(start) + length + math.prod(shape) * int(head["dtype"][1:])
    # the largest array that NumPy can address: with a zero among its lengths, an array may claim any size
    widest = math.prod(max(1, size) for size in shape) * 8
    if claimed != member_bytes or len(shape) > 64 or widest >= 2**63:
        raise ValueError(f"{name!r} in it must take {member_bytes} bytes. Got a head for {claimed}: {shape}.")

"""Values as data: configuration and state of policies, estimators and all they hold, to JSON and back."""

from __future__ import annotations

import json
import math
import os
import re
from importlib import import_module
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from posse.core.archive import in_a_line, is_plain, read_archive, write_archive
from posse.core.shipped import class_of, full_name, name_of, optional_parts_of, parts_of
from posse.numerics.checks import check_integer

# The number of the format that is written, and the highest that is read.
FORMAT = 1
# How deep values may lie in each other: more is a value that holds itself, or a file made to do harm.
MOST_NESTING = 100
# Integers beyond those of most readers of JSON are written as text.
LARGEST_PLAIN = 2**63

Tree = Any
Arrays = dict[str, NDArray[Any]]


def encode(value: Any) -> tuple[Tree, Arrays]:
    """Return a value as a tree that JSON can hold, and the arrays that the tree names.

    Parameters
    ----------
    value
        None, a bool, number or string, an array of numbers, or a tuple, list, dict with strings as keys, or
        dataclass of such: of posse, or registered with `posse.register`. Numbers of NumPy become Python's.

    Returns
    -------
    tree
        None, bool, int, float and str as they are, a list as a list, and the rest as a dict that says what
        it is: `{"tuple": [...]}`, `{"dict": {...}}`, `{"array": name}`, `{"float": "inf"}`,
        `{"int": "0x..."}`, `{"class": name, "fields": {...}}`.
    arrays : dict

    Raises
    ------
    ValueError
        If there is anything else in the value; it says where.

    Examples
    --------
    >>> from posse import Geometric
    >>> encode((Geometric(first=3), np.eye(2)))[0]
    {'tuple': [{'class': 'Geometric', 'fields': {'first': 3, 'ratio': 1.2}}, {'array': 'array-0'}]}
    """
    arrays: Arrays = {}
    return _encode(value, "value", MOST_NESTING, arrays), arrays


def _encode(value: Any, where: str, left: int, arrays: Arrays) -> Tree:
    kind = type(value)
    if value is None or kind in (bool, int, float, str) or isinstance(value, np.generic):
        return _scalar(value, where)
    _check_nesting(where, left)
    if kind in (list, tuple):
        items = [_encode(item, f"{where}[{i}]", left - 1, arrays) for i, item in enumerate(value)]
        return items if kind is list else {"tuple": items}
    if kind is dict:
        return {"dict": _encode_dict(value, where, left, arrays)}
    if kind is np.ndarray and is_plain(value.dtype):
        known = (name for name, array in arrays.items() if array is value)
        name = next(known, f"array-{len(arrays)}")
        arrays[name] = value
        return {"array": name}
    return _encode_object(value, where, left, arrays)


def _encode_dict(value: dict[Any, Any], where: str, left: int, arrays: Arrays) -> Tree:
    for key in value:
        if type(key) is not str:
            raise ValueError(f"keys of `{where}` must be strings to be saved. Got {key!r}.")
    return {key: _encode(item, f"{where}[{key!r}]", left - 1, arrays) for key, item in value.items()}


def _encode_object(value: Any, where: str, left: int, arrays: Arrays) -> Tree:
    cls: type[Any] = type(value)
    name = name_of(cls)
    if name is None:
        _refuse(value, where)
    parts = {part: getattr(value, part) for part in parts_of(cls)}
    found = {part: _encode(item, f"{where}.{part}", left - 1, arrays) for part, item in parts.items()}
    return {"class": name, "fields": found}


def _scalar(value: Any, where: str) -> Tree:
    if isinstance(value, np.generic):
        if not is_plain(value.dtype):
            _refuse(value, where)
        value = value.item()
    if type(value) is float and not math.isfinite(value):
        return {"float": str(value)}
    if type(value) is int and abs(value) >= LARGEST_PLAIN:
        return {"int": hex(value)}
    return value


def _refuse(value: Any, where: str) -> NoReturn:
    found = f"an object of {full_name(type(value))}"
    if isinstance(value, type | FunctionType | BuiltinFunctionType | MethodType):
        found = f"the {'class' if isinstance(value, type) else 'function'} {full_name(value)}"
    elif isinstance(value, np.ndarray):
        found = f"{found} with entries of {value.dtype}"
    raise ValueError(
        f"`{where}` must be None, a number, a string, an array of numbers, a tuple, list or dict, or of a "
        f"class that is registered with posse.register, to be saved. Got {found}."
    )


def _check_nesting(where: str, left: int) -> None:
    if left == 0:
        raise ValueError(f"values must be nested at most {MOST_NESTING} deep. Got `{where[:40]}...`.")


def decode(tree: Tree, arrays: Arrays) -> Any:
    """Return the value that `encode` has made a tree and arrays of, bit by bit.

    Nothing is imported but modules of posse.

    Raises
    ------
    ValueError
        If the tree is none that `encode` makes, or a class in it is unknown or refuses its fields.

    Examples
    --------
    >>> decode({"tuple": [{"class": "Every", "fields": {"rounds": 3}}, {"float": "inf"}]}, {})
    (Every(rounds=3), inf)
    """
    return _decode(tree, "value", MOST_NESTING, arrays)


def _decode(tree: Tree, where: str, left: int, arrays: Arrays) -> Any:
    kind = type(tree)
    if tree is None or kind in (bool, int, str) or (kind is float and math.isfinite(tree)):
        return tree
    _check_nesting(where, left)
    if kind is list:
        return _decode_list(tree, where, left, arrays)
    if kind is dict and set(tree) == {"class", "fields"}:
        return _decode_object(tree["class"], tree["fields"], where, left, arrays)
    if kind is dict and len(tree) == 1:
        ((tag, content),) = tree.items()
        return _decode_tagged(tag, content, where, left, arrays)
    _refuse_tree(tree, where)


def _decode_tagged(tag: str, content: Any, where: str, left: int, arrays: Arrays) -> Any:
    match tag, content:
        case "tuple", list():
            return tuple(_decode_list(content, where, left, arrays))
        case "dict", dict():
            return {
                key: _decode(item, f"{where}[{key!r}]", left - 1, arrays) for key, item in content.items()
            }
        case "array", str():
            if content not in arrays:
                raise ValueError(f"`{where}` must be an array that is there. Got {content!r}, which is not.")
            return arrays[content]
        case "float", "inf" | "-inf" | "nan":
            return float(content)
        case "int", str() if re.fullmatch(r"-?0x[0-9a-f]+", content):
            return int(content, 16)
    _refuse_tree({tag: content}, where)


def _refuse_tree(tree: Tree, where: str) -> NoReturn:
    raise ValueError(f"`{where}` must be a tree that posse.save makes. Got {_shortened(tree)}.")


def _decode_list(items: list[Any], where: str, left: int, arrays: Arrays) -> list[Any]:
    return [_decode(item, f"{where}[{i}]", left - 1, arrays) for i, item in enumerate(items)]


def _decode_object(name: Any, given: Any, where: str, left: int, arrays: Arrays) -> Any:
    cls = class_of(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(
            f"the class of `{where}` must be registered with posse.register before loading. "
            f"Got {_shortened(name)}."
        )
    parts = parts_of(cls)
    if type(given) is not dict or not optional_parts_of(cls) >= set(parts) ^ set(given):
        found = ", ".join(given) or "none" if isinstance(given, dict) else _shortened(given)
        raise ValueError(f"fields of `{where}` must be those of {name}: {', '.join(parts)}. Got {found}.")
    values = {part: _decode(given[part], f"{where}.{part}", left - 1, arrays) for part in given}
    try:
        return cls(**values)
    except Exception as error:  # whatever a constructor does with fields that it was not made for
        raise ValueError(f"`{where}` must have fields that {name} takes. Got: {in_a_line(error)}") from error


def _shortened(tree: Tree) -> str:
    text = repr(tree)
    return text if len(text) <= 60 else f"{text[:60]}..."


def save(value: Any, path: str | os.PathLike[str]) -> None:
    """Save configuration or state to one file, whole or not at all.

    The file is a zip archive of `posse.json` and an `.npy` file for every array. Equal values give equal
    files, byte by byte.

    Parameters
    ----------
    value
        A policy, an estimator, a state, or any other dataclass of posse or registered with `posse.register`;
        also None, bools, numbers, strings, arrays of numbers, and tuples, lists and dicts of all these.
    path : path
        By convention it ends in `.posse`.

    Raises
    ------
    ValueError
        If there is something in the value that cannot be saved, such as a function; it says where.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from posse import Ridge
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"estimator": Ridge(penalty=2.0)}, f"{folder}/setup.posse")
    ...     load(f"{folder}/setup.posse")
    {'estimator': Ridge(penalty=2.0)}
    """
    tree, arrays = encode(value)
    writer = import_module("posse").__version__  # by name, because this room may not import the whole house
    document = {"format": FORMAT, "posse": writer, "value": tree}
    write_archive(Path(path), json.dumps(document, allow_nan=False), arrays)


def load(path: str | os.PathLike[str], *, most_bytes: int = 2**32) -> Any:
    """Load what `save` has saved, bit by bit.

    No file can make this run code: nothing is unpickled, and nothing is imported but modules of posse.
    Classes of your own have to be registered with `posse.register` before.

    Parameters
    ----------
    path : path
    most_bytes : int
        What the file may take in memory, 4 GiB by default: a larger one is refused before it is unpacked.

    Raises
    ------
    ValueError
        If the file is damaged, too large, of a later format, or holds an unknown class.
    OSError
        If it cannot be read.
    """
    check_integer("`most_bytes` of load", most_bytes, 1)
    try:
        text, arrays = read_archive(Path(path), most_bytes)
        return decode(_tree_of(text), arrays)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {error}") from error


def _tree_of(text: bytes) -> Tree:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"posse.json in it must be JSON. Got: {in_a_line(error)}.") from error
    if type(document) is not dict or not {"format", "posse", "value"} <= set(document):
        raise ValueError(f"posse.json in it must hold format, posse and value. Got {_shortened(document)}.")
    number, writer = document["format"], document["posse"]
    if type(number) is not int or number < 1:
        raise ValueError(f"its format must be an integer of at least 1. Got {_shortened(number)}.")
    if number > FORMAT:
        raise ValueError(
            f"posse {_shortened(writer)} wrote it in format {number}, and this version of posse reads "
            f"format {FORMAT}."
        )
    return document["value"]

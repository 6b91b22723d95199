"""What a value is, as JSON has it: what a manifest remembers of policies and problems."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cached_property, partial, singledispatch
from types import CodeType, FunctionType, MethodType, NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posse.core.codec import encode
from posse.core.shipped import full_name, name_of


@singledispatch
def describe(value: Any) -> Any:
    """Return a description of a value: equal for equal values, and made of what JSON has.

    What `posse.save` can store without arrays is described as it stores it, so that it can be read back.
    Other dataclasses are their class and their fields, other objects what is kept of them in a copy; arrays
    are their type, shape and a digest, and functions where they are found, with a digest of their code and
    what they close over.

    Examples
    --------
    >>> from posse import MLinGreedy
    >>> describe(MLinGreedy(rank=2)), describe(np.linalg.norm)
    ({'class': 'MLinGreedy', 'fields': {'rank': 2, 'penalty': 0.0}}, 'numpy.linalg:norm')
    >>> describe(np.zeros(3))["shape"]
    [3]
    """
    if callable(value) and isinstance(getattr(value, "__qualname__", None), str):
        return f"{value.__module__}:{value.__qualname__}"
    name = name_of(type(value))
    if name is not None:
        with suppress(ValueError):  # what it holds may be a stranger's
            tree, arrays = encode(value)
            if not arrays:
                return tree
    held = {"fields": _fields(value)} if is_dataclass(value) else _copied(value)
    return {"class": name or full_name(type(value)), **held}


@describe.register(NoneType)
@describe.register(int)
@describe.register(str)
def _itself(value: int | str | None) -> Any:
    return value


@describe.register
def _number(value: float) -> Any:
    return value if np.isfinite(value) else {"float": repr(value)}


@describe.register
def _scalar(value: np.generic) -> Any:
    return describe(value.item())


@describe.register
def _bytes(value: bytes) -> Any:
    return {"bytes": hashlib.sha256(value).hexdigest()}


@describe.register(np.ndarray)
def _array(value: NDArray[Any]) -> Any:
    if value.dtype.hasobject:
        return {
            "array": str(value.dtype),
            "shape": list(value.shape),
            "values": describe(value.ravel().tolist()),
        }
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return {"array": str(value.dtype), "shape": list(value.shape), "sha256": digest}


@describe.register(list)
@describe.register(tuple)
def _sequence(value: Any) -> Any:
    return [describe(item) for item in value]


@describe.register(set)
@describe.register(frozenset)
def _set(value: Any) -> Any:
    return {"set": sorted((describe(item) for item in value), key=json.dumps)}


@describe.register(Mapping)
def _mapping(value: Mapping[Any, Any]) -> Any:
    if all(isinstance(name, str) for name in value):
        return {name: describe(item) for name, item in value.items()}
    return {"pairs": [[describe(name), describe(item)] for name, item in value.items()]}


@describe.register(partial)
def _partial(value: partial[Any]) -> Any:
    return {
        "partial": describe(value.func),
        "arguments": describe(value.args),
        "keywords": describe(value.keywords),
    }


@describe.register
def _method(value: MethodType) -> Any:
    owner = value.__self__
    if isinstance(owner, type):
        return describe(value.__func__)
    return {"method": value.__name__, "of": describe(owner)}


@describe.register
def _function(value: FunctionType) -> Any:
    place = f"{value.__module__}:{value.__qualname__}"
    if place.startswith("posse."):
        return place
    return {
        "function": place,
        "code": hashlib.sha256(_written(value.__code__).encode()).hexdigest(),
        "closure": [describe(cell.cell_contents) for cell in value.__closure__ or ()],
        "defaults": describe([value.__defaults__, value.__kwdefaults__]),
    }


def _written(code: CodeType) -> str:
    """Return what decides what code does: steps, names and constants, also of the functions inside it."""
    constants = [
        _written(some)
        if isinstance(some, CodeType)
        else repr(sorted(map(repr, some)))
        if isinstance(some, frozenset)
        else repr(some)
        for some in code.co_consts
    ]
    return repr((code.co_code, code.co_names, constants))


def _fields(value: Any) -> dict[str, Any]:
    return {item.name: describe(getattr(value, item.name)) for item in fields(value)}


def _copied(value: Any) -> dict[str, Any]:
    """Return what a copy of an object is made from, but for what was computed on demand."""
    maker, arguments, *rest = value.__reduce_ex__(4)
    state, *items = [list(some) if isinstance(some, Iterator) else some for some in (*rest, None)]
    if isinstance(state, dict):
        state = {name: held for name, held in state.items() if not _is_cached(type(value), name)}
    held = {"state": describe(state), "items": describe([some for some in items if some])}
    made = {} if arguments == (type(value),) else {"maker": describe(maker), "arguments": describe(arguments)}
    return {**made, **{name: some for name, some in held.items() if some}}


def _is_cached(owner: type, name: str) -> bool:
    return isinstance(getattr(owner, name, None), cached_property)

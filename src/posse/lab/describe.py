"""What a value is, as JSON has it: what a manifest remembers of policies and problems."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np


def describe(value: Any) -> Any:
    """Return a description of a value: equal for equal values, and made of what JSON has.

    Dataclasses are their class and their fields, other objects what is kept of them in a copy; arrays are
    their type, shape and a digest, and functions where they are found. A function that can be found nowhere,
    such as a lambda, is its code and what it closes over.

    Examples
    --------
    >>> from posse import MLinGreedy
    >>> describe(MLinGreedy(rank=2)), describe(np.linalg.norm)
    ({'class': 'MLinGreedy', 'rank': 2, 'penalty': 0.0}, 'numpy.linalg:norm')
    >>> describe(np.zeros(3))["shape"]
    [3]
    """
    match value:
        case np.generic():
            return describe(value.item())
        case None | bool() | int() | str():
            return value
        case float():
            return value if np.isfinite(value) else repr(value)
        case np.ndarray():
            digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return {"array": str(value.dtype), "shape": list(value.shape), "sha256": digest}
        case bytes():
            return {"bytes": hashlib.sha256(value).hexdigest()}
        case set() | frozenset():
            return {"set": sorted((describe(item) for item in value), key=json.dumps)}
        case Mapping():
            return {str(name): describe(item) for name, item in value.items()}
        case list() | tuple():
            return [describe(item) for item in value]
        case partial():
            return {
                "partial": describe(value.func),
                "arguments": describe(value.args),
                "keywords": describe(value.keywords),
            }
        case MethodType():
            return _method(value)
        case _ if callable(value) and isinstance(getattr(value, "__qualname__", None), str):
            return _function(value)
        case _:
            return {"class": _class_name(type(value)), **_held(value)}


def _function(value: Any) -> Any:
    place = f"{value.__module__}:{value.__qualname__}"
    if "<" not in place or not isinstance(value, FunctionType):
        return place
    code = value.__code__
    constants = [some for some in code.co_consts if isinstance(some, str | float | int)]
    inside = repr((code.co_code, code.co_names, constants))
    return {
        "function": place,
        "code": hashlib.sha256(inside.encode()).hexdigest(),
        "closure": [describe(cell.cell_contents) for cell in value.__closure__ or ()],
        "defaults": describe([value.__defaults__, value.__kwdefaults__]),
    }


def _method(value: MethodType) -> Any:
    owner = value.__self__
    if isinstance(owner, type):
        return f"{owner.__module__}:{owner.__qualname__}.{value.__name__}"
    return {"method": value.__name__, "of": describe(owner)}


def _class_name(owner: type) -> str:
    ours = owner.__module__.partition(".")[0] == "posse"
    return owner.__qualname__ if ours else f"{owner.__module__}.{owner.__qualname__}"


def _held(value: Any) -> dict[str, Any]:
    if is_dataclass(value):
        return {item.name: describe(getattr(value, item.name)) for item in fields(value)}
    make, arguments, *rest = value.__reduce_ex__(4)
    state, *items = [list(some) if isinstance(some, Iterator) else some for some in (*rest, None)]
    if isinstance(state, dict):  # what was computed on demand is not part of it
        state = {name: held for name, held in state.items() if not _is_cached(type(value), name)}
    made = (
        {} if arguments == (type(value),) else {"made by": describe(make), "arguments": describe(arguments)}
    )
    held = {"state": describe(state), "items": describe([some for some in items if some])}
    return {**made, **{name: some for name, some in held.items() if some}}


def _is_cached(owner: type, name: str) -> bool:
    return isinstance(getattr(owner, name, None), cached_property)

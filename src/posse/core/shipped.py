"""Which classes may stand in a file, and by which names: posse's own, and those that were registered."""

from __future__ import annotations

import inspect
import pkgutil
import sys
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

# Public frozen dataclasses of these rooms may stand in files, by their names: one that was released stays.
ROOMS = ("posse.core", "posse.estimators", "posse.policies")

_REGISTERED: dict[str, type[Any]] = {}
_NAMES: dict[type[Any], str] = {}

Class = TypeVar("Class", bound=type[Any])


def register(cls: Class, name: str | None = None) -> Class:
    """Let a dataclass of your own stand in files that `posse.save` writes and `posse.load` reads.

    Loading imports nothing that a file names, so a class has to be registered before a file that holds it
    is loaded. Under several names, files with any of them are read, and the last one is written.

    Parameters
    ----------
    cls : dataclass
        Rebuilt by a call with its fields by keyword.
    name : str, optional
        What files call it; "module:qualname" by default. With another name it can move to another module.

    Returns
    -------
    type
        The class, so that `register` can be used as a decorator.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @register
    ... @dataclass(frozen=True)
    ... class Steps:
    ...     rounds: tuple[int, ...]
    >>> register(Steps, name="shop.Steps") is Steps
    True
    """
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise ValueError(f"`cls` of register must be a dataclass. Got {cls!r}.")
    given, own = parts_of(cls), {part.name for part in fields(cls)}
    if foreign := [part for part in given if part not in own]:
        raise ValueError(
            f"{full_name(cls)} must be made from its fields alone to be registered. Got {foreign[0]!r}."
        )
    name = full_name(cls) if name is None else name
    if not isinstance(name, str) or not set(name) & set(".:"):
        raise ValueError(
            f"`name` of register must be a string with a dot or a colon: posse's own have none. Got {name!r}."
        )
    holder = _REGISTERED.get(name, cls)
    if full_name(holder) != full_name(cls):  # equal where a module or a cell of a notebook was run again
        raise ValueError(f"`name` of register must be free. Got {name!r}, which is {full_name(holder)}.")
    _REGISTERED[name], _NAMES[cls] = cls, name
    return cls


def class_of(name: str) -> type[Any] | None:
    """Return the class that files call `name`, None if there is none: posse's own, or a registered one."""
    return _REGISTERED[name] if name in _REGISTERED else shipped().get(name)


def name_of(cls: type[Any]) -> str | None:
    """Return what files call a class, None if it may not stand in one, whatever its parents are."""
    if cls.__module__.startswith(tuple(f"{room}." for room in ROOMS)) and _is_data(cls):
        return cls.__qualname__
    return _NAMES.get(cls)


@cache
def shipped() -> dict[str, type[Any]]:
    """Return posse's own classes that may stand in files, by their names; all their modules are loaded."""
    found: dict[str, type[Any]] = {}
    for room in ROOMS:
        for module in pkgutil.walk_packages(import_module(room).__path__, f"{room}."):
            for cls in vars(import_module(module.name)).values():
                if isinstance(cls, type) and cls.__module__ == module.name and _is_data(cls):
                    found[cls.__qualname__] = cls
    return found


def _is_data(cls: type[Any]) -> bool:
    """Return whether a class of a module is one of its public frozen dataclasses."""
    known = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls
    parameters = vars(cls).get("__dataclass_params__")
    return known and parameters is not None and parameters.frozen and not cls.__qualname__.startswith("_")


def full_name(thing: Any) -> str:
    """Return where a class or function is defined, as "module:qualname"."""
    return f"{getattr(thing, '__module__', None)}:{getattr(thing, '__qualname__', type(thing).__qualname__)}"


def parts_of(cls: type[Any]) -> tuple[str, ...]:
    """Return what a class is made from: the parameters of its constructor, each an attribute of that name.

    Of a dataclass these are the fields that are not computed.
    """
    return tuple(inspect.signature(cls).parameters)


def optional_parts_of(cls: type[Any]) -> set[str]:
    """Return which parts of a class may be missing in a file: those with a default, as added later."""
    parameters = inspect.signature(cls).parameters.values()
    return {item.name for item in parameters if item.default is not inspect.Parameter.empty}

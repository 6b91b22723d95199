"""What was found where a body is not as described."""

from __future__ import annotations

import re
from typing import Any

from posse.core.extras import extra

with extra("serve"):
    import msgspec

STEP = re.compile(r"\.(\w+)|\[(\d+)\]|(\[\.\.\.\])")
# In larger bodies no value is looked for: the place has to do.
MOST_BYTES = 1_000_000


def with_found(error: Exception, body: bytes, kind: Any) -> str:
    """Return what an error of validation says, and the value that it speaks of.

    Parameters
    ----------
    error : ValidationError
        Of msgspec, which names the place and not the value.
    body : bytes
        JSON.
    kind : type
        That the body should have been of.

    Examples
    --------
    >>> from typing import Annotated
    >>> body = b'{"red": 1, "blue": 900}'
    >>> kind = dict[str, Annotated[int, msgspec.Meta(le=9)]]
    >>> try:
    ...     msgspec.json.decode(body, type=kind)
    ... except msgspec.ValidationError as error:
    ...     with_found(error, body, kind)
    'Expected `int` <= 9 - at `$[...]`. Got 900'
    """
    text = str(error)
    if len(body) > MOST_BYTES:
        return text
    try:
        whole = {"$": msgspec.json.decode(body)}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # wrong in more than one place
        return text
    place = re.search(r" - at `([^`]*)`$", text)
    parent: Any = whole
    key: Any = "$"
    for name, number, any_of in STEP.findall("" if place is None else place[1]):
        inside = parent[key]
        if any_of:
            parent, key = _wrong_member(whole, parent, key, text, kind)
        else:
            parent, key = inside, name or int(number)
        if isinstance(parent, dict) and key not in parent:
            return text
    return f"{text}. Got {parent[key]!r:.200}"


def _wrong_member(whole: dict[str, Any], parent: Any, key: Any, text: str, kind: Any) -> tuple[Any, Any]:
    """Return a container and the key of a member that leads to the error, by halves."""
    inside = parent[key]
    left = list(inside.items()) if isinstance(inside, dict) else list(inside)
    make = type(inside)
    while len(left) > 1:
        half = left[: len(left) // 2]
        parent[key] = make(half)
        left = half if _says(whole["$"], kind, text) else left[len(half) :]
    parent[key] = make(left)
    return parent[key], left[0][0] if make is dict else 0


def _says(value: Any, kind: Any, text: str) -> bool:
    """Return whether a value, read as a type, leads to an error of these words."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return str(error) == text
    return False

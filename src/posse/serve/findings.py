"""What was found where a body is not as described."""

from __future__ import annotations

import re
from typing import Any

from posse.core.extras import extra

with extra("serve"):
    import msgspec

STEP = re.compile(r"\.(\w+)|\[(\d+)\]|(\[\.\.\.\])")
# So many members of a mapping are looked at to find the one that is wrong.
MOST = 1000


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
    place = re.search(r" - at `([^`]*)`$", text)
    whole = {"$": msgspec.json.decode(body)}
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
    """Return a container and the key of the member in it that alone leads to the error."""
    inside = parent[key]
    keys = list(inside)[:MOST] if isinstance(inside, dict) else range(min(len(inside), MOST))
    for one in keys:
        parent[key] = {one: inside[one]} if isinstance(inside, dict) else [inside[one]]
        try:
            msgspec.convert(whole["$"], kind)
        except msgspec.ValidationError as error:
            if str(error) == text:
                return parent[key], one if isinstance(inside, dict) else 0
    parent[key] = inside
    return parent, key

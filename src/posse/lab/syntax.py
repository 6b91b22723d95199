"""How a policy is written in a line of text: `name`, or `name(parameter=value, ...)`."""

from __future__ import annotations

import ast
import re
from typing import Any

WORD = re.compile(r"[A-Za-z_][\w-]*")


def parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of a line of text; nothing in it is run.

    Values are Python's literals, such as 5, 0.5 or "low-rank"; words need no quotes.

    Examples
    --------
    >>> parse_call("mlingreedy(rank=5)"), parse_call("e2tc( subspace = spectral )"), parse_call("naive")
    (('mlingreedy', {'rank': 5}), ('e2tc', {'subspace': 'spectral'}), ('naive', {}))
    >>> parse_call("mlingreedy(5)")
    Traceback (most recent call last):
    ValueError: a policy must be written NAME or NAME(parameter=value, ...). Got 'mlingreedy(5)'.
    """
    name, opening, rest = text.partition("(")
    if not opening:
        return text.strip(), {}
    source = f"call({rest}"
    wrong = f"a policy must be written NAME or NAME(parameter=value, ...). Got {text!r}."
    try:
        call = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(wrong) from None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)) or call.args:
        raise ValueError(wrong)
    parameters: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise ValueError(wrong)
        if keyword.arg in parameters:
            raise ValueError(f"{keyword.arg} must be told once. Got {text!r}.")
        parameters[keyword.arg] = parse_value(
            keyword.arg, ast.get_source_segment(source, keyword.value) or ""
        )
    return name.strip(), parameters


def parse_value(name: str, text: str) -> Any:
    """Return the value of a parameter: a literal of Python, or a word without quotes.

    Examples
    --------
    >>> parse_value("rank", "5"), parse_value("subspace", "spectral")
    (5, 'spectral')
    >>> parse_value("rank", "2 + x")
    Traceback (most recent call last):
    ValueError: the value of rank must be a number, a word, or another literal of Python. Got '2 + x'.
    """
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        if WORD.fullmatch(text.strip()):
            return text.strip()
        raise ValueError(
            f"the value of {name} must be a number, a word, or another literal of Python. Got {text!r}."
        ) from None

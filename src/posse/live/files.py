"""Agents in files."""

from __future__ import annotations

from typing import Any


def open_desk(*args: Any) -> Any:
    raise NotImplementedError


def archive(*args: Any) -> Any:
    raise NotImplementedError


def read_desk(*args: Any) -> Any:
    raise NotImplementedError

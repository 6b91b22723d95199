"""Decisions over HTTP: spaces of agents behind one service, who may use it, and a page to watch it."""

from posse.serve.service import Service
from posse.serve.spaces import Space
from posse.serve.stores import open_store

__all__ = ["Service", "Space", "open_store"]

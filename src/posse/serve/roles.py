"""Who may do what: bearer tokens with roles, of which only hashes are kept."""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple

ROLES = ("ask", "tell", "read", "admin")
EVERYTHING = frozenset(ROLES)


class Token(NamedTuple):
    """A token as a store keeps it.

    Attributes
    ----------
    digest : str
        The SHA-256 of the token, in hexadecimal.
    name : str
        Who has it.
    roles : tuple of str
    """

    digest: str
    name: str
    roles: tuple[str, ...]


def new_token() -> str:
    """Return a token that nobody can guess: 256 random bits.

    Examples
    --------
    >>> len(new_token()), new_token().startswith("posse_")
    (49, True)
    """
    return f"posse_{secrets.token_urlsafe(32)}"


def digest_of(token: str) -> str:
    """Return what is kept of a token. It has 256 random bits, so that a plain hash cannot be searched.

    Examples
    --------
    >>> digest_of("a")[:8]
    'ca978112'
    """
    return hashlib.sha256(token.encode()).hexdigest()


def check_roles(roles: tuple[str, ...]) -> tuple[str, ...]:
    """Return roles in order, each once, or say which is none."""
    unknown = [role for role in roles if role not in ROLES]
    if unknown or not roles:
        raise ValueError(f"a role must be one of {', '.join(ROLES)}. Got {', '.join(unknown) or 'none'}.")
    return tuple(role for role in ROLES if role in roles)


def allowed(roles: tuple[str, ...]) -> frozenset[str]:
    """Return all that a token with these roles may do: an admin may do everything.

    Examples
    --------
    >>> sorted(allowed(("read",))), sorted(allowed(("admin",)))
    (['read'], ['admin', 'ask', 'read', 'tell'])
    """
    return EVERYTHING if "admin" in roles else frozenset(roles)

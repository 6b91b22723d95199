"""What is asked of a table, checked; and all that is needed to look at its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from posse.core.account import Finding
from posse.core.encoder import Encoder
from posse.logs.profile import Profile, Rows, learn_profile
from posse.logs.recipe import Recipe, make_encoder
from posse.logs.scan import MISSING, Parts, Roles, Scan
from posse.logs.scanned import Scanned, joined
from posse.logs.sources import Source
from posse.logs.tables import Table
from posse.numerics.checks import check_choice


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A table, what its columns are, and the encoder for it: all that is needed to look at its rows."""

    table: Table
    roles: Roles
    encoder: Encoder
    findings: list[Finding]
    missing: str

    def scan(
        self,
        parts: Parts | None = None,
        n_parts: int = 1,
        on_rows: Callable[[int], None] | None = None,
    ) -> Scanned:
        """Look at all rows, in parts if a function says which part each row is in."""
        types = dict(self.table.columns)
        look = partial(_scan, types, self.roles, self.encoder, self.missing, parts, n_parts, on_rows)
        used = (*self.roles.columns, *(column.name for column in self.encoder.columns))
        return self.table.gather(look, joined, tuple(dict.fromkeys(used)))


def _scan(
    types: Mapping[str, str],
    roles: Roles,
    encoder: Encoder,
    missing: str,
    parts: Parts | None,
    n_parts: int,
    on_rows: Callable[[int], None] | None,
    pieces: Iterable[Source],
) -> Scanned:
    return Scan(types, roles, encoder, missing=missing, parts=parts, n_parts=n_parts).run(pieces, on_rows)


class Request:
    """A table, and how its rows are to become features; columns are checked.

    Parameters
    ----------
    table : Table
    roles : Roles
    features : sequence of str, optional
        By default all columns that have no other part.
    encoder : Encoder or Recipe, optional
    missing : str

    Attributes
    ----------
    encoder : Encoder or None
        The one that is given.
    recipe : Recipe
        What one that is learned is to look like.
    used : list of str
        The columns that it may use.
    rows : Rows
        Those that count.
    """

    def __init__(
        self,
        table: Table,
        roles: Roles,
        features: Sequence[str] | None,
        encoder: Encoder | Recipe | None,
        missing: str,
    ) -> None:
        self.table, self.roles = table, roles
        self.missing = check_choice("`missing`", missing, MISSING)
        types = table.columns
        _check_roles(roles, types)
        self.encoder = encoder if isinstance(encoder, Encoder) else None
        self.recipe = encoder if isinstance(encoder, Recipe) else Recipe()
        self.used: list[str] = []
        self.rows = Rows(where=roles.where(types), columns=(roles.task, roles.reward))
        if self.encoder is None:
            self.used = _used(features, roles, types)
            self.recipe.check_columns(self.used)
        else:
            for column in self.encoder.columns:
                check_choice("a column of `encoder`", column.name, types)

    def prepare(self) -> Prepared:
        """Learn the encoder from the table, if none is given."""
        if self.encoder is not None:
            return self.prepared(self.encoder, [])
        roles = self.roles
        asked = [*self.used, *((roles.arm,) if roles.arm is not None else ())]
        categories = (*self.recipe.categories, roles.arm or "")
        profile = learn_profile(self.table, asked, categories, self.rows)
        if profile.rows == 0:
            raise ValueError(
                f"a log must have rows with a task and a reward. Got {self.table.name}, where no row has a "
                f"value in {roles.task!r} and a number in {roles.reward!r}."
            )
        return self.prepared(*self.cook(profile))

    def cook(self, profile: Profile) -> tuple[Encoder, list[Finding]]:
        """Return the encoder that the recipe makes of what columns hold, and what was left out."""
        return make_encoder(self.recipe, profile, self.table.columns, self.table.typed, self.roles.arm)

    def prepared(self, encoder: Encoder, findings: list[Finding]) -> Prepared:
        """Return what is needed to look at rows by an encoder."""
        return Prepared(
            table=self.table, roles=self.roles, encoder=encoder, findings=findings, missing=self.missing
        )


def _check_roles(roles: Roles, types: Mapping[str, str]) -> None:
    """Say if a column with a part of its own is not there, or has two parts."""
    for name, column in vars(roles).items():
        if column is not None:
            check_choice(f"`{name}`", column, types)
    if len(set(roles.columns)) < len(roles.columns):
        raise ValueError(f"columns with a part of their own must differ. Got {', '.join(roles.columns)}.")


def _used(features: Sequence[str] | None, roles: Roles, types: Mapping[str, str]) -> list[str]:
    """Return the columns that are to be features: by default all that have no other part."""
    if features is None:
        return [name for name in types if name not in roles.columns]
    for name in features:
        check_choice("a column of `features`", name, types)
        if name in (roles.task, roles.reward):
            raise ValueError(f"`features` must not hold the task or the reward. Got {name!r}.")
    return list(features)

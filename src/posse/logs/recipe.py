"""How an encoder is learned from a log: which columns are numbers, categories or dates, and how used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from posse.core.account import Finding
from posse.core.columns import DAY, CategoryColumn, Column, DateColumn, NumberColumn
from posse.core.encoder import Encoder
from posse.logs.profile import ColumnProfile, Profile
from posse.logs.reading import is_text, kind_of
from posse.numerics.checks import check_choice, check_integer, check_number

# Of a text column so many values must be numbers, or dates, for it to be read as such.
MOST = 0.9
# A level, or a gap, that is rarer than this has no feature of its own.
LEAST_ROWS, LEAST_SHARE = 5, 0.001
# A spread below this share of the mean is rounding.
CONSTANT_SHARE = 1e-12
MOST_ARMS = 200


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What an encoder that is learned from a log is to look like.

    Parameters
    ----------
    intercept : bool
        Whether there is a constant feature.
    categories : tuple of str
        Columns of numbers that are names of something, as codes of regions.
    numbers : tuple of str
        Columns of text that are numbers, where that is not plain.
    most_levels : int
        How many levels of a category have parameters of their own; all others are one level together.
    rare : float
        The share of rows below which a level is one of the others.
    interactions : tuple of pairs of str
        Columns whose features are multiplied with each other.
    own : "all" or tuple of str
        Where arms are named: the columns whose parameters differ between arms. With () arms differ by their
        level alone.
    """

    intercept: bool = True
    categories: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    most_levels: int = 20
    rare: float = 0.01
    interactions: tuple[tuple[str, str], ...] = ()
    own: tuple[str, ...] | str = "all"

    def __post_init__(self) -> None:
        check_integer("`most_levels` of Recipe", self.most_levels, 1)
        check_number("`rare` of Recipe", self.rare, 0.0, 1.0)
        if isinstance(self.own, str):
            check_choice("`own` of Recipe, if not a list of columns,", self.own, ["all"])

    def check_columns(self, features: Sequence[str]) -> None:
        """Say if the recipe names a column that is not among those used."""
        named = [name for pair in self.interactions for name in pair]
        own = () if isinstance(self.own, str) else self.own
        for name in (*self.categories, *self.numbers, *named, *own):
            check_choice("a column of Recipe", name, features)


def make_encoder(
    recipe: Recipe, profile: Profile, types: Mapping[str, str], typed: bool, arm: str | None
) -> tuple[Encoder, list[Finding]]:
    """Make an encoder from what a log was found to hold.

    Parameters
    ----------
    recipe : Recipe
    profile : Profile
        Of the columns to use and, where arms are named, of the one that names them.
    types : mapping of str to str
        DuckDB's type of each column.
    typed : bool
        Whether types were chosen by whoever wrote the log, as in Parquet files and frames.
    arm : str or None
        The column that names arms.

    Returns
    -------
    encoder : Encoder
    findings : list of Finding
        What was left out, and what was read otherwise than its type says.
    """
    cook = _Cook(recipe, profile.rows)
    for name, column in profile.columns.items():
        if name != arm:
            cook.add(name, column, types[name], typed)
    arms = () if arm is None else _arms(arm, profile.columns[arm])
    columns = tuple(cook.columns)
    kept = [column.name for column in columns]
    own = [] if not arms else [name for name in kept if recipe.own == "all" or name in recipe.own]
    pairs = tuple(pair for pair in recipe.interactions if set(pair) <= set(kept))
    encoder = Encoder(
        columns=columns, intercept=recipe.intercept, interactions=pairs, arms=arms, own=tuple(own)
    )
    return encoder, cook.findings


def _arms(name: str, column: ColumnProfile) -> tuple[str, ...]:
    if not 0 < len(column.levels) <= MOST_ARMS:
        raise ValueError(
            f"`arm` must be a column of 1 to {MOST_ARMS} names, each with parameters of its own. "
            f"Got {name!r}, which has {len(column.levels):,}: describe arms by features instead."
        )
    return tuple(sorted(column.levels))


class _Cook:
    """Turns profiles into columns of an encoder, one after the other, and notes what it leaves out."""

    def __init__(self, recipe: Recipe, n_rows: int) -> None:
        self.recipe, self.n_rows = recipe, n_rows
        self.columns: list[Column] = []
        self.findings: list[Finding] = []

    def add(self, name: str, found: ColumnProfile, type_name: str, typed: bool) -> None:
        """Use a column, or note why it is left out."""
        kind = self._kind(name, found, type_name, typed)
        if kind is None:
            self._note(name, f"values of type {type_name.lower()}", self.n_rows, "left out")
            return
        if typed and is_text(type_name) and kind != "category":
            self._note(name, f"texts that are {kind}s", found.texts, f"read as {kind}s")
        known = {"number": found.numbers.count, "date": found.dates.count}.get(kind, found.named)
        missing = self.n_rows - known >= max(LEAST_ROWS, LEAST_SHARE * self.n_rows)
        if known == 0:
            self._note(name, "values, all of them missing", self.n_rows, "left out")
        elif kind == "number":
            self._number(name, found, missing)
        elif kind == "date":
            self._date(name, found, missing)
        else:
            self._category(name, found, missing)

    def _kind(self, name: str, found: ColumnProfile, type_name: str, typed: bool) -> str | None:
        """Return what a column is read as. Text is looked at; a type that somebody chose is believed."""
        if name in self.recipe.categories:
            return "category"
        if name in self.recipe.numbers:
            return "number"
        if not is_text(type_name):
            return kind_of(type_name)
        few = len(found.levels) <= self.recipe.most_levels
        if found.texts and found.numbers.count >= MOST * found.texts and not (typed and few):
            return "number"
        return "date" if found.texts and found.dates.count >= MOST * found.texts else "category"

    def _note(self, column: str, what: str, count: int, done: str) -> None:
        self.findings.append(Finding(column=column, what=what, count=count, done=done))

    def _constant(self, name: str, value: str) -> None:
        self._note(name, f"equal values, {value}", self.n_rows, "left out, the constant stands for it")

    def _number(self, name: str, found: ColumnProfile, missing: bool) -> None:
        mean, scale = found.numbers.mean, found.numbers.scale
        if not scale > CONSTANT_SHARE * abs(mean):
            self._constant(name, f"{mean:g}")
            return
        self.columns.append(NumberColumn(name=name, mean=mean, scale=scale, missing=missing))

    def _date(self, name: str, found: ColumnProfile, missing: bool) -> None:
        first, last = found.dates.first, found.dates.last
        days = (last - first) / DAY
        asked = {
            "trend": days > 0,
            "hour": found.dates.timed and days > 0,
            "weekday": days >= 7,
            "season": days >= 300,
        }
        parts = tuple(part for part, wanted in asked.items() if wanted)
        if not parts:
            self._constant(name, "one date")
            return
        scale = (last - first) / 12**0.5  # of a uniform law between the two
        middle = (first + last) / 2
        self.columns.append(DateColumn(name=name, parts=parts, mean=middle, scale=scale, missing=missing))

    def _category(self, name: str, found: ColumnProfile, missing: bool) -> None:
        least = max(LEAST_ROWS, self.recipe.rare * self.n_rows)
        kept = [(level, count) for level, count in found.ranked if count >= least][: self.recipe.most_levels]
        rest = found.named - sum(count for _, count in kept)
        if not kept:
            few = f"values, no level of which has {math.ceil(least):,} rows"
            self._note(name, few, found.named, "left out")
            return
        if len(kept) == 1 and not rest and not missing:
            self._constant(name, kept[0][0])
            return
        if rest:
            self._note(name, "values of rare levels", rest, "one level together, (other)")
        levels = tuple(level for level, _ in kept)
        self.columns.append(CategoryColumn(name=name, levels=levels, other=rest > 0, missing=missing))

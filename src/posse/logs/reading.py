"""How a column of a table is read: as a number, a category or a date, by which expression of SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass

from posse.numerics.checks import check_choice

# How a text says that a number, a date or a level is missing.
GAPS = ("", "na", "n/a", "nan", "null", "none", "-", "?")
GAP_LEVELS = ("", "na", "n/a", "nan", "null")
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")
TEXTS = ("VARCHAR", "ENUM", "UUID")
KINDS = ("number", "category", "date")
# How a text ends that is a time of day in a zone, as 08:15:00+01:00.
ZONED = r":[0-9.]+ *([zZ]|[+-][0-9]{2}(:?[0-9]{2})?) *$"


@dataclass(frozen=True)
class Reading:
    """How to read one column.

    Attributes
    ----------
    name : str
        Of the column.
    kind : str
        "number", "category" or "date".
    value : str
        SQL for the value: a double, a text, or seconds since 1970-01-01; NULL where there is none.
    wrong : str or None
        SQL for whether there is a text that is no such value; None where that cannot be.
    zoned : str or None
        SQL for whether there is a time in a zone; None where that cannot be.
    """

    name: str
    kind: str
    value: str
    wrong: str | None = None
    zoned: str | None = None


def quoted(name: str) -> str:
    """Return the name of a column as SQL has it.

    Examples
    --------
    >>> quoted("price")
    '"price"'
    """
    return '"' + name.replace('"', '""') + '"'


def is_text(kind: str) -> bool:
    """Return whether a type of DuckDB is text."""
    return kind.startswith(TEXTS)


def kind_of(kind: str) -> str | None:
    """Return what a column of a type of DuckDB is read as, None if it cannot be a feature.

    Examples
    --------
    >>> kind_of("DECIMAL(8,2)"), kind_of("BOOLEAN"), kind_of("TIMESTAMP_NS"), kind_of("BLOB")
    ('number', 'category', 'date', None)
    """
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION")):
        return None
    if kind.startswith((*NUMBERS, *UNSIGNED)):
        return "number"
    if kind.startswith((*TEXTS, "BOOLEAN")):
        return "category"
    return "date" if kind.startswith(("DATE", "TIMESTAMP")) else None


def reading(name: str, type_name: str, kind: str) -> Reading:
    """Return how to read a column of a type of DuckDB as a number, a category or a date."""
    check_choice(f"what column {name!r} is read as", kind, KINDS)
    column = quoted(name)
    if kind == "category":
        if not is_text(type_name):
            return Reading(name, kind, f"cast({column} as varchar)")
        return Reading(name, kind, _filled(f"cast({column} as varchar)", GAP_LEVELS))
    if kind == "date":
        if not is_text(type_name):
            if "WITH TIME ZONE" in type_name:
                return Reading(name, kind, f"epoch({column})", zoned=f"{column} is not null")
            return Reading(name, kind, f"epoch(cast({column} as timestamp))")
        text = _filled(f"cast({column} as varchar)", GAPS)
        zoned = f"coalesce(regexp_matches({text}, '{ZONED}'), false)"
        value = (  # a cast to a plain timestamp would not look at the zone
            f"(case when {zoned} then epoch(try_cast({text} as timestamptz)) "
            f"else epoch(try_cast({text} as timestamp)) end)"
        )
        return Reading(name, kind, value, f"({text} is not null and {value} is null)", zoned)
    if not is_text(type_name):
        return Reading(name, kind, f"cast({column} as double)")
    text = _filled(f"cast({column} as varchar)", GAPS)
    value = f"try_cast(trim({text}) as double)"
    return Reading(name, kind, value, f"({text} is not null and {value} is null)")


def time_reading(name: str, type_name: str) -> Reading:
    """Return how to read a column that says when: dates, or numbers, as seconds or numbers of rows.

    A text is a number where it is no date.
    """
    if kind_of(type_name) == "number":
        return reading(name, type_name, "number")
    if kind_of(type_name) != "date" and not is_text(type_name):
        raise ValueError(f"`time` must be a column of dates or numbers. Got {name!r}, which is {type_name}.")
    date = reading(name, type_name, "date")
    if not is_text(type_name):
        return date
    number = reading(name, type_name, "number")
    value, wrong = f"coalesce({date.value}, {number.value})", f"({date.wrong} and {number.wrong})"
    return Reading(name, "date", value, wrong, date.zoned)


def _filled(column: str, gaps: tuple[str, ...]) -> str:
    # a list of five or more, or list_contains, would be a hash join to DuckDB, after which rows of several
    # threads come in no order
    listed = "|".join(re.escape(gap) for gap in gaps)
    return f"(case when regexp_full_match(lower(trim({column})), '{listed}') then null else {column} end)"

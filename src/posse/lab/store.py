"""A folder of results: every finished run a file of its own, and a manifest that says what they are."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from posse.core.extras import extra
from posse.core.files import write_json
from posse.lab.engines import GridError
from posse.lab.results import write_table
from posse.lab.study import Run, Study

with extra("lab"):
    import polars as pl

# 1: runs without the regret of every task.
MANIFEST_FORMAT = 2
_WAY_OUT = "Choose another --out, or move that folder away."


@dataclass(frozen=True)
class Outcome:
    """How a run ended: with an error in words, or with the warnings it gave."""

    run: Run
    error: str | None = None
    warnings: tuple[str, ...] = ()


def claim_folder(study: Study, out: Path) -> None:
    """Write the manifest of a new folder; refuse a folder that holds results of other parameters."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"`out` must be a folder. Got the file {out}.")
    path = out / study.name / "manifest.json"
    if not path.exists():
        if any(path.parent.glob("runs/*.parquet")):
            raise GridError(
                f"{path.parent} holds runs but no manifest.json, so their parameters are unknown. {_WAY_OUT}"
            )
        write_json(path, {"format": MANIFEST_FORMAT, "parameters": _parameters(study)})
        return
    _check_parameters(study, path.parent)


def complete_manifest(study: Study, seeds: int, out: Path, outcomes: list[Outcome]) -> None:
    """Add to a manifest what the runs of this call had to report; warnings of earlier calls stay."""
    path = out / study.name / "manifest.json"
    warned = _read_manifest(path).get("warnings", {})
    libraries = {name: version(name) for name in ("numpy", "scipy")}
    manifest = {
        "format": MANIFEST_FORMAT,
        "parameters": _parameters(study),
        "seeds": seeds,
        "versions": {"python": platform.python_version(), **libraries},
        "failures": {outcome.run.id: outcome.error for outcome in outcomes if outcome.error is not None},
        "warnings": {**warned, **{o.run.id: list(o.warnings) for o in outcomes if o.warnings}},
    }
    write_json(path, manifest)


def collect(study: Study, seeds: int, out: Path) -> pl.DataFrame:
    """Gather the runs of a study into one table, and write it beside them."""
    runs = (Run(study, cell, seed) for cell in study.cells for seed in range(seeds))
    table = pl.concat(_read_run(run, out) for run in runs)
    write_table(out / study.name / "results.parquet", table)
    return table


def saved_results(study: Study, out: Path) -> pl.DataFrame | None:
    """Return the table that an earlier call left, or None if there is none.

    Raises
    ------
    GridError
        If a table was left that cannot be used: it cannot be read, or is of another format or of other
        parameters.
    """
    path = out / study.name / "results.parquet"
    if not path.exists():
        return None
    _check_parameters(study, path.parent)
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        raise GridError(f"{path} cannot be read as Parquet. {_WAY_OUT}") from None


def earlier_results(studies: Iterable[Study], out: Path) -> tuple[dict[str, pl.DataFrame], tuple[str, ...]]:
    """Return the tables that earlier calls left of studies, and why some that are there cannot be used."""
    tables: dict[str, pl.DataFrame] = {}
    left_out: list[str] = []
    for study in studies:
        try:
            table = saved_results(study, out)
        except GridError as error:
            left_out.append(f"{study.name} is left out: {error}")
        else:
            tables |= {} if table is None else {study.name: table}
    return tables, tuple(left_out)


def _check_parameters(study: Study, folder: Path) -> None:
    """Raise if a folder holds results of other parameters than a study's."""
    wanted, found = _parameters(study), _read_manifest(folder / "manifest.json")["parameters"]
    for key in sorted(wanted.keys() | found.keys()):
        old, new = found.get(key), wanted.get(key)
        if old != new:
            raise GridError(
                f"{folder} holds results of other parameters: {key} was {_short(_beside(old, new))} and is "
                f"now {_short(_beside(new, old))}. {_WAY_OUT}"
            )


def _parameters(study: Study) -> dict[str, Any]:
    return {**study.parameters(), "posse": version("posse")}


def _beside(some: Any, others: Any) -> Any:
    """Return what some parameters have that others have not, where both are lists; else all of them."""
    if not (isinstance(some, list) and isinstance(others, list)):
        return some
    own = [item for item in some if item not in others]
    return own or some


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        found = manifest["format"]
        if found == MANIFEST_FORMAT and isinstance(manifest["parameters"], dict):
            return dict(manifest)
    except (OSError, ValueError, KeyError, TypeError):
        found = None
    if isinstance(found, int) and found != MANIFEST_FORMAT:
        raise GridError(
            f"{path.parent} holds results of format {found}, and this version of posse reads format "
            f"{MANIFEST_FORMAT}. {_WAY_OUT}"
        )
    raise GridError(f"{path} is not a manifest that posse wrote. {_WAY_OUT}")


def _read_run(run: Run, out: Path) -> pl.DataFrame:
    path = run.path(out)
    way_out = "Remove it, and the same command plays it again."
    try:
        table = pl.read_parquet(path)
    except pl.exceptions.PolarsError:
        raise GridError(f"{path} cannot be read as Parquet. {way_out}") from None
    if set(table.columns) != {*run.columns, *run.study.measured} or any(
        table[name].unique().to_list() != [value] for name, value in run.columns.items()
    ):
        raise GridError(f"{path} holds something else than the run of its name. {way_out}")
    return table

"""The figures that can be asked for by name. One is added here, by one entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from posse.numerics.checks import check_choice
from posse.paper import (
    armul,
    boss,
    bounds,
    figures_1_2,
    figures_3_4,
    figures_5_6,
    guarantees,
    margin,
    scaling,
)
from posse.paper.figure import Figure
from posse.problems.images import IMAGE_SETS


@dataclass(frozen=True)
class NamedFigures:
    """What is run when a name is asked for.

    Attributes
    ----------
    summary : str
        What it shows, in a line.
    build : callable
        Returns the figures. One of images is told which, by the name of an image set.
    images : bool
        Whether it is of images.
    by_default : bool
        Whether it is run when no name is given.
    """

    summary: str
    build: Callable[..., tuple[Figure, ...]]
    images: bool = False
    by_default: bool = True


def _one(build: Callable[..., Figure], *arguments: str, **sizes: int) -> Callable[..., tuple[Figure, ...]]:
    return lambda **images: (build(*arguments, **sizes, **images),)


FIGURES: Mapping[str, NamedFigures] = MappingProxyType(
    {
        "fig1": NamedFigures("Synthetic data, d = 30", _one(figures_1_2.figure, "fig1", dim=30)),
        "fig2": NamedFigures("Synthetic data, d = 20", _one(figures_1_2.figure, "fig2", dim=20)),
        "fig3": NamedFigures(
            "Images, T = 10 pairs of classes", _one(figures_3_4.figure, "fig3", n_classes=5), images=True
        ),
        "fig4": NamedFigures(
            "Images, T = 45 pairs of classes", _one(figures_3_4.figure, "fig4", n_classes=10), images=True
        ),
        "margin": NamedFigures(
            "Images: what the margin is made of, T = 10", _one(margin.figure, "margin"), images=True
        ),
        "fig5": NamedFigures("Infinite actions, k = 3", _one(figures_5_6.figure, "fig5", rank=3)),
        "fig6": NamedFigures("Infinite actions, k = 2", _one(figures_5_6.figure, "fig6", rank=2)),
        "scaling": NamedFigures(
            "How regret grows with N, T, d and k, beside the theorems",
            lambda: scaling.FIGURES,
            by_default=False,
        ),
        "bounds": NamedFigures(
            "Regret on the instances of the lower bounds", lambda: bounds.FIGURES, by_default=False
        ),
        "guarantees": NamedFigures(guarantees.TITLE, _one(guarantees.figure), by_default=False),
        "armul": NamedFigures(armul.TITLE, _one(armul.figure), by_default=False),
        "boss": NamedFigures(boss.TITLE, _one(boss.figure), by_default=False),
    }
)
DEFAULT = tuple(name for name, entry in FIGURES.items() if entry.by_default)
OF_IMAGES = tuple(name for name, entry in FIGURES.items() if entry.images)
COMPARISONS = (figures_5_6.BOTH,)


def figures_named(names: tuple[str, ...] = DEFAULT, *, images: str = "mnist") -> tuple[Figure, ...]:
    """Return the figures of some names; those of images on an image set.

    Examples
    --------
    >>> [figure.name for figure in figures_named(("fig3", "bounds"), images="digits")]
    ['fig3_digits', 'bounds', 'bounds_sphere']
    """
    for name in names:
        check_choice("figure", name, FIGURES)
    found: dict[str, Figure] = {}
    for name in names:
        entry = FIGURES[name]
        build = partial(entry.build, images=images) if entry.images else entry.build
        found |= {figure.name: figure for figure in build()}
    return tuple(found.values())


def all_figures() -> dict[str, Figure]:
    """Return every figure on every image set, by the name of its results, in the order of the page."""
    found: dict[str, Figure] = {}
    for name, entry in FIGURES.items():
        for images in ("mnist", *IMAGE_SETS) if entry.images else ("mnist",):
            found |= {figure.name: figure for figure in figures_named((name,), images=images)}
    return found

"""Self-contained pages: a template filled, its pictures inside it, and nothing asked of anybody."""

from __future__ import annotations

import base64
import io
import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from posse.core.extras import extra
from posse.core.files import write_atomically
from posse.viz.chart import Chart
from posse.viz.still import draw, save
from posse.viz.style import MARKERS

with extra("report"):
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from matplotlib.figure import Figure as MatplotlibFigure

LIBRARIES = ("numpy", "scipy", "numba", "bokeh")
THUMBNAIL_DPI = 64


@dataclass(frozen=True)
class Picture:
    """A chart on a page: to explore, and as an image for print.

    Attributes
    ----------
    name : str
        Under which the page's script knows it.
    chart : Chart
    image : str
        The address of a still picture, which holds it.
    """

    name: str
    chart: Chart
    image: str


def write_page(path: Path, template: str, **content: Any) -> None:
    """Fill a template of `posse.viz` and write the page, whole or not at all.

    Beside `content` a template is told the versions of posse and its libraries, the machine, and the glyph of
    each marker.
    """
    environment = Environment(
        loader=PackageLoader("posse.viz", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    page = environment.get_template(template).render(
        versions={
            "posse": version("posse"),
            "Python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
        machine=f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        glyphs={name: glyph for name, (_, _, glyph) in MARKERS.items()},
        **content,
    )
    write_atomically(path, lambda temporary: temporary.write_text(page, encoding="utf-8"))


def save_picture(picture: MatplotlibFigure, stem: Path) -> str:
    """Save a picture as STEM.svg and STEM.png, and return it as an address that holds it."""
    for ending in ("svg", "png"):
        save(picture, stem.with_name(f"{stem.name}.{ending}"))
    return _address("svg+xml", stem.with_name(f"{stem.name}.svg").read_bytes())


def still_address(chart: Chart) -> str:
    """Return a still picture of a chart as an address that holds it; no file is written."""
    content = io.BytesIO()
    draw(chart).savefig(content, format="svg", metadata={"Date": None})
    return _address("svg+xml", content.getvalue())


def thumbnail(chart: Chart) -> str:
    """Return a small picture of a chart as an address that holds it."""
    content = io.BytesIO()
    draw(chart).savefig(content, format="png", dpi=THUMBNAIL_DPI)
    return _address("png", content.getvalue())


def in_words(seconds: float) -> str:
    """Return a duration in the unit that suits it.

    Examples
    --------
    >>> in_words(12.3), in_words(600), in_words(9000)
    ('12 seconds', '10 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _address(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"

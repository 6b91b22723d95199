"""The page of a diagnosis: the verdict first, then by how much, for whom, and along what."""

from __future__ import annotations

from pathlib import Path

from posse.logs.charts import charts_of
from posse.logs.contenders import CONTENDERS
from posse.logs.diagnosis import Diagnosis
from posse.logs.directions import LEAST_SHARE
from posse.logs.verdict import DO_NOT, SHARE, UNCLEAR
from posse.viz.interactive import embed
from posse.viz.pages import Picture, still_address, write_page

# How a verdict is coloured.
LOOKS = {SHARE: "holds", DO_NOT: "fails", UNCLEAR: "undecided"}
# How many tasks, and loadings of a direction, are listed; all tasks up to the last are in the long table.
MOST_NAMED, MOST_LOADINGS, MOST_TASKS = 10, 8, 2000


def write_diagnosis(diagnosis: Diagnosis, path: Path | str, command: str = "") -> None:
    """Write a diagnosis as a page that stands alone: pictures and script inside, nothing asked of anybody.

    Parameters
    ----------
    diagnosis : Diagnosis
    path : Path or str
        The file to write.
    command : str
        How to make it again, if there is a command.
    """
    charts = charts_of(diagnosis)
    write_page(
        Path(path),
        "diagnosis.html.j2",
        found=diagnosis,
        look=LOOKS[diagnosis.verdict],
        contenders=CONTENDERS,
        charts=embed(charts),
        pictures={name: Picture(name, chart, still_address(chart)) for name, chart in charts.items()},
        gaining=[task for task in diagnosis.gaining_most if (task.saved or 0.0) > 0][:MOST_NAMED],
        losing=[task for task in diagnosis.gaining_most[::-1] if (task.saved or 0.0) < 0][:MOST_NAMED],
        apart=diagnosis.standing_alone[:MOST_NAMED],
        listed=diagnosis.tasks[:MOST_TASKS],
        most_loadings=MOST_LOADINGS,
        least_share=LEAST_SHARE,
        command=command,
    )

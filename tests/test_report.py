"""Charts and the page: drawn from the table given, complete, self-contained."""

import base64
import json
import os
import platform
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from posse.lab.charts import regret_by_round, regret_by_tasks
from posse.lab.experiment import Experiment
from posse.lab.registry import POLICIES, style_of
from posse.lab.results import final_rounds, summarise
from posse.paper.overlay import Overlay
from posse.paper.registry import COMPARISONS, OF_IMAGES, figures_named
from posse.paper.report import Report, write_report
from posse.paper.theory import SIZES, Setting, finite_upper, infinite_upper
from posse.viz import interactive, still
from posse.viz.chart import Axis, Chart, Panel, Series
from tables import FIGURES, make_table


def report(names: tuple[str, ...], tables: dict[str, pl.DataFrame], out: Path) -> Report:
    figures = [FIGURES[name] for name in names]
    return write_report(figures, tables, out, comparisons=COMPARISONS, minutes=1.5)


def test_no_two_policies_of_a_figure_look_alike() -> None:
    looks = [look for policy in POLICIES.values() for look in policy.looks or (policy.look({}),)]
    looks += [policy.look({}) for policy in POLICIES.values() if policy.look({}) not in looks]
    styles = [look.style for look in looks]
    assert len({(style.colour, style.marker) for style in styles}) == len(styles)
    for figure in FIGURES.values():
        if isinstance(figure.study, Experiment):
            colours = [style_of(name).colour for name in figure.study.names]
            assert len(set(colours)) == len(colours)


def test_curves_show_the_means_and_intervals_of_the_table() -> None:
    table = make_table()
    figure = still.draw(regret_by_tasks(table, "title"))
    assert [axes.get_title() for axes in figure.axes] == ["k = 2", "k = 5"]
    lines = {bars.get_label(): bars for bars in figure.axes[0].containers}
    assert set(lines) == {"SharedGreedy", "MLinGreedy", "NaiveGreedy", "IndependentGreedy", "OracleGreedy"}
    data = summarise(final_rounds(table), by=["rank", "policy", "n_tasks"])
    expected = data.filter(pl.col("rank") == 2, pl.col("policy") == "naive")
    centre, _, (bars,) = lines["NaiveGreedy"]
    assert list(centre.get_xdata()) == [10, 50]
    np.testing.assert_allclose(np.asarray(centre.get_ydata(), dtype=float), expected["regret_per_task"])
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends[:, 0], expected["ci_low"].to_numpy())
    np.testing.assert_allclose(ends[:, 1], expected["ci_high"])


def test_rounds_are_those_of_the_largest_number_of_tasks() -> None:
    chart = regret_by_round(make_table(), "title")
    assert [panel.title for panel in chart.panels] == ["k = 2", "k = 5"]
    table = make_table().filter(pl.col("n_tasks") == 50)
    data = summarise(table, by=["rank", "policy", "round"]).filter(pl.col("rank") == 5)
    naive = data.filter(pl.col("policy") == "naive", pl.col("round") >= 10)
    (series,) = (some for some in chart.panels[1].series if some.label == "NaiveGreedy")
    assert series.x == (100, 10_000)
    assert series.y == tuple(naive["regret_per_task"])
    assert series.low == tuple(naive["ci_low"])
    assert len(still.draw(chart).axes[0].collections) == 5
    alone = still.draw(regret_by_round(make_table(seeds=1), "title"))
    assert len(alone.axes[0].collections) == 0


def test_a_policy_that_nobody_knows_is_drawn_too() -> None:
    table = make_table()
    stranger = table.filter(pl.col("policy") == "naive").with_columns(policy=pl.lit("a stranger's"))
    chart = regret_by_tasks(pl.concat([table, stranger]), "title")
    assert list(chart.legend)[-1] == "a stranger's"
    assert "a stranger's" in {bars.get_label() for bars in still.draw(chart).axes[0].containers}
    names = {renderer.name for renderer in interactive.draw(chart)[0].renderers}
    assert "a stranger's" in names


def every_chart() -> list[Chart]:
    names = [name for name in FIGURES if not name.endswith(("_digits", "_fashion"))]
    return [chart for name in names for chart in FIGURES[name].charts(make_table(name, seeds=2))]


@pytest.mark.parametrize("chart", every_chart(), ids=lambda chart: f"{chart.title}, {chart.stem}")
def test_both_drawers_draw_the_same(chart: Chart) -> None:
    """Every curve with its points, on axes of the same kind, with the same ends."""
    figure, plots = still.draw(chart), interactive.draw(chart)
    drawn = [axes for axes in figure.axes if axes.axison]
    assert len(drawn) == len(plots) == len(chart.panels)
    for panel, axes, plot in zip(chart.panels, drawn, plots, strict=True):
        labels = {series.label for series in panel.series}
        assert set(axes.get_legend_handles_labels()[1]) == labels
        assert {renderer.name for renderer in plot.renderers} == labels
        assert (axes.get_xscale() == "log") == (type(plot.x_scale).__name__ == "LogScale")
        assert (axes.get_yscale() == "log") == (type(plot.y_scale).__name__ == "LogScale")
        low, high = axes.get_ylim()
        assert plot.y_range.end == pytest.approx(panel.y.place(high))
        if not panel.note:  # a still leaves room for it, a page has it below
            assert plot.y_range.start == pytest.approx(panel.y.place(low))
        for series in panel.series:
            lines = [line for line in axes.lines if line.get_label() == series.label]
            lines += [bars[0] for bars in axes.containers if bars.get_label() == series.label]
            sources = [r.data_source.data for r in plot.renderers if r.name == series.label]
            assert [np.asarray(line.get_ydata()).tolist() for line in lines] == [list(series.y)]
            assert all(source["value_y"] == list(series.y) for source in sources)
            assert all(source["y"] == [panel.y.place(value) for value in series.y] for source in sources)


@pytest.mark.parametrize("chart", every_chart(), ids=lambda chart: f"{chart.title}, {chart.stem}")
def test_the_legend_lies_inside_the_picture(chart: Chart) -> None:
    figure = still.draw(chart)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    (legend,) = figure.legends
    box = legend.get_window_extent(renderer)
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    assert box.y0 >= 0
    assert [text.get_text() for text in legend.get_texts()] == list(chart.legend)
    for axes in figure.axes:
        if axes.axison:
            assert axes.get_window_extent(renderer).height > 120  # the legend leaves room for the panels


def test_intervals_that_reach_below_zero_are_drawn_on_a_logarithmic_axis() -> None:
    style = POLICIES["naive"].style
    wide = Series(label="wide", style=style, x=(1, 2), y=(10.0, 20.0), low=(-50.0, 19.0), high=(70.0, 21.0))
    tiny = Series(label="tiny", style=style, x=(1, 2), y=(10.0, 20.0), low=(1e-6, 19.0), high=(20.0, 21.0))
    axis = Axis(label="", scale="log")
    for series in (wide, tiny):
        panel = Panel(x=axis, y=axis, series=(series,))
        chart = Chart(stem="", title="", panels=(panel,))
        low, high = chart.reach(panel)
        assert (low, high) == pytest.approx((10 / 3 / 1.2, 1.2 * max(series.ends[1])))
        (plot,) = interactive.draw(chart)
        source = plot.renderers[0].data_source.data
        assert source["low"] == [low, 19.0]
        assert source["value_low"] == list(series.low)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures_are_saved_in_the_format_of_their_ending(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"figure.{ending}"
    still.save(still.draw(regret_by_tasks(make_table(), "title")), path)
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(starts[ending])


FULL = tuple(name for name in FIGURES if not name.endswith(("_digits", "_fashion")))


@pytest.mark.slow
@pytest.mark.parametrize(("names", "seeds"), [(("fig1", "margin_digits", "fig5", "fig6"), 1), (FULL, 3)])
def test_the_page_is_complete_and_asks_nobody(names: tuple[str, ...], seeds: int, tmp_path: Path) -> None:
    tables = {name: make_table(name, seeds) for name in names}
    page = report(names, tables, tmp_path).path.read_text(encoding="utf-8")
    charts = {name: FIGURES[name].charts(tables[name]) for name in names}
    images = re.findall(r"<img src=\"data:image/svg\+xml;base64,([^\"]*)", page)
    assert len(images) == sum(map(len, charts.values()))
    for image in images:
        ElementTree.fromstring(base64.b64decode(image))
    assert page.count('class="thumbnail"') == len(names)
    elements = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", elements)
    decided = json.loads((tmp_path / "claims.json").read_text())
    assert set(decided) == {*names, "fig5+fig6"}
    for claims in decided.values():
        for claim in claims:
            assert claim["verdict"] in {"holds", "fails", "undecided"}
            assert page.count(claim["statement"].replace("'", "&#39;")) >= 2
    for name in names:
        assert f'<a href="#{name}">' in elements
        assert f'<h2 id="{name}">' in elements
        for chart in charts[name]:
            assert (tmp_path / name / f"{chart.stem}.png").stat().st_size > 10_000
            ElementTree.parse(tmp_path / name / f"{chart.stem}.svg")


@pytest.mark.slow
def test_the_page_opens_with_totals_and_pictures_and_then_has_the_rest(tmp_path: Path) -> None:
    written = report(("fig1", "fig5"), {name: make_table(name) for name in ("fig1", "fig5")}, tmp_path)
    page = written.path.read_text(encoding="utf-8")
    claims = [claim for some in written.claims.values() for claim in some]
    counts = {
        (source, verdict): sum((claim.source, claim.verdict) == (source, verdict) for claim in claims)
        for source in ("paper", "posse")
        for verdict in ("holds", "fails", "undecided")
    }
    for source, what in {"paper": "claims of the paper", "posse": "questions of ours"}.items():
        total = sum(number for (some, _), number in counts.items() if some == source)
        found = re.search(rf"Of {total} {what} (\d+) holds?, (\d+) fails?, (\d+) (?:are|is) undecided", page)
        assert found is not None
        assert [int(n) for n in found.groups()] == [
            counts[source, verdict] for verdict in ("holds", "fails", "undecided")
        ]
    totals, picture, rest = map(page.index, ("claims of the paper", 'class="thumbnail"', "What it shows"))
    assert totals < picture < rest


def test_a_page_needs_the_runs_of_its_figures(tmp_path: Path) -> None:
    figures = [FIGURES["fig5"], FIGURES["fig6"]]
    with pytest.raises(ValueError, match=r"must hold the results of every figure. Got none of fig6."):
        write_report(figures, {"fig5": make_table("fig5")}, tmp_path, minutes=0.1)
    with pytest.raises(ValueError, match="every figure"):
        write_report([], {}, tmp_path, minutes=0.1)
    assert list(tmp_path.iterdir()) == []


def test_comparisons_need_all_their_figures(tmp_path: Path) -> None:
    assert set(report(("fig5",), {"fig5": make_table("fig5", 2)}, tmp_path).claims) == {"fig5"}


def test_on_other_images_the_papers_claims_are_questions_of_ours(tmp_path: Path) -> None:
    for name in OF_IMAGES:
        for images in ("mnist", "digits", "fashion"):
            (figure,) = figures_named((name,), images=images)
            sources = {claim(make_table(figure.name, 2)).source for claim in figure.claims}
            assert ("paper" in sources) == (images == "mnist" and name != "margin")
    page = report(("fig3_digits",), {"fig3_digits": make_table("fig3_digits", 2)}, tmp_path).path.read_text()
    assert "claimed by the paper" not in page


def test_an_undecided_claim_says_what_the_stored_run_decided(tmp_path: Path) -> None:
    page = report(("fig1",), {"fig1": make_table(seeds=1)}, tmp_path).path.read_text(encoding="utf-8")
    assert page.count("in the stored run of 20 seeds: holds") >= 2
    assert page.count("in the stored run of 20 seeds: fails") >= 2


def test_the_page_says_how_it_was_made(tmp_path: Path) -> None:
    path = pl.when(pl.col("policy") == "naive").then(pl.lit("contexts")).otherwise(pl.lit("exact"))
    tables = {
        "fig1": make_table().with_columns(path.alias("path")),
        "fig5": make_table("fig5").with_columns(pl.lit("contexts").alias("path")),
    }
    page = report(("fig1", "fig5"), tables, tmp_path / "<out>").path.read_text(encoding="utf-8")
    shown = re.sub(r"<[^>]*>", " ", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    for library in ("posse", "Python", "numpy", "scipy", "numba", "bokeh"):
        assert re.search(rf"\b{library} \d+\.\d+", shown)
    assert "posse reproduce fig1 --seeds 3 --out" in shown
    assert "posse reproduce fig5 --seeds 3 --out" in shown
    assert f"{tmp_path}/&lt;out&gt;" in page
    assert f"{os.cpu_count()} cores, {platform.machine()}" in shown
    assert platform.node() not in shown.split()
    assert re.findall(r"rounds were played\s+(.*?)\s\s", shown) == [
        "exact in law, without contexts; round by round, contexts drawn",
        "blocks of one action in one step",
    ]
    assert len(re.findall(r"seeds\s+0 to 2\b", shown)) == 2
    # 4 cells with 5 policies, and 9 with 7, of 3 seeds: a tenth of a second each
    assert "25 seconds, the time of every policy in every run added up" in shown


@pytest.mark.parametrize(("name", "crossing"), [("fig1", 30), ("fig2", 20), ("fig5", 1000), ("fig6", 1000)])
def test_a_bound_is_fitted_by_one_constant(name: str, crossing: int) -> None:
    bound, policy = (finite_upper, "mlingreedy") if name < "fig3" else (infinite_upper, "e2tc")
    cells = [{**cell, "horizon": 10_000} for cell in FIGURES[name].study.cells]
    settings = [Setting(**{size: cell[size] for size in SIZES}) for cell in cells]
    tight = [2.5 * bound(setting).value / setting.n_tasks for setting in settings]
    table = pl.DataFrame(cells).with_columns(
        pl.Series("regret_per_task", tight), policy=pl.lit(policy), round=10_000
    )
    overlay = Overlay(policy=policy, bound=bound)
    both = table.join(overlay.curve(table), on=["rank", "n_tasks"], suffix="_fitted")
    assert both.height >= 2 * len(set(table["rank"]))
    np.testing.assert_allclose(both["regret_per_task_fitted"], both["regret_per_task"])
    reading = overlay.reading(table)
    assert "times 2.5," in reading
    assert "off by a factor of 1 at most" in reading
    assert f"Below T = {crossing} its larger term is" in reading


def test_the_theorem_is_in_the_picture_and_in_the_chart() -> None:
    chart = FIGURES["fig1"].charts(make_table())[0]
    label = "Theorem 1, constant fitted"
    for axes in still.draw(chart).axes:
        (line,) = (line for line in axes.lines if line.get_label() == label)
        assert line.get_linestyle() == "--"
    plots = interactive.draw(chart)
    for plot in plots:
        (curve,) = (renderer for renderer in plot.renderers if renderer.name == label)
        assert curve.glyph.line_dash == [6]
    assert {(plot.y_range.start, plot.y_range.end) for plot in plots} == {(0.0, plots[0].y_range.end)}


def test_what_a_note_says_is_below_its_panel(tmp_path: Path) -> None:
    tables = {"scaling_shared": make_table("scaling_shared")}
    page = report(("scaling_shared",), tables, tmp_path).path.read_text(encoding="utf-8")
    notes = re.findall(r"<pre class=\"note\">exponent of (\w)", page)
    assert notes == ["N", "T", "d", "k"]


def test_a_style_that_cannot_be_drawn_is_refused() -> None:
    style = POLICIES["naive"].style
    with pytest.raises(ValueError, match=r"`marker` and `line` of Style .* Got 'heart' and 'solid'"):
        replace(style, marker="heart")

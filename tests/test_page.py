"""The pages in a real browser: drawn without complaint, alone, in any width, and they answer to clicks."""

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from proofs.decision_logs import World, play

from posse import GramStatistics, SharedGreedy
from posse.logs import Diagnosis, diagnose_parts, evaluate
from posse.logs.charts import charts_of
from posse.logs.contenders import CONTENDERS
from posse.logs.evaluation.charts import charts_of as charts_of_evaluation
from posse.logs.evaluation.page import write_evaluation
from posse.logs.evaluation.result import Evaluation
from posse.logs.page import write_diagnosis
from posse.paper.report import write_report
from posse.suite import SCENARIOS, compare_scenarios
from posse.suite.page import write_comparison
from posse.viz.chart import Chart
from tables import FIGURES, make_table

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.slow,
]

SHOWN = ("fig1", "fig3_digits", "margin_digits", "fig6", "scaling_shared", "guarantees")
WIDTHS = (390, 1440)
CHART = "fig1-regret-by-tasks"
# What the plots of a chart show of one label; whether panels are drawn; where the first mark of a label is.
VISIBLE = """([chart, label]) => [...document.querySelectorAll(`[data-chart="${chart}"] [data-root-id]`)].map(
  place => Bokeh.index.get_by_id(place.dataset.rootId).model.renderers
    .filter(curve => curve.name === label).map(curve => curve.visible))"""
DRAWN = """chart => [...document.querySelectorAll(`[data-chart="${chart}"] [data-root-id]`)].every(
  place => Bokeh.index.get_by_id(place.dataset.rootId)?.has_finished())"""
MARK = """([chart, label]) => {
  const place = document.querySelector(`[data-chart="${chart}"] [data-root-id]`);
  const plot = Bokeh.index.get_by_id(place.dataset.rootId);
  const {data} = plot.model.renderers.find(curve => curve.name === label).data_source;
  const box = plot.canvas_view.el.getBoundingClientRect();
  const {x_scale, y_scale} = plot.frame;
  return [box.x + x_scale.compute(data.x[0]), box.y + y_scale.compute(data.y[0])];
}"""
TIP = """() => {
  const texts = [];
  const visit = root => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) visit(element.shadowRoot);
      if (element.classList.contains("bk-Tooltip")) texts.push(element.shadowRoot.textContent);
    }
  };
  visit(document);
  return texts.join(" ");
}"""
# The boxes of the labels of each horizontal axis, as Bokeh measures them.
TICKS = """chart => [...document.querySelectorAll(`[data-chart="${chart}"] [data-root-id]`)].map(place => {
  const plot = Bokeh.index.get_by_id(place.dataset.rootId);
  const context = document.createElement("canvas").getContext("2d");
  context.font = "11px sans-serif";
  const axis = plot.model.below[0];
  return axis.ticker.ticks.map(tick => {
    const text = axis.major_label_overrides.get(tick) ?? String(tick);
    const middle = plot.frame.x_scale.compute(tick), half = context.measureText(text).width / 2;
    return [middle - half, middle + half];
  });
})"""


def made_up() -> Diagnosis:
    """Return the diagnosis of a small log of related tasks, one of which stands alone, with long names."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 8, 40, 10))
    x[..., 0] = 1.0
    theta = np.outer(rng.standard_normal(40), rng.standard_normal(10))
    theta[3] = 3.0 * rng.standard_normal(10)
    y = np.vecdot(x, theta) + rng.standard_normal((8, 8, 40))
    there = np.arange(8)[:, None] < rng.integers(2, 9, 40)
    names = [f"the shop at the corner of street number {number}" for number in range(40)]
    return diagnose_parts(
        [GramStatistics.of(x[part], y[part], there.astype(float)) for part in range(8)],
        tasks=names,
        features=["(constant)", *(f"a feature with the long name {number}" for number in range(9))],
        intercept=0,
    )


DIAGNOSIS = made_up()


def made_up_evaluation() -> Evaluation:
    """Return what policies would have earned on a small log of tasks with long names, of unequal sizes."""
    log = play(World.draw(0, n_tasks=6, n_arms=3, dim=2), 80, seed=1)
    table = log.table().slice(0, 400)
    names = [f"the shop at the corner of street number {name}" for name in table["shop"].to_pylist()]
    return evaluate(
        table.set_column(table.schema.get_field_index("shop"), "shop", pa.array(names)),
        {"shared-greedy(rank=2, memory=all, schedule=100)": SharedGreedy(rank=2), "arm:red": "arm:red"},
        task="shop",
        reward="sold",
        arm="offer",
        propensity="chance",
        features=["x1", "x2"],
        choosing="pooled",
        n_parts=2,
    )


EVALUATION = made_up_evaluation()


def charts() -> dict[str, Chart]:
    return {
        f"{name}-{chart.stem}": chart
        for name in SHOWN
        for chart in FIGURES[name].charts(make_table(name, seeds=2))
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = {name: make_table(name, seeds=2) for name in SHOWN}
    out = tmp_path_factory.mktemp("report")
    return write_report([FIGURES[name] for name in SHOWN], tables, out, minutes=1.0).path


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    out = tmp_path_factory.mktemp("comparison")
    tables = {}
    for scenario in SCENARIOS.values():
        rows = [
            (seed, policy, 100, 100, 10 + place + rng.random(), 1.0)
            for seed in range(2)
            for place, policy in enumerate(scenario.experiment.names)
        ]
        names = ["seed", "policy", "round", "horizon", "regret_per_task", "seconds"]
        tables[scenario.name] = pl.DataFrame(rows, schema=names, orient="row")
    shown = list(SCENARIOS.values())
    write_comparison(shown, compare_scenarios(shown, tables), out, commands="posse compare", minutes=1.0)
    return out / "comparison.html"


@pytest.fixture(scope="module")
def diagnosis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diagnosis") / "page.html"
    write_diagnosis(DIAGNOSIS, path, "posse diagnose log.csv")
    return path


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evaluation") / "page.html"
    write_evaluation(EVALUATION, path, "posse evaluate log.parquet")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
        program = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield program
        program.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield a tab in which any complaint, or any request but for the page itself, is an error at the end."""
    tab = browser.new_page()
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:")) else complaints.append(request.url)
        ),
    )
    yield tab
    tab.close()
    assert complaints == []


def open_page(page: Page, path: Path, *, width: int = 1440) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(path.as_uri())


def draw_chart(page: Page, chart: str) -> int:
    """Scroll to a chart, wait until all its panels are drawn, and return how many there are."""
    place = page.locator(f'[data-chart="{chart}"]')
    place.scroll_into_view_if_needed()
    page.wait_for_function(DRAWN, arg=chart)
    return place.locator("[data-root-id]").count()


def test_every_panel_is_drawn_without_complaint_or_request(page: Page, report: Path) -> None:
    open_page(page, report)
    for name, chart in charts().items():
        assert draw_chart(page, name) == len(chart.panels)
        legend = page.locator(f'[data-legend="{name}"]')
        assert legend.count() == 1
        labels = legend.get_by_role("button").evaluate_all("all => all.map(one => one.dataset.label)")
        assert labels == list(chart.legend)


def test_the_script_is_in_the_page_and_links_lead_somewhere(page: Page, report: Path) -> None:
    open_page(page, report)
    assert page.evaluate("[...document.scripts].every(script => !script.src)")
    lost = "[...document.links].filter(link => !document.getElementById(link.hash.slice(1)))"
    assert page.evaluate(f"{lost}.map(link => link.outerHTML)") == []
    assert page.locator("nav.toc a").count() >= len(SHOWN) + 3
    assert page.locator(".card img").count() == len(SHOWN)


@pytest.mark.parametrize("label", ["NaiveGreedy", "Theorem 1, constant fitted"])
@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_one_legend_hides_a_curve_in_all_panels_and_shows_it_again(
    page: Page, report: Path, label: str, how: str
) -> None:
    open_page(page, report)
    number = draw_chart(page, CHART)
    button = page.locator(f'[data-legend="{CHART}"]').get_by_role("button", name=label)

    def shown() -> set[bool]:
        found = page.evaluate(VISIBLE, [CHART, label])
        assert len(found) == number
        assert all(found)
        return {visible for panel in found for visible in panel}

    assert shown() == {True}
    for expected in (False, True):
        if how == "click":
            button.click()
        else:
            button.press("Enter")
        expect(button).to_have_attribute("aria-pressed", str(expected).lower())
        assert shown() == {expected}
        others = page.evaluate(VISIBLE, [CHART, "MLinGreedy"])
        assert {visible for panel in others for visible in panel} == {True}


def test_a_mark_under_the_pointer_shows_its_values(page: Page, report: Path) -> None:
    open_page(page, report)
    draw_chart(page, CHART)
    page.locator(f'[data-chart="{CHART}"] .panel').first.scroll_into_view_if_needed()
    page.mouse.move(*page.evaluate(MARK, [CHART, "MLinGreedy"]))
    page.wait_for_function(f"({TIP})() !== ''")
    tip = page.evaluate(TIP)
    assert "MLinGreedy" in tip
    assert "regret per task" in tip


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_of_an_axis_do_not_collide(page: Page, report: Path, width: int) -> None:
    open_page(page, report, width=width)
    for name, chart in charts().items():
        draw_chart(page, name)
        boxes = page.evaluate(TICKS, name)
        assert len(boxes) == len(chart.panels)
        for labels in boxes:
            assert len(labels) >= 2
            gaps = [right[0] - left[1] for left, right in pairwise(labels)]
            assert min(gaps) > 3, f"{name}: labels {min(gaps):.0f} pixels apart"


def test_print_has_still_pictures_instead_of_charts(page: Page, report: Path) -> None:
    page.emulate_media(media="print")
    open_page(page, report, width=700)
    stills = page.locator(".still img")
    assert stills.count() == len(charts())
    for still in stills.all():
        expect(still).to_be_visible()
        natural, wide = still.evaluate("image => [image.naturalWidth, image.clientWidth]")
        assert natural > 0
        assert 0 < wide < 700
    for chart in page.locator(".chart").all():
        expect(chart).to_be_hidden()


def test_without_scripts_the_page_says_so_and_has_still_pictures(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    expect(page.get_by_text("which are switched off here")).to_be_visible()
    expect(page.locator(".still img").first).to_be_visible()
    expect(page.locator(".chart").first).to_be_hidden()
    context.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["report", "comparison", "diagnosis", "evaluation"])
def test_no_page_is_wider_than_its_window_in_light_or_dark(
    page: Page, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    open_page(page, request.getfixturevalue(name), width=width)
    for chart in page.locator("[data-chart]").evaluate_all("all => all.map(one => one.dataset.chart)"):
        draw_chart(page, chart)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for scheme, light in (("light", True), ("dark", False)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper)[:3])) > 3 * 128) == light


def test_a_diagnosis_shows_its_verdict_first_and_all_of_its_charts(page: Page, diagnosis: Path) -> None:
    open_page(page, diagnosis)
    assert DIAGNOSIS.verdict == "share"
    expect(page.locator("main .verdict").first).to_have_text(DIAGNOSIS.verdict)
    expect(page.get_by_text(DIAGNOSIS.reason)).to_be_visible()
    for name, gain in DIAGNOSIS.gains.items():
        row = page.get_by_role("row", name=CONTENDERS[name]).filter(has_text=f"{DIAGNOSIS.errors[name]:.3f}")
        shown = f"{100 * gain.value:.0f} % [{100 * gain.low:.0f} %, {100 * gain.high:.0f} %]"
        expect(row.get_by_role("cell").last).to_have_text(shown)
    drawn = charts_of(DIAGNOSIS)
    assert list(drawn) == ["tasks", "curve", "newcomers"]
    for name, chart in drawn.items():
        assert draw_chart(page, name) == 1
        labels = page.locator(f'[data-legend="{name}"]').get_by_role("button").all_inner_texts()
        assert [label.split(" ", 1)[1] for label in labels] == list(chart.legend)
    assert page.evaluate("[...document.scripts].every(script => !script.src)")
    expect(page.get_by_text("posse diagnose log.csv")).to_be_visible()
    expect(page.locator("h2")).to_have_count(8)


def test_a_point_of_a_diagnosis_is_named_under_the_pointer(page: Page, diagnosis: Path) -> None:
    open_page(page, diagnosis)
    draw_chart(page, "tasks")
    page.mouse.move(*page.evaluate(MARK, ["tasks", "follows the others"]))
    page.wait_for_function(f"({TIP})() !== ''")
    assert "the shop at the corner of street number" in page.evaluate(TIP)


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_of_a_diagnosis_do_not_collide(page: Page, diagnosis: Path, width: int) -> None:
    open_page(page, diagnosis, width=width)
    for name in charts_of(DIAGNOSIS):
        draw_chart(page, name)
        for labels in page.evaluate(TICKS, name):
            assert len(labels) >= 2
            assert min(right[0] - left[1] for left, right in pairwise(labels)) > 3


def test_a_diagnosis_without_an_answer_is_a_page_too(page: Page, tmp_path: Path) -> None:
    silent = diagnose_parts(
        [GramStatistics.of(np.ones((3, 2, 2)), np.ones((3, 2)))] * 2,
        tasks=["<b>a</b>", "b"],
        features=["(constant)", "x"],
        intercept=0,
    )
    write_diagnosis(silent, tmp_path / "page.html")
    open_page(page, tmp_path / "page.html", width=390)
    expect(page.locator("main .verdict").first).to_have_text("do not share")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    expect(page.get_by_text("<b>a</b>")).to_be_visible()
    assert page.locator("[data-chart]").count() == 0


def test_an_evaluation_shows_its_choice_first_and_all_of_its_charts(page: Page, evaluation: Path) -> None:
    open_page(page, evaluation)
    (choice,) = EVALUATION.choices
    assert choice.policy.startswith("shared-greedy")
    expect(page.locator("main .verdict").first).to_have_text(f"choose {choice.policy}")
    drawn = charts_of_evaluation(EVALUATION)
    assert list(drawn) == ["policies", "tasks"]
    for name, chart in drawn.items():
        assert draw_chart(page, name) == 1
        labels = page.locator(f'[data-legend="{name}"]').get_by_role("button").all_inner_texts()
        assert [label.split(" ", 1)[1] for label in labels] == list(chart.legend)
    assert page.evaluate("[...document.scripts].every(script => !script.src)")
    expect(page.get_by_text("posse evaluate log.parquet")).to_be_visible()
    expect(page.get_by_role("heading", name="Is there an answer in this log?")).to_be_visible()


def test_a_point_of_an_evaluation_is_named_under_the_pointer(page: Page, evaluation: Path) -> None:
    open_page(page, evaluation)
    draw_chart(page, "tasks")
    page.mouse.move(*page.evaluate(MARK, ["tasks", "arm:red"]))
    page.wait_for_function(f"({TIP})() !== ''")
    assert "the shop at the corner of street number" in page.evaluate(TIP)


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_of_an_evaluation_do_not_collide(page: Page, evaluation: Path, width: int) -> None:
    open_page(page, evaluation, width=width)
    for name in charts_of_evaluation(EVALUATION):
        draw_chart(page, name)
        for labels in page.evaluate(TICKS, name):
            assert labels
            assert all(right[0] - left[1] > 3 for left, right in pairwise(labels))

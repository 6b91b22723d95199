"""The pages in a real browser: drawn without complaint, alone, in any width, and they answer to clicks."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from browser import Browser, Page, find_browser
from posse.paper.registry import FIGURES
from posse.paper.report import write_comparison, write_report
from posse.suite import SCENARIOS
from test_report import make_table

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")

SHOWN = ("fig1", "fig3_digits", "margin_digits", "fig6")
WIDTHS = (390, 1440)
CHART = "fig1-regret-by-tasks"
HELPERS = """
const panels = chart => [...document.querySelectorAll(`[data-chart="${chart}"] [data-root-id]`)];
const view = panel => Bokeh.index.get_by_id(panel.dataset.rootId);
const legend = panel => view(panel).model.below.find(model => model.type === "Legend");
const shown = chart => panels(chart).map(panel => Object.fromEntries(legend(panel).items.map(
  item => [item.label.value, item.renderers.every(renderer => renderer.visible)])));
const middle = async (panel, label) => {
  const number = legend(panel).items.findIndex(item => item.label.value === label);
  const {el} = Bokeh.index.find_one(legend(panel)).entries[number];
  el.scrollIntoView({block: "center"});
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const box = el.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
};
const mark = async (panel, label) => {
  panel.closest(".panel").scrollIntoView({block: "center"});
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const plot = view(panel);
  const {data} = legend(panel).items.find(item => item.label.value === label).renderers[0].data_source;
  const box = plot.canvas_view.el.getBoundingClientRect();
  const {x_scale, y_scale} = plot.frame;
  return [box.x + x_scale.compute(data.x[0]), box.y + y_scale.compute(data.y[0])];
};
const tip = () => {
  const texts = [];
  const visit = root => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) visit(element.shadowRoot);
      if (element.classList.contains("bk-Tooltip")) texts.push(element.shadowRoot.textContent);
    }
  };
  visit(document);
  return texts.join(" ");
};
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = {name: make_table(name, seeds=2) for name in SHOWN}
    out = tmp_path_factory.mktemp("report")
    return write_report(tables, out, command="posse reproduce --seeds 2", minutes=1.0).path


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    out = tmp_path_factory.mktemp("comparison")
    scenarios = list(SCENARIOS.values())
    tables = {}
    for scenario in scenarios:
        rows = [
            (seed, policy, 100, 100, 10 + place + rng.random())
            for seed in range(2)
            for place, policy in enumerate(scenario.experiment.policies)
        ]
        names = ["seed", "policy", "round", "horizon", "regret_per_task"]
        tables[scenario.experiment.name] = pl.DataFrame(rows, schema=names, orient="row")
    write_comparison(scenarios, tables, out, command="posse compare --seeds 2", minutes=1.0)
    return out / "comparison.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert BROWSER is not None
    with Browser(BROWSER) as program:
        yield program


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.page() as tab:
        yield tab


def show_media(page: Page, *, scheme: str = "light", medium: str = "") -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.ask("Emulation.setEmulatedMedia", media=medium, features=features)


def assert_quiet(page: Page) -> None:
    assert page.complaints == []
    assert {address.split(":")[0] for address in page.requests} <= {"file", "data"}


def open_page(page: Page, path: Path, *, width: int) -> None:
    page.load(path, width=width)
    page.run(HELPERS)


def draw_chart(page: Page, chart: str) -> int:
    """Scroll to a chart, wait until all its panels are drawn, and return how many there are."""
    page.run(f"panels('{chart}')[0].closest('[data-chart]').scrollIntoView({{block: 'center'}})")
    page.wait_for(f"panels('{chart}').every(panel => view(panel)?.has_finished())")
    number: int = page.run(f"panels('{chart}').length")
    return number


def test_every_panel_is_drawn_without_complaint_or_request(page: Page, report: Path) -> None:
    open_page(page, report, width=1440)
    for name in SHOWN:
        for drawing in FIGURES[name].drawings:
            expected = len(drawing.explore(make_table(name, seeds=2)))
            assert draw_chart(page, f"{name}-{drawing.stem}") == expected
    assert_quiet(page)


def test_the_script_is_in_the_page_and_links_lead_somewhere(page: Page, report: Path) -> None:
    open_page(page, report, width=1440)
    assert page.run("[...document.querySelectorAll('script')].every(script => !script.src)")
    lost = "[...document.querySelectorAll('a')].filter(link => !document.getElementById(link.hash.slice(1)))"
    assert page.run(f"{lost}.map(link => link.outerHTML)") == []
    assert page.run("document.querySelectorAll('nav.toc a').length") >= len(SHOWN) + 3


@pytest.mark.parametrize("label", ["NaiveGreedy", "Theorem 1, constant fitted"])
def test_a_click_on_a_legend_hides_a_curve_in_all_panels_and_another_shows_it(
    page: Page, report: Path, label: str
) -> None:
    open_page(page, report, width=1440)
    number = draw_chart(page, CHART)
    everything = page.run(f"shown('{CHART}')")
    assert len(everything) == number
    assert all(label in panel and all(panel.values()) for panel in everything)
    hidden = [{name: name != label for name in panel} for panel in everything]
    for clicked, expected in ((0, hidden), (1, everything), (1, hidden), (0, everything)):
        page.click(*page.run(f"middle(panels('{CHART}')[{clicked}], '{label}')"))
        page.wait_for(f"shown('{CHART}')[{clicked}]['{label}'] === {json.dumps(expected is everything)}")
        assert page.run(f"shown('{CHART}')") == expected
    assert_quiet(page)


def test_a_mark_under_the_pointer_shows_its_values(page: Page, report: Path) -> None:
    open_page(page, report, width=1440)
    draw_chart(page, CHART)
    x, y = page.run(f"mark(panels('{CHART}')[0], 'MLinGreedy')")
    page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    shown = page.wait_for("tip()")
    assert "MLinGreedy" in shown
    assert "regret per task" in shown


def test_print_has_still_pictures_instead_of_charts(page: Page, report: Path) -> None:
    show_media(page, medium="print")
    page.load(report, width=700)
    page.wait_for("[...document.images].every(image => image.complete)")
    sizes = page.run("[...document.images].map(image => [image.naturalWidth, image.clientWidth])")
    assert len(sizes) == sum(len(FIGURES[name].drawings) for name in SHOWN)
    assert all(natural > 0 and 0 < shown < 700 for natural, shown in sizes)
    assert page.run("[...document.querySelectorAll('.panels')].every(place => place.clientHeight === 0)")
    assert_quiet(page)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["report", "comparison"])
def test_no_page_is_wider_than_its_window_in_light_or_dark(
    page: Page, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    show_media(page, scheme="light")
    open_page(page, request.getfixturevalue(name), width=width)
    for chart in page.run("[...document.querySelectorAll('[data-chart]')].map(one => one.dataset.chart)"):
        draw_chart(page, chart)
    page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for scheme in ("light", "dark"):
        show_media(page, scheme=scheme)
        assert page.run("document.documentElement.scrollWidth") <= page.run("innerWidth")
        paper = page.run("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)")
        assert (sum(paper) > 3 * 128) == (scheme == "light")
    assert_quiet(page)

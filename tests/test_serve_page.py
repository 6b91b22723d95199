"""The page to watch in a real browser, over a real service."""

import re
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from posse.client import Client
from posse.serve.page import FILES
from serve_world import Served, run, served

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.slow,
]

HOSTILE = "<img src=x onerror=alert(1)>"
SPACES = """
[spaces.shops]
features = ["price", "<b>new</b>"]
policy = "shared-thompson"
control = 0.5
reward_wait = 3600.0

[spaces.silent]
features = ["x"]
floor = 0.0
policy = "shared-greedy"

[spaces.untouched]
features = ["x"]
"""
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
SECTIONS = (
    "Over time",
    "Late and missing rewards",
    "What tasks learn from each other",
    "Versions of what tasks share",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
        program = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield program
        program.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a service with 20 related tasks, a hostile name among them, and an alarm."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "spaces.toml").write_text(SPACES)
    with served(folder / "store.db", "--config", folder / "spaces.toml") as service:
        fill(address_of(service))
        yield address_of(service)


def address_of(service: Served) -> str:
    return f"http://127.0.0.1:{service.port}"


def fill(url: str) -> None:
    rng = np.random.default_rng(0)
    tasks = [f"shop {n}" for n in range(19)] + [HOSTILE]
    with Client(url, space="shops", timeout=10) as client:
        for _ in range(4):
            rows = []
            for task in tasks * 3:
                table = rng.standard_normal((4, 2)).round(3).tolist()
                features = [dict(zip(("price", "<b>new</b>"), row, strict=True)) for row in table]
                rows.append({"task": task, "arms": dict(zip("abcd", features, strict=True))})
            answers = client.ask_many(rows)
            gains = [rows[i]["arms"][answer.arm]["price"] for i, answer in enumerate(answers)]  # type: ignore[index]
            told = [
                {"id": answer.id, "reward": float(gain + 0.3 * rng.standard_normal())}
                for answer, gain in zip(answers, gains, strict=True)
            ]
            client.tell_many(told[:-6])
    with Client(url, space="silent", timeout=10) as client:
        arms = {"p": {"x": 1.0}, "q": {"x": 2.0}}
        client.tell(client.ask("a", arms).id, 1.0)
        client.ask_many([{"task": "a", "arms": arms}] * 600)


class Tab:
    """A tab of a browser that remembers complaints and requests."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.page, self.url = context.new_page(), url
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.bytes = 0
        page = self.page
        page.on(
            "console",
            lambda message: self.complaints.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, where: str = "", *, ready: bool = True) -> Page:
        self.page.goto(f"{self.url}/{where}")
        if ready:
            self.page.wait_for_function("() => performance.getEntriesByName('posse-useful').length > 0")
        return self.page


@pytest.fixture
def tab(browser: Browser, url: str) -> Iterator[Tab]:
    """Yield a tab in which any complaint, or any request to elsewhere, is an error at the end."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = Tab(context, url)
    yield tab
    context.close()
    assert tab.complaints == []
    asked = {urlsplit(request).netloc for request in tab.requests if not request.startswith("data:")}
    assert asked == {urlsplit(url).netloc}


def test_the_page_shows_every_part_and_is_small(tab: Tab) -> None:
    page = tab.open("#space=shops")
    expect(page.locator("#now-title")).to_have_text("shops")
    for title in SECTIONS:
        expect(page.get_by_role("heading", name=title)).to_be_visible()
    tiles = page.locator("#tiles")
    for text in ("20", "240", "216", "mean reward", "over the control", "exploration"):
        expect(tiles).to_contain_text(text)
    expect(page.locator("#missing")).to_contain_text("rewarded 216 (90 %)")
    expect(page.locator("#missing")).to_contain_text("still waited for 24")
    expect(page.locator("#spaces button")).to_have_count(3)
    expect(page.locator("#alarms")).to_contain_text("silent: entropy: it has stopped exploring")
    expect(page.locator("#task svg")).to_be_visible()
    size = sum(len(files("posse.serve").joinpath("static", name).read_bytes()) for name in FILES.values())
    assert size < 1_000_000


def test_names_are_shown_as_text_and_never_run(tab: Tab) -> None:
    page = tab.open("#space=shops")
    page.locator("#find").fill("onerror")
    entry = page.locator("#tasks button")
    expect(entry).to_have_count(1)
    expect(entry).to_contain_text(HOSTILE)
    entry.click()
    expect(page.locator("#task h3").first).to_have_text(HOSTILE)
    expect(page.locator("#task svg text", has_text="<b>new</b>").first).to_be_visible()
    assert page.locator("main img, main b, svg b").count() == 0
    page.reload()
    expect(page.locator("#task h3").first).to_have_text(HOSTILE)


def test_a_policy_forbids_scripts_and_requests_that_are_not_the_pages_own(tab: Tab, url: str) -> None:
    answer = tab.page.goto(url)
    assert answer is not None
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert tab.page.locator("[style], [onclick], script:not([src]), style").count() == 0


@pytest.mark.parametrize("width", [320, 390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_window_is_too_narrow_and_dark_is_dark(tab: Tab, width: int, scheme: str) -> None:
    page = tab.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    tab.open("#space=shops")
    expect(page.locator("#task svg")).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) > 3 * 128) == (scheme == "light")
    if width < 500:  # a finger needs some room
        for box in page.locator("main button:visible").evaluate_all(
            "all => all.map(one => one.offsetHeight)"
        ):
            assert box >= 24


def test_everything_can_be_reached_and_read_by_keyboard(tab: Tab) -> None:
    page = tab.open("#space=shops")
    expect(page.locator("#task svg")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("To the numbers")
    page.locator("#spaces button", has_text="silent").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#now-title")).to_have_text("silent")
    expect(page.locator("#spaces button", has_text="silent")).to_be_focused()  # although it was drawn anew
    expect(page.locator("#spaces button", has_text="silent")).to_have_attribute("aria-pressed", "true")
    chart = page.locator("#charts svg").last
    chart.focus()
    page.wait_for_function("() => document.querySelectorAll('#charts svg path.line').length > 0")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#charts figure").last.locator(".reading")).to_contain_text("entropy")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.closest('[id]')?.id ?? ''"))
    assert {"windows", "find", "tasks", "versions"} <= reached


def test_a_version_is_gone_back_to_after_a_question_and_promoted_again(tab: Tab) -> None:
    page = tab.open("#space=shops")
    live = page.locator("#versions tr.live td").first
    newest = int(live.inner_text().split(",")[0])
    assert newest > 0
    page.get_by_role("button", name="Roll back to 0").click()
    expect(page.get_by_role("heading", name="Roll back to version 0?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(live).to_have_text(f"{newest}, live")
    page.get_by_role("button", name="Roll back to 0").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#message")).to_have_text("Rolled back to version 0.")
    expect(live).to_have_text("0, live")
    expect(page.locator("#adopted")).to_contain_text("keeps to version 0")
    page.get_by_role("button", name=re.compile(f"Promote {newest}$")).click()
    page.locator("#confirm-yes").click()
    expect(live).to_have_text(f"{newest}, live")
    expect(page.locator("#adopted")).to_contain_text("adopted by themselves")


def test_it_is_live_and_says_when_it_is_not(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path / "store.db") as service:
        context, url = browser.new_context(), address_of(service)
        page = Tab(context, url).open()
        expect(page.get_by_role("heading", name="Nothing was asked yet")).to_be_visible()
        expect(page.locator("#first")).to_contain_text(f"curl {url}/v1/ask")
        with Client(url, timeout=10) as client:
            client.ask("..", {"a": [1.0], "b": [2.0]})
            expect(page.locator("#now-title")).to_have_text("default")  # without anything being pressed
            client.ask("shop", {"a": [1.0], "b": [2.0]})
        expect(page.locator("#tiles")).to_contain_text("2")
        service.end()
        expect(page.locator("#pulse")).to_contain_text("No answer")
        expect(page.locator("#tiles")).to_contain_text("tasks")  # the last numbers stay
    again = Served("--store", f"sqlite:{tmp_path / 'store.db'}", "--port", service.port)
    expect(page.locator("#pulse")).to_contain_text("Live", timeout=20_000)
    again.end()
    context.close()


def test_a_token_is_asked_for_kept_in_the_tab_alone_and_decides_what_may_be_done(
    browser: Browser, tmp_path: Path
) -> None:
    store = tmp_path / "store.db"
    made = [
        run("serve", "token", "--store", store, "--name", role, "--role", role) for role in ("read", "admin")
    ]
    read, admin = (out.strip() for _, out, _ in made)
    with served(store) as service:
        with Client(address_of(service), token=admin, timeout=10) as client:
            for _ in range(3):
                client.ask("shop", {"a": [1.0], "b": [2.0]})
        context = browser.new_context()
        page = Tab(context, address_of(service)).open(ready=False)
        dialog = page.locator("#ask-token")
        expect(dialog).to_be_visible()
        expect(page.locator("#token")).to_be_focused()
        page.keyboard.type("posse_wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#token-wrong")).to_contain_text("Authorization: Bearer")
        page.locator("#token").fill(read)
        page.keyboard.press("Enter")
        expect(page.locator("#now-title")).to_have_text("default")
        expect(page.locator("#versions tr.live")).to_be_visible()
        assert page.locator("#versions button").count() == 0
        assert page.evaluate("() => [localStorage.length, sessionStorage.length, document.cookie]") == [
            0,
            1,
            "",
        ]
        assert read not in page.url
        page.get_by_role("button", name="Forget the token").click()
        expect(dialog).to_be_visible()
        assert page.evaluate("() => sessionStorage.length") == 0
        page.locator("#token").fill(admin)
        page.keyboard.press("Enter")
        expect(page.locator("#tiles")).to_contain_text("3")
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("where", ["#space=shops", "#space=untouched"])
def test_axe_finds_no_serious_fault(tab: Tab, scheme: str, where: str) -> None:
    tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    page = tab.open(where)
    expect(page.locator("#spaces button").first).to_be_visible()
    page.evaluate(AXE)  # by the debugger, which the page's policy does not bind
    found = page.evaluate("() => axe.run()")
    serious = [
        (one["id"], [node["html"] for node in one["nodes"]])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert len(found["passes"]) > 15

"""The page in a real browser: nothing fetched, nothing to complain about, and no scrolling to the side."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


# Of the whole file, before pages are made that nobody looks at.
playwright = pytest.importorskip("playwright.sync_api", reason="no browser test: pip install playwright")
EXECUTABLE = next(filter(None, map(shutil.which, BROWSERS)), None)
if EXECUTABLE is None:
    pytest.skip("no browser test: no Chromium is installed", allow_module_level=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium, driven by playwright."""
    with playwright.sync_playwright() as driven:
        started = driven.chromium.launch(executable_path=EXECUTABLE, args=list(QUIET))
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a page from disk; in the end it has fetched nothing and the console is empty."""
    fetched: list[str] = []
    said: list[str] = []
    contexts: list[Any] = []

    def open_page(text: str, *, width: int = 1280, dark: bool = False) -> Any:
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        tab = context.new_page()
        tab.on("request", lambda request: fetched.append(request.url))
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.goto(path.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    own = (tmp_path / "report.html").as_uri()
    assert [url for url in fetched if url != own and not url.startswith("data:")] == []
    assert said == []


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(visit: Any, page: str, hostile_page: str, width: int) -> None:
    """On a desk and on a telephone, whatever queues are called; one drawing of each chart is to be seen."""
    for text in (page, hostile_page):
        tab = visit(text, width=width)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        shown = tab.locator(".chart svg:visible")
        assert shown.count() == tab.locator("figure").count()
        for box in (shown.nth(number).bounding_box() for number in range(shown.count())):
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width


def test_every_chart_is_an_image_with_a_name(visit: Any, page: str) -> None:
    """As the browser tells assistive technology."""
    tab = visit(page)
    images = tab.get_by_role("img")
    assert images.count() == tab.locator("figure").count()
    for number in range(images.count()):
        assert any(char.isdigit() for char in images.nth(number).get_attribute("aria-label"))
    for landmark in ("main", "navigation", "banner", "contentinfo"):
        assert tab.get_by_role(landmark).count() == 1


def test_the_keyboard_skips_to_the_content(visit: Any, page: str) -> None:
    """The first thing that is reached is the link past the navigation."""
    tab = visit(page)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "content"


def test_dark_pages_have_light_ink(visit: Any, page: str) -> None:
    """Charts too: what is written in them stands out from the ground."""
    colours = [
        tab.evaluate(
            "[getComputedStyle(document.documentElement).backgroundColor,"
            " getComputedStyle(document.querySelector('.wide text')).fill]"
        )
        for tab in (visit(page), visit(page, dark=True))
    ]
    (light_ground, light_ink), (dark_ground, dark_ink) = colours
    assert light_ground == "rgb(255, 255, 255)"
    assert dark_ground != light_ground
    assert dark_ink != light_ink


def test_live_charts_take_the_place_of_drawn_ones(visit: Any, live_page: str) -> None:
    """Under the page's security policy, and with names as text under the pointer."""
    tab = visit(live_page)
    figures = tab.locator("figure").count()
    tab.wait_for_function(f"document.querySelectorAll('.vega-embed svg').length === {figures}")
    assert tab.locator("script").count() == 2
    area = tab.locator("#content .wide .mark-area path").first
    area.dispatch_event("pointermove", {"bubbles": True})
    assert tab.locator("#vg-tooltip-element").inner_text()
    assert tab.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0

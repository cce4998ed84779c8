"""The page: what it is built of, that names stay text, that it needs nothing else, and stays the same."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from cli_environment import clean_environment
from report_runs import HOSTILE, cut

import harness
from harness.analysis.report import Code
from harness.analysis.report.report import Chapter, Report
from harness.base.text import printable

VOID = {"meta", "link", "br", "img", "hr"}


class Page(HTMLParser):
    """What a browser makes of a page: its elements with their attributes, and the text of each kind."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_landmarks_headings_and_a_way_past_them(page: str) -> None:
    """One main, labelled navigation to all sections, one first heading, a link that skips to the content."""
    found = Page(page)
    counts = Counter(tag for tag, _ in found.elements)
    assert (counts["main"], counts["nav"], counts["header"], counts["footer"], counts["h1"]) == (
        1,
        1,
        1,
        1,
        1,
    )
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    sections = [attributes["id"] for attributes in found.all("section")]
    links = [attributes["href"] for attributes in found.all("a")]
    assert links == ["#content", *(f"#{name}" for name in sections)]
    assert "content" in ids
    for attributes in found.all("section"):
        assert attributes["aria-labelledby"] in ids
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch("h[1-6]", tag)]
    assert all(later <= before + 1 for before, later in pairwise(levels))


def test_every_chart_has_a_text_alternative_that_states_figures(page: str) -> None:
    """A chart is one image for who cannot see it; its parts are hidden, its alternative has numbers."""
    found = Page(page)
    figures = found.all("figure")
    images = [attributes for attributes in found.all("div") if attributes.get("role") == "img"]
    assert len(images) == len(figures) >= 9
    for image in images:
        assert re.search(r"\d", image["aria-label"] or "")
    assert all(attributes.get("aria-hidden") == "true" for attributes in found.all("svg"))


def test_tables_say_what_their_cells_are_of(page: str) -> None:
    """A caption, and a scope for every heading; a table that is too wide can be scrolled by keyboard."""
    found = Page(page)
    tables = page.count("<table>")
    assert tables == page.count("<caption>") >= 2
    assert all(attributes["scope"] in ("col", "row") for attributes in found.all("th"))
    assert sum(attributes.get("tabindex") == "0" for attributes in found.all("div")) == tables


def test_names_are_text_wherever_they_stand(hostile_page: str) -> None:
    """No element, attribute or address comes from a name; each is there, without control characters."""
    _names_are_text(hostile_page)


@pytest.mark.slow
def test_names_are_text_in_all_chapters(charts: None, hostile: list[harness.Run]) -> None:
    """The same with the charts of waits, whose panels are headed like those of usage."""
    _names_are_text(harness.make_report(hostile, command="harness report <b>").html())


def _names_are_text(page: str) -> None:
    found = Page(page)
    assert {"script", "img", "b", "style"} & {tag for tag, _ in found.elements} == {"style"}
    assert len(found.all("title")) == 1 + 2 * 2, "the page's, and those of two points, drawn wide and narrow"
    for tag, attributes in found.elements:
        assert not any(name.startswith("on") for name in attributes), tag
        assert not any("javascript:" in (attributes.get(name) or "") for name in ("href", "src"))
    words = " ".join(text for texts in found.text.values() for text in texts)
    for name in HOSTILE:
        assert printable(name) in words
    assert "\x1b" not in page
    assert not {"\u202e", "\u2028", "\u2029"} & set(page)


def test_long_text_can_be_folded() -> None:
    """Readers open it by its title; without a title it is always open."""
    chapter = Chapter("c", "o", "Title", [Code("a: <b>\nc: 1", folded="The file, a&b"), Code("x")])
    made = Report("report", "summary", [chapter]).html()
    folded = '<pre tabindex="0"><code>a: &lt;b&gt;\nc: 1</code></pre></details>'
    assert f"<details><summary>The file, a&amp;b</summary>{folded}" in made
    assert '\n<pre tabindex="0"><code>x</code></pre>' in made


def test_names_are_text_in_drawings_too(hostile_page: str) -> None:
    """Panels are headed by queues, and what a name says of coordinates is left as it is."""
    drawn = " ".join(Page(hostile_page).text["text"])
    assert "<script>alert(1)</script>" in drawn
    assert 'd="M1.2345,' in drawn


def test_nothing_is_fetched_and_nothing_runs(page: str) -> None:
    """No address but those within the page, no script, and a security policy that forbids both."""
    found = Page(page)
    assert "script" not in {tag for tag, _ in found.elements}
    for _, attributes in found.elements:
        for name in ("src", "href", "xlink:href", "action", "poster"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,"))
    assert "url(" not in page
    assert "@import" not in page
    (policy,) = (each["content"] for each in found.all("meta") if each.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy


def test_an_interactive_page_allows_only_its_own_script(charts: None, hostile: list[harness.Run]) -> None:
    """What charts are made of is data that cannot end its element, and the policy names the script's hash."""
    live = cut(harness.make_report(hostile[1:]), "gantt").html(interactive=True)
    scripts = Page(live).all("script")
    assert [attributes.get("type") for attributes in scripts] == ["application/json", None]
    assert "\\u003c/script" in live, "a queue's name is data of a chart"
    assert re.search(r"script-src &#x27;sha256-[A-Za-z0-9+/=]+&#x27;\"", live)


SAME = """
import sys
from dataclasses import replace
import harness
made = harness.make_report(sys.argv[2:])
kept = [each for each in made.chapters if each.name in sys.argv[1].split(",")]
sys.stdout.write(made.markdown() + replace(made, chapters=kept).html())
"""
CHAPTERS = ("headlines", "losses", "disruption")


@pytest.mark.parametrize("names", [CHAPTERS, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "all"])
def test_the_same_runs_give_the_same_bytes(
    names: tuple[str, ...] | None, charts: None, report: Report, runs: list[harness.Run], tmp_path: Path
) -> None:
    """Also in another process with another hash seed: all text, and the drawings of some chapters."""
    names = names or tuple(each.name for each in report.chapters)
    command = [sys.executable, "-c", SAME, ",".join(names), *(str(run.path) for run in runs)]
    made = subprocess.run(
        command,
        cwd=tmp_path,
        env=clean_environment() | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        check=True,
    )
    assert made.stdout.decode() == report.markdown() + cut(report, *names).html()


def test_a_colour_means_one_queue_in_all_charts(page: str, runs: list[harness.Run]) -> None:
    """Every legend gives a queue the same colour, and a run too."""
    keys = re.findall(
        r'<li><svg [^>]*><path [^>]*(?:fill|stroke)="(#[0-9a-f]{6})"[^>]*/></svg>([^<]*)</li>', page
    )
    for name in ("blue", "green", "red", *(run.label for run in runs)):
        assert len({colour for colour, other in keys if other == name}) == 1

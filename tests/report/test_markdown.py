"""Markdown for pull requests: everything in words and tables, and names that stay what they are."""

from __future__ import annotations

import re
from html import unescape

import pytest
from report_runs import HOSTILE

import harness
from harness.base.markdown import plain
from harness.base.text import printable


@pytest.fixture(scope="module")
def text(hostile: list[harness.Run]) -> str:
    return harness.make_report(hostile, command="harness report a b").markdown()


def test_tables_have_as_many_cells_in_every_row(text: str) -> None:
    """A bar in a name ends no cell."""
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) >= 3
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().split("\n")}) == 1


def test_names_are_neither_markup_nor_links(text: str) -> None:
    """Whatever Markdown or HTML would make of a name is escaped; nothing else of it is changed."""
    prose = "\n".join(line for line in text.split("\n") if not line.startswith("    "))
    assert "<" not in prose.replace("<!-- -->", "")
    assert not re.search(r"(?<!\\)\]\(", prose)
    for name in HOSTILE:
        assert plain(name) in prose
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "name",
    [
        "@everyone",
        "team@example.com",
        "http://example.com",
        "HTTPS://EXAMPLE.COM/x",
        "ftp://example.com",
        "www.example.com",
        "#1",
        "owner/repo#12",
        "GH-12",
        "[x](http://example.com)",
        "![x](//example.com/x.png)",
        "<https://example.com>",
        "<b>`x`</b>*_~$1$",
    ],
)
def test_names_that_look_like_links_or_mentions_are_plain_text(name: str) -> None:
    """An invisible comment stands within whatever GitHub would make a link of, escaped or not."""
    shown = plain(name)
    assert not re.search(r"://|\bwww\.|@\w|#\d|\bGH-\d", shown, re.IGNORECASE)
    assert not re.search(r"(?<!\\)[\\`*_\[\]~$](?![\\`*_\[\]~$!#|{}])", shown)
    assert unescape(re.sub(r"\\(.)", r"\1", shown.replace("<!-- -->", ""))) == printable(name)


def test_charts_are_told_in_figures(text: str) -> None:
    """Each chart's title, then what it shows."""
    assert re.search(r"^\*\*Waiting jobs\.\*\* calm: [\d.]+ jobs waited on average", text, re.MULTILINE)
    assert "\n    harness report a b" in text

"""Markdown for pull requests: everything in words and tables, and names that stay what they are."""

from __future__ import annotations

import re

import pytest
from report_runs import HOSTILE

import harness
from harness.text import printable


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
    assert not re.search(r"(?<!\\)<", prose)
    assert not re.search(r"(?<!\\)\]\(", prose)
    for name in HOSTILE:
        assert re.sub(r"([\\`*_{}\[\]<>#|~@!&$])", r"\\\1", printable(name)) in prose
    assert "\x1b" not in text


def test_charts_are_told_in_figures(text: str) -> None:
    """Each chart's title, then what it shows."""
    assert re.search(r"^\*\*Waiting jobs\.\*\* calm: [\d.]+ jobs waited on average", text, re.MULTILINE)
    assert "\n    harness report a b" in text

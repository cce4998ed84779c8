"""What is proven: the tables of README and of its page are those of scripts/proven.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from doc_pages import ROOT

from harness.cluster.kinds.kueue_releases import NEWEST, RELEASES
from harness.plugins import load
from harness.plugins.conformance import Tally

EXCERPTS = ROOT / "tests" / "conformance"


def script() -> ModuleType:
    """`scripts/proven.py`, which is in no package."""
    spec = importlib.util.spec_from_file_location("proven", ROOT / "scripts" / "proven.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


proven: Any = script()


def rows() -> dict[tuple[str, str], str]:
    """The rows of the page."""
    return proven.rows_in((ROOT / "docs" / "proven.md").read_text(encoding="utf-8"))


def test_readme_and_the_page_have_one_table() -> None:
    """Of components that can be asked, and of each minor version of Kueue since 0.13."""
    assert proven.rows_in((ROOT / "README.md").read_text(encoding="utf-8")) == rows()
    assert {component for _, component in rows()} <= {each.name for each in load().conformance}
    newest = {each.minor: each for each in RELEASES if each != NEWEST}
    told = {release for release, component in rows() if component == "kueue/cycles"}
    assert told == {f"Kueue {each}" for each in (*newest.values(), NEWEST)}


@pytest.mark.parametrize("page", proven.PAGES, ids=lambda path: path.name)
def test_the_script_would_write_the_page_as_it_is(page: Path) -> None:
    """The rows in their order, and nothing else between the marks."""
    text = page.read_text(encoding="utf-8")
    assert proven.with_table(text, proven.table(proven.rows_in(text))) == text


def test_cases_count_for_the_release_that_they_were_recorded_from() -> None:
    """As answering an excerpt shows; what differs is not told as all."""
    found = proven.tallies([EXCERPTS / "kueue-cycles-v0.15-dev-8.jsonl.gz"], jobs=1)
    assert list(proven.rows_of(found).values()) == ["| Kueue v0.15.8 | `kueue/cycles` | 8 | all |"]
    tally = Tally()
    for agrees in (True, True, False):
        tally.add(agrees=agrees)
    (row,) = proven.rows_of({("Kueue v0.15.8", "kueue/cycles"): tally}).values()
    assert row == "| Kueue v0.15.8 | `kueue/cycles` | 3 | 2 (66.67%) |"

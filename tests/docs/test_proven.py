"""What is proven: the tables of README and of its page are those of scripts/proven.py."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from doc_pages import ROOT

from harness.cluster.kinds.kueue_releases import NEWEST, RELEASES
from harness.plugins import load
from harness.plugins.conformance import Tally

EXCERPTS = ROOT / "tests" / "conformance"

sys.path.append(str(ROOT / "scripts"))
proven: Any = importlib.import_module("proven")
"""`scripts/proven.py`, which is in no package."""


def rows() -> dict[tuple[str, str], str]:
    """The rows of the page."""
    return proven.rows_in((ROOT / "docs" / "proven.md").read_text(encoding="utf-8"))


def test_the_page_has_each_minor_version_of_kueue() -> None:
    """Since 0.13, and components that can be asked."""
    assert {component for _, component in rows()} == {each.name for each in load().conformance}
    newest = {each.minor: each for each in RELEASES if each != NEWEST}
    told = {release for release, component in rows() if component == "kueue/cycles"}
    assert told == {f"Kueue {each}" for each in (*newest.values(), NEWEST)}


def test_the_script_would_write_the_pages_as_they_are() -> None:
    """The rows in their order, and nothing else between the marks; README sums them up."""
    text, front = (page.read_text(encoding="utf-8") for page in (proven.PAGE, proven.README))
    for page, lines in ((text, proven.table(rows())), (front, proven.brief(rows()))):
        assert proven.marks.filled(page, proven.BEGINS, lines) == page


def test_cases_count_for_the_release_that_they_were_recorded_from() -> None:
    """As answering an excerpt shows; what differs is not told as all."""
    found = proven.tallies([EXCERPTS / "kueue-cycles-v0.15-dev-8.jsonl.gz"], jobs=1)
    assert list(proven.rows_of(found).values()) == ["| Kueue v0.15.8 | `kueue/cycles` | 8 | all |"]
    tally = Tally()
    for agrees in (True, True, False):
        tally.add(agrees=agrees)
    (row,) = proven.rows_of({("Kueue v0.15.8", "kueue/cycles"): tally}).values()
    assert row == "| Kueue v0.15.8 | `kueue/cycles` | 3 | 2 (66.67%) |"

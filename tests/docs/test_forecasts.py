"""The table of docs/forecast.md that a script computes."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from doc_pages import ROOT

from harness.studies.forecasting.judged import Judged
from harness.studies.forecasting.scores import coverage


def test_the_page_has_the_table_as_the_script_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for each forecast of each trace, in its order; a new table takes the place of the old one."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    script = importlib.import_module("forecasts")
    page = (ROOT / "docs" / "forecast.md").read_text()
    _, _, after = page.partition(script.HEAD)
    table, _, _ = after.partition("\n\n")
    names = re.findall(r"^\|[^|]*\| ([a-z ]+) \|", table, flags=re.MULTILINE)
    assert names == [*script.NAMES] * 3
    found = coverage([Judged(0, "job", (10, 20, 30), 20)], 100)
    made = script.table({"hpc2n": found})
    assert made.count("\n") == 1 + len(script.NAMES)
    assert "| hpc2n, 1 moments, 1 starts | futures | 100.0 % |" in made
    written = script.put(page, made)
    assert made in written
    assert len(written) == len(page) - len(table) - len(script.HEAD) + len(made)


def test_the_script_goes_on_after_it_was_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The last line of the file may be half a line; what is written next stands on a line of its own."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    script = importlib.import_module("forecasts")
    file = tmp_path / "hpc2n.jsonl"
    file.write_text('[5, [[5, "job", [1, 2], 3, "q", [1, 2, 3], [1, 2, 3]]]]\n[6, [[6, "jo')
    assert [each.job for each in script.known(file)[5]] == ["job"]
    assert file.read_text().endswith("]]]]\n")
    assert script.known(tmp_path / "none.jsonl") == {}

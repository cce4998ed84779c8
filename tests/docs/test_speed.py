"""What a replay costs: the tables of docs/speed.md are those of scripts/speed.py."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
from doc_pages import ROOT


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`scripts/speed.py`, which is in no package."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("speed")


def test_the_page_has_the_rows_that_the_script_makes(speed: ModuleType) -> None:
    """A month for each plugin, and a ratio for each bundled replay."""
    page = speed.PAGE.read_text(encoding="utf-8")
    tables = {}
    for what in ("months", "ratios"):
        part = page.partition(speed.marks.begins(speed.NAME, what))[2].partition(speed.marks.ENDS)[0]
        tables[what] = [line.split(" | ") for line in part.strip().splitlines()]
    months, ratios = ([[cell.strip("| ") for cell in row] for row in tables[what][2:]] for what in tables)
    assert [row[0] for row in months] == [f"`{plugin}`" for plugin in speed.PLUGINS]
    every = [(label, f"`{plugin}`") for label, (*_, plugins) in speed.BUNDLED.items() for plugin in plugins]
    assert [(row[0], row[1]) for row in ratios] == every


@pytest.mark.slow
def test_the_script_measures(speed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two days of the month with one plugin; few amounts are powers of two."""
    monkeypatch.setattr(speed, "PLUGINS", ("none",))
    monkeypatch.setattr(speed, "GROWTH", ("1d", "2d"))
    head, _, row = speed.months(tmp_path)
    assert head.count("ms a job") == 2
    assert row.startswith("| `none` | ")
    amounts = pl.read_parquet(tmp_path / "few.parquet")["request.cpu"].unique()
    assert all(amount & (amount - 1) == 0 for amount in amounts)

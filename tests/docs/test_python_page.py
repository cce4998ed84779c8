"""docs/python.md has every public name, and its example works."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import polars as pl
import pytest
from doc_pages import ROOT

import harness

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def attributes(of: type) -> set[str]:
    """What a class has: what its docstring lists, and what it defines."""
    listed = re.findall(r"^    ([a-z_]+(?:, [a-z_]+)*): ", inspect.getdoc(of) or "", re.MULTILINE)
    defined = {name for name in vars(of) if not name.startswith("_")}
    return {name for names in listed for name in names.split(", ")} | defined


def test_every_public_name_is_on_the_page() -> None:
    """As code, in a table or a sentence."""
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert {name for name in harness.__all__ if name not in named} == set()


@pytest.mark.parametrize("of", [harness.Job, harness.View, harness.PodSet])
def test_what_a_policy_sees_is_listed(of: type) -> None:
    """And nothing else: each attribute has a row, or is in the sentence on pod sets."""
    heading = "Job" if of is harness.PodSet else of.__name__
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)(?:\(\w+\))?`", section))
    assert attributes(of) - {"made"} <= named


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts jobs one after the other, and three at once."""
    monkeypatch.chdir(tmp_path)
    second = pl.duration(seconds=1, time_unit="us")
    number = pl.int_range(6, dtype=pl.Int64)
    columns = {"job_id": number.cast(pl.String), "submit_time": second * 0, "duration": second * 60}
    jobs = pl.select(**columns, queue=pl.lit("a"), **{"request.cpu": pl.lit(1000)})
    jobs.with_columns(pl.lit(1000, pl.Int64).alias("request.cpu")).write_parquet("jobs.parquet")
    names: dict[str, object] = {}
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "docs/python.md", "exec"), names)
    runs = [names[label] for label in ("alone", "three")]
    waits = [run.metrics.filter(metric="wait.first_start.mean", scope="all")["value"][0] for run in runs]  # type: ignore[attr-defined]
    assert waits == [150.0, 30.0]

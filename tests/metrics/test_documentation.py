"""docs/metrics.md names every metric that a run writes, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import harness
from harness.analysis.comparison.headlines import HEADLINES

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def documented() -> set[str]:
    """Names in the first column of tables; `.p95` continues the name before it."""
    names: set[str] = set()
    for line in PAGE.read_text().split("\n"):
        if line.startswith("| `"):
            family = ""
            for name in re.findall(r"`([^`]+)`", line.split(" | ")[0]):
                family = family if name.startswith(".") else name.rpartition(".")[0]
                names.add(f"{family}{name}" if name.startswith(".") else name)
    return names


ELSEWHERE = {"jobs.at_start", "disruption.lost_before", "fragmentation.fgd"}
"""Of runs that began with work of the manifests, or with devices; other tests look at their values."""


def test_the_page_lists_every_metric_that_is_written(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Those of a run in which nothing happens too: metrics are null then, not absent."""
    (run,) = harness.isolated([harness.replay(write_trace({}), output=tmp_path / "results")])
    (run,) = harness.idle_causes([run])
    assert documented() - ELSEWHERE == set(run.metrics["metric"].to_list())


def test_the_page_lists_the_headlines() -> None:
    """In their order, and no other metric."""
    text = PAGE.read_text().replace("\n", " ")
    (sentence,) = re.findall(r"The headlines are (.*?)\. Tables", text)
    assert tuple(re.findall(r"`([^`]+)`", sentence)) == HEADLINES

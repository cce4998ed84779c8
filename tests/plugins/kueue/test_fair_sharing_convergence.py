"""Fair sharing over time: one queue floods, others come later, and weighted shares become equal."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "fair_sharing_convergence.py"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The study of the documentation with fewer jobs."""
    spec = importlib.util.spec_from_file_location("fair_sharing_convergence", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    found: tuple[pl.DataFrame, pl.DataFrame] = script.study(tmp_path_factory.mktemp("study"), jobs=60)
    return found


def row(summary: pl.DataFrame, jobs: str, strategies: str) -> Mapping[str, Any]:
    """One row of the summary."""
    return summary.filter(jobs=jobs, strategies=strategies).row(0, named=True)


@pytest.mark.parametrize("strategies", ["final", "initial", "both"])
def test_weighted_shares_become_equal_within_minutes(
    study: tuple[pl.DataFrame, pl.DataFrame], strategies: str
) -> None:
    """With jobs of mixed sizes every list of strategies gives each newcomer its share."""
    found = row(study[1], "mixed", strategies)
    assert found["second_min"] <= 10
    assert found["third_min"] <= 10
    assert found["preemptions"] > 0
    assert found["lost"] > 0


def test_by_final_shares_alone_a_newcomer_waits_for_large_jobs_to_end(
    study: tuple[pl.DataFrame, pl.DataFrame],
) -> None:
    """To preempt half a cohort leaves the victim with nothing, which only the initial share allows."""
    final = row(study[1], "large", "final")
    for strategies in ("initial", "both"):
        found = row(study[1], "large", strategies)
        assert found["third_min"] < 1 < final["third_min"]
        assert found["preemptions"] > final["preemptions"]


def test_shares_never_exceed_the_cohort(study: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    """At every instant of the table, which has all queues, also those that have not come yet."""
    total = study[0].group_by("jobs", "strategies", "seconds").agg(pl.len(), pl.col("share").sum())
    assert total["len"].unique().to_list() == [3]
    assert 0 < total["share"].max() <= 1000  # type: ignore[operator]

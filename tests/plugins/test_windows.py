"""A window of a trace, chosen by a replay or kept in a file of its own: the same decisions."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import harness
from harness.cli import main
from harness.trace.calibration import Calibration

MIX = Path(__file__).parents[2] / "traces" / "mix.parquet"
CLUSTER = MIX.with_suffix(".cluster.yaml")
WINDOW = "80h..92h"
"""226 jobs, the first one 80h01m43s after the trace's origin: no multiple of what timers wait for."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The window as a trace."""
    path = tmp_path_factory.mktemp("window") / "mix.parquet"
    main(["trace", "convert", str(MIX), str(path), "--window", WINDOW])
    return path


@pytest.mark.parametrize(
    "plugin",
    [
        *("default-preemption", "kueue-classic", "auto", "backfill"),
        *(pytest.param(each, marks=pytest.mark.nightly) for each in ("none", "fairsharing", "elasticquota")),
    ],
)
def test_a_replay_of_a_window_decides_as_one_of_the_trace_that_holds_just_that(
    plugin: str, kept: Path, tmp_path: Path
) -> None:
    """All plugins that bind pods: what they do now and then counts from where the replay begins."""
    chosen = harness.replay(
        MIX,
        plugin=plugin,
        cluster=CLUSTER,
        calibration=Calibration.parse(window=WINDOW),
        output=tmp_path / "chosen",
    )
    alone = harness.replay(kept, plugin=plugin, cluster=CLUSTER, output=tmp_path / "alone")
    assert chosen.decisions.height > 600
    # A time-out says when a job comes back in seconds since the origin, which a window of its own moves.
    since = pl.col("detail").str.replace(r'"requeueAt":\d+', "")
    assert chosen.decisions.with_columns(since).equals(alone.decisions.with_columns(since))
    assert chosen.jobs.equals(alone.jobs)

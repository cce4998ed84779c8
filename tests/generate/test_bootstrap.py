"""Traces that are drawn from a recorded one are like it, and never the same twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import harness
from harness.base.errors import SpecError
from harness.base.units import DAY, HOUR, parse_duration
from harness.cluster.derive import find_cluster
from harness.plugins import load
from harness.trace.generate.bootstrap import WEEK, Bootstrap
from harness.trace.trace import Trace, open_trace
from harness.trace.write import TraceWriter

PLUGINS = load(only=["readers"])
PHILLY = Path(__file__).parents[2] / "traces" / "philly.parquet"


@pytest.fixture
def recorded(write_trace: Callable[..., Path]) -> Trace:
    """Ten days of two tenants; one of `b` has pod sets, and the last hours are no whole day."""
    rows: list[Mapping[str, Any]] = [
        {
            "job_id": f"{queue}{day}",
            "submit_time": (day * DAY + 7 * HOUR) // 10**6,
            "queue": queue,
            "uid": "u",
        }
        for day in range(10)
        for queue in "ab"
    ]
    rows += [{"job_id": "b4s", "submit_time": 4 * 86_400, "queue": "b", "pod_set": name} for name in "xy"]
    rows += [{"job_id": "end", "submit_time": 10 * 86_400 + 30_000, "queue": "a"}]
    return open_trace(write_trace(*rows), PLUGINS)


def drawn(trace: Trace, seed: int, span: int = 10 * DAY, jobs: int | None = None) -> pl.DataFrame:
    return pl.concat(Bootstrap(trace, DAY).pieces(span, seed, jobs))


def test_blocks_are_drawn_whole_for_each_tenant(recorded: Trace) -> None:
    """A job comes at its time of the day, once in a day, with all its pod sets, under a name of that day."""
    frame = drawn(recorded, 3)
    assert frame["submit_time"].is_sorted()
    assert frame.filter(pl.col("queue") == "a").height == 10
    sets = frame.filter(pl.col("pod_set").is_in(["x", "y"])).group_by("job_id").len()
    assert set(sets["len"]) <= {2}
    assert "uid" not in frame.columns
    assert "end" not in frame["job_id"].str.split(".").list.first()


def test_names_that_cannot_be_extended_become_numbers(recorded: Trace) -> None:
    """A name has at most 1,000 bytes. Equal names stay equal, and the notes say so."""
    usual = drawn(recorded, 3)
    long = pl.lit("é" * 498) + pl.col("job_id").cast(pl.String)
    longer = replace(recorded, frame=recorded.frame.with_columns(long.alias("job_id")))
    frame = drawn(longer, 3)
    assert frame["job_id"].str.contains(r"^[0-9]+\.[0-9]+$").all()
    assert frame.drop("job_id").equals(usual.drop("job_id"))
    assert frame["job_id"].rle_id().equals(usual["job_id"].rle_id())
    assert any("named by numbers" in note for note in Bootstrap(longer, DAY).notes)
    assert not any("named by numbers" in note for note in Bootstrap(recorded, DAY).notes)


def test_equal_seeds_draw_equal_days_and_tenants_differ(recorded: Trace) -> None:
    """Which days a tenant has does not depend on the others."""
    frame = drawn(recorded, 3)
    assert frame.equals(drawn(recorded, 3))
    regular = frame.filter(pl.col("job_id").str.contains(r"^[ab]\d\."))
    days = {
        queue: regular.filter(pl.col("queue") == queue)["job_id"].str.slice(1, 1).to_list() for queue in "ab"
    }
    assert days["a"] != days["b"]
    assert frame.head(7).equals(drawn(recorded, 3, jobs=7))


def test_a_bound_counts_jobs_and_leaves_their_pod_sets_whole(recorded: Trace) -> None:
    """However many are asked for, also where the last one has two pod sets."""
    whole = drawn(recorded, 7)
    of_whole = dict(whole.group_by("job_id").len().iter_rows())
    assert 2 in of_whole.values()
    for jobs in range(1, len(of_whole) + 1):
        some = dict(drawn(recorded, 7, jobs=jobs).group_by("job_id").len().iter_rows())
        assert len(some) == jobs
        assert some.items() <= of_whole.items()


def test_a_record_without_two_blocks_cannot_be_drawn_from(recorded: Trace) -> None:
    """One week says nothing about how weeks differ."""
    with pytest.raises(SpecError, match="less than two blocks of 7d00h") as error:
        Bootstrap(recorded, WEEK)
    assert error.value.hint is not None
    most = error.value.hint.removeprefix("give a shorter --block, of at most ")
    assert Bootstrap(recorded, parse_duration(most)).blocks == 2


def test_blocks_that_would_be_drawn_for_ever_are_refused(recorded: Trace) -> None:
    """A block of a microsecond is a mistaken unit."""
    with pytest.raises(SpecError, match="10d00h consist of 864,000,000,000 blocks of 1us") as error:
        next(Bootstrap(recorded, 1).pieces(10 * DAY, 1))
    assert error.value.hint == "give a longer --block: 9s"


GPUS = pl.col("request.nvidia.com/gpu") * pl.col("pods").fill_null(1)


def test_traces_fitted_to_philly_are_like_philly() -> None:
    """Jobs and load: each of eight draws within 40 %, their mean within 10 %. Sizes: within a point.

    Philly's weeks differ that much; it is what resampling them is to show.
    """
    record = open_trace(PHILLY, PLUGINS)
    fit = Bootstrap(record)
    draws = [pl.concat(fit.pieces(fit.span, seed)) for seed in range(1, 9)]
    before = record.frame.select(GPUS * pl.col("duration").to_physical()).sum().item() / 109 / DAY
    loads = [
        draw.select(GPUS * pl.col("duration").to_physical()).sum().item() / fit.span / before
        for draw in draws
    ]
    jobs = [draw.height / record.frame.height for draw in draws]
    for factors in (loads, jobs):
        assert all(0.6 < factor < 1.4 for factor in factors)
        assert sum(factors) / len(factors) == pytest.approx(1, abs=0.1)
    together = pl.concat(draws)
    for key, tolerance in (("gpus", 0.01), ("queue", 0.05)):
        shares = [
            frame.with_columns(GPUS.alias("gpus"))[key].value_counts(normalize=True)
            for frame in (record.frame, together)
        ]
        both = shares[0].join(shares[1], on=key, how="full").fill_null(0.0)
        assert both.select((pl.col("proportion") - pl.col("proportion_right")).abs().max()).item() < tolerance


def test_generated_converted_replayed_and_compared(
    recorded: Trace, tmp_path: Path, write_trace: Callable[..., Path]
) -> None:
    """The whole way: the replay's utilization is what the drawn jobs asked for, and runs of it compare."""
    from harness.trace.write import write_trace as write

    fit = Bootstrap(recorded, DAY)
    path = tmp_path / "drawn.parquet"
    with TraceWriter(path, fit.metadata) as writer:
        for piece in fit.pieces(fit.span, 5):
            writer.write(piece)
    opened = open_trace(path, PLUGINS)
    write(opened, tmp_path / "converted.parquet")
    runs = [
        harness.replay(
            tmp_path / "converted.parquet",
            plugin="none",
            options={"order": order},
            label=order,
            output=tmp_path / "results",
        )
        for order in ("fifo", "priority")
    ]
    assert [run.jobs.height for run in runs] == [opened.frame["job_id"].n_unique()] * 2
    worked = opened.frame.select((pl.col("request.cpu") * pl.col("duration").dt.total_seconds()).sum()).item()
    held = (
        runs[0]
        .stints.select((pl.col("request.cpu") * (pl.col("end") - pl.col("start")).dt.total_seconds()).sum())
        .item()
    )
    assert held == worked
    table = harness.compare(runs).to_polars("jobs.finished")
    assert table["fifo"].to_list() == table["priority"].to_list() == [float(runs[0].jobs.height)]
    assert find_cluster(path) is None

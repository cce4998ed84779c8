"""The figures of a trace, on traces small enough to compute them by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from harness.base.errors import InputError
from harness.base.units import SECOND
from harness.plugins import load
from harness.trace.demand import derived_cluster
from harness.trace.summary import Summary, Tenant, summarize
from harness.trace.target import aim
from harness.trace.trace import open_trace

PLUGINS = load(only=["readers"])


@pytest.fixture
def summary_of(write_trace: Callable[..., Path]) -> Callable[..., Summary]:
    """The summary of a trace of these rows."""
    return lambda *rows: summarize(open_trace(write_trace(*rows), PLUGINS))


def test_the_load_is_that_of_every_job_started_at_its_submission(summary_of: Callable[..., Summary]) -> None:
    """Mean over the span of submissions, peak with ends before starts at one instant."""
    summary = summary_of(
        {"submit_time": 0, "duration": 10, "request.cpu": 1000},
        {"submit_time": 5, "duration": 5, "request.cpu": 2000},
        {"submit_time": 10, "duration": 10, "request.cpu": 1500},
        {"submit_time": 20, "duration": 0, "request.cpu": 9000},
    )
    cpu = summary.resources["cpu"]
    assert cpu.peak == 3000
    assert cpu.mean == pytest.approx((10 * 1000 + 5 * 2000 + 10 * 1500) / 20)
    assert (cpu.job.count, cpu.job.max, cpu.job.mean) == (4, 9000, 3375)
    assert summary.span == 20 * SECOND


def test_the_load_of_one_instant_is_what_is_asked_for_together(
    write_trace: Callable[..., Path], summary_of: Callable[..., Summary]
) -> None:
    """No time passes between submissions, so that there is nothing to divide by; a cluster is made for it."""
    rows = [{"request.cpu": 3000, "duration": 500}, {"request.cpu": 1000, "pods": 2}]
    assert summary_of(*rows).resources["cpu"].mean == 5000
    trace = open_trace(write_trace(*rows), PLUGINS)
    made = derived_cluster(trace)
    assert made.capacity == {"cpu": 7000}
    with pytest.raises(InputError, match="all jobs are submitted at the same time"):
        aim(trace, made, Fraction(1))
    idle = open_trace(write_trace({"duration": 0}, {"submit_time": 5, "duration": 0}), PLUGINS)
    with pytest.raises(InputError, match="no job requests a resource for any time"):
        aim(idle, made, Fraction(1))


def test_a_derived_cluster_is_no_larger_than_what_is_asked_for_together(
    write_trace: Callable[..., Path],
) -> None:
    """Two jobs run for far longer than the second between their submissions: 4 cores of 5 are demanded."""
    rows = [{"request.cpu": 3000, "duration": 500}, {"request.cpu": 1000, "duration": 500, "submit_time": 1}]
    assert derived_cluster(open_trace(write_trace(*rows), PLUGINS)).capacity == {"cpu": 5000}


def recorded(*spans: tuple[int, int] | None, **columns: object) -> list[dict[str, object]]:
    """Jobs of one core, submitted together, with recorded times in seconds; None for a job without."""
    return [
        {
            "submit_time": 0,
            "duration": 10,
            "recorded_start": None if span is None else timedelta(seconds=span[0]),
            "recorded_end": None if span is None else timedelta(seconds=span[1]),
            **columns,
        }
        for span in spans
    ]


def test_a_derived_cluster_is_as_large_as_the_recorded_peak(write_trace: Callable[..., Path]) -> None:
    """All demand comes at once, but two ran at a time; a record of too few jobs does not count."""

    def derived(rows: list[dict[str, object]]) -> int:
        return derived_cluster(open_trace(write_trace(*rows), PLUGINS)).capacity["cpu"]

    ran = [(5 * number, 5 * number + 10) for number in range(9)]
    assert derived(recorded(*ran)) == 2000
    assert derived(recorded(*ran, None)) == 2000
    assert derived(recorded(*ran, None, None)) == 14_000


def test_a_job_of_several_runs_holds_nothing_between_them(write_trace: Callable[..., Path]) -> None:
    """Two jobs take turns, so one core was enough."""
    runs = [{"start": 0, "end": 5_000_000}, {"start": 30_000_000, "end": 40_000_000}]
    rows = [*recorded((0, 40), recorded_runs=json.dumps(runs)), *recorded((5, 30), recorded_runs=None)]
    trace = open_trace(write_trace(*rows), PLUGINS)
    assert derived_cluster(trace).capacity == {"cpu": 1000}
    assert summarize(trace).resources["cpu"].recorded_peak == 1000


def test_requests_count_for_all_pods_and_only_where_there_are_any(summary_of: Callable[..., Summary]) -> None:
    """Sizes are of jobs, among those that ask for the resource at all."""
    summary = summary_of(
        {"pods": 3, "request.gpu": 2}, {"pods": 1, "request.gpu": 0}, {"pods": 2, "gang": False}
    )
    assert (summary.resources["gpu"].job.count, summary.resources["gpu"].job.max) == (1, 6)
    assert summary.resources["cpu"].job.max == 3000
    assert (summary.pods.max, summary.gangs) == (3, 1)


def test_pod_sets_are_one_job(summary_of: Callable[..., Summary]) -> None:
    """Rows and jobs are counted apart."""
    summary = summary_of(
        {"job_id": "a", "pod_set": "x", "gang": None},
        {"job_id": "a", "pod_set": "y", "gang": None, "pods": 4},
    )
    assert (summary.rows, summary.jobs, summary.pods.max, summary.gangs) == (2, 1, 5, 1)


def test_tenants_come_with_their_share_of_the_work(summary_of: Callable[..., Summary]) -> None:
    """Those with most jobs first, then by name."""
    summary = summary_of({"queue": "b"}, {"queue": "a", "duration": 3}, {"queue": "c"}, {"queue": "c"})
    assert summary.tenants == (
        Tenant("c", 2, {"cpu": 20_000.0}),
        Tenant("a", 1, {"cpu": 3000.0}),
        Tenant("b", 1, {"cpu": 10_000.0}),
    )


def test_queues_of_several_namespaces_with_one_name_are_apart(summary_of: Callable[..., Summary]) -> None:
    """They are called by both names; a name that only one namespace has stays alone."""
    summary = summary_of(
        {"queue": "q", "namespace": "x"}, {"queue": "q", "namespace": "x"}, {"queue": "q"}, {"queue": "r"}
    )
    assert [(tenant.queue, tenant.jobs) for tenant in summary.tenants] == [
        ("x/q", 2),
        ("default/q", 1),
        ("r", 1),
    ]


def test_priorities_are_counted(summary_of: Callable[..., Summary]) -> None:
    """By number where there are numbers, else by class, else not at all."""
    assert summary_of({}).priorities == {}
    assert summary_of({"priority": 5}, {"priority": -1}, {"priority": None}).priorities == {
        "5": 1,
        "-1": 1,
        "none stated": 1,
    }
    assert summary_of({"priority_class": "high"}, {"priority_class": "high"}).priorities == {"high": 2}


def test_what_is_missing_is_counted(summary_of: Callable[..., Summary]) -> None:
    """Absent columns for all rows, nulls for theirs."""
    missing = summary_of({"request.memory": None, "user": "u"}, {"request.memory": 1, "user": None}).missing
    assert missing["request.memory"] == 1
    assert missing["user"] == 1
    assert missing["priority"] == 2
    assert "request.cpu" not in missing


def test_first_and_last_are_shown_in_the_kind_of_the_trace(
    tmp_path: Path, summary_of: Callable[..., Summary]
) -> None:
    """Timestamps with their zone, durations in seconds."""
    summary = summary_of({"submit_time": 90}, {"submit_time": 7})
    assert (summary.first, summary.last) == ("7.0 s", "90.0 s")
    path = tmp_path / "t.parquet"
    pl.DataFrame(
        {
            "job_id": ["a"],
            "submit_time": [datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)],
            "duration": [timedelta()],
            "queue": ["q"],
            "request.cpu": [1],
        }
    ).write_parquet(path)
    assert summarize(open_trace(path, PLUGINS)).first == "2020-01-02 03:04:05 UTC"


def test_enormous_loads_are_not_overflown(summary_of: Callable[..., Summary]) -> None:
    """Resource-time is beyond 64 bits long before anything else is."""
    huge = {"request.memory": 2**61, "duration": 10**9}
    summary = summary_of(huge, huge, huge, {"submit_time": 1})
    assert summary.resources["memory"].peak == 3 * 2**61
    assert summary.resources["memory"].mean == pytest.approx(3 * 2**61 * 10**9)


INFO = """
import sys
from pathlib import Path
from harness.cli import main
try:
    main(["trace", "info", sys.argv[1]])
except SystemExit as ended:
    assert not ended.code
print(Path("/proc/self/status").read_text())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of a process")
def test_ten_million_rows_take_little_more_than_their_columns(tmp_path: Path) -> None:
    """At most 110 bytes a row, of which 32 are its times and requests, and 15 its texts."""
    number = pl.int_range(10_000_000, eager=True)
    long = pl.DataFrame(
        {
            "job_id": "j" + number.cast(pl.String),
            "submit_time": (number * SECOND).cast(pl.Duration("us")),
            "duration": ((number % 977 + 1) * SECOND).cast(pl.Duration("us")),
            "queue": "q" + (number % 50).cast(pl.String),
            "request.cpu": (number % 16 + 1) * 1000,
            "request.memory": (number % 8 + 1) * 2**30,
        }
    )
    held = []
    for name, frame in {"short.parquet": long.head(1000), "long.parquet": long}.items():
        frame.write_parquet(tmp_path / name)
        told = subprocess.check_output([sys.executable, "-c", INFO, tmp_path / name], text=True)
        (peak,) = (line.split()[1] for line in told.splitlines() if line.startswith("VmHWM:"))
        held.append(int(peak) * 1024)
    assert held[1] - held[0] < 110 * long.height, held

"""Whole recorded logs, where they are at hand: every count, and single values read without our code."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from harness.plugins import Plugins
from harness.trace.summary import summarize
from harness.trace.trace import Trace, open_trace

HPC2N = "swf-hpc2n-2002/HPC2N-2002-2.2-cln.swf.gz"
BLUE = "swf-sdsc-blue-2000/SDSC-BLUE-2000-4.2-cln.swf.gz"
CTC = "swf-ctc-sp2-1996/CTC-SP2-1996-3.1-cln.swf.gz"
LCG = "lcg-2005/LCG.swf.gz"
PHILLY = "philly-sia/philly.csv.gz"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opened(recorded: Callable[[str], Path], readers: Plugins) -> Callable[..., Trace]:
    """The trace of a recorded log, or the test is skipped."""

    @cache
    def trace(name: str, **options: str) -> Trace:
        return open_trace(recorded(name), readers, options=options)

    return trace


@pytest.mark.parametrize(
    ("name", "records", "left_out", "capacity"),
    [
        (HPC2N, 202_871, {}, 240),
        (BLUE, 243_306, {"run time unknown (-1)": 10_744}, 1152),
        (CTC, 77_222, {}, 338),
        (LCG, 188_041, {}, 24_515),
    ],
)
def test_every_record_is_a_job_or_left_out_for_a_reason(
    opened: Callable[..., Trace], name: str, records: int, left_out: dict[str, int], capacity: int
) -> None:
    """Rows in are rows out plus rows left out."""
    trace = opened(name)
    assert (trace.rows_read, dict(trace.left_out)) == (records, left_out)
    assert trace.frame.height == records - sum(left_out.values())
    assert trace.metadata["harness.capacity.cpu"] == str(capacity * 1000)


@pytest.mark.parametrize("name", [HPC2N, BLUE, CTC, LCG])
def test_records_equal_those_of_a_plain_reading(
    opened: Callable[..., Trace], recorded: Callable[[str], Path], name: str
) -> None:
    """Every five-thousandth record, split by hand."""
    trace = opened(name)
    text = gzip.decompress(recorded(name).read_bytes()).decode()
    start = next(int(line.split(":")[1]) for line in text.splitlines() if line.startswith("; UnixStartTime"))
    records = [line for line in text.splitlines() if not line.startswith(";")]
    sample = [record.split() for record in records[::5000]]
    wanted = trace.frame.filter(pl.col("job_id").is_in([record[0] for record in sample]))
    jobs = {row["job_id"]: row for row in wanted.iter_rows(named=True)}
    checked = 0
    for record in sample:
        number, submit, wait, run, allocated, _, _, requested, limit, memory, status, user = record[:12]
        if run == "-1":
            assert number not in jobs
            continue
        job = jobs[number]
        processors = int(requested) if int(requested) > 0 else int(allocated)
        arrival = datetime.fromtimestamp(start + int(submit), UTC)
        assert job["submit_time"] == arrival
        assert job["duration"] == timedelta(seconds=int(run))
        assert job["request.cpu"] == processors * 1000
        assert (job["user"], job["status"]) == (user, int(status))
        assert job["queue"] == ("default" if record[14] == "-1" else record[14])
        if wait != "-1":
            assert job["recorded_start"] == arrival + timedelta(seconds=int(wait))
        if limit != "-1":
            assert job["requested_time"] == timedelta(seconds=int(limit))
        assert job.get("request.memory") == (int(memory) * processors * 1024 if int(memory) > 0 else None)
        checked += 1
    assert checked > 10


def test_hpc2n_is_what_is_known_of_it(opened: Callable[..., Trace]) -> None:
    """Users, groups, memory, and how many jobs outlast their request."""
    trace = opened(HPC2N)
    assert trace.frame["user"].n_unique() == 257
    assert Counter(trace.frame["group"].to_list()) == {"1": 197_980, "2": 4_886, "3": 5}
    assert trace.frame.height - trace.frame["request.memory"].null_count() == 175_359
    assert "14,817 jobs ran longer than they requested and keep their recorded run time" in trace.notes
    load_of_machine = summarize(trace).resources["cpu"].mean / 240_000
    assert load_of_machine == pytest.approx(0.60, abs=0.005)
    other = opened(HPC2N, processors="allocated")
    assert (trace.frame["request.cpu"] != other.frame["request.cpu"]).sum() == 729


def test_sdsc_blue_is_what_is_known_of_it(opened: Callable[..., Trace]) -> None:
    """Statuses, users, and the queues that rank as priorities by their recorded median waits."""
    trace = opened(BLUE, unknown_run="zero")
    assert trace.frame.height == 243_306
    assert Counter(trace.frame["status"].to_list()) == {1: 195_586, 5: 47_718, -1: 2}
    assert trace.frame["user"].n_unique() == 468
    assert (trace.frame["request.cpu"] % 8000 == 0).all()
    jobs = Counter(trace.frame["queue"].to_list())
    assert [jobs[queue] for queue in ("0", "1", "2", "3", "4")] == [74_872, 68_766, 18_812, 53_578, 18_414]
    waits = trace.frame.with_columns(wait=trace.frame["recorded_start"] - trace.frame["submit_time"])
    medians = [
        waits.filter(waits["queue"] == queue)["wait"].dt.total_seconds().median()
        for queue in ("0", "1", "2", "3", "4")
    ]
    assert medians == sorted(medians)
    assert medians[0] == 0
    assert opened(BLUE, cancelled="drop").left_out["cancelled (status 5)"] == 47_718


def test_ctc_is_what_is_known_of_it(opened: Callable[..., Trace]) -> None:
    """Users, LoadLeveler's classes, statuses, and the load that the machine was offered."""
    trace = opened(CTC)
    assert trace.frame["user"].n_unique() == 679
    assert Counter(trace.frame["queue"].to_list()) == {"1": 74_066, "3": 3_094, "2": 37, "4": 25}
    assert Counter(trace.frame["status"].to_list()) == {1: 60_553, 0: 16_669}
    assert "7,174 jobs ran longer than they requested and keep their recorded run time" in trace.notes
    assert opened(CTC, zero_length="drop").left_out == {"ran for 0 seconds": 17}
    load_of_machine = summarize(trace).resources["cpu"].mean / 338_000
    assert load_of_machine == pytest.approx(0.84, abs=0.01)


def test_lcg_is_what_is_known_of_it(opened: Callable[..., Trace]) -> None:
    """28 groups are its tenants; 521 jobs ran for 0 seconds; nobody waited, as far as is known."""
    trace = opened(LCG, tenant="group")
    queues = trace.frame["queue"].value_counts(sort=True)
    assert queues.height == 28
    assert queues["count"].to_list()[:6] == [68_893, 49_292, 25_993, 14_372, 8_477, 4_563]
    assert "recorded_start" not in trace.frame.columns
    assert trace.frame["partition"].n_unique() == 170
    assert trace.frame["user"].n_unique() == 216
    assert opened(LCG, tenant="partition").frame["queue"].n_unique() == 170
    assert opened(LCG, zero_length="drop").left_out == {"ran for 0 seconds": 521}


def test_the_philly_extract_equals_a_plain_reading(
    opened: Callable[..., Trace], recorded: Callable[[str], Path]
) -> None:
    """Every row, in order of submission, with GPUs of all its pods."""
    trace = opened(PHILLY)
    with gzip.open(recorded(PHILLY), "rt", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["timestamp"])
    assert len(rows) == trace.frame.height == 82_247
    for number, (row, job) in enumerate(zip(rows, trace.frame.iter_rows(named=True), strict=True), start=1):
        assert job["job_id"] == str(number)
        assert job["submit_time"] == datetime.fromisoformat(row["timestamp"])
        assert job["duration"] == timedelta(seconds=float(row["duration"]))
        assert job["pods"] * job["request.nvidia.com/gpu"] == int(row["num_gpus"])
        assert job["queue"] == row["cluster"]
        assert job["gang"] == (int(row["num_gpus"]) > 8)

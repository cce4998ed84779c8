"""OpenDC's Parquet: its own tasks, and those of the Workflow Trace Format."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from harness.base.errors import TraceError
from harness.plugins import Plugins
from harness.trace.trace import Trace, open_trace

TASK = {
    "id": 7, "submission_time": 1_656_604_920_000, "duration": 1_500, "cpu_count": 16,
    "cpu_capacity": 33_600.0, "mem_capacity": 100_000,
}  # fmt: skip
WORKFLOW = {
    "id": 3, "ts_submit": 2_000, "runtime": 7_184, "resource_amount_requested": 2.0, "workflow_id": 1,
    "user_id": -1,
}  # fmt: skip


def read(folder: Path, readers: Plugins, *rows: dict[str, Any]) -> Trace:
    """The trace of a file with these rows."""
    path = folder / "tasks.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return open_trace(path, readers)


def test_a_task_is_a_job(tmp_path: Path, readers: Plugins) -> None:
    """Milliseconds, cores and megabytes become the schema's units."""
    trace = read(tmp_path, readers, TASK)
    assert trace.reader == "opendc"
    assert trace.frame.to_dicts() == [
        {
            "job_id": "7",
            "submit_time": datetime(2022, 6, 30, 16, 2, tzinfo=UTC),
            "duration": timedelta(seconds=1.5),
            "queue": "default",
            "request.cpu": 16_000,
            "request.memory": 100_000_000_000,
            "cpu_capacity": 33_600.0,
        }
    ]


def test_gzipped_tasks_are_known_by_their_columns(tmp_path: Path, readers: Plugins) -> None:
    """As plain ones are."""
    expected = read(tmp_path, readers, TASK)
    packed = tmp_path / "tasks.parquet.gz"
    packed.write_bytes(gzip.compress(expected.path.read_bytes()))
    trace = open_trace(packed, readers)
    assert trace.reader == "opendc"
    assert trace.frame.equals(expected.frame)


def test_tasks_of_workflows_are_jobs(tmp_path: Path, readers: Plugins) -> None:
    """Of their users, where these are known; what is not known of a task leaves it out."""
    trace = read(
        tmp_path, readers, WORKFLOW, {**WORKFLOW, "id": 4, "user_id": 9}, {**WORKFLOW, "id": 5, "runtime": -1}
    )
    assert trace.frame.select("job_id", "queue", "request.cpu").rows() == [
        ("3", "default", 2_000),
        ("4", "9", 2_000),
    ]
    assert trace.frame["submit_time"][0] == timedelta(seconds=2)
    assert trace.left_out == {"run time unknown (-1)": 1}


def test_gpus_are_asked_for(tmp_path: Path, readers: Plugins) -> None:
    """A task without a number of GPUs asks for none."""
    rows = {**TASK, "gpu_count": 2, "gpu_capacity": 1e4}, {**TASK, "id": 8, "gpu_count": None}
    trace = read(tmp_path, readers, *rows)
    assert trace.frame["request.nvidia.com/gpu"].to_list() == [2, 0]
    assert "gpu_count becomes a request for nvidia.com/gpu, for every kind of GPU" in trace.notes


@pytest.mark.parametrize("row", [TASK, WORKFLOW])
def test_tasks_that_depend_on_others_are_counted(
    tmp_path: Path, readers: Plugins, row: dict[str, Any]
) -> None:
    """They are replayed as if they did not, which is said."""
    trace = read(tmp_path, readers, {**row, "parents": []}, {**row, "id": 9, "parents": [3]})
    (said,) = (note for note in trace.notes if "depend" in note)
    assert said.startswith("1 task depends on other tasks (parents); harness does not wait")


def test_ids_are_told_apart_up_to_64_bits(tmp_path: Path, readers: Plugins) -> None:
    """A float would take neighbouring ones for the same."""
    largest = 2**63 - 1
    rows = ({**WORKFLOW, "id": largest, "workflow_id": largest}, {**WORKFLOW, "id": largest - 1})
    trace = read(tmp_path, readers, *rows)
    assert trace.frame["job_id"].to_list() == [str(largest), str(largest - 1)]
    assert trace.frame["workflow_id"][0] == str(largest)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"duration": None}, "column duration: is Null, but must have numbers"),
        ({"duration": -1}, "row 1, duration: -1 is not a whole number from 0"),
        ({"cpu_count": float("nan")}, "row 1, cpu_count: nan is not a whole number from 0"),
        ({"mem_capacity": 2**62}, f"row 1, mem_capacity: {2**62} is not a whole number from 0"),
        ({"duration": "long"}, "column duration: is String, but must have numbers"),
    ],
)
def test_values_that_cannot_be_are_named(
    tmp_path: Path, readers: Plugins, row: dict[str, Any], message: str
) -> None:
    """By row and column."""
    with pytest.raises(TraceError, match=message):
        read(tmp_path, readers, {**TASK, **row})


def test_a_file_cut_in_half_is_refused(tmp_path: Path, readers: Plugins) -> None:
    """Whichever reader is asked for."""
    read(tmp_path, readers, TASK)
    path = tmp_path / "tasks.parquet"
    path.write_bytes(path.read_bytes()[:200])
    for reader in (None, "opendc"):
        with pytest.raises(TraceError, match="is not a whole Parquet file"):
            open_trace(path, readers, reader=reader)


@pytest.mark.parametrize(
    ("name", "tasks"), [("surf_halfyear", 194_917), ("surf_month", 68_648), ("surf_week", 6_295)]
)
def test_published_tasks_equal_a_plain_reading(
    recorded: Callable, readers: Plugins, name: str, tasks: int
) -> None:
    """Every task, of 16 processors and 100,000 MB each."""
    path = recorded(f"opendc-surf/{name}_tasks.parquet")
    trace = open_trace(path, readers)
    assert (trace.rows_read, trace.frame.height, dict(trace.left_out)) == (tasks, tasks, {})
    assert trace.frame.select("request.cpu", "request.memory").unique().rows() == [(16_000, 10**11)]
    table = pq.read_table(path)
    wanted = table.select(["id", "submission_time", "duration"]).to_pydict()
    sample = range(0, tasks, 997)
    jobs = trace.frame[list(sample)].to_dicts()
    for place, job in zip(sample, jobs, strict=True):
        assert job["job_id"] == str(wanted["id"][place])
        assert job["submit_time"] == datetime.fromtimestamp(wanted["submission_time"][place] / 1000, UTC)
        assert job["duration"] == timedelta(milliseconds=wanted["duration"][place])


def test_the_published_workflows_are_all_read(recorded: Callable, readers: Plugins) -> None:
    """10,208 tasks of a shell's workflows, of no known user."""
    trace = open_trace(recorded("opendc-surf/wtf_shell_tasks.parquet"), readers)
    assert (trace.reader, trace.rows_read, trace.frame.height) == ("opendc", 10_208, 10_208)
    assert trace.frame["queue"].unique().to_list() == ["default"]

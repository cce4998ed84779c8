"""Alibaba's DLRM instances: times that are missing, amounts and limits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from harness.base.errors import OptionError
from harness.trace.trace import open_trace

HEAD = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,"
    "memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,"
    "deletion_time\n"
)
SIZES = "12,16,1,1,25,30,120.5,240.0,640.0,800.0"
ALWAYS = f"i0,HN,app_0,{SIZES},8,,,\n"
RAN = f"i1,CN,app_1,{SIZES},-1,475.00000000000006,623.0,1623.5\n"
LEFT = f"i2,CN,app_0,{SIZES},-1,,,2000\n"
STAYED = f"i3,CN,app_0,{SIZES},-1,500,600,\n"
NEVER = f"i4,CN,app_0,{SIZES},-1,500,,700\n"


def test_an_instance_runs_from_its_scheduling_to_its_deletion(read_text: Callable) -> None:
    """What was there before begins at 0, what outlives the trace ends with its last time."""
    trace = read_text(HEAD + ALWAYS + RAN + LEFT + STAYED)
    spans = [(0, 2000), (475, 1000.5), (0, 2000), (500, 1400)]
    assert trace.frame.select("submit_time", "duration").rows() == [
        (timedelta(seconds=submit), timedelta(seconds=run)) for submit, run in spans
    ]
    assert trace.frame["recorded_start"].to_list() == [
        None, timedelta(seconds=623), None, timedelta(seconds=600)
    ]  # fmt: skip
    assert "2 instances existed before the trace: they arrive at time 0" in trace.notes
    assert "2 instances outlived the trace: they end with it" in trace.notes


def test_instances_without_a_run_are_left_out_and_counted(read_text: Callable) -> None:
    """Never scheduled; on request also those that outlived the trace."""
    text = HEAD + ALWAYS + RAN + NEVER + STAYED
    assert read_text(text).left_out == {"created, but never scheduled": 1}
    backwards = RAN.replace("1623.5", "5")
    assert read_text(HEAD + ALWAYS + backwards).left_out == {"deleted before it was scheduled": 1}
    dropped = read_text(text, outlived="drop")
    assert dropped.left_out == {"created, but never scheduled": 1, "outlived the trace (no deletion_time)": 2}
    assert dropped.frame["job_id"].to_list() == ["i1"]


def test_amounts_are_in_the_schemas_units(read_text: Callable) -> None:
    """Millicores, bytes, GPUs; disk and RDMA where they are asked for."""
    (job,) = read_text(HEAD + RAN, disk_and_rdma="request", tenant="role", priority="7").frame.to_dicts()
    assert (job["request.cpu"], job["limit.cpu"]) == (12_000, 16_000)
    assert (job["request.memory"], job["limit.memory"]) == (int(120.5 * 2**30), 240 * 2**30)
    assert job["request.nvidia.com/gpu"] == 1
    assert (job["request.ephemeral-storage"], job["request.alibabacloud.com/rdma-percent"]) == (
        640 * 2**30,
        25,
    )
    assert (job["queue"], job["priority"], job["max_instance_per_node"]) == ("CN", 7, -1)
    assert "request.ephemeral-storage" not in read_text(HEAD + RAN).frame.columns


@pytest.mark.parametrize("priority", ["2147483648", "-2147483649", "9223372036854775806"])
def test_a_priority_beyond_32_bits_is_refused(read_text: Callable, priority: str) -> None:
    """The largest and the smallest are taken."""
    with pytest.raises(OptionError, match=f"priority: {priority} is not a 32-bit integer"):
        read_text(HEAD + RAN, priority=priority)
    for most in (2**31 - 1, -(2**31)):
        assert read_text(HEAD + RAN, priority=str(most)).frame["priority"].item() == most


def test_the_published_trace_equals_a_plain_reading(
    recorded: Callable, plain_rows: Callable, readers: object
) -> None:
    """23,871 instances of 156 services; 7,280 were there before, 8,878 stayed on."""
    path = recorded("alibaba-dlrm-2025/disaggregated_DLRM_trace.csv.gz")
    trace = open_trace(path, readers)
    assert (trace.rows_read, trace.frame.height, dict(trace.left_out)) == (23_871, 23_871, {})
    assert trace.frame["queue"].n_unique() == 156
    assert (trace.frame["role"] == "HN").sum() == 7_386
    assert "7,280 instances existed before the trace: they arrive at time 0" in trace.notes
    assert "8,878 instances outlived the trace: they end with it" in trace.notes
    rows = list(plain_rows(path))
    end = max(float(row["deletion_time"] or 0) for row in rows)
    for row, job in zip(rows, trace.frame.iter_rows(named=True), strict=True):
        start = float(row["scheduled_time"] or 0)
        run = (float(row["deletion_time"] or end)) - start
        assert (job["job_id"], job["queue"]) == (row["instance_sn"], row["app_name"])
        assert abs(job["duration"].total_seconds() - run) < 1e-5
        assert job["request.cpu"] == int(row["cpu_request"]) * 1000
        assert job["request.memory"] == float(row["memory_request"]) * 2**30
        assert job["request.nvidia.com/gpu"] == int(row["gpu_request"])

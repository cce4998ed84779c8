"""Chronus' mixes: units of time, classes of jobs as priorities, gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from harness.base.errors import OptionError
from harness.trace.trace import open_trace

HEAD = (
    "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,"
    "expect_value_list,best_effort,job_type\n"
)
MIX = HEAD + (
    "0,vc_a,1,8555,5049,vgg16,747,14,1105,10,0,strict\n"
    "1,vc_b,12,832,296,alexnet,98,8,159-189,10-8,0,soft\n"
    "2,vc_a,0,14341,3621,alexnet,30,17,14341,10,1,best\n"
)


def test_times_are_minutes(read_text: Callable) -> None:
    """As Chronus' own code takes them; another unit can be given."""
    frame = read_text(MIX).frame
    assert frame["submit_time"][0] == timedelta(minutes=8555)
    assert frame["duration"].to_list() == [timedelta(minutes=minutes) for minutes in (747, 98, 30)]
    assert read_text(MIX, unit="1s").frame["duration"][0] == timedelta(seconds=747)
    with pytest.raises(OptionError, match="option unit: must be longer than 0"):
        read_text(MIX, unit="0")


def test_the_type_of_a_job_is_its_priority(read_text: Callable) -> None:
    """A number, a priority class, or nothing; strict is worth more than soft, and that more than none."""
    assert read_text(MIX).frame["priority"].to_list() == [2000, 1000, 0]
    classes = read_text(MIX, priority="class").frame
    assert classes["priority_class"].to_list() == ["strict", "soft", "best-effort"]
    assert not {"priority", "priority_class"} & set(read_text(MIX, priority="none").frame.columns)


def test_queues_gangs_and_jobs_without_gpus(read_text: Callable) -> None:
    """A job without GPUs asks for nothing, and is said to."""
    trace = read_text(MIX)
    assert trace.frame.select("queue", "request.nvidia.com/gpu", "pods", "gang").rows() == [
        ("vc_a", 1, 1, False),
        ("vc_b", 6, 2, True),
        ("vc_a", 0, 1, False),
    ]
    assert "1 job has no GPU and no request" in trace.notes


def test_malformed_lines_are_all_named(faults_of_text: Callable) -> None:
    """With column and value."""
    text = HEAD + "0,vc_a,x,8555,5049,vgg16,747,14,1105,10,0,firm\n1,,1,-1,1,m,1,1,1,1,0,best\n2,vc\n"
    assert faults_of_text(text) == [
        "line 2: num_gpu: 'x' is not a whole number",
        "line 2: job_type: 'firm' is not one of strict, soft, best",
        "line 3: user: is empty",
        "line 3: submit_time: '-1' is out of range (0 to 150,119,987)",
        "line 4: has 2 columns instead of 12",
    ]


@pytest.mark.parametrize(
    ("mix", "types"),
    [
        ("MIX1", {"strict": 21_724, "best": 9_216}),
        ("MIX2", {"soft": 18_525, "strict": 9_276, "best": 3_139}),
        ("SLO", {"strict": 30_940}),
    ],
)
def test_published_mixes_equal_a_plain_reading(
    recorded: Callable, plain_rows: Callable, readers: object, mix: str, types: dict[str, int]
) -> None:
    """30,940 jobs each; nothing is left out."""
    path = recorded(f"chronus-philly/trace_job_Philly_{mix}.csv.gz")
    trace = open_trace(path, readers)
    assert (trace.reader, trace.rows_read, dict(trace.left_out)) == ("chronus", 30_940, {})
    assert Counter(trace.frame["job_type"]) == types
    assert trace.frame["queue"].n_unique() == 11
    for row, job in zip(plain_rows(path), trace.frame.iter_rows(named=True), strict=True):
        assert (job["job_id"], job["queue"]) == (row["job_id"], row["user"])
        assert job["submit_time"] == timedelta(minutes=int(row["submit_time"]))
        assert job["duration"] == timedelta(minutes=int(row["duration"]))
        assert job["pods"] * job["request.nvidia.com/gpu"] == int(row["num_gpu"])
        assert job["expect_time_list"] == row["expect_time_list"]

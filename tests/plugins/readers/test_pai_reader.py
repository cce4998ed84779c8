"""PAI's job and task tables: tasks as pod sets, amounts in percent, and times that are missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from harness.base.errors import OptionError
from harness.trace.trace import Trace
from harness_plugins.readers.machines import read_machines

JOBS = (
    "a,i1,u1,Terminated,100.0,900.0\n"
    "b,i2,u2,Failed,200.0,300.0\n"
    "c,i3,u1,Running,300.0,\n"
    "d,i4,u1,Terminated,400.0,500.0\n"
    "e,i5,u1,Waiting,0,0\n"
    "a,i6,u3,Terminated,500.0,900.0\n"
)
TASKS = (
    "a,ps,1.0,Terminated,150.0,900.0,600.0,29.296875,,\n"
    "a,worker,2.0,Terminated,160.0,850.5,400.0,10.0,50.0,T4\n"
    "a,worker,3.0,Terminated,160.0,850.5,400.0,10.0,25.0,MISC\n"
    "b,tensorflow,1.0,Failed,210.0,300.0,600.0,1.0,200.0,V100\n"
    "c,tensorflow,1.0,Running,310.0,,600.0,1.0,100.0,V100\n"
)


@pytest.fixture
def read(read_text: Callable, tmp_path: Path) -> Callable[..., Trace]:
    """The trace of the two tables."""
    (tmp_path / "pai_task_table.csv").write_text(TASKS)

    def trace(**options: str) -> Trace:
        return read_text(JOBS, name="pai_job_table.csv", **options)

    return trace


def test_tasks_are_the_pod_sets_of_a_job(read: Callable[..., Trace]) -> None:
    """Submitted with the job, run from the first start to the last end; a second of one name has a number."""
    trace = read()
    assert trace.reader == "pai"
    job = trace.frame.filter(trace.frame["job_id"] == "a")
    names = ("pod_set", "pods", "request.cpu", "request.memory", "request.nvidia.com/gpu-milli")
    assert job.select(names).rows() == [
        ("ps", 1, 6_000, int(29.296875 * 2**30), 0),
        ("worker", 2, 4_000, 10 * 2**30, 500),
        ("worker-2", 3, 4_000, 10 * 2**30, 250),
    ]
    assert job["submit_time"].unique().to_list() == [timedelta(seconds=100)]
    assert job["duration"].unique().to_list() == [timedelta(seconds=750)]
    assert job["queue"].unique().to_list() == ["u1"]


def test_jobs_are_left_out_for_one_reason_each(read: Callable[..., Trace]) -> None:
    """Counted in jobs, not in tasks."""
    trace = read(failed="drop")
    assert trace.left_out == {
        "an earlier row has the same job name": 1,
        "submit time unknown": 1,
        "without tasks in the task table": 1,
        "not ended, or ended at an unknown time (a task has no start or no end)": 1,
        "failed": 1,
    }
    assert trace.rows_read == 6
    assert trace.frame["job_id"].unique().to_list() == ["a"]
    assert sorted(read().frame["job_id"].unique()) == ["a", "b"]


def test_gpus_whole_and_their_model(read: Callable[..., Trace]) -> None:
    """A share takes a whole GPU; a task without GPUs needs no model."""
    frame = read(gpu="count").frame
    assert frame["request.nvidia.com/gpu"].to_list() == [0, 1, 1, 2]
    models = [
        text and json.loads(text)["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for text in frame["affinity"]
    ]
    values = [model and model["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] for model in models]
    assert values == [None, ["T4"], ["MISC"], ["V100"]]
    assert "affinity" not in read(gpu_type="ignore").frame.columns


def test_the_task_table_is_named_or_beside(
    read: Callable[..., Trace], read_text: Callable, tmp_path: Path
) -> None:
    """And its fingerprint is kept."""
    named = read_text(JOBS, name="jobs.csv", reader="pai", tasks=str(tmp_path / "pai_task_table.csv"))
    assert named.frame.equals(read().frame)
    assert named.metadata["harness.also_read.pai_task_table.csv"].startswith("sha256 ")
    with pytest.raises(OptionError, match=r"jobs\.csv does not say where its task table is"):
        read_text(JOBS, name="jobs.csv", reader="pai")


def test_the_machines_become_nodes(tmp_path: Path) -> None:
    """With the model that pods need; one without GPUs has none."""
    path = tmp_path / "pai_machine_spec.csv"
    path.write_text("m1,V100,96,512,8\nm2,CPU,64,512,0\n")
    first, second = read_machines(path)
    assert dict(first.allocatable) == {"cpu": 96_000, "memory": 2**39, "nvidia.com/gpu-milli": 8_000}
    assert (first.labels, second.labels) == ({"nvidia.com/gpu.product": "V100"}, {})


def test_faults_name_the_table_and_the_line(
    read: Callable[..., Trace], faults_of_text: Callable, tmp_path: Path
) -> None:
    """Of either table."""
    assert faults_of_text("a,i1,u1\n", name="pai_job_table.csv") == ["line 1: has 3 columns instead of 6"]
    (tmp_path / "pai_task_table.csv").write_text(TASKS + "f,x,many,Failed,1,2,3,4,5,T4\n")
    assert faults_of_text(JOBS, name="pai_job_table.csv") == [
        "line 6: inst_num: 'many' is not a whole number"
    ]
    (tmp_path / "pai_task_table.csv").unlink()
    assert faults_of_text(JOBS, name="pai_job_table.csv") == ["cannot be read: No such file or directory"]

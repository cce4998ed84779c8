"""Alibaba's spot GPU trace: jobs in the published columns, and the nodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from harness_plugins.readers.machines import node_manifests, read_machines

HEAD = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
JOBS = HEAD + "239255,13,A10,20,1,1,0,2764799,HP\n437260,57,A100-SXM4-80GB,15.5,1,16,9589663,41060,Spot\n"


def test_workers_are_a_gang_of_their_organization(read_text: Callable) -> None:
    """Every worker asks for what the row says."""
    trace = read_text(JOBS)
    assert trace.reader == "spot-gpu"
    names = ("job_id", "queue", "request.cpu", "request.nvidia.com/gpu", "pods", "gang", "priority")
    assert trace.frame.select(names).rows() == [
        ("239255", "13", 20_000, 1, 1, False, 1000),
        ("437260", "57", 15_500, 1, 16, True, 0),
    ]
    assert trace.frame["submit_time"].to_list() == [timedelta(0), timedelta(seconds=9_589_663)]
    assert trace.frame["duration"].to_list() == [timedelta(seconds=2_764_799), timedelta(seconds=41_060)]


def test_the_model_is_a_node_affinity(read_text: Callable) -> None:
    """Unless it is to be ignored."""
    first = json.loads(read_text(JOBS).frame["affinity"][0])["nodeAffinity"]
    (term,) = first["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["A10"]
    assert "affinity" not in read_text(JOBS, gpu_model="ignore").frame.columns


def test_spot_is_a_priority_class(read_text: Callable) -> None:
    """Of the names that manifests would declare."""
    classes = read_text(JOBS, priority="class").frame["priority_class"].to_list()
    assert classes == ["high-priority", "spot"]


def test_malformed_lines_are_all_named(faults_of_text: Callable) -> None:
    """A job without workers is none."""
    assert faults_of_text(HEAD + "1,13,A10,20,0.5,0,0,1,LP\n") == [
        "line 2: gpu_request: '0.5' is not a whole number",
        "line 2: worker_num: '0' is out of range (1 to 1,000,000)",
        "line 2: job_type: 'LP' is not one of HP, Spot",
    ]


def test_the_published_nodes_are_all_read(recorded: Callable, plain_rows: Callable) -> None:
    """4,278 nodes; GPUs by model as the rows say."""
    path = recorded("alibaba-spot-gpu-2026/node_info_df.csv.gz")
    machines = read_machines(path)
    assert len(machines) == 4_278
    model, gpu = "nvidia.com/gpu.product", "nvidia.com/gpu"
    kinds = Counter((machine.labels[model], machine.allocatable[gpu]) for machine in machines)
    assert kinds == Counter((row["gpu_model"], int(row["gpu_capacity_num"])) for row in plain_rows(path))
    assert kinds["A10", 1] == 2_494
    assert kinds["H800", 8] == 219
    first = node_manifests(path, keep=1)[0]
    assert first["status"]["allocatable"] == {"cpu": "192", "nvidia.com/gpu": "4", "pods": "110"}

"""Openb's pod and node lists: pods as jobs, shares of GPUs, and lines that are refused."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.base.errors import OptionError, TraceError
from harness.cluster.load import load_cluster
from harness.plugins import load
from harness.trace.trace import Trace, open_trace
from harness_plugins.readers.machines import main, node_manifests, read_machines

PLUGINS = load(only=["readers"])
SHORT = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
HEAD = SHORT.replace("\n", ",gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n")
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
RAN = "a,4000,1024,2,1000,T4|P100,LS,Running,10,110,20\n"
SHARED = "b,500,0,1,460,,BE,Succeeded,11.5,12.0,12.0\n"
PENDING = "c,500,256,0,0,,Burstable,Pending,12,13,\n"


def read(folder: Path, text: str, **options: Any) -> Trace:
    """The trace of a pod list."""
    path = folder / "pods.csv"
    path.write_text(text)
    return open_trace(path, PLUGINS, options=options)


def test_a_pod_is_a_job_that_runs_from_its_scheduling_to_its_deletion(tmp_path: Path) -> None:
    """Amounts are per pod, in the schema's units; priorities follow the QoS class."""
    frame = read(tmp_path, HEAD + RAN + SHARED).frame
    assert frame.select("job_id", "queue", "priority", "request.cpu", "request.memory").rows() == [
        ("a", "LS", 1000, 4000, 2**30),
        ("b", "BE", 0, 500, 0),
    ]
    assert frame["submit_time"].to_list() == [timedelta(seconds=10), timedelta(seconds=11.5)]
    assert frame["duration"].to_list() == [timedelta(seconds=90), timedelta(0)]


def test_shares_of_gpus_are_thousandths(tmp_path: Path) -> None:
    """Two whole GPUs are 2,000, and a share is what it is; counted whole it is one."""
    text = HEAD + RAN + SHARED
    assert read(tmp_path, text).frame["request.nvidia.com/gpu-milli"].to_list() == [2000, 460]
    assert read(tmp_path, text, gpu="count").frame["request.nvidia.com/gpu"].to_list() == [2, 1]


def test_allowed_models_are_a_required_node_affinity(tmp_path: Path) -> None:
    """A pod that names none may run anywhere."""
    named, free = read(tmp_path, HEAD + RAN + SHARED).frame["affinity"].to_list()
    terms = json.loads(named)["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["T4", "P100"]}
    ]
    assert free is None


def test_pods_that_never_ran_are_left_out_and_counted(tmp_path: Path) -> None:
    """Nobody knows how long they would have run; on request they get a run time."""
    dropped = read(tmp_path, HEAD + RAN + PENDING)
    assert dropped.frame["job_id"].to_list() == ["a"]
    assert dropped.left_out == {"never ran (no scheduled_time)": 1}
    backwards = read(tmp_path, HEAD + RAN + SHARED.replace(",12.0,12.0", ",12.0,12.5"))
    assert backwards.left_out == {"deleted before it was scheduled": 1}
    kept = read(tmp_path, HEAD + RAN + PENDING, pending="keep", run="10m")
    assert kept.frame["duration"].to_list() == [timedelta(seconds=90), timedelta(minutes=10)]
    assert kept.frame["recorded_start"].to_list() == [timedelta(seconds=20), None]


def test_lists_without_times_arrive_at_once(tmp_path: Path) -> None:
    """The multigpu lists name nothing but sizes."""
    frame = read(tmp_path, SHORT + "a,1000,10,8,1000\nb,1000,10,0,0\n", run="2h").frame
    assert frame["submit_time"].to_list() == [timedelta(0)] * 2
    assert frame["duration"].to_list() == [timedelta(hours=2)] * 2
    assert frame["queue"].to_list() == ["any", "any"]
    assert "priority" not in frame.columns


def test_lists_without_times_can_arrive_at_a_rate(tmp_path: Path) -> None:
    """Evenly, in the order of the list: 7,200 an hour are one every half second."""
    opened = read(tmp_path, SHORT + "a,1,1,0,0\nb,1,1,0,0\nc,1,1,0,0\n", rate="7200")
    assert opened.frame["submit_time"].dt.total_milliseconds().to_list() == [0, 500, 1000]
    assert "the list has no times: all pods arrive evenly, 7200 an hour, in the order of the list" in "".join(
        opened.notes
    )
    with pytest.raises(OptionError, match=r"option rate: -1\.0 must not be negative"):
        read(tmp_path, SHORT + "a,1,1,0,0\n", rate="-1")
    with pytest.raises(OptionError, match="option rate: this list has times of its own"):
        read(tmp_path, HEAD + RAN, rate="1")


MANY = HEAD + "".join(
    f"p{number},1000,1,1,{100 + 100 * (number % 10)},T4,LS,Running,9,19,9\n" for number in range(40)
)


@pytest.mark.parametrize("gpus", [5, 60])
def test_a_list_can_be_filled_to_so_many_gpus(tmp_path: Path, gpus: int) -> None:
    """Any pods are left out, or come again under other names; all arrive at 0, in an order by the seed."""
    frame = read(tmp_path, MANY, fill=str(gpus), seed="3").frame
    asked = frame["request.nvidia.com/gpu-milli"].sum()
    assert 1000 * gpus - 1000 <= asked <= 1000 * gpus
    assert frame["submit_time"].to_list() == [timedelta(0)] * len(frame)
    assert frame["job_id"].is_unique().all()
    assert frame["job_id"].str.contains("-again-").any() == (gpus == 60)
    assert frame["affinity"].is_not_null().all()
    assert {"priority", "recorded_start"}.isdisjoint(frame.columns)
    names = frame["job_id"].to_list()
    assert names == read(tmp_path, MANY, fill=str(gpus), seed="3").frame["job_id"].to_list()
    assert names != read(tmp_path, MANY, fill=str(gpus), seed="4").frame["job_id"].to_list()


def test_what_cannot_be_filled_is_refused(tmp_path: Path) -> None:
    """A negative number, and a list without any GPU."""
    with pytest.raises(OptionError, match=r"option fill: -1\.0 must not be negative"):
        read(tmp_path, MANY, fill="-1")
    with pytest.raises(OptionError, match="option fill: the pods of this list request no GPU"):
        read(tmp_path, SHORT + "a,1,1,0,0\n", fill="3")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,x,1,0,0,,LS,Running,0,1,0\n", "line 2: cpu_milli: 'x' is not a whole number"),
        ("a,1,-1,0,0,,LS,Running,0,1,0\n", "line 2: memory_mib: '-1' is out of range (0 to 8,589,934,592)"),
        ("a,1,1,0,0,,LS,Running,,1,0\n", "line 2: creation_time: is empty"),
        ("a,1,1,0,0,,LS,Running,nan,1,0\n", "line 2: creation_time: 'nan' is not a number"),
        (",1,1,0,0,,LS,Running,0,1,0\n", "line 2: name: is empty"),
        ("a,1,1,0,0\n", "line 2: has 5 columns instead of 11"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    """The message has the line, the column and the value."""
    with pytest.raises(TraceError, match=re.escape(message)):
        read(tmp_path, HEAD + line)


def test_a_run_time_of_nothing_is_refused(tmp_path: Path) -> None:
    """Pods that end when they start would say nothing about a cluster."""
    with pytest.raises(OptionError, match="option run: must be longer than 0"):
        read(tmp_path, HEAD + RAN, run="0")


def nodes(folder: Path, count: int = 4) -> Path:
    """A node list: every second node has two T4."""
    path = folder / "nodes.csv.gz"
    rows = [
        f"n{number},96000,1024,{2 * (number % 2)},{'T4' if number % 2 else ''}\n" for number in range(count)
    ]
    path.write_bytes(gzip.compress((NODES + "".join(rows)).encode()))
    return path


def test_a_node_list_becomes_manifests(tmp_path: Path) -> None:
    """The model is a label, and GPUs are counted as those of pods."""
    output = tmp_path / "nodes.yaml"
    result = CliRunner().invoke(main, [str(nodes(tmp_path)), "-o", str(output)])
    assert result.exit_code == 0, result.output
    found = load_cluster(output).nodes
    assert dict(found["n1"].allocatable) == {
        "cpu": 96000,
        "memory": 2**30,
        "nvidia.com/gpu-milli": 2000,
        "pods": 110,
    }
    assert found["n1"].labels["nvidia.com/gpu.product"] == "T4"
    assert "nvidia.com/gpu-milli" not in found["n0"].allocatable


def test_nodes_can_have_devices(tmp_path: Path) -> None:
    """Their number is a label, as NVIDIA's feature discovery writes it; a node without GPUs has none."""
    output = tmp_path / "nodes.yaml"
    result = CliRunner().invoke(main, [str(nodes(tmp_path)), "--gpu", "devices", "-o", str(output)])
    assert result.exit_code == 0, result.output
    found = load_cluster(output).nodes
    assert found["n1"].allocatable["nvidia.com/gpu-milli"] == 2000
    assert found["n1"].labels["nvidia.com/gpu.count"] == "2"
    assert "nvidia.com/gpu.count" not in found["n0"].labels


def test_nodes_that_are_kept_are_evenly_spaced(tmp_path: Path) -> None:
    """So that a smaller cluster has the mix of the larger one."""
    kept = node_manifests(nodes(tmp_path, 9), keep=3)
    assert [item["metadata"]["name"] for item in kept] == ["n0", "n3", "n6"]
    with pytest.raises(OptionError, match="10 nodes cannot be kept"):
        node_manifests(nodes(tmp_path, 9), keep=10)


def test_a_pod_list_is_no_node_list(tmp_path: Path) -> None:
    """The message says what the columns should be."""
    path = tmp_path / "pods.csv"
    path.write_text(HEAD + RAN)
    result = CliRunner().invoke(main, [str(path)])
    assert result.exit_code == 2
    assert "not sn,cpu_milli,memory_mib,gpu,model" in result.output


def test_a_node_list_of_no_known_format_is_refused(tmp_path: Path) -> None:
    """By its first line."""
    path = tmp_path / "nodes.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(TraceError, match="line 1: is 'a,b', not sn,cpu_milli"):
        node_manifests(path)


ROWS = {
    "default": 8152, "cpu0": 7064, "cpu037": 7336, "cpu050": 7439, "cpu072": 7608, "cpu100": 7853,
    "cpu200": 8832, "cpu235": 9240, "cpu250": 9420, "cpu300": 10094, "gpushare20": 8152, "gpushare40": 8152,
    "gpushare60": 8152, "gpushare80": 8152, "gpushare100": 8152, "gpuspec05": 8152, "gpuspec10": 8152,
    "gpuspec20": 8152, "gpuspec25": 8152, "gpuspec33": 8152, "multigpu20": 8324, "multigpu30": 8508,
    "multigpu40": 8746, "multigpu50": 9061,
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=() if each in ("default", "cpu250", "gpuspec33") else pytest.mark.nightly)
        for each in ROWS
    ],
)
def test_published_lists_equal_a_plain_reading(recorded: Callable, plain_rows: Callable, name: str) -> None:
    """Every row of the 24 lists is a job, or counted as left out; amounts and times as they stand there."""
    path = recorded(f"openb/csv/openb_pod_list_{name}.csv.gz")
    rows = list(plain_rows(path))
    trace = open_trace(path, PLUGINS)
    assert trace.rows_read == len(rows) == ROWS[name]
    assert trace.frame.height + sum(trace.left_out.values()) == len(rows)
    ran = [row for row in rows if row.get("scheduled_time", "at once")]
    for row, job in zip(ran, trace.frame.iter_rows(named=True), strict=True):
        assert job["job_id"] == row["name"]
        assert job["request.cpu"] == int(row["cpu_milli"])
        assert job["request.memory"] == int(row["memory_mib"]) << 20
        assert job["request.nvidia.com/gpu-milli"] == int(row["num_gpu"]) * int(row["gpu_milli"])
        if "qos" in row:
            start, end = float(row["scheduled_time"]), float(row["deletion_time"])
            assert job["submit_time"] == timedelta(seconds=float(row["creation_time"]))
            assert job["duration"] == timedelta(seconds=max(0, end - start))
            assert (job["queue"], job["pod_phase"]) == (row["qos"], row["pod_phase"])
            assert (job["affinity"] is None) == (row["gpu_spec"] == "")


def test_published_nodes_are_all_read(recorded: Callable) -> None:
    """1,523 nodes with 6,212 GPUs and 125,514 CPUs; 1,213 of them have GPUs."""
    path = recorded("openb/csv/openb_node_list_all_node.csv.gz")
    machines = read_machines(path)
    assert len(machines) == 1523
    assert sum(machine.allocatable.get("nvidia.com/gpu-milli", 0) for machine in machines) == 6_212_000
    assert sum(machine.allocatable["cpu"] for machine in machines) == 125_514_000
    assert len(read_machines(recorded("openb/csv/openb_node_list_gpu_node.csv.gz"))) == 1213

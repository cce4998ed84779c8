"""Openb's pod and node lists: pods as jobs, shares of GPUs, and lines that are refused."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cluster.load import load_cluster
from harness.errors import OptionError, TraceError
from harness.plugins import load
from harness.trace.trace import Trace, open_trace
from harness_plugins.readers.openb import node_manifests
from harness_plugins.readers.openb_nodes import main

PLUGINS = load(only=["readers"])
SHORT = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
HEAD = SHORT.replace("\n", ",gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n")
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
RAN = "a,4000,1024,2,1000,T4|P100,LS,Running,10,110,20\n"
SHARED = "b,500,0,1,460,,BE,Succeeded,11.5,12.0,12.0\n"
PENDING = "c,500,256,0,0,,Burstable,Pending,12,13,\n"
LISTS = Path(__file__).parents[4] / "shared" / "traces" / "openb" / "csv"


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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,x,1,0,0,,LS,Running,0,1,0\n", "line 2: cpu_milli: 'x' is not a whole number"),
        ("a,1,-1,0,0,,LS,Running,0,1,0\n", "line 2: memory_mib: '-1' is not a whole number"),
        ("a,1,1,0,0,,LS,Running,,1,0\n", "line 2: creation_time: '' is not a number of seconds"),
        ("a,1,1,0,0,,LS,Running,nan,1,0\n", "line 2: creation_time: 'nan' is not a number of seconds"),
        (",1,1,0,0,,LS,Running,0,1,0\n", "line 2: name: is empty"),
        ("a,1,1,0,0\n", "line 2: has 5 columns instead of 11"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    """The message has the line, the column and the value."""
    with pytest.raises(TraceError, match=message.replace("(", r"\(")):
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


@pytest.mark.parametrize("name", ["default", "cpu300", "gpushare100", "gpuspec33", "multigpu50"])
def test_published_lists_are_read_whole(name: str) -> None:
    """Every row is a job, or counted as left out."""
    path = LISTS / f"openb_pod_list_{name}.csv.gz"
    if not path.is_file():
        pytest.skip("the published lists are not here: they belong in ../shared/traces/openb/csv")
    trace = open_trace(path, PLUGINS)
    assert trace.frame.height + sum(trace.left_out.values()) == trace.rows_read

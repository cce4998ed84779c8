"""MetaCentrum's extension of the Standard Workload Format: hosts, queues, requested nodes, and machines."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import OptionError, TraceError
from harness.cluster.load import load_cluster
from harness.cluster.manifests import dump_yaml
from harness.plugins import load
from harness.trace.schema import entries
from harness.trace.trace import Trace, open_trace
from harness_plugins.readers.machines import node_manifests

PLUGINS = load(only=["readers"])
MACHINES = "0\tbig\t2\t80\t1\t1048576\n1\tsmall\t40\t12\t1\t524288\n"
LOG = "metacentrum-wagap-2013/wagap-2013.swf"


def record(spec: str, processors: int, *, number: int = 1, run: int = 60, memory: int = 2**30) -> str:
    """A record of a job that requested this."""
    hosts = ",".join(["1241"] * processors)
    first = f"{number} 1356996147 5 {run} {processors} 1 1024 {processors} 7200 {memory} 1 62 1 1 -1 1 1 1"
    return f"{first} {{{hosts}}} q_2h {spec}\n"


def read(folder: Path, text: str, **options: Any) -> Trace:
    """The trace of a log."""
    path = folder / "log.swf"
    path.write_text(text)
    return open_trace(path, PLUGINS, options=options)


def with_machines(folder: Path) -> str:
    """The path of a machines file."""
    path = folder / "log.swf.machines"
    path.write_text(MACHINES)
    return str(path)


def pods(trace: Trace) -> list[tuple[int, int]]:
    """Pods of each row and millicores of each of them."""
    return trace.frame.select("pods", "request.cpu").rows()


def test_times_count_from_1970_and_queues_have_names(tmp_path: Path) -> None:
    """The log has no header that would say otherwise."""
    (job,) = read(tmp_path, record("1:ppn=4:x86_64#excl", 4)).frame.iter_rows(named=True)
    assert job["submit_time"] == datetime(2012, 12, 31, 23, 22, 27, tzinfo=UTC)
    assert job["recorded_start"] == job["submit_time"] + timedelta(seconds=5)
    assert (job["queue"], job["user"], job["recorded_hosts"]) == ("q_2h", "62", "1241")


def test_a_request_for_nodes_is_a_gang_of_pods(tmp_path: Path) -> None:
    """`nodes:ppn`; what lacks ppn asks for one processor a node, and a named host is one node."""
    text = "".join(
        record(spec, processors, number=number)
        for number, (spec, processors) in enumerate(
            [("4:ppn=12:x86_64", 48), ("2", 2), ("1:ppn=1.5", 1), ("zewura19.cerit-sc.cz:ppn=12", 12)]
        )
    )
    trace = read(tmp_path, text)
    assert pods(trace) == [(4, 12_000), (2, 1_000), (1, 1_000), (1, 12_000)]
    assert "a job has the pods that it requested, nodes x ppn of column 21 (2 jobs are gangs)" in trace.notes


def test_parts_of_a_request_are_pod_sets_of_one_job(tmp_path: Path) -> None:
    """`1:ppn=1+3:ppn=2` is a head and three workers."""
    trace = read(tmp_path, record("1:ppn=1+3:ppn=2", 7))
    assert trace.frame.select("job_id", "pod_set", "pods", "request.cpu").rows() == [
        ("1", "part-1", 1, 1_000),
        ("1", "part-2", 3, 2_000),
    ]
    assert trace.rows_read == 1


def test_a_request_that_contradicts_the_processors_is_one_pod(tmp_path: Path) -> None:
    """Counted, and never another amount than the log's."""
    trace = read(tmp_path, record("2:ppn=4", 5) + record("x:ppn=y", 3, number=2))
    assert pods(trace) == [(1, 5_000), (1, 3_000)]
    assert any(note.startswith("2 jobs requested a different number of processors") for note in trace.notes)


def test_options_of_the_other_kind_of_log_are_refused(tmp_path: Path) -> None:
    """Rather than ignored."""
    with pytest.raises(OptionError, match="option processors_per_node: this log has the number"):
        read(tmp_path, record("1", 1), processors_per_node="8")
    plain = "1 0 5 60 1 1 1024 1 7200 -1 1 62 1 1 -1 1 1 1\n"
    with pytest.raises(OptionError, match="option machines: only MetaCentrum's extension"):
        read(tmp_path, plain, machines=with_machines(tmp_path))


def test_memory_is_bytes_a_node(tmp_path: Path) -> None:
    """Unlike the KiB per processor of the format itself."""
    assert read(tmp_path, record("2:ppn=4", 8)).frame["request.memory"].to_list() == [2**30]


def test_machines_give_node_selectors_and_capacity(tmp_path: Path) -> None:
    """Of the properties only the machine's name says which nodes have it."""
    text = record("1:ppn=1:x86_64:cl_big", 1) + record("1:ppn=1:brno", 1, number=2)
    trace = read(tmp_path, text, machines=with_machines(tmp_path))
    first, second = trace.frame["node_selector"].to_list()
    assert (entries(first), entries(second)) == ((("harness/machine", "big"),), ())
    assert trace.metadata["harness.capacity.cpu"] == str((2 * 80 + 40 * 12) * 1000)
    assert trace.metadata["harness.capacity.memory"] == str(2 * 2**30 + 40 * 2**29)
    assert "node_selector" not in read(tmp_path, text).frame.columns


def test_machines_become_node_pools(tmp_path: Path) -> None:
    """Whose label the node selectors want; a part of them keeps the mix."""
    path = Path(with_machines(tmp_path))
    manifests = tmp_path / "cluster.yaml"
    manifests.write_text(dump_yaml(node_manifests(path)))
    nodes = load_cluster(manifests).nodes
    assert Counter(node.labels["harness/machine"] for node in nodes.values()) == {"big": 2, "small": 40}
    assert nodes["big-0"].allocatable["cpu"] == 80_000
    kept = node_manifests(path, keep=21)
    assert [(pool["metadata"]["name"], pool["spec"]["count"]) for pool in kept] == [("big", 1), ("small", 20)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("0\tbig\t2\t80\t1\n", "line 1: has 5 columns instead of 6"),
        ("0\tbig\t0\t80\t1\t5\n", "line 1: nodes: '0' is out of range"),
    ],
)
def test_a_malformed_machines_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    """Not the log that it belongs to."""
    path = tmp_path / "some.machines"
    path.write_text("0\tbig\t2\t80\t1\t5\n" + text if text else text)
    with pytest.raises(TraceError) as caught:
        read(tmp_path, record("1", 1), machines=str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert message.replace("is empty", "has no lines").replace("line 1", "line 2") in str(caught.value)


def test_a_log_is_as_wide_as_its_first_record(tmp_path: Path) -> None:
    """A record without the extension among others is refused by its line."""
    text = record("1", 1) + "2 1356996147 5 60 1 1 1024 1 7200 -1 1 62 1 1 -1 1 1 1\n"
    with pytest.raises(TraceError, match="line 2: has 18 columns instead of 21"):
        read(tmp_path, text)


@pytest.mark.nightly
def test_the_published_log_equals_a_plain_reading(recorded: Callable) -> None:
    """17,900 jobs, two of which never ended; queues as its source page has them."""
    log = recorded(f"{LOG}.gz")
    trace = open_trace(log, PLUGINS, options={"machines": str(recorded(f"{LOG}.machines"))})
    assert (trace.rows_read, dict(trace.left_out)) == (17_900, {"run time negative: the job never ended": 2})
    assert trace.frame["job_id"].n_unique() == 17_898
    queues = dict(trace.frame.unique("job_id")["queue"].value_counts().iter_rows())
    assert queues == {
        "q_1d": 5301, "q_2h": 4392, "q_1w": 3414, "q_2d": 1435, "q_4h": 1267, "q_4d": 1058, "q_2w": 844,
        "backfill": 104, "q_2w_plus": 68, "ops": 11, "priority_long": 4,
    }  # fmt: skip
    assert trace.frame["user"].n_unique() == 75
    assert trace.metadata["harness.capacity.cpu"] == "2176000"
    jobs = trace.frame.partition_by("job_id", as_dict=True)
    for line in gzip.decompress(log.read_bytes()).decode().splitlines()[::50]:
        words = line.split()
        if int(words[3]) < 0:
            assert (words[0],) not in jobs
            continue
        rows = jobs[(words[0],)].to_dicts()
        arrival = datetime.fromtimestamp(int(words[1]), UTC)
        assert sum(row["pods"] * row["request.cpu"] for row in rows) == int(words[4]) * 1000
        for row in rows:
            assert row["submit_time"] == arrival
            assert row["duration"] == timedelta(seconds=int(words[3]))
            assert row["recorded_start"] == arrival + timedelta(seconds=int(words[2]))
            assert row["request.memory"] == (int(words[9]) if int(words[9]) > 0 else None)
            assert set(row["recorded_hosts"].split(",")) == set(words[18].strip("{}").split(","))
            assert (row["user"], row["queue"]) == (words[11], words[19])
        if "+" not in words[20] and words[20].split(":")[0].isdigit():
            assert [row["pods"] for row in rows] == [int(words[20].split(":")[0].split("#")[0])]

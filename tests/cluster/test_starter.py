"""Manifests to start from hold what a trace needs, and nothing that a cluster would refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_environment import called

import harness
from harness.base.errors import TraceError
from harness.cluster.load import cluster_from, load_cluster
from harness.cluster.manifests import dump_yaml
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.trace.calibration import Calibration
from harness.trace.demand import CAPACITY
from harness.trace.starter import Starter, start
from harness.trace.trace import Trace, open_trace
from harness.trace.validate import cluster_faults

PLUGINS = load(only=["readers"])
GI = 2**30
ROWS: list[Mapping[str, Any]] = [
    {"submit_time": 0, "queue": "a", "request.memory": 3 * GI, "duration": 30},
    {"submit_time": 5, "queue": "b", "pods": 2, "request.cpu": 3000, "duration": 60},
    {"submit_time": 60, "queue": "c", "namespace": "lab", "duration": 1},
]


@pytest.fixture
def opened(write_trace: Callable[..., Path]) -> Callable[..., Trace]:
    """A trace of these rows."""
    return lambda *rows: open_trace(write_trace(*rows), PLUGINS)


def made(trace: Trace, **options: Any) -> Cluster:
    """The cluster, by way of its YAML."""
    return cluster_from(yaml.safe_load_all(dump_yaml(start(trace, **options).manifests())), "start")


def nominal(cluster: Cluster, resource: str) -> dict[str, int]:
    return {
        name: queue.resource_groups[0].flavors[0].resources[resource].nominal
        for name, queue in cluster.cluster_queues.items()
    }


def test_the_cluster_fits_its_trace_and_says_nothing_odd(opened: Callable[..., Trace]) -> None:
    """No warning, no unknown queue, no job that is too large; quotas are all that the nodes have."""
    trace = opened(*ROWS)
    cluster = made(trace)
    assert cluster.warnings == ()
    assert cluster_faults(trace, cluster) == []
    for resource in ("cpu", "memory"):
        assert sum(nominal(cluster, resource).values()) == cluster.capacity[resource]
    assert sorted(cluster.local_queues) == [("default", "a"), ("default", "b"), ("lab", "c")]
    assert list(cluster.namespaces) == ["default", "lab"]


def test_elastic_quotas_have_the_numbers_of_the_queues(opened: Callable[..., Trace]) -> None:
    """What is guaranteed is the nominal quota, what is allowed all; a namespace of one queue is its own."""
    cluster = made(opened(*ROWS))
    quotas = cluster.elastic_quotas
    assert {name: quotas[name].min_of("cpu") for name in "abc"} == nominal(cluster, "cpu")
    assert {quotas[name].max_of("cpu") for name in ("root", *"abc")} == {cluster.capacity["cpu"]}
    assert [quotas[name].namespaces for name in "abc"] == [("a",), ("b",), ("lab",)]


def test_the_size_keeps_the_wanted_part_busy(opened: Callable[..., Trace]) -> None:
    """Half the load is twice the nodes."""
    rows = [{"submit_time": 100 * number, "duration": 6400, "queue": "a"} for number in range(100)]
    sizes = [made(opened(*rows), load=load).capacity["cpu"] for load in (Fraction(1, 2), Fraction(1))]
    assert sizes == [136_000, 72_000]


def test_a_single_node_is_not_larger_than_the_machine(opened: Callable[..., Trace]) -> None:
    """A log of whole jobs has no nodes: one job of 336 processors on a machine of 338 needs a node of 338."""
    rows = [{"duration": 1, "request.cpu": cpu} for cpu in (336_000, 2000)]
    trace = opened(*rows)
    machine = replace(trace, metadata={**trace.metadata, f"{CAPACITY}cpu": "338000"})
    assert made(machine).capacity["cpu"] == 338_000


def test_nodes_may_be_given(opened: Callable[..., Trace]) -> None:
    """As many of them as are needed; one that is too small for a pod is refused."""
    cluster = made(opened(*ROWS), node={"cpu": 4000, "memory": 4 * GI})
    assert [dict(node.allocatable) for node in cluster.nodes.values()] == [
        {"pods": 110, "cpu": 4000, "memory": 4 * GI}
    ] * len(cluster.nodes)
    with pytest.raises(TraceError, match="memory: 2Gi is less than the 3Gi that the largest pod requests"):
        made(opened(*ROWS), node={"cpu": 4000, "memory": 2 * GI})


def test_more_nodes_than_there_can_be_are_refused(opened: Callable[..., Trace]) -> None:
    """A node of a thousandth of what was meant is a mistaken unit."""
    trace = opened({"pods": 2**28, "request.cpu": 1000, "duration": 30, "gang": False})
    with pytest.raises(TraceError, match="nodes of 1 each, but there can be at most 100,000") as error:
        start(trace, node={"cpu": 1000})
    assert "check the unit" in str(error.value.hint)


def test_quotas_are_equal_proportional_or_weighted(opened: Callable[..., Trace]) -> None:
    """Proportional to what is asked for over time; a queue without a weight has none and borrows."""
    rows = [{"queue": "a", "duration": 30}, {"queue": "b", "duration": 10, "submit_time": 20}]
    trace, node = opened(*rows), {"cpu": 8000}
    assert nominal(made(trace, node=node), "cpu") == {"a": 4000, "b": 4000}
    assert nominal(made(trace, node=node, weights="proportional"), "cpu") == {"a": 6000, "b": 2000}
    assert nominal(made(trace, node=node, weights={"b": Fraction(2)}), "cpu") == {"a": 0, "b": 8000}
    with pytest.raises(TraceError, match="weight of 'z': the trace has no such queue"):
        made(trace, weights={"z": Fraction(1)})


def test_names_that_kubernetes_refuses_are_refused(opened: Callable[..., Trace]) -> None:
    """Queues, namespaces and resources, each with its name."""
    with pytest.raises(TraceError) as caught:
        made(opened({"queue": "LS", "namespace": "a_b", "request.gpu": 1}))
    assert [fault.where for fault in caught.value.faults] == [
        "queue 'LS'",
        "namespace 'a_b'",
        "resource 'gpu'",
    ]
    assert caught.value.hint is not None
    assert "--tenants names" in caught.value.hint


def test_the_command_writes_what_a_replay_takes(
    write_trace: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stdout YAML and nothing else; the replay of renamed tenants needs the same option."""
    trace = write_trace(*({**row, "queue": f"Team_{row['queue']}"} for row in ROWS))
    grouped = ("--topology", "rack=2,example.com/block=1")
    for extra in (grouped, (*grouped, "--node-pool"), (), ("--node-pool",)):
        assert called(["cluster", "init", str(trace), "--tenants", "names", *extra]) == 0
        path = tmp_path / "start.yaml"
        path.write_text(capsys.readouterr().out)
        assert load_cluster(path).warnings == ()
    calibration = Calibration.parse(tenants="names")
    for plugin in ("none", "kueue-classic", "elasticquota"):
        run = harness.replay(
            trace, plugin=plugin, cluster=path, calibration=calibration, output=tmp_path / "results"
        )
        assert run.jobs["state"].to_list() == ["finished"] * 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--node", "cpu"), "--node 'cpu' is not understood"),
        (("--node", "cpu=lots"), "--node cpu: 'lots' is not a quantity"),
        (("--topology", "rack"), "--topology 'rack' is not understood"),
        (("--topology", "rack=0"), "--topology rack: '0' is not a number from 1"),
        (("--topology", "rack=8,rack=4"), "--topology 'rack=8,rack=4' is not understood"),
        (("--topology", "kubernetes.io/hostname=2"), "is not understood"),
        (("--quota", "none.csv"), "--quota none.csv: cannot be read: No such file"),
        (("--target-load", "0"), "the load cannot be '0'"),
        (("-o", "nowhere/x.yaml"), "nowhere/x.yaml cannot be written: No such file"),
    ],
)
def test_what_cannot_be_is_said(
    write_trace: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    says: str,
) -> None:
    """Exit code 2 and a sentence."""
    assert called(["cluster", "init", str(write_trace(*ROWS)), *arguments]) == 2
    assert says in capsys.readouterr().err


def test_nodes_are_grouped_by_the_levels_of_a_topology() -> None:
    """Five nodes: two in a rack, two racks in a block; the last ones are what is left. Pools are the same."""
    starter = Starter(5, {"cpu": 1000}, {"a": {"cpu": 5000}}, [("default", "a")], (), {"rack": 2, "block": 2})
    cluster = cluster_from(yaml.safe_load_all(dump_yaml(starter.manifests())), "start")
    where = {name: (node.labels["block"], node.labels["rack"]) for name, node in cluster.nodes.items()}
    assert list(where.values()) == [
        ("block-0", "rack-0"),
        ("block-0", "rack-0"),
        ("block-0", "rack-1"),
        ("block-0", "rack-1"),
        ("block-1", "rack-2"),
    ]
    assert [each.levels for each in cluster.topologies.values()] == [
        ("block", "rack", "kubernetes.io/hostname")
    ]
    assert [flavor.topology for flavor in cluster.flavors.values()] == list(cluster.topologies)
    pools = cluster_from(yaml.safe_load_all(dump_yaml(starter.manifests(pools=True))), "start")
    assert [(node.labels["block"], node.labels["rack"]) for node in pools.nodes.values()] == [*where.values()]


def test_weights_come_from_a_file(
    write_trace: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two columns under a head; a row that is none is named by its line."""
    trace, weights = write_trace(*ROWS), tmp_path / "weights.csv"
    command = ["cluster", "init", str(trace), "--quota", str(weights), "--node", "cpu=8,memory=8Gi"]
    for text, code in (("queue,nodes\na,1\nb,3\n", 0), ("queue,nodes\na\n", 2)):
        weights.write_text(text)
        assert called(command) == code
    captured = capsys.readouterr()
    assert "line 2: 'a' is not a queue with its weight" in captured.err
    cluster = cluster_from(yaml.safe_load_all(captured.out), "t")
    assert nominal(cluster, "cpu") == {"a": 4000, "b": 12_000, "c": 0}

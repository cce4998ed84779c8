"""Whether the queues that jobs name are there depends on what the plugin admits jobs by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from policies import Greedy
from small_clusters import local_queue, queues, quota_tree

import harness
from harness.api import read_trace
from harness.base.errors import TraceError
from harness.cluster.load import load_cluster
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.runs.request import Request

HALVES = {"a": {"cpu": "2"}, "b": {"cpu": "2"}}
KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "a"}}
DOOR = {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": "a", "namespace": "default"}}
FROM = {"harness/from": "1s"}
GONE = {"$patch": "delete"}
NOWHERE = {"spec": {"clusterQueue": "nowhere"}}
LEADS_TO = "'a' is a LocalQueue of namespace 'default' whose ClusterQueue {} does not exist (2 rows)"
NEITHER = "'a' is neither a LocalQueue of namespace 'default' nor a ClusterQueue (2 rows)"
PATCHES = pytest.mark.parametrize(
    ("patch", "fault"),
    [
        ([{**QUEUE, **GONE}], LEADS_TO.format("'a'")),
        ([{**QUEUE, **GONE}, {**DOOR, **GONE}], NEITHER),
        ([{**DOOR, **NOWHERE}], LEADS_TO.format("'nowhere'")),
    ],
    ids=["no ClusterQueue", "neither of them", "another ClusterQueue"],
)
Patch = list[dict[str, Any]]


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> Path:
    """Two jobs of queue `a` and one of `b`."""
    return write_trace({"queue": "a"}, {"queue": "b"}, {"queue": "a"})


@pytest.fixture
def patched(tmp_path: Path) -> Callable[..., Cluster]:
    """Queues and elastic quotas of the same names, and a patch of them."""

    def make(patch: Patch, *, nodes: int = 1) -> Cluster:
        path = tmp_path / "cluster.yaml"
        doors = "".join(local_queue("default", name, name) for name in HALVES)
        path.write_text(queues(HALVES, nodes=nodes) + doors + quota_tree(HALVES, {"cpu": "4"}))
        change = tmp_path / "patch.yaml"
        change.write_text(yaml.safe_dump_all(patch))
        return load_cluster(path).patched(change)

    return make


@PATCHES
@pytest.mark.parametrize(
    ("plugin", "nodes"), [("kueue-classic", 1), ("fairsharing", 0), ("none", 0), ("backfill", 0)]
)
def test_where_cluster_queues_admit_an_elastic_quota_of_that_name_is_not_enough(
    plugin: str, nodes: int, patch: Patch, fault: str, trace: Path, patched: Callable[..., Cluster]
) -> None:
    """Before anything is replayed, in the words for any queue that is not there."""
    with pytest.raises(TraceError, match="does not fit") as refused:
        Request(trace, plugin=plugin, cluster=patched(patch, nodes=nodes)).plan(load())
    assert [str(each) for each in refused.value.faults] == [f"row 1 (job 'j0'), queue: {fault}"]


@pytest.mark.parametrize("plugin", ["kueue-classic", "none"])
def test_a_cluster_without_any_capacity_is_one_fault(plugin: str, trace: Path, tmp_path: Path) -> None:
    """Otherwise, each job would be larger than the cluster, and the hint would leave out all of them."""
    path = tmp_path / "empty.yaml"
    path.write_text("{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n")
    with pytest.raises(TraceError) as refused:
        Request(trace, plugin=plugin, cluster=path).plan(load())
    assert [str(each) for each in refused.value.faults] == [
        "has neither Nodes nor quotas of ClusterQueues, so no job can start"
    ]
    assert "harness cluster init" in (refused.value.hint or "")


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_a_plugin_that_needs_queues_warns_where_there_is_none(
    plugin: str, trace: Path, tmp_path: Path
) -> None:
    """It rejects every job; a plugin of nodes alone does not warn, nor where queues come later."""
    nodes = "".join(f"---{each}" for each in queues(HALVES, nodes=1).split("---") if "kind: Node" in each)
    path = tmp_path / "nodes.yaml"
    path.write_text(nodes)
    (warning,) = Request(trace, plugin=plugin, cluster=path).plan(load()).warnings[:1]
    assert warning.startswith(
        f"{plugin} admits jobs by ClusterQueues, but the cluster has none, so {plugin} "
    )
    assert f"rejects every job. harness cluster init {trace} -o FILE writes a cluster" in warning
    assert warning.endswith("('a', 'b'). default-preemption needs nodes and no queues")
    assert not Request(trace, plugin="default-preemption", cluster=path).plan(load()).warnings
    objects = [each for each in yaml.safe_load_all(queues(HALVES)) if each]
    for each in objects:
        if each["kind"] == "ClusterQueue":
            each["metadata"]["annotations"] = FROM
    path.write_text(nodes + "---\n" + yaml.safe_dump_all(objects))
    later = Request(trace, plugin=plugin, cluster=path).plan(load()).warnings
    assert not any("the cluster has none" in each for each in later)


@PATCHES
@pytest.mark.parametrize("plugin", ["elasticquota", "auto", "none", "default-preemption", "backfill"])
def test_where_nodes_and_elastic_quotas_decide_it_is(
    plugin: str, patch: Patch, fault: str, trace: Path, patched: Callable[..., Cluster], tmp_path: Path
) -> None:
    """These admit nobody by ClusterQueues on nodes, so that every job ends."""
    run = harness.replay(trace, plugin=plugin, cluster=patched(patch), output=tmp_path / "results")
    assert run.jobs["state"].to_list() == ["finished"] * 3


def test_what_a_policy_class_goes_by_is_not_known(trace: Path, patched: Callable[..., Cluster]) -> None:
    """It is taken to know elastic quotas as well."""
    Request(trace, plugin=Greedy, cluster=patched([{**QUEUE, **GONE}])).plan(load())


def test_plugins_are_asked_one_by_one_on_one_cluster(trace: Path, patched: Callable[..., Cluster]) -> None:
    """What fits for one of them does not for another, whichever was first."""
    plugins, cluster = load(), patched([{**QUEUE, **GONE}])
    opened = read_trace(trace, plugins)
    for _ in range(2):
        Request(opened, plugin="elasticquota", cluster=cluster).plan(plugins)
        with pytest.raises(TraceError):
            Request(opened, plugin="fairsharing", cluster=cluster).plan(plugins)

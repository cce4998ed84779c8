"""Drains and partitions of nodes, as rows of a table of events, under plugins that bind pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness import Cluster, PodSet
from harness.base.errors import ClusterError
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.changes.over_time import unrolled
from harness.cluster.load import cluster_from
from harness.models.cluster import frozen
from harness.plugins import load
from harness.runs.epochs import sentence, summary
from harness.testing import Decisions, Script, replayed

PLUGINS = ["none", "default-preemption", "kueue-classic", "elasticquota", "backfill"]
WITH_BUDGETS = PLUGINS[:4]
KUEUE = "kueue.x-k8s.io/v1beta2"
CPU = [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": 80}]}]
BASE: list[dict[str, Any]] = [
    {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "any"}},
    {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": CPU}]},
    },
    {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": "default"},
        "spec": {"min": {"cpu": 80}, "max": {"cpu": 80}},
    },
    *(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": 4, "pods": 110}},
        }
        for name in ("n1", "n2")
    ),
]


def budget(least: int) -> dict[str, Any]:
    """A budget over the pods of `pods`."""
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "a"}}}
    metadata = {"name": f"at-least-{least}", "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def row(action: str, begin: int, until: int, value: str = "", name: str = "n1") -> dict[str, str]:
    """A row of a table of events."""
    times = {"time": f"{begin}s", "until": f"{until}s"}
    return {**times, "kind": "Node", "name": name, "field": action, "value": value}


def changing(*rows: dict[str, str], budgets: tuple[dict[str, Any], ...] = ()) -> Cluster:
    cluster = cluster_from([*BASE, *budgets], "test")
    return unrolled(cluster.patched(list(rows)) if rows else cluster, None)


def happened(plugin: str, jobs: Script, where: Cluster) -> Decisions:
    """A replay with a plugin."""
    spec = load().policy(plugin)

    def make(where: Any, view: Any, given: Any) -> Any:
        return spec.factory(where, view, resolve(spec.options, {}, owner=plugin))

    return replayed(make, jobs, where)


def about(decisions: Decisions, *actions: str) -> list[str]:
    """Rows such as `10 evict a EvictionByEvictionAPI`."""
    return [
        " ".join(filter(None, (str(each.time // SECOND), each.action, each.job, each.reason)))
        for each in (decisions.of(*actions) if actions else decisions.rows)
    ]


def two(seconds: int = 100, **more: Any) -> Script:
    """Two jobs, each as large as a node."""
    jobs = Script()
    for name in ("a", "b"):
        jobs.job(name, queue="q", cpu=4000, seconds=seconds, **more)
    return jobs


def pods(jobs: Script, *names: str, seconds: int = 100) -> Script:
    """Jobs of one core that budgets cover, all at the start."""
    pod = PodSet("main", 1, 1, frozen({"cpu": 1000}), labels=frozen({"app": "a"}))
    for name in names:
        jobs.job(name, queue="q", seconds=seconds, pod_sets=(pod,))
    return jobs


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_drain_evicts_who_is_there_and_nobody_comes_until_it_is_over(plugin: str) -> None:
    """The pod of the other node stays, and the evicted one waits for the uncordon."""
    found = happened(plugin, two(), changing(row("drain", 10, 30)))
    evicted = about(found, "evict")
    assert len(evicted) == 1
    job = evicted[0].split()[2]
    other = "b" if job == "a" else "a"
    assert evicted == [f"10 evict {job} EvictionByEvictionAPI"]
    assert [each.split()[0] for each in about(found, "bind") if each.split()[2] == job] in (
        ["0", "30"],
        ["0", "31"],
    )
    assert f"100 finish {other}" in about(found, "finish")


@pytest.mark.parametrize(
    "beside",
    [
        {"apiVersion": KUEUE, "kind": "Topology", "spec": {"levels": [{"nodeLabel": "rack"}]}},
        {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c"}]}},
    ],
    ids=lambda each: each["kind"],
)
def test_a_node_is_drained_where_the_whole_cluster_is_read_again(beside: dict[str, Any]) -> None:
    """Other objects may depend on the nodes; a drain is known although its times are gone by then."""
    beside["metadata"] = {"name": "x"}
    found = happened("kueue-classic", two(), changing(row("drain", 10, 30), budgets=(beside,)))
    assert [each.split()[0] for each in about(found, "evict")] == ["10"]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_drain_of_an_empty_node_is_a_cordon(plugin: str) -> None:
    """Both decide alike when nothing runs there."""
    jobs = Script().job("a", queue="q", at=15, cpu=4000, seconds=50).job("b", queue="q", at=16, cpu=4000)
    drained, cordoned = (
        about(happened(plugin, jobs, changing(row(action, 10, 30)))) for action in ("drain", "cordon")
    )
    assert drained == cordoned


@pytest.mark.parametrize("plugin", WITH_BUDGETS)
def test_a_drain_waits_for_budgets_and_asks_every_five_seconds(plugin: str) -> None:
    """At 10 s one of four pods may go. It is bound on n2 at once, so that the next one goes at 15 s."""
    jobs = pods(Script(), "a", "b", "c", "d")
    cordon = row("cordon", 0, 5, name="n2")
    where = changing(cordon, row("drain", 10, 60), budgets=(budget(3),))
    times = [each.split()[0] for each in about(happened(plugin, jobs, where), "evict")]
    assert times == ["10", "15", "20", "25"]


@pytest.mark.parametrize("plugin", WITH_BUDGETS)
def test_a_drain_ends_at_its_time_out(plugin: str) -> None:
    """A try at the very end of the time-out is none."""
    jobs = pods(Script(), "a", "b", "c", "d")
    cordon = row("cordon", 0, 5, name="n2")
    where = changing(cordon, row("drain", 10, 60, "timeout=10s"), budgets=(budget(3),))
    times = [each.split()[0] for each in about(happened(plugin, jobs, where), "evict")]
    assert times == ["10", "15"]


@pytest.mark.parametrize("plugin", WITH_BUDGETS)
def test_a_budget_that_allows_nothing_keeps_pods_and_the_replay_ends(plugin: str) -> None:
    """The eviction API refuses pods under several budgets, too, whatever these allow."""
    for budgets in ((budget(2),), (budget(0), budget(1))):
        found = happened(plugin, pods(Script(), "a", "b"), changing(row("drain", 10, 5000), budgets=budgets))
        assert about(found, "evict") == []
        assert about(found, "finish") == ["100 finish a", "100 finish b"]


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("owner", ["DaemonSet", "ReplicaSet"])
def test_a_drain_leaves_pods_of_a_daemon_set_alone(plugin: str, owner: str) -> None:
    """As `kubectl drain --ignore-daemonsets`: they run on, and a pod beside them goes at once."""
    metadata = {"name": "agent", "ownerReferences": [{"kind": owner, "name": "agent"}]}
    template = json.dumps({"metadata": metadata, "spec": {}})
    pod = PodSet("main", 1, 1, frozen({"cpu": 1000}), pod_template=template)
    jobs = Script().job("agent", queue="q", seconds=100, pod_sets=(pod,))
    jobs.job("work", queue="q", cpu=3000, seconds=100)
    found = happened(plugin, jobs, changing(row("cordon", 0, 5, name="n2"), row("drain", 10, 60)))
    gone = ["work"] if owner == "DaemonSet" else ["agent", "work"]
    assert about(found, "evict") == [f"10 evict {job} EvictionByEvictionAPI" for job in gone]
    assert [(each.job, each.node) for each in found.of("bind") if each.time >= 10 * SECOND] == [
        (job, "n2") for job in gone
    ]
    if owner == "DaemonSet":
        assert about(found, "finish")[0] == "100 finish agent"


@pytest.mark.parametrize("plugin", WITH_BUDGETS)
@pytest.mark.parametrize("gang", [False, True])
def test_a_drain_evicts_only_those_pods_of_a_job_that_are_there(plugin: str, gang: bool) -> None:
    """Two of four pods go, by name, and wait for the uncordon; a gang that is not whole makes no progress."""
    jobs = Script().job("a", queue="q", pods=4, cpu=2000, seconds=100, gang=gang)
    found = happened(plugin, jobs, changing(row("drain", 10, 30)))
    there = sorted(each.pod or "" for each in found.of("bind") if not each.time and each.node == "n1")
    assert len(there) == 2
    assert [(each.time // SECOND, each.pod) for each in found.of("evict")] == [(10, pod) for pod in there]
    again = [(each.time // SECOND, each.pod, each.node) for each in found.of("bind") if each.time]
    assert again == [(31, f"{pod}-r1", "n1") for pod in there]
    assert about(found, "finish")[-1] == "131 finish a"
    idle = sum(
        each.amounts["cpu"] * (each.end - each.start) for each in found.stints if each.state == "waiting"
    )
    assert idle == (2 * 2000 * 21 * SECOND if gang else 0)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_partition_within_the_grace_period_costs_nothing(plugin: str) -> None:
    """Not even another decision."""
    jobs = two(seconds=500)
    without = about(happened(plugin, jobs, changing()))
    assert about(happened(plugin, jobs, changing(row("partition", 10, 55)))) == without


@pytest.mark.parametrize("plugin", PLUGINS)
def test_pods_of_a_partitioned_node_are_evicted_after_the_grace_period_and_300_seconds(plugin: str) -> None:
    """A node that is back before that has lost nothing."""
    jobs = two(seconds=500)
    found = happened(plugin, jobs, changing(row("partition", 10, 2000)))
    assert [each.split()[0] for each in about(found, "evict")] == ["360"]
    assert about(found, "evict")[0].endswith("DeletionByTaintManager")
    earlier = happened(plugin, jobs, changing(row("partition", 10, 2000, "grace=40s")))
    assert [each.split()[0] for each in about(earlier, "evict")] == ["350"]
    back = happened(plugin, jobs, changing(row("partition", 10, 350)))
    assert about(back, "evict") == []
    assert about(back, "finish") == ["500 finish a", "500 finish b"]


@pytest.mark.parametrize("seconds", [600, None])
def test_pods_that_tolerate_a_partition_for_longer_stay_longer(seconds: int | None) -> None:
    """Their own toleration counts in place of the one from admission."""
    own = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    own |= {} if seconds is None else {"tolerationSeconds": seconds}  # type: ignore[dict-item]
    pod = PodSet("main", 1, 1, frozen({"cpu": 4000}), tolerations=json.dumps([own]))
    jobs = Script().job("a", queue="q", seconds=1000, pod_sets=(pod,))
    jobs.job("b", queue="q", seconds=1000, pod_sets=(pod,))
    found = happened("default-preemption", jobs, changing(row("partition", 10, 5000)))
    assert [each.split()[0] for each in about(found, "evict")] == ([] if seconds is None else ["660"])


@pytest.mark.parametrize(
    ("action", "value"), [("drain", "10m"), ("drain", "timeout="), ("partition", "timeout=1m")]
)
def test_a_wrong_value_is_refused_with_its_cell(action: str, value: str) -> None:
    """The message has the form that the value should have."""
    with pytest.raises(ClusterError, match=r"row 1, column value.*must be empty, or have the form"):
        changing(row(action, 10, 20, value))


def test_people_read_the_time_out_of_a_drain() -> None:
    """It is no number of microseconds, and a drain without one says so."""
    edit = {"kind": "Node", "name": "n1", "how": "changed", "fields": {"drain": [None, "600000000"]}}
    assert sentence(edit) == "Node n1: drain none -> 10m00s"
    assert sentence({**edit, "fields": {"drain": ["0", None]}}) == "Node n1: drain without a time-out -> none"
    assert summary([{"edits": [edit]}]) == "1 (1 drain)"

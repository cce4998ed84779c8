"""What the pages of clusters and traces promise to refuse or to name, each with a world that asks for it.

The words of a page stand beside its world: a promise that is reworded or dropped shows here as well as one
that is broken.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from doc_pages import ROOT

import harness as package
from harness.base.errors import ClusterError, TraceError
from harness.cluster.load import cluster_from, load_cluster
from harness.plugins import load
from harness.trace.trace import open_trace
from harness.trace.warnings import unreached

KUEUE = "kueue.x-k8s.io/v1beta2"
PREFIX = "quota.scheduling.koordinator.sh/"


def words(page: str) -> str:
    """A page's text with its lines joined."""
    return re.sub(r"\s+", " ", (ROOT / "docs" / page).read_text(encoding="utf-8"))


CLUSTER_PAGE, TRACES_PAGE = words("cluster.md"), words("traces.md")
REFUSED, WARNED = CLUSTER_PAGE.split("## What is refused")[1].split("## What is warned about")
WARNED = WARNED.split("## Manifests to start from")[0]


def of(kind: str, text: str = "{}", name: str = "a", version: str = KUEUE, **metadata: Any) -> dict[str, Any]:
    """An object whose spec is the text."""
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": yaml.safe_load(text),
    }


def queue(text: str, name: str = "a") -> dict[str, Any]:
    """A ClusterQueue."""
    return of("ClusterQueue", text, name)


def offer(limits: str, flavors: str = "[f]", resources: str = "[cpu]") -> str:
    """A queue's resource groups: one flavor with limits on cpu."""
    return (
        f"resourceGroups: [{{coveredResources: {resources}, flavors: "
        f"[{{name: {flavors.strip('[]')}, resources: [{{name: cpu, {limits}}}]}}]}}]"
    )


def tree(text: str) -> dict[str, Any]:
    """An ElasticQuotaTree."""
    metadata = {"namespace": "kube-system"}
    return of("ElasticQuotaTree", text, "tree", "scheduling.sigs.k8s.io/v1beta1", **metadata)


def elastic(
    name: str, text: str = "{}", version: str = "scheduling.x-k8s.io/v1alpha1", **own: Any
) -> dict[str, Any]:
    """An ElasticQuota; `labels` and `annotations` are Koordinator's."""
    own = {key: {PREFIX + each: value for each, value in table.items()} for key, table in own.items()}
    koordinator = "scheduling.sigs.k8s.io/v1alpha1" if own else version
    return of("ElasticQuota", text, name, koordinator, namespace=name, **own)


def node(name: str = "n", **labels: str) -> dict[str, Any]:
    """A Node of 4 cores."""
    return {**of("Node", name=name, version="v1", labels=labels), "status": {"allocatable": {"cpu": 4}}}


def priority_class(value: int, name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name}
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata}
    return {**head, "value": value, **more}


SLICED = {
    **node(**{"nvidia.com/gpu.product": "NVIDIA-A30", "nvidia.com/gpu.count": "1"}),
    "status": {"allocatable": {"nvidia.com/mig-1g.6gb": 5}},
}
FLAVOR = of("ResourceFlavor", name="f")
CONFIGURATION = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
POOL = {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": "p"}}
USAGE = "{admissionMode: UsageBasedAdmissionFairSharing}"
BOTH = "{cpu: 1, memory: 1}"
PARENT = {"is-parent": "true"}


@pytest.mark.parametrize(
    ("promise", "manifests", "fault"),
    [
        (
            "that the node's GPUs cannot be cut into",
            [SLICED],
            "these slices need 2 A30 GPUs, but the node has 1 for slices",
        ),
        ("a value of the wrong type", [{**POOL, "spec": {"count": "x"}}], "spec.count: must be a whole"),
        ("a negative quantity", [FLAVOR, queue(offer("nominalQuota: -1"))], "-1 must not be negative"),
        ("an object that appears twice", [FLAVOR, FLAVOR], "ResourceFlavor f: is given twice"),
        (
            "a second global default",
            [priority_class(1, "a", globalDefault=True), priority_class(2, "b", globalDefault=True)],
            "PriorityClass b: globalDefault",
        ),
        (
            "a priority above 1,000,000,000 in a class that is not a system class",
            [priority_class(1_000_000_001, "a")],
            "PriorityClass a: value",
        ),
        (
            "a flavor or a resource that is listed twice in a queue",
            [
                FLAVOR,
                queue(
                    "resourceGroups: [{coveredResources: [cpu], flavors: ["
                    "{name: f, resources: [{name: cpu, nominalQuota: 1}]}, "
                    "{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}]"
                ),
            ],
            "flavor f is listed twice",
        ),
        (
            "a resource that is listed twice in a queue",
            [FLAVOR, queue(offer("nominalQuota: 1", resources="[cpu, cpu]"))],
            "cpu is covered twice",
        ),
        (
            "a flavor whose resources are not the covered resources, in the same order",
            [FLAVOR, queue(offer("nominalQuota: 1", resources="[cpu, memory]"))],
            "must list the covered resources in their order: cpu, memory; not cpu",
        ),
        (
            "a borrowing or lending limit in a queue without a cohort",
            [FLAVOR, queue(offer("nominalQuota: 1, borrowingLimit: 1"))],
            "borrowingLimit: must be left out unless a cohort is set",
        ),
        (
            "or in a cohort without a parent",
            [FLAVOR, of("Cohort", offer("nominalQuota: 1, borrowingLimit: 1"))],
            "borrowingLimit: must be left out unless a parent is set",
        ),
        (
            "a lending limit above the nominal quota of a queue",
            [FLAVOR, queue("cohortName: c\n" + offer("nominalQuota: 1, lendingLimit: 2"))],
            "lendingLimit: must not be more than nominalQuota",
        ),
        (
            "`borrowWithinCohort` without `reclaimWithinCohort`",
            [queue("preemption: {borrowWithinCohort: {policy: LowerPriority}}")],
            "requires that reclaimWithinCohort is not Never",
        ),
        (
            "a `preference` without `TryNextFlavor`",
            [queue("flavorFungibility: {preference: BorrowingOverPreemption}")],
            "needs whenCanBorrow and whenCanPreempt to be TryNextFlavor",
        ),
        ("a weight below zero", [queue("fairSharing: {weight: -1}")], "spec.fairSharing.weight: "),
        (
            "a duration that Go cannot read",
            [{**CONFIGURATION, "admissionFairSharing": {"usageHalfLifeTime": "1 day"}}],
            "admissionFairSharing.usageHalfLifeTime: ",
        ),
        (
            "an unknown `admissionMode`",
            [queue("admissionScope: {admissionMode: Fair}")],
            "spec.admissionScope.admissionMode: 'Fair' is not one of",
        ),
        ("a Topology that has no levels", [of("Topology", "levels: []")], "must name at least one level"),
        (
            "or has the same level twice",
            [of("Topology", "levels: [{nodeLabel: x}, {nodeLabel: x}]")],
            "levels[1].nodeLabel: x is already a level",
        ),
        ("a field name from a different apiVersion", [queue("cohort: c")], "ClusterQueue a: spec.cohort: "),
        ("an ElasticQuotaTree without a root", [tree("{}")], "spec.root: "),
        (
            "and a second ElasticQuotaTree",
            [tree("root: {name: r}"), tree("root: {name: r}")],
            "is a second tree",
        ),
        (
            "a name that is missing or appears twice",
            [tree("root: {name: r, children: [{name: x}, {name: x}, {min: {cpu: 1}}]}")],
            "children[1].name: 'x' is already the name of spec.root.children[0]",
        ),
        ("a name that is missing", [tree("root: {name: r, children: [{}]}")], "children[0].name: is missing"),
        (
            "a `min` that is greater than the `max`",
            [elastic("q", "{min: {cpu: 2}, max: {cpu: 1}}")],
            "2 is above max",
        ),
        (
            "children whose `min`s add up to more than the `min` of their parent",
            [tree("root: {name: r, min: {cpu: 1}, children: [{name: x, min: {cpu: 2}}]}")],
            "is below the sum of its children, which is 2",
        ),
        (
            "in a tree, a child whose `max` is greater",
            [tree("root: {name: r, max: {cpu: 1}, children: [{name: x, max: {cpu: 2}}]}")],
            "2 exceeds the max of r, which is 1",
        ),
        (
            "a namespace that two quotas list",
            [tree("root: {name: r, children: [{name: x, namespaces: [one]}, {name: y, namespaces: [one]}]}")],
            "'one' already belongs to x",
        ),
        (
            "a namespace that is listed twice",
            [tree("root: {name: r, children: [{name: x, namespaces: [one, one]}]}")],
            "namespaces: ",
        ),
        (
            "a parent that lists namespaces",
            [tree("root: {name: r, children: [{name: x, namespaces: [one], children: [{name: y}]}]}")],
            "belong to leaves",
        ),
        (
            "a second flat quota in the same namespace",
            [elastic("q"), {**elastic("q"), "metadata": {"name": "other", "namespace": "q"}}],
            "ElasticQuota q/other",
        ),
        ("a parent that does not exist", [elastic("q", labels={"parent": "x"})], "no ElasticQuota 'x'"),
        (
            "is not labelled `is-parent`",
            [elastic("q", labels={"parent": "p"}), elastic("p", labels={"parent": ""})],
            "p is not marked as a parent",
        ),
        ("or is its own ancestor", [elastic("q", labels={"parent": "q", **PARENT})], "q is above itself"),
        (
            "a `tree-id` that differs from the parent's `tree-id`",
            [
                elastic("p", labels={"tree-id": "t", **PARENT}),
                elastic("q", labels={"parent": "p", "tree-id": "u"}),
            ],
            "'u' differs from 't', the tree of its parent p",
        ),
        (
            "a `min` for a resource that is not in `max`",
            [elastic("q", "{min: {cpu: 1}, max: {memory: 1}}", labels={"is-parent": "false"})],
            "ElasticQuota q/q: spec.min.cpu: ",
        ),
        (
            "negative weights",
            [elastic("q", annotations={"shared-weight": '{"cpu": -1}'})],
            "cpu: -1 must not be negative",
        ),
        (
            "annotations whose JSON does not have the expected form",
            [elastic("q", annotations={"namespaces": "[1]"})],
            "must be a JSON list of strings, not [1]",
        ),
    ],
)
def test_what_is_said_to_be_refused_is(promise: str, manifests: list[Any], fault: str) -> None:
    """With the object and the field."""
    assert promise in REFUSED
    with pytest.raises(ClusterError) as caught:
        cluster_from(manifests, "test")
    found = [str(each) for each in caught.value.faults]
    assert any(fault in each for each in found), found
    assert all(each.startswith("document ") for each in found)


@pytest.mark.parametrize(
    ("promise", "content"),
    [
        ("a file that is not text", b"\xff\xfe\x00\x01"),
        ("a damaged gzip file", gzip.compress(b"a: 1" * 99, mtime=0)[:-5]),
        (
            "a packed file that is far larger after unpacking than any packed text could be",
            gzip.compress(b"\n" * (1 << 20), mtime=0) * 100,
        ),
    ],
)
def test_a_file_that_cannot_be_text_is_refused_by_its_name(
    promise: str, content: bytes, tmp_path: Path
) -> None:
    """Whatever it is called."""
    assert promise in REFUSED
    path = tmp_path / "cluster.yaml"
    path.write_bytes(content)
    with pytest.raises(ClusterError, match=re.escape(str(path))):
        load_cluster(path)


LEVELS = of("Topology", "levels: [{nodeLabel: block}, {nodeLabel: rack}]", "t")
ON_LEVELS = of("ResourceFlavor", "topologyName: t", "f")
POD = {**of("Pod", "{nodeName: gone, containers: [{name: c}]}", "p", "v1"), "status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("promise", "manifests", "warning"),
    [
        (
            "every unknown field, such as a misspelt one",
            [queue("{queueingStrategie: StrictFIFO}")],
            "spec.queueingStrategie is not modelled: no such field is known; did you mean",
        ),
        (
            "every kind that harness does not read, with the number of its objects",
            [of("Deployment", name=name, version="apps/v1") for name in "ab"],
            "Deployment (apps/v1): 2 objects are not read",
        ),
        ("a Pod on a node that no manifest describes", [node(), POD], "Pod default/p: "),
        (
            "nodes that lack the label of a level of their flavor's topology",
            [LEVELS, ON_LEVELS, node("a", block="b", rack="r"), node("c", block="b")],
            "Node c: lacks the label rack",
        ),
        (
            "a flavor without any node that has all of these labels",
            [LEVELS, ON_LEVELS, node("c", block="b")],
            "ResourceFlavor f: no node has all labels of the flavor and of Topology t",
        ),
        (
            "levels of a Topology that are not nested",
            [LEVELS, ON_LEVELS, node("a", block="b", rack="r"), node("c", block="d", rack="r")],
            "levels do not nest, so r counts as a separate domain in each block",
        ),
        (
            "a LocalQueue whose ClusterQueue does not exist",
            [of("LocalQueue", "clusterQueue: gone", namespace="x")],
            "LocalQueue x/a: there is no ClusterQueue gone",
        ),
        (
            "a PodDisruptionBudget without a selector",
            [of("PodDisruptionBudget", "minAvailable: 1", version="policy/v1")],
            "PodDisruptionBudget default/a: ",
        ),
        (
            "an elastic quota whose `max` does not name cpu or memory",
            [elastic("q", "{max: {cpu: 1}}")],
            "max does not name memory",
        ),
        (
            "`min`s that add up to more than the nodes have",
            [node(), elastic("q", "{min: {cpu: 5}, max: {cpu: 5, memory: 1}}")],
            "but the nodes have 4",
        ),
        (
            "a root whose `min` and `max` differ",
            [tree(f"root: {{name: r, min: {BOTH}, max: {{cpu: 2, memory: 1}}, children: [{{name: x}}]}}")],
            "min and max of the root differ",
        ),
        (
            "the `attributes` and the resources `kube-queue/...` of a tree",
            [tree("root: {name: r, attributes: {a: b}, children: [{name: x}]}")],
            "spec.root.attributes is not modelled",
        ),
        (
            "the resources `kube-queue/...` of a tree",
            [tree("root: {name: r, max: {kube-queue/max-jobs: 1}, children: [{name: x}]}")],
            "spec.root.max.kube-queue/max-jobs is not modelled",
        ),
        (
            "each ElasticQuota that an ElasticQuotaTree replaces",
            [tree("root: {name: r, children: [{name: x}]}"), elastic("q")],
            "ElasticQuota q: is left out, because the ElasticQuotaTree replaces it",
        ),
        ("a tree without a quota below its root", [tree("root: {name: r}")], "ElasticQuotaTree tree: "),
        (
            "Koordinator's own quotas",
            [elastic("koordinator-root-quota", labels=PARENT)],
            "ElasticQuota koordinator-root-quota: ",
        ),
        (
            "labels `is-parent` and `allow-lent-resource` whose value is neither `true` nor `false`",
            [elastic("q", f"{{max: {BOTH}}}", labels={"is-parent": "yes"})],
            "is-parent is 'yes', which counts as \"false\"",
        ),
        (
            "`allow-lent-resource` whose value is neither `true` nor `false`",
            [elastic("q", f"{{max: {BOTH}}}", labels={"allow-lent-resource": "no"})],
            "allow-lent-resource is 'no', which counts as \"true\"",
        ),
        (
            "labels and annotations of Koordinator that are not modelled",
            [elastic("q", f"{{max: {BOTH}}}", labels={"novel": "yes"})],
            f"metadata.labels.{PREFIX}novel is not modelled",
        ),
        (
            "quotas without Koordinator's labels in a cluster where other quotas have them",
            [
                elastic("q", f"{{max: {BOTH}}}", labels={"is-parent": "false"}),
                elastic("p", f"{{max: {BOTH}}}", "scheduling.sigs.k8s.io/v1alpha1"),
            ],
            "elastic quota p: has none of Koordinator's labels",
        ),
        (
            "trees that share nodes",
            [
                elastic("q", f"{{max: {BOTH}}}", labels={"tree-id": "t", **PARENT}),
                elastic("p", f"{{max: {BOTH}}}", labels={"is-parent": "false"}),
            ],
            "elastic quota q: is a tree of its own, and shares the nodes of all trees unless multiQuotaTree",
        ),
        (
            "quirks of Koordinator's code",
            [
                node(),
                priority_class(5, "high"),
                *(elastic(each, f"{{max: {BOTH}}}", labels={"is-parent": "false"}) for each in "pq"),
            ],
            "elastic quota p, q: may still refuse a pod after other pods were evicted for it",
        ),
        (
            "a queue that should order jobs by usage, if Kueue's Configuration has no `admissionFairSharing`",
            [queue(f"admissionScope: {USAGE}")],
            "spec.admissionScope has no effect without admissionFairSharing",
        ),
        (
            "or no half-life",
            [
                queue(f"admissionScope: {USAGE}"),
                {**CONFIGURATION, "admissionFairSharing": {"usageSamplingInterval": "1m"}},
            ],
            "usageHalfLifeTime is 0",
        ),
        (
            "a queue with a flavor that has no ResourceFlavor",
            [queue(offer("nominalQuota: 1"))],
            "ClusterQueue a: ",
        ),
        (
            "a flavor whose `topologyName` is not in the manifests",
            [of("ResourceFlavor", "topologyName: t")],
            "there is no Topology t",
        ),
        (
            "a priority class and a workload priority class that have the same name but different values",
            [priority_class(9, "x"), {**of("WorkloadPriorityClass", name="x"), "value": 5, "spec": None}],
            "a PriorityClass of that name has the value 9",
        ),
    ],
)
def test_what_is_said_to_be_warned_of_is(promise: str, manifests: list[Any], warning: str) -> None:
    """A warning that names the object; nothing is refused."""
    assert promise in WARNED
    found = cluster_from(manifests, "test").warnings
    assert any(warning in each for each in found), found


GROUP = {"pod-group.scheduling.sigs.k8s.io": "g"}
PLACED = of("PodGroup", "minMember: 3", "g", "scheduling.x-k8s.io/v1alpha1", namespace="default")
MEMBER = {"labels": [{"key": key, "value": value} for key, value in GROUP.items()]}


@pytest.mark.parametrize(
    ("promise", "rows", "manifests", "warning"),
    [
        (
            ("a pod group that no pod names"),
            [{}],
            [PLACED],
            "no pod of the trace or the manifests names this group",
        ),
        ("that has no size", [MEMBER], [], "there is no such PodGroup, and no label"),
        ("that has fewer pods than its size", [MEMBER], [PLACED], "has fewer pods in the trace"),
        (
            "or whose size is smaller than a gang that names it",
            [{**MEMBER, "pods": 4, "gang": True}],
            [PLACED],
            "may be placed in part",
        ),
        (
            "a taint of nodes or of a flavor that no job of the trace tolerates",
            [{}],
            [
                {**node(), "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}},
                of("ResourceFlavor", "nodeTaints: [{key: y, effect: NoSchedule}]", "f"),
            ],
            "ResourceFlavor f: no job tolerates its taint y:NoSchedule, so no job uses this flavor",
        ),
        (
            "a taint of nodes",
            [{}],
            [{**node(), "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}],
            "taint x:NoSchedule of the only node: no job tolerates it, so no job runs there",
        ),
    ],
)
def test_what_is_said_to_be_warned_of_a_trace_is(
    promise: str,
    rows: list[dict[str, Any]],
    manifests: list[Any],
    warning: str,
    write_trace: Callable[..., Path],
) -> None:
    """Before a replay, for what a trace and manifests say together."""
    assert promise in WARNED
    found = list(unreached(open_trace(write_trace(*rows), load()), cluster_from(manifests, "test")))
    assert any(warning in each for each in found), found


def test_a_job_of_a_local_queue_that_leads_nowhere_is_a_fault(write_trace: Callable[..., Path]) -> None:
    """The queue itself is only warned of, since dumps have such."""
    assert (
        "a LocalQueue whose ClusterQueue does not exist; this is an error if a job of the trace names the "
        "LocalQueue" in WARNED
    )
    where = cluster_from(
        [
            FLAVOR,
            queue(offer("nominalQuota: 4")),
            of("LocalQueue", "clusterQueue: gone", "l", namespace="default"),
        ],
        "test",
    )
    with pytest.raises(TraceError, match=r"row 1 \(job 'j0'\), queue: "):
        open_trace(write_trace({"queue": "l"}), load(), cluster=where)


@pytest.mark.parametrize("value", [None, "", [], {}])
def test_a_field_that_is_empty_is_not_warned_of(value: object) -> None:
    """Nor one that has the value that is assumed anyway."""
    assert "harness does not warn about a field that is empty or has the assumed value" in WARNED
    spec = {"nodeName": "n", "containers": [{"name": "c"}], "schedulingGates": value, "resourceClaims": value}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    assert cluster_from([node(), pod], "test").warnings == ()


@pytest.mark.parametrize(
    ("promise", "row", "fault"),
    [
        ("| `job_id` | string | refused |", {"job_id": None}, "job_id: is missing"),
        ("| `submit_time` | timestamp[us] or duration[us] | refused |", {"submit_time": None}, "is missing"),
        ("| `duration` | duration[us] | refused |", {"duration": None}, "duration: is missing"),
        ("| `queue` | string | refused |", {"queue": None}, "queue: is missing"),
        ("`request.pods` is reserved", {"request.pods": 1}, "request.pods: "),
        ("harness refuses column names that begin with `harness.`", {"harness.x": "y"}, "harness.x: "),
        ("No time or duration may exceed 100 years", {"duration": 101 * 366 * 86_400}, "100 years"),
        ("the sums that a replay computes must fit 64 bits", {"request.gpu": 2**62, "pods": 9}, "64 bits"),
        (
            "A row has at most one of `topology_required`",
            {"topology_required": "r", "topology_preferred": "r"},
            "topology_",
        ),
        ("and this column, or neither", {"topology_required": "r", "topology_slice": "r"}, "topology_slice"),
        ("| `PreemptLowerPriority` or `Never` |", {"preemption_policy": "Sometimes"}, "is not one of"),
    ],
)
def test_what_the_schema_refuses_is_named_with_its_row(
    promise: str, row: dict[str, Any], fault: str, write_trace: Callable[..., Path]
) -> None:
    """By row, job, column and value."""
    assert promise in TRACES_PAGE
    with pytest.raises(TraceError) as caught:
        open_trace(write_trace({}, row), load())
    assert any(fault in str(each) for each in caught.value.faults), caught.value.faults


def test_rows_of_one_job_agree(write_trace: Callable[..., Path]) -> None:
    """In all that does not belong to a pod set; names are unique with it."""
    assert "Rows of one job must agree in all columns except those of a pod set" in TRACES_PAGE
    leader = {"job_id": "a", "pod_set": "leader"}
    with pytest.raises(TraceError, match="duration"):
        open_trace(write_trace(leader, {**leader, "pod_set": "w", "duration": 7}), load())
    with pytest.raises(TraceError, match="job_id"):
        open_trace(write_trace(leader, leader), load())
    assert (
        open_trace(write_trace(leader, {**leader, "pod_set": "w", "request.cpu": 7}), load()).frame.height
        == 2
    )


def test_further_columns_are_kept(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """Also those that are called like a column of the results."""
    assert "harness keeps further columns, and copies them to the run's `jobs.parquet`" in TRACES_PAGE
    run = package.replay(write_trace({"team": "x", "state": "y"}), plugin="none", output=tmp_path / "results")
    assert run.jobs["team"].to_list() == ["x"]
    assert run.jobs["trace.state"].to_list() == ["y"]
    assert run.jobs["state"].to_list() == ["finished"]

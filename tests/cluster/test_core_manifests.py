"""Rules of reading Kubernetes' own kinds and node pools."""

from __future__ import annotations

from typing import Any

import pytest

from harness.base.errors import ClusterError
from harness.cluster.kinds.core import unpooled
from harness.cluster.kinds.selectors import Taint
from harness.cluster.load import cluster_from
from harness.cluster.model import Node, PriorityClass

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n1",
        "labels": {"zone": "a"},
        "annotations": {"x": "y"},
        "uid": "1",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubelet"}],
    },
    "spec": {
        "podCIDR": "10.0.0.0/24",
        "podCIDRs": ["10.0.0.0/24"],
        "providerID": "aws:///i-1",
        "unschedulable": True,
        "taints": [
            {"key": "gpu", "value": "yes", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
        ],
    },
    "status": {
        "capacity": {"cpu": "8", "memory": "64Gi"},
        "allocatable": {"cpu": "7910m", "memory": "62Gi", "nvidia.com/gpu": 4},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def faults(*manifests: dict[str, Any]) -> list[str]:
    """All faults of some manifests."""
    with pytest.raises(ClusterError) as caught:
        cluster_from(manifests, "test")
    return [str(fault) for fault in caught.value.faults]


def pool(**spec: Any) -> dict[str, Any]:
    """A node pool of two small nodes, with other fields of its spec."""
    template = {"allocatable": {"cpu": 1}}
    return {
        "apiVersion": "harness/v1",
        "kind": "NodePool",
        "metadata": {"name": "p"},
        "spec": {"count": 2, "template": template} | spec,
    }


def priority_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    } | fields


def test_node_is_read_as_kubectl_prints_it() -> None:
    """Allocatable before capacity; what changes no decision raises no warning."""
    cluster = cluster_from([NODE], "test")
    assert cluster.nodes["n1"] == Node(
        "n1",
        {"cpu": 7910, "memory": 62 * 2**30, "nvidia.com/gpu": 4},
        {"zone": "a"},
        (Taint("gpu", "yes", "NoSchedule"),),
        unschedulable=True,
    )
    assert cluster.warnings == ()
    assert cluster.capacity == {"cpu": 7910, "memory": 62 * 2**30, "nvidia.com/gpu": 4}


def test_node_without_allocatable_has_its_capacity() -> None:
    """A manifest written by hand may give only one of the two, but must give one."""
    node = NODE | {"status": {"capacity": {"cpu": 8}}}
    assert cluster_from([node], "test").nodes["n1"].allocatable == {"cpu": 8000}
    assert faults(NODE | {"status": {}}) == [
        "document 1, Node n1: status.allocatable: is missing, so nothing can run on this node"
    ]


def test_taints_are_unique_by_key_and_effect() -> None:
    """As in Kubernetes."""
    taint = {"key": "a", "effect": "NoSchedule"}
    other = {"key": "a", "effect": "NoExecute"}
    assert faults(NODE | {"spec": {"taints": [taint, other, taint]}}) == [
        "document 1, Node n1: spec.taints[2]: a second taint a:NoSchedule"
    ]


def test_taint_needs_key_and_effect() -> None:
    """Both are required, and the effects are Kubernetes' own."""
    assert faults(NODE | {"spec": {"taints": [{"key": "a"}, {"effect": "Never"}]}}) == [
        "document 1, Node n1: spec.taints[0].effect: is missing",
        (
            "document 1, Node n1: spec.taints[1].effect: 'Never' is not one of "
            "NoSchedule, PreferNoSchedule, NoExecute"
        ),
        "document 1, Node n1: spec.taints[1].key: is missing",
    ]


def test_pool_is_many_nodes_with_hostnames() -> None:
    """Each node has the template's labels and taints, and its own name as host name."""
    template = {
        "metadata": {"labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "t", "effect": "NoExecute"}], "unschedulable": False},
        "status": {"allocatable": {"cpu": "2", "nvidia.com/gpu": "8"}},
    }
    cluster = cluster_from([pool(count=3, template=template)], "test")
    assert list(cluster.nodes) == ["p-0", "p-1", "p-2"]
    assert cluster.nodes["p-1"] == Node(
        "p-1",
        {"cpu": 2000, "nvidia.com/gpu": 8},
        {"zone": "a", "kubernetes.io/hostname": "p-1"},
        (Taint("t", "", "NoExecute"),),
    )
    assert cluster.capacity == {"cpu": 6000, "nvidia.com/gpu": 24}


@pytest.mark.parametrize(
    ("count", "first", "last"), [(1, "p-0", "p-0"), (10, "p-0", "p-9"), (11, "p-00", "p-10")]
)
def test_pool_names_sort_as_numbers(count: int, first: str, last: str) -> None:
    """Zeros pad the numbers, so that the order of names is the order of numbers."""
    names = list(cluster_from([pool(count=count)], "test").nodes)
    assert names == sorted(names)
    assert (names[0], names[-1], len(names)) == (first, last, count)


@pytest.mark.parametrize("count", [0, -1, 100_001, 2.5, "3", True, None])
def test_pool_needs_a_count(count: object) -> None:
    """A whole number, not more nodes than any cluster has."""
    assert faults(pool(count=count))[0].startswith("document 1, NodePool p: spec.count: ")


def test_a_pool_with_devices_offers_shares_of_its_gpus() -> None:
    """Whole, in thousandths, and with the label that says how many there are; also once it is its nodes."""
    template = {"allocatable": {"cpu": "2"}, "devices": {"nvidia.com/gpu": 8}}
    amounts = {"cpu": 2000, "nvidia.com/gpu": 8, "nvidia.com/gpu-milli": 8000}
    labels = {"nvidia.com/gpu.count": "8", "kubernetes.io/hostname": "p-0"}
    alone = list(unpooled([pool(count=1, template=template)], ["p-0"]))
    for manifests in ([pool(count=1, template=template)], alone):
        assert cluster_from(manifests, "test").nodes["p-0"] == Node("p-0", amounts, labels)


def test_alibabas_thousandths_of_one_gpu_are_those_of_all() -> None:
    """The published manifests of openb name those of one GPU on every node; amounts above that stay."""
    count, milli = "alibabacloud.com/gpu-count", "alibabacloud.com/gpu-milli"
    for said in ("1000", "2000"):
        amounts = {"cpu": "2", count: "2", milli: said}
        manifest = NODE | {"metadata": {"name": "n"}, "status": {"allocatable": amounts}}
        template = {"allocatable": amounts}
        for found in (manifest, pool(count=1, template=template)):
            (node,) = cluster_from([found], "test").nodes.values()
            assert node.allocatable == {"cpu": 2000, count: 2, milli: 2000}


def test_gpu_memory_of_a_node_is_warned_of() -> None:
    """Its GPUs are not told apart; a pod's annotation or label asks for nothing."""
    said = " ".join(
        cluster_from(
            [
                NODE | {"status": {"allocatable": {"cpu": 1, "aliyun.com/gpu-mem": 28}}},
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": "a",
                        "labels": {"aliyun.com/gpu-count": "2"},
                        "annotations": {"alibabacloud.com/gpu-milli": "460"},
                    },
                    "spec": {"containers": [{"name": "c"}]},
                },
            ],
            "test",
        ).warnings
    )
    assert "aliyun.com/gpu-mem is not modelled: harness adds up the memory of all GPUs of a node" in said
    assert (
        "alibabacloud.com/gpu-milli is not modelled: a pod gets a share of a GPU only if it requests" in said
    )
    assert (
        "aliyun.com/gpu-count is not modelled: the GPU memory that a pod requests can come from any" in said
    )


def test_only_gpus_are_devices_of_a_pool() -> None:
    """Nothing is known of shares of others."""
    template = {"allocatable": {"cpu": 1}, "devices": {"amd.com/gpu": 8}}
    assert "devices.amd.com/gpu: cannot be shared" in faults(pool(template=template))[0]


def test_pool_must_not_set_the_hostname() -> None:
    """It differs from node to node."""
    template = {"metadata": {"labels": {"kubernetes.io/hostname": "x"}}, "allocatable": {"cpu": 1}}
    assert "spec.template.metadata.labels.kubernetes.io/hostname" in faults(pool(template=template))[0]


def test_one_node_name_stands_for_one_node() -> None:
    """A second node of a name is a fault that names the place of the first."""
    twin = NODE | {"metadata": {"name": "p-1"}}
    assert faults(pool(), twin) == [
        "document 2, Node p-1: is given twice; the first is in document 1, NodePool p"
    ]


def test_namespace_has_its_name_as_label() -> None:
    """Kubernetes adds the label to every namespace, also to those without a manifest."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team", "labels": {"dep": "eng"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    cluster = cluster_from([manifest], "test")
    assert cluster.namespace_labels("team") == {"dep": "eng", "kubernetes.io/metadata.name": "team"}
    assert cluster.namespace_labels("other") == {"kubernetes.io/metadata.name": "other"}
    assert cluster.warnings == ()


def test_priority_class_resolves_by_name() -> None:
    """Classes with a manifest, and the two that every cluster has."""
    cluster = cluster_from(
        [priority_class("high", 1000, description="x"), priority_class("low", -5, preemptionPolicy="Never")],
        "test",
    )
    assert cluster.priority_of("high") == PriorityClass("high", 1000)
    assert cluster.priority_of("low") == PriorityClass("low", -5, preempts=False)
    assert cluster.priority_of("system-node-critical") == PriorityClass("system-node-critical", 2_000_001_000)
    assert cluster.priority_of("system-cluster-critical") == PriorityClass(
        "system-cluster-critical", 2_000_000_000
    )
    assert cluster.priority_of("none") is None
    assert cluster.default_priority == 0
    assert cluster.warnings == ()


def test_global_default_is_the_priority_of_jobs_without_class() -> None:
    """Its preemption policy counts for them too."""
    manifest = priority_class("usual", 7, globalDefault=True, preemptionPolicy="Never")
    cluster = cluster_from([manifest], "test")
    assert cluster.default_priority == 7
    assert not cluster.default_class.preempts


def test_at_most_one_class_is_the_global_default() -> None:
    """Kubernetes refuses a second one."""
    classes = [priority_class(name, 1, globalDefault=True) for name in ("a", "b", "c")]
    assert faults(*classes) == [
        "document 2, PriorityClass b: globalDefault: is already 'true' for a",
        "document 3, PriorityClass c: globalDefault: is already 'true' for a",
    ]


@pytest.mark.parametrize(
    ("manifest", "fault"),
    [
        (priority_class("a", 1_000_000_001), "value: 1000000001 is out of range (-2147483648 to 1000000000)"),
        (priority_class("system-x", 5), "metadata.name: names that begin with 'system-' are reserved for"),
        (priority_class("system-node-critical", 5), "names that begin with 'system-' are reserved for"),
        (priority_class("a", 1, preemptionPolicy="Sometimes"), "preemptionPolicy: 'Sometimes' is not one of"),
        (priority_class("a", True), "value: must be a whole number, not True"),
        (priority_class("", 1), "metadata.name: must not be empty"),
    ],
)
def test_class_that_kubernetes_refuses_is_a_fault(manifest: dict[str, Any], fault: str) -> None:
    """User values end at a billion, and system names are reserved."""
    assert fault in faults(manifest)[0]


def test_system_classes_may_be_among_the_manifests() -> None:
    """Kubectl prints them with the others."""
    manifests = [
        priority_class("system-node-critical", 2_000_001_000),
        priority_class("system-cluster-critical", 2_000_000_000),
    ]
    assert len(cluster_from(manifests, "test").priority_classes) == 2

"""Rules of reading elastic quotas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.cluster.elastic import ElasticQuota
from harness.cluster.load import cluster_from
from harness.cluster.model import UNLIMITED, Cluster
from harness.errors import ClusterError


def tree(*children: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An ElasticQuotaTree over these children; its root has 10 cpu unless told otherwise."""
    bounds = {"cpu": 10, "memory": "10Gi"}
    root = {"name": "root", "min": bounds, "max": bounds, "children": list(children)} | fields
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "tree", "namespace": "kube-system"},
        "spec": {"root": root},
    }


def node(name: str, least: int, most: int, *namespaces: str, **fields: Any) -> dict[str, Any]:
    """A node of a tree with bounds for cpu and memory."""
    return {
        "name": name,
        "min": {"cpu": least, "memory": f"{least}Gi"},
        "max": {"cpu": most, "memory": f"{most}Gi"},
        "namespaces": list(namespaces),
    } | fields


def elastic(name: str, group: str = "scheduling.x-k8s.io", **fields: Any) -> dict[str, Any]:
    """An ElasticQuota of a namespace that is called like it."""
    metadata = {"name": name, "namespace": fields.pop("namespace", name), **fields.pop("metadata", {})}
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": metadata,
        "spec": fields,
    }


def koordinator(
    name: str, labels: dict[str, str] | None = None, notes: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """An ElasticQuota with Koordinator's labels and annotations, given without their prefix."""
    prefix = "quota.scheduling.koordinator.sh/"
    metadata = {
        "labels": {f"{prefix}{key}": value for key, value in (labels or {}).items()},
        "annotations": {f"{prefix}{key}": value for key, value in (notes or {}).items()},
    }
    return elastic(name, "scheduling.sigs.k8s.io", namespace="kube-system", metadata=metadata, **spec)


def quotas(*manifests: dict[str, Any]) -> dict[str, ElasticQuota]:
    """The quotas of some manifests."""
    return dict(read(*manifests).elastic_quotas)


def read(*manifests: dict[str, Any]) -> Cluster:
    """The cluster of some manifests."""
    return cluster_from(manifests, "test")


def faults(*manifests: dict[str, Any]) -> list[str]:
    """All faults of some manifests."""
    with pytest.raises(ClusterError) as caught:
        cluster_from(manifests, "test")
    return [str(fault) for fault in caught.value.faults]


def test_tree_becomes_quotas_with_parents_before_children() -> None:
    """Every node is a quota; leaves have namespaces."""
    team = node("a", 5, 8, children=[node("a.1", 2, 4, "one", "two"), node("a.2", 3, 8, "three")])
    found = quotas(tree(team, node("b", 5, 10, "four")))
    assert {name: (each.parent, each.namespaces) for name, each in found.items()} == {
        "root": ("", ()),
        "a": ("root", ()),
        "a.1": ("a", ("one", "two")),
        "a.2": ("a", ("three",)),
        "b": ("root", ("four",)),
    }
    assert found["a.1"].min == {"cpu": 2000, "memory": 2 * 2**30}
    assert found["a"].is_parent
    assert not found["b"].is_parent


def test_tree_faults_are_found_all_at_once() -> None:
    """Names, namespaces, min above max, sums of min, and max above the parent's."""
    found = faults(
        tree(
            node("a", 6, 5, "one"),
            node("b", 6, 11, "one", children=[node("b", 1, 1, "two")]),
            {"min": {"cpu": "x"}},
        )
    )
    place = "document 1, ElasticQuotaTree kube-system/tree: spec.root"
    assert found == [
        f"{place}.children[1]: namespaces: belong to leaves; this quota has children".replace(": n", ".n"),
        f"{place}.children[1].children[0].name: 'b' is the name of spec.root.children[1] already",
        f"{place}.children[2].name: is missing",
        f"{place}.children[2].min.cpu: 'x' is not a quantity (examples: 4, 500m, 1.5, 64Gi, 12e6)",
        f"{place}.children[0].min.cpu: 6 is above max, which is 5",
        f"{place}.children[0].min.memory: 6Gi is above max, which is 5Gi",
        f"{place}.children[1].namespaces: 'one' belongs to a already",
        f"{place}.min.cpu: 10 is below the sum of its children's, 12",
        f"{place}.children[1].max.cpu: 11 is above that of root, which is 10",
        f"{place}.min.memory: 10Gi is below the sum of its children's, 12Gi",
        f"{place}.children[1].max.memory: 11Gi is above that of root, which is 10Gi",
    ]


def test_tree_bounds_exactly_at_the_limit_are_fine() -> None:
    """Children may be guaranteed all that their parent is, and allowed as much."""
    assert len(quotas(tree(node("a", 4, 10, "one"), node("b", 6, 10, "two")))) == 3


def test_tree_child_without_max_is_bounded_by_its_parent() -> None:
    """An absent max claims nothing, so it is no fault."""
    assert quotas(tree({"name": "a", "namespaces": ["one"]}))["a"].max_of("cpu") == UNLIMITED


def test_second_tree_is_a_fault() -> None:
    """A cluster has one tree."""
    assert faults(tree(), tree()) == [
        (
            "document 2, ElasticQuotaTree kube-system/tree: is given twice; "
            "the first is in document 1, ElasticQuotaTree kube-system/tree"
        ),
        (
            "document 2, ElasticQuotaTree kube-system/tree: spec.root.name: "
            "'root' is the name of spec.root already"
        ),
    ]


def test_tree_without_root_is_a_fault() -> None:
    """There is nothing to read then."""
    manifest = tree()
    del manifest["spec"]["root"]
    (fault,) = faults(manifest)
    assert fault.endswith("spec.root: is missing: it is the quota of the whole tree")


def test_flat_quota_is_called_by_its_namespace() -> None:
    """There is one a namespace, in either API group."""
    found = quotas(
        elastic("quota", namespace="one", min={"cpu": 1}),
        elastic("quota", "scheduling.sigs.k8s.io", namespace="two", max={"cpu": 1, "memory": 1}),
    )
    assert {name: (each.namespaces, each.min, each.max) for name, each in found.items()} == {
        "one": (("one",), {"cpu": 1000}, None),
        "two": (("two",), None, {"cpu": 1000, "memory": 1}),
    }


def test_two_quotas_of_a_namespace_are_a_fault() -> None:
    """Which of them counts would be anyone's guess."""
    (fault,) = faults(elastic("a", namespace="one"), elastic("b", namespace="one"))
    assert "is given twice" in fault


def test_bounds_that_are_not_named() -> None:
    """No min is 0; no max is no bound; a max that does not name a core resource allows none of it."""
    bounded, free = ElasticQuota("a", {"cpu": 5}, {"cpu": 9}), ElasticQuota("b")
    assert [bounded.min_of(each) for each in ("cpu", "memory", "gpu")] == [5, 0, 0]
    assert [bounded.max_of(each) for each in ("cpu", "memory", "gpu")] == [9, 0, UNLIMITED]
    assert [free.max_of(each) for each in ("cpu", "memory", "gpu")] == [UNLIMITED] * 3


def test_koordinator_labels_and_annotations_make_a_tree() -> None:
    """Parent, tree, lending, weight, and namespaces besides the one of its name."""
    found = quotas(
        koordinator("up", {"is-parent": "true"}, max={"cpu": 9, "memory": 1}),
        koordinator(
            "down",
            {"parent": "up", "allow-lent-resource": "false", "tree-id": "t"},
            {"shared-weight": '{"cpu": "2"}', "namespaces": '["one", "two"]'},
            max={"cpu": 20, "memory": 1},
        ),
        koordinator("top", {"parent": "koordinator-root-quota"}),
    )
    assert found["up"] == ElasticQuota("up", None, {"cpu": 9000, "memory": 1}, "", ("up",), is_parent=True)
    assert found["down"] == ElasticQuota(
        "down",
        None,
        {"cpu": 20000, "memory": 1},
        "up",
        ("down", "one", "two"),
        lends=False,
        weight={"cpu": 2000},
        tree="t",
    )
    assert found["top"].parent == ""


def test_koordinator_faults() -> None:
    """Parents that are missing, are none, or are above themselves; annotations that are not JSON."""
    found = faults(
        koordinator("a", {"parent": "nobody"}),
        koordinator("b", {"parent": "a"}),
        koordinator("c", {"parent": "d", "is-parent": "true"}),
        koordinator("d", {"parent": "c", "is-parent": "true"}),
        koordinator("e", notes={"namespaces": "[1]", "shared-weight": "{"}),
        koordinator("f", notes={"shared-weight": '{"cpu": "x", "memory": {}}'}),
    )
    label = "metadata.labels.quota.scheduling.koordinator.sh/parent"
    assert [fault.split(": ", 1)[1].split(": Expecting")[0] for fault in found] == [
        (
            "metadata.annotations.quota.scheduling.koordinator.sh/namespaces: "
            "must be a JSON list of texts, not [1]"
        ),
        "metadata.annotations.quota.scheduling.koordinator.sh/shared-weight: is not JSON",
        (
            "metadata.annotations.quota.scheduling.koordinator.sh/shared-weight: "
            "cpu: 'x' is not a quantity (examples: 4, 500m, 1.5, 64Gi, 12e6)"
        ),
        (
            "metadata.annotations.quota.scheduling.koordinator.sh/shared-weight: "
            "memory: {} is not a quantity (examples: 4, 500m, 1.5, 64Gi, 12e6)"
        ),
        f"{label}: there is no ElasticQuota 'nobody'",
        f"{label}: a does not say that it is a parent",
        f"{label}: c is above itself",
        f"{label}: d is above itself",
    ]


def test_what_has_no_effect_is_warned_of() -> None:
    """Quotas beside a tree, attributes, queue resources, and guarantees that the nodes cannot keep."""
    machine = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": 8, "memory": "10Gi"}},
    }
    leaf = {
        "name": "a",
        "attributes": {"resourceflavors": "x"},
        "max": {"cpu": 1, "kube-queue/max-jobs": 1},
    }
    root = {"max": {"cpu": 20, "memory": "10Gi"}}
    warnings = read(machine, tree(leaf, **root), elastic("one")).warnings
    assert warnings == (
        "ElasticQuotaTree tree: attributes are not modelled: a quota may use any node",
        (
            "ElasticQuotaTree tree: kube-queue/max-jobs is not modelled: "
            "jobs leave their queue without regard to it"
        ),
        (
            "ElasticQuotaTree tree: min and max of the root differ, which ACK does not allow; "
            "all quotas together keep to both"
        ),
        "ElasticQuota one: is left out: the ElasticQuotaTree counts",
        "elastic quota a: max does not name memory: pods that request it are not admitted",
        "elastic quota root: min of cpu is 10 in all, and the nodes have 8",
    )


def test_tree_elsewhere_is_taken_to_be_in_kube_system() -> None:
    """ACK would not look at it, which nobody means who gives it."""
    manifest = tree()
    manifest["metadata"]["namespace"] = "default"
    assert read(manifest).warnings == (
        "ElasticQuotaTree tree: takes effect only in kube-system; it is taken to be there",
    )


def test_quotas_are_part_of_what_tells_clusters_apart() -> None:
    """Another bound is another cluster."""
    assert read(tree(node("a", 1, 2))).digest != read(tree(node("a", 1, 3))).digest


def test_annotation_of_others_is_no_koordinator() -> None:
    """What kubectl notes on every object does not make a quota Koordinator's."""
    last = json.dumps({"kind": "ElasticQuota"})
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": last}
    found = quotas(
        elastic("a", "scheduling.sigs.k8s.io", namespace="one", metadata={"annotations": annotations})
    )
    assert list(found) == ["one"]


def scheduler(**fields: Any) -> dict[str, Any]:
    """A KubeSchedulerConfiguration."""
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"} | fields


@pytest.mark.parametrize("algorithm", ["Auto", "Default", "ElasticQuota", "None"])
def test_preemption_algorithm_is_read(algorithm: str) -> None:
    """At the top, or among a plugin's arguments; without a word it stands for Auto."""
    arguments = {"pluginConfig": [{"name": "any", "args": {"preemptionAlgorithm": algorithm}}]}
    for manifest in (scheduler(preemptionAlgorithm=algorithm), scheduler(profiles=[arguments])):
        found = read(manifest)
        assert found.scheduler is not None
        assert found.scheduler.preemption_algorithm == algorithm
        assert found.warnings == ()
    plain = read(scheduler()).scheduler
    assert plain is not None
    assert plain.preemption_algorithm is None
    assert plain.plugin == "auto"


def test_preemption_algorithm_that_does_not_exist_is_a_fault() -> None:
    """The message says which there are."""
    (fault,) = faults(scheduler(preemptionAlgorithm="auto"))
    assert fault.endswith("preemptionAlgorithm: 'auto' is not one of Auto, Default, ElasticQuota, None")

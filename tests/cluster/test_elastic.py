"""Rules of reading elastic quotas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.base.errors import ClusterError
from harness.cluster.kinds.elastic import ElasticQuota, QuotaLeaves
from harness.cluster.load import cluster_from
from harness.cluster.model import UNLIMITED, Cluster, LocalQueue


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
    return {"apiVersion": f"{group}/v1alpha1", "kind": "ElasticQuota", "metadata": metadata, "spec": fields}


def koordinator(
    name: str, labels: dict[str, str] | None = None, notes: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """An ElasticQuota with Koordinator's labels and annotations, given without their prefix."""
    prefix = "quota.scheduling.koordinator.sh/"
    metadata = {
        "labels": {f"{prefix}{key}": value for key, value in (labels or {}).items()},
        "annotations": {f"{prefix}{key}": value for key, value in (notes or {}).items()},
    }
    namespace = spec.pop("namespace", name)
    return elastic(name, "scheduling.sigs.k8s.io", namespace=namespace, metadata=metadata, **spec)


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
        f"{place}.children[1].children[0].name: 'b' is already the name of spec.root.children[1]",
        f"{place}.children[2].name: is missing",
        f"{place}.children[2].min.cpu: 'x' is not a quantity (examples: 4, 500m, 1.5, 64Gi, 12e6)",
        f"{place}.children[0].min.cpu: 6 is above max, which is 5",
        f"{place}.children[0].min.memory: 6Gi is above max, which is 5Gi",
        f"{place}.children[1].namespaces: 'one' already belongs to a",
        f"{place}.min.cpu: 10 is below the sum of its children, which is 12",
        f"{place}.children[1].max.cpu: 11 exceeds the max of root, which is 10",
        f"{place}.min.memory: 10Gi is below the sum of its children, which is 12Gi",
        f"{place}.children[1].max.memory: 11Gi exceeds the max of root, which is 10Gi",
    ]


def test_tree_bounds_exactly_at_the_limit_are_fine() -> None:
    """Children may be guaranteed all that their parent is, and allowed as much."""
    assert len(quotas(tree(node("a", 4, 10, "one"), node("b", 6, 10, "two")))) == 3


def test_tree_child_without_max_is_bounded_by_its_parent() -> None:
    """An absent max claims nothing, so it is no fault."""
    assert quotas(tree({"name": "a", "namespaces": ["one"]}))["a"].max_of("cpu") == UNLIMITED


def test_second_tree_is_a_fault() -> None:
    """A cluster has one tree; what the second one holds is not looked at."""
    assert faults(tree(), tree(node("a", 9, 1))) == [
        (
            "document 2, ElasticQuotaTree kube-system/tree: is a second tree; "
            "the first is in document 1, ElasticQuotaTree kube-system/tree"
        )
    ]


def test_tree_without_root_is_a_fault() -> None:
    """There is nothing to read then."""
    manifest = tree()
    del manifest["spec"]["root"]
    (fault,) = faults(manifest)
    assert fault.endswith("spec.root: is missing: add the root quota, which contains all other quotas")


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
    assert "is a second quota of the namespace one, after document 1, ElasticQuota one/a" in fault
    assert 'quota.scheduling.koordinator.sh/is-parent: "false"' in fault


def test_bounds_that_are_not_named() -> None:
    """No min is 0; no max is no bound; a max that does not name a core resource allows none of it."""
    bounded, free = ElasticQuota("a", {"cpu": 5}, {"cpu": 9}), ElasticQuota("b")
    assert [bounded.min_of(each) for each in ("cpu", "memory", "gpu")] == [5, 0, 0]
    assert [bounded.max_of(each) for each in ("cpu", "memory", "gpu")] == [9, 0, UNLIMITED]
    assert [free.max_of(each) for each in ("cpu", "memory", "gpu")] == [UNLIMITED] * 3


def test_koordinator_labels_and_annotations_make_a_tree() -> None:
    """Parent, the parent's tree, lending, weight, and a leaf's namespaces besides the one of its name."""
    found = quotas(
        koordinator("up", {"is-parent": "true", "tree-id": "t"}, max={"cpu": 9, "memory": 1}),
        koordinator(
            "down",
            {"parent": "up", "allow-lent-resource": "false"},
            {"shared-weight": '{"cpu": "2"}', "namespaces": '["one", "two"]'},
            max={"cpu": 20, "memory": 1},
        ),
        koordinator("top", {"parent": "koordinator-root-quota"}),
    )
    assert found["up"] == ElasticQuota(
        "up", None, {"cpu": 9000, "memory": 1}, is_parent=True, tree="t", semantics="koordinator"
    )
    assert found["down"] == ElasticQuota(
        "down",
        None,
        {"cpu": 20000, "memory": 1},
        "up",
        ("down", "one", "two"),
        lends=False,
        weight={"cpu": 2000},
        tree="t",
        semantics="koordinator",
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
            "must be a JSON list of strings, not [1]"
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
        (f'{label}: a is not marked as a parent; label it quota.scheduling.koordinator.sh/is-parent: "true"'),
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
    leaf = {"name": "a", "attributes": {"resourceflavors": "x"}, "max": {"cpu": 1, "kube-queue/max-jobs": 1}}
    root = {"max": {"cpu": 20, "memory": "10Gi"}}
    warnings = read(machine, tree(leaf, **root), elastic("one")).warnings
    assert warnings == (
        (
            "ElasticQuotaTree tree: min and max of the root differ, which ACK does not allow; "
            "both apply to the whole tree"
        ),
        (
            "ElasticQuotaTree kube-system/tree: spec.root.children[].attributes is not modelled: "
            "pods of a quota may run on any node"
        ),
        (
            "ElasticQuotaTree kube-system/tree: spec.root.children[].max.kube-queue/max-jobs "
            "is not modelled: ACK's job queue releases jobs without regard to this resource"
        ),
        "ElasticQuota one: is left out, because the ElasticQuotaTree replaces it",
        (
            "elastic quota a: max does not name memory: pods that request it are not admitted, "
            "except with semantics=koordinator"
        ),
        "elastic quota root: min of cpu is 10 in total, but the nodes have 8",
    )


def test_tree_elsewhere_is_taken_to_be_in_kube_system() -> None:
    """ACK would not look at it, which nobody means who gives it."""
    manifest = tree()
    manifest["metadata"]["namespace"] = "default"
    assert read(manifest).warnings == (
        (
            "ElasticQuotaTree default/tree: metadata.namespace is not modelled: "
            "harness treats the tree as if it were in kube-system, because a tree has an effect only there"
        ),
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


PREFIX = "quota.scheduling.koordinator.sh/"


def told(*manifests: dict[str, Any]) -> list[str]:
    """All faults of some manifests, without file, document and object."""
    return [fault.split(": ", 1)[1] for fault in faults(*manifests)]


@pytest.mark.parametrize("spec", [{}, {"root": None}, {"root": {}}, {"root": []}])
def test_tree_that_is_empty_is_a_fault(spec: dict[str, Any]) -> None:
    """No root, or a root without a name."""
    assert told(tree() | {"spec": spec})[-1] in (
        "spec.root: is missing: add the root quota, which contains all other quotas",
        "spec.root.name: is missing",
    )


def test_tree_of_a_root_alone_is_warned_of() -> None:
    """Hardly any pod would belong to it."""
    (warning,) = read(tree(children=None)).warnings
    assert warning.startswith("ElasticQuotaTree tree: has no quota below its root")


def test_amounts_must_be_quantities_of_0_or_more() -> None:
    """Each fault with its field."""
    leaf = {"name": "a", "min": {"cpu": -1, "memory": True}, "max": {"cpu": "4 cores", "memory": [1]}}
    place = "spec.root.children[0]"
    assert told(tree(leaf), elastic("b", min={"cpu": "-5"}, max="9")) == [
        f"{place}.min.cpu: -1 must not be negative",
        f"{place}.min.memory: must be a quantity, not True",
        f"{place}.max.cpu: '4 cores' is not a quantity (examples: 4, 500m, 1.5, 64Gi, 12e6)",
        f"{place}.max.memory: must be a quantity, not [1]",
        "spec.min.cpu: -5 must not be negative",
        "spec.max: must be a mapping of names to values, not '9'",
    ]


def test_unknown_fields_are_warned_of() -> None:
    """A misspelt field would change nothing in silence."""
    warnings = read(tree({"name": "a", "namespace": ["x"]}), elastic("b", minimum={"cpu": 1})).warnings
    meant = (
        "spec.root.children[].namespace is not modelled: no such field is known; did you mean 'namespaces'?"
    )
    assert f"ElasticQuotaTree kube-system/tree: {meant}" in warnings
    assert (
        "ElasticQuota b/b: spec.minimum is not modelled: no such field is known; did you mean 'min'?"
        in warnings
    )


def test_namespaces_of_a_list_are_names_and_given_once() -> None:
    """In a tree and in Koordinator's annotation."""
    assert told(
        tree(node("a", 1, 2, "one", "", "one")), koordinator("b", notes={"namespaces": '["x", "x"]'})
    ) == [
        "spec.root.children[0].namespaces: the name of a namespace must not be empty",
        "spec.root.children[0].namespaces: 'one' is listed twice",
        f"metadata.annotations.{PREFIX}namespaces: 'x' is listed twice",
    ]


def test_namespace_of_two_leaves_is_a_fault_at_the_second() -> None:
    """In a tree, and of Koordinator's, for which the name counts as a namespace too."""
    assert told(tree(node("a", 1, 2, "one"), node("b", 1, 2, "one"))) == [
        "spec.root.children[1].namespaces: 'one' already belongs to a"
    ]
    assert told(
        koordinator("a", {"is-parent": "false"}), koordinator("b", notes={"namespaces": '["a"]'})
    ) == [f"metadata.annotations.{PREFIX}namespaces: 'a' already belongs to a"]


def test_a_koordinator_quota_has_the_namespace_of_its_name_only_if_it_is_in_it() -> None:
    """Koordinator looks for a quota that is called like the pod's namespace in that namespace."""
    label = {"is-parent": "false"}
    assert quotas(koordinator("a", label))["a"].namespaces == ("a",)
    assert quotas(koordinator("a", label, namespace="default"))["a"].namespaces == ()


def test_a_label_that_names_no_koordinator_quota_says_that_the_pod_has_none() -> None:
    """Its namespace and queue do not count then; with other quotas they do."""
    own = QuotaLeaves(read(koordinator("a", {"is-parent": "false"})))
    assert own.of("a", "a", "gone") is None
    assert own.of("a", "") == "a"
    assert QuotaLeaves(read(elastic("a", namespace="a"))).of("a", "a", "gone") == "a"


def test_a_namespace_called_like_a_koordinator_quota_elsewhere_is_not_its_namespace() -> None:
    """A Pod in manifests has its namespace as queue; a queue of another name names a quota."""
    found = QuotaLeaves(read(koordinator("a", {"is-parent": "false"}, namespace="kube-system")))
    assert found.of("a", "a") is None
    assert found.of("default", "a") == "a"


def test_koordinator_parents_own_no_namespaces() -> None:
    """Not by their name, so that a leaf may have the namespace; and not by the annotation."""
    team = koordinator("team", {"is-parent": "true"})
    found = quotas(team, koordinator("a", {"parent": "team"}, {"namespaces": '["team"]'}))
    assert found["a"].namespaces == ("a", "team")
    assert told(koordinator("team", {"is-parent": "true"}, {"namespaces": '["x"]'})) == [
        f"metadata.annotations.{PREFIX}namespaces: belong to leaves; this quota is a parent"
    ]


def test_koordinator_bounds_are_faults_of_the_spec() -> None:
    """Above max, not named by max, and more than the parent guarantees; a child may be allowed more."""
    bounds = {"min": {"cpu": 4, "memory": 1}, "max": {"cpu": 8, "memory": 1}}
    assert told(
        koordinator("up", {"is-parent": "true"}, **bounds),
        koordinator("a", {"parent": "up"}, min={"cpu": 3}, max={"cpu": 99, "memory": 1}),
        koordinator("b", {"parent": "up"}, min={"cpu": 3, "gpu": 1}, max={"cpu": 2, "memory": 1}),
        koordinator("c", {"is-parent": "false"}, min={"memory": 1}, max={"cpu": 1}),
        koordinator("d", {"is-parent": "false"}, min={"cpu": 1}),
    ) == [
        "spec.min.gpu: Koordinator requires every resource of min in max: add the resource to max",
        "spec.min.cpu: Koordinator requires every resource of min in max: add the resource to max",
        "spec.min.cpu: 3 is above max, which is 2",
        "spec.min.memory: 1 is above max, which is 0 because it does not name memory",
        "spec.min.cpu: 4 is below the sum of its children, which is 6",
        "spec.min.gpu: 0 is below the sum of its children, which is 1",
    ]


@pytest.mark.parametrize("forced", [{"allow-force-update": "true"}, {"is-root": "true"}])
@pytest.mark.parametrize("which", ["up", "a"])
def test_a_min_that_koordinators_webhook_does_not_compare_is_read(which: str, forced: dict[str, str]) -> None:
    """A quota that may be updated by force, or the root of a tree, whose min follows the nodes."""
    labels = {"up": {"is-parent": "true"}, "a": {"parent": "up"}}
    labels[which] |= forced
    most = {"cpu": 8, "memory": 1}
    up = koordinator("up", labels["up"], min={"cpu": 2}, max=most)
    assert quotas(up, koordinator("a", labels["a"], min={"cpu": 3}, max=most)).keys() == {"up", "a"}


def test_koordinator_trees() -> None:
    """A child is in the tree of its parent, and cannot be in another; trees share all nodes."""
    up = koordinator("up", {"is-parent": "true", "tree-id": "t"})
    assert told(up, koordinator("a", {"parent": "up", "tree-id": "other"})) == [
        f"metadata.labels.{PREFIX}tree-id: 'other' differs from 't', the tree of its parent up"
    ]
    where = read(up, koordinator("a", {"parent": "up"}), koordinator("b", {"is-parent": "false"}))
    assert where.elastic_quotas["a"].tree == "t"
    shares = "shares the nodes of all trees unless multiQuotaTree=true"
    assert where.warnings == (f"elastic quota up: is a tree of its own, and {shares}",)


def test_koordinator_cycles_are_found_whole_and_end() -> None:
    """Each quota that is above itself is a fault; one below them is not."""
    label = f"metadata.labels.{PREFIX}parent"
    parent = {"is-parent": "true"}
    assert told(
        koordinator("a", {"parent": "b"} | parent),
        koordinator("b", {"parent": "a"} | parent),
        koordinator("c", {"parent": "a"}),
        koordinator("d", {"parent": "d"} | parent),
    ) == [f"{label}: a is above itself", f"{label}: b is above itself", f"{label}: d is above itself"]


def test_koordinator_parent_called_root() -> None:
    """All quotas together, as it once was called; or a quota of that name."""
    assert quotas(koordinator("a", {"parent": "root"}))["a"].parent == ""
    found = quotas(koordinator("root", {"is-parent": "true"}), koordinator("a", {"parent": "root"}))
    assert found["a"].parent == "root"


def test_koordinators_own_quotas_are_left_out() -> None:
    """They are in every cluster, without labels, in one namespace."""
    names = ("koordinator-root-quota", "koordinator-default-quota", "koordinator-system-quota")
    own = [elastic(name, "scheduling.sigs.k8s.io", namespace="koordinator-system") for name in names]
    where = read(*own, koordinator("a", {"is-parent": "false"}))
    assert list(where.elastic_quotas) == ["a"]
    assert [warning.split(":")[0] for warning in where.warnings] == [f"ElasticQuota {name}" for name in names]


def test_koordinator_weights() -> None:
    """Not negative; weights that are all 0 stand for max, as in Koordinator; one of several may be 0."""
    assert told(koordinator("a", notes={"shared-weight": '{"cpu": -1, "gpu": true}'})) == [
        f"metadata.annotations.{PREFIX}shared-weight: cpu: -1 must not be negative",
        (
            f"metadata.annotations.{PREFIX}shared-weight: gpu: True is not a quantity "
            "(examples: 4, 500m, 1.5, 64Gi, 12e6)"
        ),
    ]
    assert quotas(koordinator("a", notes={"shared-weight": '{"cpu": 0}'}))["a"].weight is None
    assert quotas(koordinator("a", notes={"shared-weight": '{"cpu": 0, "gpu": 1}'}))["a"].weight == {
        "cpu": 0,
        "gpu": 1,
    }


def test_quota_without_koordinators_labels_beside_others_is_warned_of() -> None:
    """It is taken to be the quota of its namespace."""
    plain = koordinator("b", namespace="kube-system", max={"cpu": 1, "memory": 1})
    where = read(koordinator("a", {"is-parent": "false"}), plain)
    assert list(where.elastic_quotas) == ["a", "kube-system"]
    (warning,) = where.warnings
    assert warning.startswith("elastic quota kube-system: has none of Koordinator's labels")


def test_koordinator_labels_without_the_effect_they_seem_to_have_are_warned_of() -> None:
    """Switches that are neither true nor false, and what is not modelled; what Koordinator notes is not."""
    labels = {"is-parent": "yes", "allow-lent-resource": "no", "unknown": "true", "is-root": "true"}
    assert read(koordinator("a", labels, {"guaranteed": "{}", "runtime": "{}"})).warnings == (
        f"ElasticQuota a: label {PREFIX}is-parent is 'yes', which counts as \"false\"",
        f"ElasticQuota a: label {PREFIX}allow-lent-resource is 'no', which counts as \"true\"",
        *(
            f"ElasticQuota a/a: metadata.{part}.{PREFIX}{name} is not modelled: "
            "harness ignores this annotation or label"
            for part, name in (("labels", "unknown"), ("annotations", "guaranteed"))
        ),
    )


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


# --- which quota pods count against -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "queue", "named", "leaf"),
    [
        ("lab", "b", "c", "c"),
        ("lab", "b", "team", "a"),
        ("lab", "b", "", "a"),
        ("other", "b", "", "b"),
        ("other", "door", "", "c"),
        ("other", "team", "", None),
        ("other", "", "", None),
    ],
)
def test_a_pod_counts_against_the_leaf_of_its_label_else_its_namespace_else_its_queue(
    namespace: str, queue: str, named: str, leaf: str | None
) -> None:
    """A LocalQueue stands for its ClusterQueue, and a quota above others is nobody's."""
    quotas = [ElasticQuota("a", parent="team", namespaces=("lab",)), ElasticQuota("b"), ElasticQuota("c")]
    cluster = Cluster(
        elastic_quotas={each.name: each for each in (ElasticQuota("team"), *quotas)},
        local_queues={("other", "door"): LocalQueue("door", "other", "c")},
    )
    assert QuotaLeaves(cluster).of(namespace, queue, named) == leaf

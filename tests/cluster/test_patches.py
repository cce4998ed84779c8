"""Rules of patches: what they change, what they leave alone, and what is said of slips of the pen."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.base.errors import ClusterError, HarnessError, InputError
from harness.cluster.changes.scale import scaled_cluster
from harness.cluster.content import content
from harness.cluster.derive import Demand, derive_cluster
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster

TEXT = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: gpu}
spec:
  count: 4
  template:
    spec: {taints: [{key: gpu, value: a, effect: NoSchedule}, {key: spot, effect: NoSchedule}]}
    allocatable: {cpu: 16, nvidia.com/gpu: 8}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: a100}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohortName: all
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 5}}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: any
      resources: [{name: cpu, nominalQuota: 8, borrowingLimit: 4}, {name: memory, nominalQuota: 1Gi}]
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - {name: a100, resources: [{name: nvidia.com/gpu, nominalQuota: 24}]}
    - {name: spot, resources: [{name: nvidia.com/gpu, nominalQuota: 2}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: one}
spec: {clusterQueue: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: two}
spec: {clusterQueue: team-a}
---
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: tree, namespace: kube-system}
spec:
  root:
    name: root
    min: {cpu: 16}
    max: {cpu: 16}
    children:
    - {name: a, min: {cpu: 8}, max: {cpu: 16}, namespaces: [one, two]}
    - {name: b, min: {cpu: 4}, max: {cpu: 16}, namespaces: [three]}
---
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - {name: DefaultPreemption, args: {minCandidateNodesPercentage: 20}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 3}}
"""
DOCUMENTS = list(yaml.safe_load_all(TEXT))
BASE = cluster_from(DOCUMENTS, "base.yaml")


def patched(text: str, cluster: Cluster = BASE) -> Cluster:
    """The base with a patch in YAML."""
    return cluster.patched(list(yaml.safe_load_all(text)))


def queue(spec: str) -> str:
    """A patch of the queue."""
    return f"{{kind: ClusterQueue, metadata: {{name: team-a}}, spec: {spec}}}"


def pool(spec: str) -> str:
    """A patch of the pool."""
    return f"{{kind: NodePool, metadata: {{name: gpu}}, spec: {spec}}}"


def tree(root: str) -> str:
    """A patch of the quotas."""
    return f"{{kind: ElasticQuotaTree, metadata: {{name: tree}}, spec: {{root: {root}}}}}"


def told(text: str, cluster: Cluster = BASE) -> list[str]:
    """The faults of a patch."""
    with pytest.raises(ClusterError) as error:
        patched(text, cluster)
    return [str(fault) for fault in error.value.faults]


def changes(text: str, cluster: Cluster = BASE) -> dict[str, dict[str, Any]]:
    """Kind -> name -> fields, of what of a cluster's objects a patch changes."""
    before, after = content(cluster)["objects"], content(patched(text, cluster))["objects"]
    kinds = dict.fromkeys((*before, *after))
    return {
        kind: {name: each for name, each in after.get(kind, {}).items() if each != before[kind].get(name)}
        for kind in kinds
        if after.get(kind) != before.get(kind)
    }


def test_a_patch_changes_what_it_says_and_nothing_else() -> None:
    """A field of a group, flavor and resource that are found by their names; a field that was not there."""
    text = """{fairSharing: {weight: 2}, resourceGroups: [
      {flavors: [{name: spot, resources: [{name: nvidia.com/gpu, nominalQuota: 32}]}]}]}"""
    changed = patched(queue(text)).cluster_queues["team-a"]
    before = BASE.cluster_queues["team-a"]
    gpus = changed.resource_groups[1]
    assert [each.flavor for each in gpus.flavors] == ["a100", "spot"]
    assert [each.resources["nvidia.com/gpu"].nominal for each in gpus.flavors] == [24, 32]
    assert replace(changed, weight=before.weight, resource_groups=before.resource_groups) == before
    assert changed.weight == 2
    assert changed.resource_groups[0] == before.resource_groups[0]


def test_a_group_is_found_by_the_resources_it_covers_and_may_cover_others() -> None:
    """Covered resources name a group too; a resource that is to be covered is added to its flavors."""
    text = """{resourceGroups: [{coveredResources: [cpu, memory, pods], flavors: [
      {name: any, resources: [{name: pods, nominalQuota: 5}]}]}]}"""
    (first, second) = patched(queue(text)).cluster_queues["team-a"].resource_groups
    assert first.covered_resources == ("cpu", "memory", "pods")
    assert first.flavors[0].resources["pods"].nominal == 5
    assert second == BASE.cluster_queues["team-a"].resource_groups[1]


def test_a_new_group_and_a_new_flavor_come_last() -> None:
    """What is there keeps its place, since flavors are tried in order."""
    text = """{resourceGroups: [
      {coveredResources: [pods], flavors: [{name: x, resources: [{name: pods, nominalQuota: 1}]}]},
      {flavors: [{name: y, resources: [{name: nvidia.com/gpu, nominalQuota: 1}]}, {name: spot}]}]}"""
    more = [{**DOCUMENTS[1], "metadata": {"name": name}} for name in "xy"]
    groups = (
        patched(queue(text), cluster_from([*DOCUMENTS, *more], "b")).cluster_queues["team-a"].resource_groups
    )
    assert [[each.flavor for each in group.flavors] for group in groups] == [
        ["any"],
        ["a100", "spot", "y"],
        ["x"],
    ]


def test_null_deletes_a_field() -> None:
    """Back to its default; one that is not there is none already."""
    text = "{preemption: {borrowWithinCohort: null}, stopPolicy: null, fairSharing: {weight: null}}"
    changed = patched(queue(text)).cluster_queues["team-a"].preemption
    assert (changed.reclaim_within_cohort, changed.borrow_within_cohort) == ("Any", "Never")
    assert changed.max_priority_threshold is None
    limits = "{flavors: [{name: any, resources: [{name: cpu, borrowingLimit: null}]}]}"
    quota = patched(queue(f"{{resourceGroups: [{limits}]}}")).cluster_queues["team-a"].resource_groups[0]
    assert quota.flavors[0].resources["cpu"].borrowing_limit is None


@pytest.mark.parametrize(
    ("patch", "gone"),
    [
        ("{kind: LocalQueue, metadata: {name: main, namespace: one}, $patch: delete}", "LocalQueue one/main"),
        ("{kind: NodePool, metadata: {name: gpu}, $patch: delete}", "nodes"),
        ("{kind: KubeSchedulerConfiguration, $patch: delete}", "scheduler"),
    ],
)
def test_patch_delete_of_a_document_deletes_the_object(patch: str, gone: str) -> None:
    """Also of a kind that has no name."""
    changed = patched(patch)
    if gone == "nodes":
        assert not changed.nodes
    elif gone == "scheduler":
        assert changed.scheduler is None
    else:
        assert list(changed.local_queues) == [("two", "main")]
    assert len(changed.manifests) == len(BASE.manifests) - 1


def test_patch_delete_in_an_item_of_a_list_deletes_the_item() -> None:
    """A flavor, a taint, a quota of a tree."""
    flavors = patched(queue("{resourceGroups: [{flavors: [{name: a100, $patch: delete}]}]}"))
    assert [each.flavor for each in flavors.cluster_queues["team-a"].resource_groups[1].flavors] == ["spot"]
    listed = "[{key: gpu, $patch: delete}, {key: spot, value: x}, {key: new, effect: NoExecute}]"
    taints = patched(pool(f"{{template: {{spec: {{taints: {listed}}}}}}}"))
    assert [(each.key, each.value, each.effect) for each in taints.nodes["gpu-0"].taints] == [
        ("spot", "x", "NoSchedule"),
        ("new", "", "NoExecute"),
    ]
    assert list(patched(tree("{children: [{name: b, $patch: delete}]}")).elastic_quotas) == ["root", "a"]


def test_patch_replace_stands_for_the_whole_mapping_item_or_list() -> None:
    """Nothing of what was there is left in it."""
    spec = patched(queue("{$patch: replace, namespaceSelector: {}}")).cluster_queues["team-a"]
    assert (spec.cohort, spec.resource_groups) == ("", ())
    item = """{resourceGroups: [{flavors: [
      {name: a100, $patch: replace, resources: [{name: nvidia.com/gpu, nominalQuota: 1}]}]}]}"""
    assert (
        patched(queue(item))
        .cluster_queues["team-a"]
        .resource_groups[1]
        .flavors[0]
        .resources["nvidia.com/gpu"]
        .nominal
        == 1
    )
    whole = """{resourceGroups: [{$patch: replace}, {coveredResources: [cpu], flavors: [
      {name: any, resources: [{name: cpu, nominalQuota: 1}]}]}]}"""
    assert len(patched(queue(whole)).cluster_queues["team-a"].resource_groups) == 1
    assert (
        patched(queue("{resourceGroups: [{$patch: delete}]}")).cluster_queues["team-a"].resource_groups == ()
    )


def test_lists_without_names_are_replaced() -> None:
    """Namespaces of a quota, expressions of a selector."""
    quota = patched(tree("{children: [{name: a, namespaces: [four], max: {cpu: 8}}]}")).elastic_quotas["a"]
    assert (quota.namespaces, quota.min, quota.max) == (("four",), {"cpu": 8000}, {"cpu": 8000})


def test_a_configuration_without_a_name_is_found_by_its_kind() -> None:
    """Its profile by the scheduler's name, which has a default, and the arguments by their plugin."""
    text = """{kind: KubeSchedulerConfiguration, profiles: [{pluginConfig: [
      {name: InterPodAffinity, args: {hardPodAffinityWeight: 7}}]}]}"""
    assert BASE.scheduler is not None
    assert patched(text).scheduler == replace(BASE.scheduler, hard_pod_affinity_weight=7)


def test_documents_of_one_patch_are_laid_over_one_after_the_other() -> None:
    """A later one of the same object sees what the earlier one changed; a `List` is its items."""
    weight = queue("{fairSharing: {weight: 2}, stopPolicy: Hold}")
    changed = patched(f"{weight}\n---\n{{kind: List, items: [{queue('{fairSharing: {weight: 3}}')}]}}")
    assert changed.cluster_queues["team-a"].weight == 3
    assert changed.cluster_queues["team-a"].stop_policy == "Hold"


def test_a_namespace_and_an_api_version_tell_objects_apart() -> None:
    """Where several have one name; otherwise they may be left out."""
    text = "{kind: LocalQueue, metadata: {name: main, namespace: two}, spec: {stopPolicy: Hold}}"
    assert changes(text) == {"LocalQueue": {"two/main": {"clusterQueue": "team-a", "stopPolicy": "Hold"}}}
    assert told("{kind: LocalQueue, metadata: {name: main}, spec: {stopPolicy: Hold}}") == [
        "document 1, LocalQueue main: metadata.namespace or apiVersion must select one of these: "
        + ", ".join(f"kueue.x-k8s.io/v1beta1 LocalQueue {namespace}/main" for namespace in ("one", "two"))
    ]
    groups = [
        {"apiVersion": f"scheduling.{group}/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}}
        for group, name in (("x-k8s.io", "g"), ("sigs.k8s.io", "g"))
    ]
    groups = [{**each, "spec": {"minMember": 2}} for each in groups]
    groups[1] = {**groups[1], "metadata": {"name": "g", "namespace": "n"}}
    cluster = cluster_from(groups, "groups")
    version = "scheduling.x-k8s.io/v1alpha1"
    one = f"{{kind: PodGroup, metadata: {{name: g}}, apiVersion: {version}, spec: {{minMember: 3}}}}"
    assert changes(one, cluster) == {"PodGroup": {"default/g": {"minMember": "3"}}}


@pytest.mark.parametrize(
    ("patch", "fault"),
    [
        (
            "{kind: ClusterQueu, metadata: {name: a}}",
            "the cluster has no ClusterQueu; did you mean 'ClusterQueue'?",
        ),
        (
            "{kind: ClusterQueue, metadata: {name: team-b}}",
            "there is no ClusterQueue 'team-b'; did you mean 'team-a'?",
        ),
        ("{kind: ClusterQueue, spec: {}}", "metadata.name is missing; there is: team-a"),
        ("{metadata: {name: team-a}}", "must have 'kind' and 'metadata.name'"),
        (
            "{kind: LocalQueue, metadata: {name: main, namespace: x}}",
            "the object is in the namespace one, two, not x",
        ),
        (
            "{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: team-a}}",
            "the object has the apiVersion kueue.x-k8s.io/v1beta2, not kueue.x-k8s.io/v1beta1",
        ),
        (
            queue("{wieght: 2}"),
            "spec.wieght: ClusterQueue has no field wieght in spec; there is: admissionChecks",
        ),
        (queue("{wieght: null}"), "ClusterQueue has no field wieght in spec"),
        (queue("{fairSharing: {wieght: 2}}"), "no field wieght in spec.fairSharing; did you mean 'weight'?"),
        (
            queue("{resourceGroups: [{flavors: [{name: any, resources: [{name: cpu, nominalQouta: 1}]}]}]}"),
            "nominalQouta in spec.resourceGroups[].flavors[].resources[]; did you mean 'nominalQuota'?",
        ),
        (
            queue("{resourceGroups: [{flavors: [{name: any, resources: [{name: cpus, nominalQuota: 1}]}]}]}"),
            "resourceGroups[0].flavors[0].resources[0]: the group does not cover 'cpus'; did you mean 'cpu'?",
        ),
        (
            queue("{resourceGroups: [{flavors: [{name: a10, resources: []}]}]}"),
            "resourceGroups[0]: no resource group has a10; did you mean 'a100'?",
        ),
        (
            queue("{resourceGroups: [{flavors: [{name: spot}, {name: a10}]}]}"),
            (
                "[1]: there is neither a flavor 'a10' in this list nor a ResourceFlavor of that name; "
                "did you mean 'a100'?"
            ),
        ),
        (
            queue("{resourceGroups: [{flavors: [{name: spot}, {name: any}]}]}"),
            "resourceGroups[0]: spans several resource groups; write one item for each group",
        ),
        (
            queue("{resourceGroups: [{flavors: [{name: spot}, {name: a10, $patch: delete}]}]}"),
            "flavors[1]: there is no item with name 'a10' to delete; did you mean 'a100'?",
        ),
        (
            queue("{resourceGroups: [{flavors: [{resources: []}]}]}"),
            "resourceGroups[0]: no resource group has",
        ),
        (queue("{resourceGroups: []}"), "an empty list changes nothing; [{$patch: delete}] deletes the list"),
        (queue("{$patch: remove}"), "spec: $patch must be delete, merge, replace, not 'remove'"),
        (queue("{$retainKeys: [x]}"), "spec: $retainKeys is not supported; use $patch"),
        (
            tree("{children: [{name: c, max: {cpu: 1}}]}"),
            "children[0]: there is no quota 'c' in this list; a new quota must have 'min' and 'max'",
        ),
        (
            pool("{template: {spec: {taints: [{effect: NoSchedule}]}}}"),
            "taints[0]: must have key, which identifies the items of this list",
        ),
        ("[1]", "document 1: must be a Kubernetes object"),
    ],
)
def test_what_cannot_be_meant_is_a_fault_with_its_place_and_what_was_meant(patch: str, fault: str) -> None:
    """Objects, fields and items that are not there, and directives that do not exist."""
    (only,) = told(patch)
    assert fault in only
    assert only.startswith("document 1")


@pytest.mark.parametrize(
    ("patch", "fault"),
    [
        ([], "contains no document; write 'kind', 'metadata.name' and the changed fields"),
        (3, "document 1: must be a Kubernetes object, not 3"),
        ({"kind": "Node", "spec": {1: 2}}, "document 1: the names of fields must be text"),
        ({"kind": {"x"}}, "document 1: {'x'} is a set; write text, numbers, lists and mappings"),
    ],
)
def test_what_no_manifest_could_hold_is_a_fault(patch: Any, fault: str) -> None:
    """Of patches that are given as values."""
    with pytest.raises(ClusterError) as error:
        BASE.patched(patch)
    assert error.value.message == f"the patch: {fault}"


def test_a_patch_without_end_is_a_fault() -> None:
    """A mapping that holds itself is nested too deeply."""
    endless: dict[str, Any] = {"kind": "Node"}
    endless["spec"] = endless
    with pytest.raises(ClusterError, match="nested more than 100 levels"):
        BASE.patched(endless)


def test_all_faults_of_a_patch_come_at_once() -> None:
    """Of every document."""
    text = f"{queue('{a: 1, fairSharing: {b: 2}}')}\n---\n{pool('{c: 3}')}"
    assert [fault.partition(" has no")[0] for fault in told(text)] == [
        "document 1, ClusterQueue team-a: spec.a: ClusterQueue",
        "document 1, ClusterQueue team-a: spec.fairSharing.b: ClusterQueue",
        "document 2, NodePool gpu: spec.c: NodePool",
    ]


def test_a_field_that_the_kind_has_and_nobody_models_is_patched_with_a_warning() -> None:
    """As in manifests."""
    changed = patched(queue("{admissionChecks: [a]}"))
    assert any("spec.admissionChecks is not modelled" in each for each in changed.warnings)


def test_any_label_and_any_annotation_may_be_set_and_deleted() -> None:
    """Their names are free."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one", "labels": {"x": "y"}}}
    cluster = cluster_from([namespace], "n")
    text = "{kind: Namespace, metadata: {name: one, labels: {x: null, z: w}, annotations: {a: b, c: null}}}"
    assert patched(text, cluster).namespaces["one"] == {"z": "w", "kubernetes.io/metadata.name": "one"}


def test_manifests_that_a_patch_makes_faulty_are_named_with_both() -> None:
    """A fault of what was patched says where the patch is, one of what was not, which object it is."""
    limit = queue("{resourceGroups: [{flavors: [{name: any, resources: [{name: cpu, lendingLimit: 9}]}]}]}")
    place = "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit"
    with pytest.raises(ClusterError) as error:
        patched(limit)
    assert error.value.source == "base.yaml with the patch"
    assert [str(fault) for fault in error.value.faults] == [
        f"document 1, ClusterQueue team-a: {place}: must not be more than nominalQuota"
    ]
    scheduling, spec = "scheduling.k8s.io/v1", {"priorityClassName": "c", "containers": [{"name": "c"}]}
    both = [
        {"apiVersion": scheduling, "kind": "PriorityClass", "metadata": {"name": "c"}, "value": 1},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec},
    ]
    gone = "{kind: PriorityClass, metadata: {name: c}, $patch: delete}"
    assert told(gone, cluster_from(both, "n")) == [
        "Pod p: spec.priorityClassName: there is no PriorityClass 'c'; add its manifest, or set spec.priority"
    ]


def test_a_patch_may_be_a_file_or_a_folder(tmp_path: Path) -> None:
    """Faults name its lines, and in a folder the file."""
    file = tmp_path / "folder" / "more.yaml"
    file.parent.mkdir()
    file.write_text(f"# comment\n---\n{queue('{stopPolicy: Hold}')}\n")
    for path in (file, str(file), file.parent):
        changed = BASE.patched(path)
        assert changed.cluster_queues["team-a"].stop_policy == "Hold"
        assert changed.source == f"base.yaml with {path}"
    file.write_text("---\nkind: NodePol\nmetadata: {name: x}\n")
    with pytest.raises(
        ClusterError, match=r"more\.yaml, document 1 \(line 1\), NodePol x: the cluster has no"
    ):
        BASE.patched(file.parent)
    with pytest.raises(ClusterError, match=r"absent\.yaml: cannot be read"):
        BASE.patched(tmp_path / "absent.yaml")


def test_a_scaled_cluster_is_patched_before_it_is_scaled() -> None:
    """The patch speaks of the manifests, whose size the scale multiplies."""
    twice = scaled_cluster(BASE, Fraction(2)).patched(
        {"kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {"count": 3}}
    )
    assert (len(twice.nodes), twice.scale) == (6, 2)
    assert (
        twice.digest
        == scaled_cluster(
            patched("{kind: NodePool, metadata: {name: gpu}, spec: {count: 3}}"), Fraction(2)
        ).digest
    )


def test_a_cluster_that_was_assumed_for_a_trace_can_be_patched() -> None:
    """By the manifests that were assumed; what was assumed is still said."""
    assumed = derive_cluster(["a", "b"], {"cpu": Demand(1000, 8000)}, source="jobs")
    changed = patched("{kind: ClusterQueue, metadata: {name: a}, spec: {fairSharing: {weight: 2}}}", assumed)
    assert changed.cluster_queues["a"].weight == 2
    assert changed.assumed == assumed.assumed
    assert changed.source == "assumed for jobs with the patch"


def test_a_cluster_that_is_not_what_its_manifests_say_is_refused() -> None:
    """A patch of its manifests would undo what was changed in another way."""
    with pytest.raises(InputError, match="has no manifests to change"):
        Cluster().patched({"kind": "Node"})
    with pytest.raises(InputError, match="was changed after it was read"):
        replace(BASE, nodes={}).patched({"kind": "NodePool", "metadata": {"name": "gpu"}})


def test_a_patch_changes_neither_the_cluster_nor_itself_and_the_result_is_a_cluster_like_any() -> None:
    """It can be pickled, patched again, and told by its digest."""
    before = deepcopy(DOCUMENTS)
    patch = yaml.safe_load(
        queue("{fairSharing: {weight: 2}, resourceGroups: [{flavors: [{name: spot, $patch: delete}]}]}")
    )
    kept = deepcopy(patch)
    changed = BASE.patched(patch)
    assert (DOCUMENTS, patch) == (before, kept)
    assert changed.digest != BASE.digest
    assert changed.patched(yaml.safe_load(queue("{stopPolicy: Hold}"))).cluster_queues["team-a"].weight == 2
    assert BASE.patched({"kind": "NodePool", "metadata": {"name": "gpu"}}).digest == BASE.digest


# --- properties -------------------------------------------------------------------------------------------


def every_value(value: Any) -> list[Any]:
    """The value and all values in it."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value, *(each for item in inner for each in every_value(item))]


NAMES = sorted(
    {
        key
        for document in DOCUMENTS
        for each in every_value(document)
        if isinstance(each, dict)
        for key in each
    }
)
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.sampled_from(["any", "cpu", "delete", "x", "3x", "1Gi"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*NAMES, "$patch", "$x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def odd_patches(draw: st.DrawFn) -> dict[str, Any]:
    """An object of the base in which one value is something else, or a field stands that should not."""
    document = deepcopy(draw(st.sampled_from(DOCUMENTS)))
    holders = [each for each in every_value(document) if isinstance(each, (dict, list)) and each]
    holder = draw(st.sampled_from(holders))
    if isinstance(holder, list):
        holder[draw(st.integers(0, len(holder) - 1))] = draw(ODD)
    else:
        holder[draw(st.sampled_from([*holder, "$patch", "x"]))] = draw(ODD)
    return dict(document)


@examples(300)
@given(odd_patches())
def test_no_patch_gives_anything_but_a_cluster_or_an_error_of_ours(patch: dict[str, Any]) -> None:
    """Whatever is written in it."""
    try:
        changed = BASE.patched(patch)
    except HarnessError:
        return
    assert changed.manifests


@pytest.mark.parametrize("at", range(len(DOCUMENTS)))
def test_an_object_laid_over_itself_stays_what_it_is(at: int) -> None:
    """All of it is found again, whatever lists it has."""
    assert BASE.patched(DOCUMENTS[at]).digest == BASE.digest
    reordered = deepcopy(DOCUMENTS[at])
    for each in every_value(reordered):
        if isinstance(each, list) and each and isinstance(each[0], dict):
            each.reverse()
    assert BASE.patched(reordered).digest == BASE.digest

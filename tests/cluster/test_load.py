"""Rules of loading manifests from files, and that no input gives anything but named faults."""

from __future__ import annotations

import json
from collections.abc import Callable
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

from harness.base.errors import ClusterError
from harness.cluster.coverage.not_read import NOT_READ
from harness.cluster.load import cluster_from, load_cluster
from harness.cluster.manifests import KUEUE, dump_yaml, to_manifests
from harness.cluster.model import Cluster, Node

TEXT = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
spec: {taints: [{key: gpu, effect: NoSchedule}]}
status: {allocatable: {cpu: 7910m, memory: 62Gi}}
---
apiVersion: harness/v1
kind: NodePool
metadata: {name: p}
spec: {count: 3, template: {metadata: {labels: {zone: b}}, allocatable: {cpu: "4", nvidia.com/gpu: 8}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {dep: eng}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
globalDefault: true
---
apiVersion: v1
kind: List
items:
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: ResourceFlavor
  metadata: {name: spot}
  spec: {nodeLabels: {a: b}, nodeTaints: [{key: s, effect: NoExecute}], tolerations: [{operator: Exists}]}
- apiVersion: kueue.x-k8s.io/v1beta2
  kind: ClusterQueue
  metadata: {name: q}
  spec:
    cohortName: c
    namespaceSelector: {matchExpressions: [{key: dep, operator: In, values: [eng]}]}
    fairSharing: {weight: 500m}
    preemption:
      reclaimWithinCohort: Any
      borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 5}
    flavorFungibility: {whenCanBorrow: TryNextFlavor}
    resourceGroups:
    - coveredResources: [cpu, memory]
      flavors:
      - name: spot
        resources:
        - {name: cpu, nominalQuota: 4, borrowingLimit: "2", lendingLimit: 500m}
        - {name: memory, nominalQuota: 1Ti}
- apiVersion: kueue.x-k8s.io/v1alpha1
  kind: Cohort
  metadata: {name: c}
  spec: {parent: root}
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: LocalQueue
  metadata: {name: main, namespace: team}
  spec: {clusterQueue: q}
- apiVersion: kueue.x-k8s.io/v1beta2
  kind: WorkloadPriorityClass
  metadata: {name: prod}
  value: 7
"""
DOCUMENTS: list[dict[str, Any]] = list(yaml.safe_load_all(TEXT))


def write(folder: Path, content: str | bytes, name: str = "cluster.yaml") -> Path:
    """A file in a folder."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def faults_of(path: Path) -> list[str]:
    """All faults of a file."""
    with pytest.raises(ClusterError) as caught:
        load_cluster(path)
    assert caught.value.source == str(path)
    return [str(fault) for fault in caught.value.faults]


def test_one_file_holds_several_kinds(tmp_path: Path) -> None:
    """All that the examples hold, and no warning."""
    cluster = load_cluster(write(tmp_path, TEXT))
    assert list(cluster.nodes) == ["n1", "p-0", "p-1", "p-2"]
    assert list(cluster.cohorts) == ["c", "root"]
    assert cluster.cluster_queue_of("team", "main") is cluster.cluster_queues["q"]
    assert cluster.capacity == {"cpu": 19_910, "memory": 62 * 2**30, "nvidia.com/gpu": 24}
    assert cluster.warnings == ()
    assert cluster.source == str(tmp_path / "cluster.yaml")


def test_yaml_json_and_lists_give_the_same_cluster(tmp_path: Path) -> None:
    """The form of a file is not part of its content, nor of its digest."""
    flat = [item for document in DOCUMENTS for item in document.get("items", [document])]
    as_list = {"apiVersion": "v1", "kind": "List", "items": flat, "metadata": {"resourceVersion": ""}}
    clusters = [
        load_cluster(write(tmp_path, TEXT)),
        load_cluster(write(tmp_path, json.dumps(as_list), "a.json")),
        load_cluster(write(tmp_path, yaml.safe_dump(as_list), "b.yaml")),
        load_cluster(write(tmp_path, b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(), "c.yaml")),
        cluster_from(DOCUMENTS, "memory"),
    ]
    assert len({cluster.digest for cluster in clusters}) == 1
    for cluster in clusters[1:]:
        assert cluster.cluster_queues == clusters[0].cluster_queues
        assert cluster.nodes == clusters[0].nodes
        assert cluster.manifests == clusters[0].manifests


def test_digest_changes_with_the_content() -> None:
    """Any value that is modelled counts."""
    changed = deepcopy(DOCUMENTS)
    changed[0]["status"]["allocatable"]["cpu"] = "7911m"
    assert cluster_from(changed, "").digest != cluster_from(DOCUMENTS, "").digest


def test_digest_tells_changed_clusters_apart() -> None:
    """A cluster that is made or changed in Python is another one, whatever its manifests say."""
    loaded = cluster_from(DOCUMENTS, "a")
    queue = replace(loaded.cluster_queues["q"], weight=Fraction(3))
    changed = replace(loaded, cluster_queues={"q": queue})
    made = [
        Cluster(),
        Cluster(nodes={"n": Node("n", {"cpu": 1})}),
        Cluster(nodes={"n": Node("n", {"cpu": 2})}),
    ]
    assert len({cluster.digest for cluster in (loaded, changed, *made)}) == 5
    assert replace(loaded, source="b", warnings=("x",), assumed=("y",)).digest == loaded.digest


def test_typed_list_gives_its_items_their_kind() -> None:
    """The API server leaves kind and version out of the items of such a list."""
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 1}}}
    empty = {"apiVersion": "v1", "kind": "PodList", "items": None}  # as Go writes an empty list
    cluster = cluster_from([{"apiVersion": "v1", "kind": "NodeList", "items": [node]}, empty], "test")
    assert list(cluster.nodes) == ["n"]


def test_kinds_that_are_not_read_are_counted() -> None:
    """A warning names each with its group and count, so that nothing is left out in silence."""
    others = [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": str(n)}} for n in range(3)]
    others.append({"apiVersion": "example.com/v1", "kind": "Node", "metadata": {"name": "x"}})
    cluster = cluster_from(others, "test")
    assert cluster.warnings == (
        f"Job (batch/v1): 3 objects are not read: {NOT_READ['batch', 'Job']}",
        "Node (example.com/v1): 1 object is not read",
    )
    assert cluster.nodes == {}


def test_unknown_version_of_a_known_kind_is_a_fault() -> None:
    """Its fields may mean something else."""
    queue = {"apiVersion": "kueue.x-k8s.io/v9", "kind": "ClusterQueue", "metadata": {"name": "q"}}
    with pytest.raises(ClusterError) as caught:
        cluster_from([queue], "test")
    assert str(caught.value) == (
        "test: document 1, ClusterQueue q: apiVersion: kueue.x-k8s.io/v9 is not supported; "
        "use kueue.x-k8s.io/v1beta1 or kueue.x-k8s.io/v1beta2"
    )


def test_number_that_python_cannot_write_is_a_fault() -> None:
    """Messages stay short whatever the value."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": 10**5000},
        "status": {"capacity": {"cpu": 10**5000}},
    }
    with pytest.raises(ClusterError) as caught:
        cluster_from([node], "test")
    assert [fault.what for fault in caught.value.faults] == [
        "must be text, not a number that is too long to show (put it in quotes)",
        "a whole number of more than 64 digits is not a quantity",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "holds no manifest"),
        ("# nothing\n---\n", "holds no manifest"),
        ("- a", "document 1 (line 1): must be a Kubernetes object, not ['a']"),
        ("\n\nx", "document 1 (line 1): must be a Kubernetes object, not 'x'"),
        (
            "NAME A\nb",
            "document 1 (line 1): must be a Kubernetes object, not 'NAME A b'; add -o yaml to kubectl get",
        ),
        ("a: 1", "document 1 (line 1): must have 'kind' and 'apiVersion', both as text"),
        ("kind: Node\napiVersion: 1", "document 1 (line 1): must have 'kind' and 'apiVersion', both as text"),
        ("kind: List\napiVersion: v1\nitems: 3", "document 1 (line 1): items: must be a list, not 3"),
        (
            "kind: List\napiVersion: v1\nitems: [3]",
            "document 1 (line 1), item 1: must be a Kubernetes object, not 3",
        ),
        (b"a:\n \xff", "is not UTF-8 text: byte 4 (line 2) is 0xff"),
    ],
)
def test_what_is_no_manifest_is_a_fault(tmp_path: Path, text: str | bytes, fault: str) -> None:
    """The place and the reason."""
    assert faults_of(write(tmp_path, text)) == [fault]


def test_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    """Absent, or a name that no file can have."""
    assert faults_of(tmp_path / "absent.yaml") == ["cannot be read: No such file or directory"]
    assert faults_of(tmp_path / "a\0b")[0].startswith("cannot be read: ")


def test_every_fault_says_document_object_and_field(tmp_path: Path) -> None:
    """Faults of text, of fields and between objects, all at once."""
    text = TEXT.replace("count: 3", "count: x").replace("globalDefault: true", "value: 2")
    lacking = "there is no PriorityClass 'none'; add its manifest, or set spec.priority"
    text += "---\n{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {priorityClassName: none}}\n"
    assert faults_of(write(tmp_path, text)) == [
        "document 4 (line 15), line 20: 'value' is given twice in one mapping",
        "document 2 (line 6), NodePool p: spec.count: must be a whole number, not 'x'",
        f"document 6 (line 59), Pod x: spec.priorityClassName: {lacking}",
    ]


def test_broken_document_does_not_make_others_seem_wrong(tmp_path: Path) -> None:
    """A reference into a document that cannot be read is no fault."""
    text = TEXT.replace("cohortName: c", "cohortName: [").replace("count: 3", "count: 0")
    assert [fault.split(": ")[0] for fault in faults_of(write(tmp_path, text))] == [
        "document 5 (line 21), line 35",
        "document 2 (line 6), NodePool p",
    ]


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**200),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(
        ["-1", "1e99", "9" * 30, "a/b/c", "v1", "Node", "kueue.x-k8s.io/v1beta1", [], {}, [{}], {"": 1}]
    ),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a value: what holds it, and the key or index there."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        found.append((value, key))
        found += places(value[key])
    return found


def unfit_faults(make: Callable[[], object]) -> list[str]:
    """Faults that nobody could read, of a call that may raise ClusterError and nothing else."""
    try:
        make()
    except ClusterError as error:
        found = [str(fault) for fault in error.faults]
    else:
        return []
    return [fault for fault in found or [""] if not 0 < len(fault) < 1000]


@examples(300)
@given(st.data())
def test_mutated_manifests_give_a_cluster_or_faults(data: st.DataObject) -> None:
    """Values deleted, doubled or replaced by others of any type."""
    documents: Any = deepcopy(DOCUMENTS)
    for _ in range(data.draw(st.integers(1, 4))):
        holder, key = data.draw(st.sampled_from(places(documents)))
        match data.draw(st.sampled_from(["delete", "replace", "rename", "double"])):
            case "replace":
                holder[key] = data.draw(JUNK)
            case "rename" if isinstance(holder, dict):
                holder[data.draw(st.text(max_size=4))] = holder.pop(key)
            case "double" if isinstance(holder, list):
                holder.append(deepcopy(holder[key]))
            case _:
                del holder[key]
        if not places(documents):
            break
    assert unfit_faults(lambda: cluster_from(documents, "mutated").digest) == []


@examples(200, fixtures=True)
@given(data=st.data())
def test_mutated_text_gives_a_cluster_or_faults(tmp_path: Path, data: st.DataObject) -> None:
    """Text cut short, with pieces left out or other bytes in between."""
    content = TEXT.encode()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(start + 40, len(content))))
        content = content[:start] + data.draw(st.binary(max_size=4)) + content[end:]
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    assert unfit_faults(lambda: load_cluster(write(tmp_path, content))) == []


@examples(200, fixtures=True)
@given(content=st.binary(max_size=80))
def test_random_bytes_give_faults(tmp_path: Path, content: bytes) -> None:
    """Anything at all may be in a file."""
    assert unfit_faults(lambda: load_cluster(write(tmp_path, content))) == []


def test_a_folder_is_read_file_by_file_in_the_order_of_paths(tmp_path: Path) -> None:
    """Its manifests and those of folders in it; hidden files, and files of other endings, are left out."""
    for path, kind in (("b/q.yaml", "b"), ("a.json", "a"), ("b/c/d.yml", "d")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kind}}
        (tmp_path / path).write_text(json.dumps(namespace))
    for path in ("README.md", ".hidden.yaml", ".git/x.yaml"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("a: b: c")
    assert list(load_cluster(tmp_path).namespaces) == ["a", "d", "b"]
    assert load_cluster(str(tmp_path)) == load_cluster(tmp_path)


def test_a_fault_in_a_folder_names_the_file(tmp_path: Path) -> None:
    """By its path in the folder, also for what one file has and another repeats."""
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}"
    (tmp_path / "a.yaml").write_text(namespace)
    (tmp_path / "b.yaml").write_text(f"{namespace}\n---\n: x: y\n")
    with pytest.raises(ClusterError) as error:
        load_cluster(tmp_path)
    told = [str(fault) for fault in error.value.faults]
    assert told[0].startswith("b.yaml, document 2 (line 2), line 3: not valid YAML")
    assert told[1] == (
        "b.yaml, document 1 (line 1), Namespace team: is given twice; "
        "the first is in a.yaml, document 1 (line 1), Namespace team"
    )


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("README.md", "is a folder without .json, .yaml, .yml files", None),
        ("deep/kustomization.yaml", "deep/kustomization.yaml: is an input of kustomize", "kubectl kustomize"),
        ("empty.yaml", "holds no manifest", "kubectl get"),
    ],
)
def test_a_folder_that_is_no_cluster_is_refused(
    name: str, message: str, hint: str | None, tmp_path: Path
) -> None:
    """Also one that only kustomize can read."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    with pytest.raises(ClusterError) as error:
        load_cluster(tmp_path)
    assert message in error.value.message
    assert hint is None or hint in (error.value.hint or "")


def test_names_that_yaml_1_1_takes_for_booleans_are_text_and_told(tmp_path: Path) -> None:
    """PyYAML writes `name: n` for an object that is called n; what is written out again is read the same."""
    text = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: n, labels: {x: no}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: y}
spec:
  cohortName: on
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: n, resources: [{name: cpu, nominalQuota: 0o14}]}]
"""
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    cluster = load_cluster(path)
    assert list(cluster.flavors) == ["n"]
    queue = cluster.cluster_queues["y"]
    assert (queue.cohort, queue.resource_groups[0].flavors[0].resources["cpu"].nominal) == ("on", 12_000)
    told = "is text here, but an API server reads"
    assert f"ResourceFlavor n: metadata.name {told} n without quotes as a boolean" in cluster.warnings
    assert f"ClusterQueue y: spec.cohortName {told} on without quotes as a boolean" in cluster.warnings
    again = tmp_path / "again.yaml"
    again.write_text(dump_yaml(to_manifests(cluster)))
    assert load_cluster(again).digest == cluster.digest
    assert load_cluster(again).warnings == cluster.warnings


def test_workloads_without_any_cluster_queue_are_told(tmp_path: Path) -> None:
    """A dump that lacks its queues says nothing about who waits; Workloads that have ended do not matter."""
    running = {"name": "a", "namespace": "team"}
    ended = {"conditions": [{"type": "Finished", "status": "True", "reason": "Succeeded"}]}
    pods = {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}]}
    documents: list[dict[str, Any]] = [
        {"apiVersion": KUEUE, "kind": "Workload", "metadata": running, "spec": {**pods, "queueName": "q"}},
        {
            "apiVersion": KUEUE,
            "kind": "Workload",
            "metadata": {**running, "name": "b"},
            "spec": pods,
            "status": ended,
        },
    ]
    sentence = (
        "Workload team/a: is left out, because the manifests have no ClusterQueue; add what kubectl get"
    )
    assert [each for each in cluster_from(documents, "x").warnings if each.startswith(sentence)]
    documents.append({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {}})
    assert "no ClusterQueue" not in "".join(cluster_from(documents, "x").warnings)

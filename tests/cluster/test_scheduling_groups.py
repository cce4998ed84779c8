"""Rules of reading kube-scheduler's own pod groups, and what is said about them before a replay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from harness.base.errors import ClusterError
from harness.cli.cluster import cluster as command
from harness.cluster.content import content
from harness.cluster.kinds.scheduling_groups import GroupReference, SchedulingGroup, read_group_reference
from harness.cluster.load import cluster_from
from harness.cluster.yaml.fields import Fields
from harness.models.ignored import ignored_scheduling_groups
from harness.plugins import load
from harness.trace.trace import open_trace
from harness.trace.warnings import unreached

FOR_EVER = "they wait forever if kube-scheduler's own gang scheduling is on"
NOT_THERE = (
    "which does not exist: its pods wait forever if kube-scheduler's own gang scheduling is on, "
    "or are placed one by one if it is off"
)


def workload(name: str, *groups: dict[str, Any], version: str = "v1alpha1", **spec: Any) -> dict[str, Any]:
    """A Workload of the namespace `team`."""
    listed = "podGroups" if version == "v1alpha1" else "podGroupTemplates"
    return manifest("Workload", name, version, {listed: list(groups), **spec})


def pod_group(name: str, version: str = "v1alpha2", **spec: Any) -> dict[str, Any]:
    """A PodGroup of the namespace `team`."""
    return manifest("PodGroup", name, version, spec)


def manifest(kind: str, name: str, version: str, spec: Any) -> dict[str, Any]:
    """An object of the namespace `team`."""
    metadata = {"name": name, "namespace": "team"}
    return {"apiVersion": f"scheduling.k8s.io/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A Pod of the namespace `team`."""
    spec = {"containers": [{"name": "c"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "team"}, "spec": spec}


def gang(least: int) -> dict[str, Any]:
    """The policy of a gang."""
    return {"gang": {"minCount": least}}


def test_groups_of_workloads_and_pod_groups_are_read_in_all_versions() -> None:
    """By namespace, Workload and name; a Workload of a later version has templates, which are no groups."""
    workers = {"name": "workers", "policy": gang(4)}
    found = cluster_from(
        [
            workload(
                "train", workers, {"name": "driver", "policy": {"basic": {}}}, controllerRef={"name": "j"}
            ),
            workload("later", {"name": "w", "schedulingPolicy": gang(4)}, version="v1alpha2"),
            workload("last", {"name": "w", "schedulingPolicy": gang(4)}, version="v1beta1"),
            pod_group(
                "a", schedulingPolicy=gang(2), podGroupTemplateRef={"workload": {"workloadName": "later"}}
            ),
            pod_group("b", "v1beta1", schedulingPolicy=gang(3), disruptionMode={"single": {}}),
            pod_group("c", "v1alpha3", schedulingPolicy={"basic": {}}),
        ],
        "test",
    )
    assert found.scheduling_groups == {
        ("team", "train", "workers"): SchedulingGroup("workers", "team", "train", 4),
        ("team", "train", "driver"): SchedulingGroup("driver", "team", "train", None),
        ("team", "", "a"): SchedulingGroup("a", "team", "", 2),
        ("team", "", "b"): SchedulingGroup("b", "team", "", 3),
        ("team", "", "c"): SchedulingGroup("c", "team", "", None),
    }
    assert found.warnings == ()


def test_faults_of_groups_come_all_at_once() -> None:
    """No policy or two, no minCount, one below 1 or that is no number, a name twice, and too many groups."""
    named = [{"name": f"g{number}", "policy": gang(1)} for number in range(9)]
    with pytest.raises(ClusterError) as caught:
        cluster_from(
            [
                workload("w", {"policy": {}}, {"name": "a", "policy": {"gang": {}, "basic": {}}}),
                workload("twice", {"name": "a", "policy": gang(1)}, {"name": "a", "policy": gang(1)}),
                workload("none"),
                workload("many", *named),
                pod_group("x"),
                pod_group("y", schedulingPolicy=gang(0)),
                pod_group("z", schedulingPolicy={"gang": {"minCount": "2"}}),
                pod_group("z", schedulingPolicy=gang(1)),
            ],
            "test",
        )
    assert [str(fault).split(", ", 1)[1] for fault in caught.value.faults] == [
        "Workload team/w: spec.podGroups[0].name: is missing",
        "Workload team/w: spec.podGroups[0].policy: must have either basic or gang",
        "Workload team/w: spec.podGroups[1].policy: must have either basic or gang",
        "Workload team/w: spec.podGroups[1].policy.gang.minCount: is missing",
        (
            "Workload team/twice: spec.podGroups[1]: is given twice; "
            "the first is in document 2, Workload team/twice"
        ),
        "Workload team/none: spec.podGroups: must name 1 to 8 pod groups, not 0",
        "Workload team/many: spec.podGroups: must name 1 to 8 pod groups, not 9",
        "PodGroup team/x: spec.schedulingPolicy: is missing",
        "PodGroup team/y: spec.schedulingPolicy.gang.minCount: 0 is out of range (1 to 2147483647)",
        "PodGroup team/z: spec.schedulingPolicy.gang.minCount: must be a whole number, not '2'",
        "PodGroup team/z: is given twice; the first is in document 7, PodGroup team/z",
    ]


def test_unknown_fields_and_those_of_other_features_are_warned_of() -> None:
    """A misspelt one, and what a group asks for beyond its policy."""
    found = cluster_from(
        [
            workload("w", {"name": "a", "policy": gang(2), "replicas": 3}),
            pod_group("g", schedulingPolicy={"gang": {"minCount": 1, "mincount": 2}}, priority=7),
            manifest("CompositePodGroup", "c", "v1alpha3", {}),
        ],
        "test",
    )
    assert found.warnings == (
        "Workload team/w: spec.podGroups[].replicas is not modelled: no such field is known",
        (
            "PodGroup team/g: spec.schedulingPolicy.gang.mincount is not modelled: no such field is known; "
            "did you mean 'minCount'?"
        ),
        (
            "PodGroup team/g: spec.priority is not modelled: "
            "each pod of the group preempts, and is preempted, individually and by its own priority"
        ),
        (
            "CompositePodGroup (scheduling.k8s.io/v1alpha3): 1 object is not read: "
            "harness schedules each pod group on its own, as if it belonged to no group of groups"
        ),
    )


def test_pods_name_groups_in_both_spellings() -> None:
    """`workloadRef` of v1.35 and `schedulingGroup` of later versions."""
    reference = {"name": "train", "podGroup": "workers", "podGroupReplicaKey": "0"}
    found = cluster_from(
        [
            workload("train", {"name": "workers", "policy": gang(1)}),
            pod_group("a", schedulingPolicy=gang(1)),
            pod("p", workloadRef=reference),
            pod("q", schedulingGroup={"podGroupName": "a"}),
            pod("r"),
        ],
        "test",
    )
    assert [each.group for each in found.pods] == [
        GroupReference("workers", "train", "0"),
        GroupReference("a"),
        None,
    ]
    assert found.warnings == ()


def test_references_that_say_no_group_are_faults() -> None:
    """Without a name, of another type, or two of them."""
    reference = {"name": "train", "podGroup": "workers"}
    with pytest.raises(ClusterError) as caught:
        cluster_from(
            [
                pod("p", workloadRef={"name": "train"}),
                pod("q", schedulingGroup={"podGroupName": 7}),
                pod("r", schedulingGroup=[]),
                pod("s", schedulingGroup={"podGroupName": "a"}, workloadRef=reference),
            ],
            "test",
        )
    assert [str(fault).split(", ", 1)[1] for fault in caught.value.faults] == [
        "Pod team/p: spec.workloadRef.podGroup: is missing",
        "Pod team/q: spec.schedulingGroup.podGroupName: must be text, not 7 (put it in quotes)",
        "Pod team/r: spec.schedulingGroup: must be a mapping of names to values, not []",
        "Pod team/r: spec.schedulingGroup.podGroupName: is missing",
        (
            "Pod team/s: spec.schedulingGroup: cannot be combined with workloadRef, because a pod belongs to "
            "one group"
        ),
    ]


def test_pods_that_wait_and_name_a_group_that_is_not_there_are_warned_of() -> None:
    """Those that run have been placed already."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {}}}
    reference = {"podGroupName": "a"}
    found = cluster_from(
        [node, pod("p", schedulingGroup=reference), pod("q", schedulingGroup=reference, nodeName="n")], "test"
    )
    assert found.warnings == (f"Pod team/p: names PodGroup team/a, {NOT_THERE}",)


def test_odd_groups_are_named_before_the_replay(write_trace: Callable[..., Path]) -> None:
    """Those that are not there, that nobody names, or with fewer pods than minCount, replica by replica."""
    references = [
        {"schedulingGroup": {"podGroupName": "fine"}},
        {"workloadRef": {"name": "train", "podGroup": "workers", "podGroupReplicaKey": "0"}},
        {"spec": {"workloadRef": {"name": "train", "podGroup": "workers", "podGroupReplicaKey": "1"}}},
        {"schedulingGroup": {"podGroupName": "gone"}},
        {},
    ]
    jobs = [
        {"namespace": "team", "pods": 3 if number < 2 else 2, "pod_template": json.dumps(each)}
        for number, each in enumerate(references)
    ]
    objects = [
        pod_group("fine", schedulingPolicy=gang(4)),
        pod("p", schedulingGroup={"podGroupName": "fine"}),
        pod_group("empty", schedulingPolicy={"basic": {}}),
        workload("train", {"name": "workers", "policy": gang(3)}),
    ]
    trace = open_trace(write_trace(*jobs), load())
    assert list(unreached(trace, cluster_from(objects, "test"))) == [
        f"job j3: pod_template names PodGroup team/gone, {NOT_THERE}",
        "PodGroup team/empty: no pod of the trace or the manifests names this group",
        (
            "Workload team/train, pod group workers, replica 1: has 2 pods in the trace and the manifests, "
            f"but its minCount is 3: {FOR_EVER}"
        ),
    ]


@pytest.mark.parametrize(
    ("plugin", "options", "said"),
    [
        ("none", {"gang": "pods"}, 1),
        ("none", {"gang": "all-or-nothing"}, 1),
        ("default-preemption", {"gang": "all-or-nothing", "gangScheduling": False}, 1),
        ("default-preemption", {"gang": "pods", "gangScheduling": True}, 0),
        ("backfill", {}, 1),
        ("elasticquota", {"gang": None, "semantics": "ack"}, 1),
        ("auto", {"gang": None, "semantics": "koordinator"}, 1),
        ("kueue-classic", {"admissionCheckDelay": "0s"}, 1),
        ("fairsharing", {"admissionCheckDelay": "0s"}, 1),
    ],
)
def test_plugins_say_that_groups_do_not_count(plugin: str, options: dict[str, Any], said: int) -> None:
    """Wherever kube-scheduler's own gangs are off."""
    machine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {}}}
    groups = [workload("w", {"name": "a", "policy": gang(2)}), pod_group("b", schedulingPolicy=gang(2))]
    cluster = cluster_from([machine, *groups], "test")
    (sentence,) = ignored_scheduling_groups(cluster)
    assert sentence.startswith("Workload team/w, pod group a and 1 more: minCount has no effect, because ")
    ignored_fields = load().policy(plugin).ignored_fields
    assert ignored_fields is not None
    assert list(ignored_fields(cluster, options)).count(sentence) == said


def test_page_groups_are_those_that_its_references_name() -> None:
    """The example is read, and the two references of the page are to its two groups."""
    page = Path(__file__).parents[2] / "docs" / "kube-scheduler.md"
    text = page.read_text(encoding="utf-8").split("## kube-scheduler's own gangs")[1]
    lines = text[text.index("    apiVersion") :].split("\n\n")[0].splitlines()
    found = cluster_from(yaml.safe_load_all("\n".join(line[4:] for line in lines)), "test").scheduling_groups
    references = [json.loads(each) for each in re.findall(r"`(\{.*?\}\})`", text)]
    named = [read_group_reference(Fields(each, "page", [])) for each in references]
    assert [each.key("default") for each in named if each is not None] == list(found)
    assert [each.min_count for each in found.values()] == [4, 4]


def test_check_counts_and_lists_the_groups(tmp_path: Path) -> None:
    """With their minCount, null for the policy basic; runs keep them by namespace, Workload and name."""
    groups = [workload("w", {"name": "a", "policy": gang(2)}), pod_group("b", schedulingPolicy={"basic": {}})]
    path = tmp_path / "groups.yaml"
    path.write_text("\n---\n".join(map(json.dumps, groups)))
    told = CliRunner().invoke(command, ["check", str(path)])
    assert told.output.splitlines()[0].endswith("2 scheduling groups")
    listed = CliRunner().invoke(command, ["check", str(path), "--json"])
    assert json.loads(listed.output)["scheduling_groups"] == [
        {"namespace": "team", "workload": "w", "name": "a", "min_count": 2},
        {"namespace": "team", "workload": "", "name": "b", "min_count": None},
    ]
    kept = content(cluster_from(groups, "test"))["objects"]["pod group of kube-scheduler"]
    assert kept == {"team/b": {}, "team/w/a": {"workload": "w", "minCount": "2"}}

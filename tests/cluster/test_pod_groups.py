"""Rules of reading pod groups, and what is said about them before a replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import ClusterError
from harness.cluster.kinds.pod_groups import Membership, PodGroup, membership_of
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.trace.trace import open_trace
from harness.trace.warnings import unreached

LIGHT = "pod-group.scheduling.sigs.k8s.io"


def group(name: str = "g", api: str = "scheduling.x-k8s.io", **spec: Any) -> dict[str, Any]:
    """A PodGroup of the namespace `team`."""
    return {
        "apiVersion": f"{api}/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "team"},
        "spec": spec,
        "status": {"phase": "Running"},
    }


def test_pod_groups_of_both_api_groups_are_read() -> None:
    """By namespace and name."""
    found = cluster_from([group("a", minMember=2), group("b", "scheduling.sigs.k8s.io", minMember=3)], "test")
    assert found.pod_groups == {
        ("team", "a"): PodGroup("a", "team", 2),
        ("team", "b"): PodGroup("b", "team", 3),
    }
    assert found.warnings == ()


def test_pod_group_faults_come_all_at_once() -> None:
    """No minMember, one below 1, one that is no number, and a second group of the name."""
    with pytest.raises(ClusterError) as caught:
        cluster_from(
            [group("a"), group("b", minMember=0), group("c", minMember="2"), group("a", minMember=1)], "test"
        )
    assert [str(fault).split(": ", 1)[1] for fault in caught.value.faults] == [
        "spec.minMember: is missing",
        "spec.minMember: 0 is out of range (1 to 2147483647)",
        "spec.minMember: must be a whole number, not '2'",
        "is given twice; the first is in document 1, PodGroup team/a",
    ]


def test_fields_without_effect_are_warned_of() -> None:
    """What coscheduling does with them, and what is assumed instead."""
    found = cluster_from([group(minMember=1, minResources={"cpu": 1}, scheduleTimeoutSeconds=9)], "test")
    assert found.warnings == (
        (
            "PodGroup team/g: spec.minResources is not modelled: "
            "kube-scheduler tries the group even if less than these resources are free in the whole cluster"
        ),
        (
            "PodGroup team/g: spec.scheduleTimeoutSeconds is not modelled: "
            "harness places all pods of a group at once, so no pod waits for the "
            "others until this time is over"
        ),
    )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"scheduling.x-k8s.io/pod-group": "g"}, 2),
        ({LIGHT: "g"}, 2),
        ({f"{LIGHT}/name": "g"}, 2),
        ({f"{LIGHT}/name": "g", f"{LIGHT}/min-available": "5"}, 2),  # the PodGroup counts
        ({f"{LIGHT}/name": "other", f"{LIGHT}/min-available": "5"}, 5),
        ({f"{LIGHT}/name": "other", f"{LIGHT}/min-available": "0"}, None),
        ({f"{LIGHT}/name": "other", f"{LIGHT}/min-available": "5.0"}, None),
        ({f"{LIGHT}/name": "other", f"{LIGHT}/min-available": "99999999999"}, None),
        ({f"{LIGHT}/name": "other"}, None),
        ({f"{LIGHT}/min-available": "5"}, None),
        ({}, None),
    ],
)
def test_membership(labels: dict[str, str], expected: int | None) -> None:
    """A label names the group; its PodGroup says how large it is, else a label."""
    groups = {("team", "g"): PodGroup("g", "team", 2)}
    found = membership_of("team", labels, groups)
    assert (found.least if found else None) == expected
    assert membership_of("team", {LIGHT: "g"}, groups) == Membership("team", "g", 2)
    assert membership_of("elsewhere", {LIGHT: "g"}, groups) is None


@pytest.mark.parametrize(
    ("plugin", "options", "heeded"),
    [
        ("none", {"gang": "pods"}, False),
        ("none", {"gang": "all-or-nothing"}, True),
        ("default-preemption", {"gang": "pods"}, False),
        ("elasticquota", {"gang": None, "semantics": "ack"}, True),
        ("auto", {"gang": None, "semantics": "koordinator"}, False),
        ("kueue-classic", {"admissionCheckDelay": "0s"}, False),
        ("fairsharing", {"admissionCheckDelay": "0s"}, False),
    ],
)
def test_plugins_say_that_pod_groups_do_not_count(plugin: str, options: dict[str, Any], heeded: bool) -> None:
    """Where pods are placed one by one, or jobs start as a whole."""
    machine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {}}}
    where = cluster_from([machine, group(minMember=2), group("b", minMember=2)], "test")
    ignored_fields = load().policy(plugin).ignored_fields
    assert ignored_fields is not None
    said = list(ignored_fields(where, options))
    assert [each.split(": ")[0] for each in said] == ([] if heeded else ["PodGroup team/g and 1 more"])


def named(name: str, least: str) -> list[dict[str, str]]:
    """Labels of a group as a trace has them."""
    labels = {f"{LIGHT}/name": name, f"{LIGHT}/min-available": least}
    return [{"key": key, "value": value} for key, value in labels.items()]


def test_odd_groups_are_named_before_the_replay(write_trace: Callable[..., Path]) -> None:
    """Without pods, with too few, of unknown or two sizes, and gangs that may be placed in part."""
    rows = [
        ("fine", {"gang": False}, "g"),
        ("part", {"gang": True}, "g"),
        ("part", {}, "by-default"),
        ("small", {}, "g"),
        ("unknown", {}, "g"),
    ]
    common = {"namespace": "team", "pods": 3, "gang": None}
    jobs = [{**common, **fields, "labels": named(f"{name}-{rest}", "x")} for name, fields, rest in rows]
    jobs += [{**common, "labels": named("two", size)} for size in ("4", "5")]
    sizes = {"fine-g": 2, "part-g": 2, "part-by-default": 2, "small-g": 4, "empty": 1}
    groups = [group(name, minMember=least) for name, least in sizes.items()]
    web = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "team", "labels": {LIGHT: "part-g"}},
        "spec": {"containers": [{"name": "c"}]},
    }
    said = list(unreached(open_trace(write_trace(*jobs), load()), cluster_from([*groups, web], "test")))
    assert [each.split(":")[0] for each in said] == [
        "pod group team/unknown-g",
        "pod group team/two",
        "PodGroup team/empty",
        "pod group team/part-g, team/part-by-default, team/two",
        "pod group team/small-g",
    ]
    assert "until then, its bound pods hold nodes without progress" in said[3]
    assert "they wait forever" in said[4]

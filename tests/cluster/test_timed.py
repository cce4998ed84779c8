"""Manifests and patches with a time: what holds when, what counts as a change, what is said of faults."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from harness.base.errors import ClusterError, HarnessError
from harness.base.units import DAY, HOUR, SECOND, parse_duration
from harness.cluster.changes.edits import Instant
from harness.cluster.changes.over_time import unrolled
from harness.cluster.changes.scale import scaled_cluster
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster

QUEUE: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "a"},
    "spec": {
        "cohortName": "all",
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": ["cpu", "gpu"],
                "flavors": [
                    {
                        "name": "any",
                        "resources": [{"name": "cpu", "nominalQuota": 8}, {"name": "gpu", "nominalQuota": 2}],
                    }
                ],
            }
        ],
    },
}
FLAVOR = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "any"}}


def at(begin: str | None, end: str | None = None, name: str = "a", **spec: Any) -> dict[str, Any]:
    """A patch of a ClusterQueue with a time."""
    times = {"harness/from": begin, "harness/until": end}
    annotations = {key: time for key, time in times.items() if time is not None}
    return {"kind": "ClusterQueue", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def cpu(amount: object) -> list[dict[str, Any]]:
    """Resource groups of a patch that set a nominal quota of cpu."""
    return [{"flavors": [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": amount}]}]}]


def quotas(cluster: Cluster) -> list[tuple[int, int | None]]:
    """When the cpu of queue `a` changes, in hours, and to how many cores; None where the queue is gone."""
    found = []
    for instant in unrolled(cluster, None).changes:
        for edit in instant.edits:
            queue = edit.after
            cores = queue and queue.resource_groups[0].flavors[0].resources["cpu"].nominal // 1000
            found.append((instant.at // HOUR, cores))
    return found


def base(*more: dict[str, Any]) -> Cluster:
    return cluster_from([FLAVOR, QUEUE, *more], "the test")


def test_a_patch_holds_from_its_time_on_until_its_end() -> None:
    """Before and afterwards the object is what it was."""
    cluster = base().patched(at("3d2h", "5d", resourceGroups=cpu(4)))
    assert cluster.cluster_queues == base().cluster_queues
    assert quotas(cluster) == [(74, 4), (120, 8)]


def test_from_until_equals_two_changes() -> None:
    """A patch until 5 h is the same as two that follow each other."""
    once = base().patched(at("3h", "5h", resourceGroups=cpu(4)))
    twice = base().patched([at("3h", resourceGroups=cpu(4)), at("5h", resourceGroups=cpu(8))])
    assert unrolled(once, None).digest == unrolled(twice, None).digest


def test_a_patch_from_the_origin_on_equals_one_without_a_time() -> None:
    """Nothing changes in the replay, and the cluster is the same."""
    timed = base().patched(at("0s", resourceGroups=cpu(4)))
    patched = base().patched({**at(None, resourceGroups=cpu(4)), "metadata": {"name": "a"}})
    assert unrolled(timed, None).digest == patched.digest


def test_patches_that_hold_together_lie_in_the_order_in_which_they_are_given() -> None:
    """The second one wins while both hold, whichever began first."""
    cluster = base().patched([at("4h", "8h", resourceGroups=cpu(4)), at("2h", "6h", resourceGroups=cpu(2))])
    assert quotas(cluster) == [(2, 2), (6, 4), (8, 8)]
    later = base().patched(at("4h", "8h", resourceGroups=cpu(4)))
    over_it = later.patched({**at(None, resourceGroups=cpu(1)), "metadata": {"name": "a"}})
    assert quotas(over_it) == []


def test_an_instant_at_which_nothing_changes_is_kept() -> None:
    """The patch says what is so already, in other words: 8000m is 8."""
    cluster = base().patched(at("4h", resourceGroups=cpu("8000m")))
    assert unrolled(cluster, None).changes == (Instant(4 * HOUR, ()),)


@pytest.mark.parametrize(
    "spec",
    [
        {"fairSharing": {"weight": 1}},
        {"resourceGroups": [{"flavors": [{"name": "any", "resources": [
            {"name": "gpu", "nominalQuota": "1750m"}]}]}]},
    ],
)  # fmt: skip
def test_another_spec_is_a_change_although_no_number_of_it_is_another(spec: dict[str, Any]) -> None:
    """Kueue compares specs: a weight of 1 is one that none has, and 1750m of a GPU is 2, rounded up."""
    (instant,) = unrolled(base().patched(at("4h", **spec)), None).changes
    (edit,) = instant.edits
    assert edit.before == edit.after


@pytest.mark.parametrize("spec", [{"stopPolicy": "None"}, {"preemption": {"withinClusterQueue": "Never"}}])
def test_a_default_that_is_written_out_is_no_change(spec: dict[str, Any]) -> None:
    """The API fills it in."""
    assert quotas(base().patched(at("4h", **spec))) == []


def test_an_object_with_a_time_is_there_from_then_on() -> None:
    """It is no part of the cluster before, and the annotation is no part of the object."""
    metadata = {"name": "b", "annotations": {"harness/from": "2h", "harness/until": "3h"}}
    cluster = base({**QUEUE, "metadata": metadata})
    assert list(cluster.cluster_queues) == ["a"]
    new, gone = unrolled(cluster, None).changes
    assert (new.edits[0].name, new.edits[0].before) == ("b", None)
    assert new.edits[0].after == cluster_from([{**QUEUE, "metadata": {"name": "b"}}], "").cluster_queues["b"]
    assert (gone.at, gone.edits[0].after) == (3 * HOUR, None)


def test_an_object_can_be_taken_away_for_a_while() -> None:
    """A patch that deletes it holds from 1 h to 2 h."""
    gone = at("1h", "2h") | {"$patch": "delete"}
    assert quotas(base().patched(gone)) == [(1, None), (2, 8)]


def test_dates_are_times_since_the_origin_of_a_trace_with_dates() -> None:
    """With another trace they are a fault that names the object."""
    cluster = base().patched(at("2025-01-02T00:00:00Z", resourceGroups=cpu(4)))
    origin = 1_735_689_600 * SECOND
    assert [instant.at for instant in unrolled(cluster, origin).changes] == [DAY]
    with pytest.raises(ClusterError, match="ClusterQueue a: harness/from has a date"):
        unrolled(cluster, None)


JANUARY = 1_735_689_600 * SECOND


@pytest.mark.parametrize(
    "patches",
    [
        (at("3h", "5h", resourceGroups=cpu(4)), at("4h", stopPolicy="Hold")),
        (at("0h", "2h", resourceGroups=cpu(4)), at(None, "3h", stopPolicy="Hold")),
        (at("2025-01-02T00:00:00Z", "2025-01-03T00:00:00Z", resourceGroups=cpu(4)),),
        (at("2025-01-02T00:00:00Z", resourceGroups=cpu(4)), at("4h", stopPolicy="Hold")),
    ],
)
@pytest.mark.parametrize("origin", [JANUARY, JANUARY + DAY, JANUARY + 2 * DAY, JANUARY + 30 * DAY])
@pytest.mark.parametrize("begin", [0, 2 * HOUR])
def test_the_states_that_were_checked_are_those_that_a_new_reading_gives(
    patches: tuple[dict[str, Any], ...], origin: int, begin: int
) -> None:
    """A patched cluster keeps the states that it checked; its copy computes them for the trace's origin."""
    checked = base().patched(list(patches))
    anew = replace(checked)
    assert unrolled(checked, origin, begin) == unrolled(anew, origin, begin)


def test_objects_change_in_the_order_of_the_documents_that_name_them() -> None:
    """Each of two queues changes by itself, the one first that is given first."""
    second = {**QUEUE, "metadata": {"name": "b"}}
    cluster = base(second).patched([at("1h", name="b", stopPolicy="Hold"), at("1h", stopPolicy="Hold")])
    (instant,) = unrolled(cluster, None).changes
    assert [str(edit) for edit in instant.edits] == ["ClusterQueue b", "ClusterQueue a"]


def test_a_queue_that_moves_brings_a_cohort_that_is_only_named() -> None:
    """An edit makes the cluster from then on."""
    begun = unrolled(base().patched(at("1h", cohortName="new")), None)
    after = begun.changes[0].edits[0].on(begun)
    assert set(after.cohorts) == {"all", "new"}
    assert after.cluster_queues["a"].cohort == "new"


def test_a_cohort_must_not_become_its_own_ancestor_during_a_replay() -> None:
    """The queues below it would become inactive, although their own manifests do not change."""
    head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "spec": {"parentName": "all"}}
    circle = {**head, "metadata": {"name": "all", "annotations": {"harness/from": "1h"}}}
    with pytest.raises(
        ClusterError, match="ClusterQueue a: would become active or inactive during the replay"
    ):
        unrolled(base(circle), None)


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (at("soon"), "harness/from: 'soon' is not a time"),
        (at("2h", "1h"), "harness/until must be later than harness/from"),
        (
            {**at("1h"), "metadata": {"name": "a", "annotations": {"harness/form": "1h"}}},
            "there is no annotation 'harness/form'; did you mean 'harness/from'",
        ),
        (at("2h", name="b"), "there is no ClusterQueue 'b'"),
        (at("2h", wieght=2), "ClusterQueue has no field wieght"),
        (at("2h", cohortName=3), "cohortName"),
        ({"kind": "ResourceFlavor", "metadata": {"name": "any", "annotations": {"harness/from": "2h"}}},
         "'ResourceFlavor' cannot have a time"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_patch_that_has_a_time_is_said_at_once(patch: dict[str, Any], said: str) -> None:
    """As for one without a time, with its place."""
    with pytest.raises(HarnessError, match=said):
        base().patched(patch)


@pytest.mark.parametrize(
    "given",
    [
        [{**at("1h", name="b"), "$patch": "delete"}],
        [{"apiVersion": "v1", "kind": "Node", "$patch": "delete"}],
        [{**at("1h"), "$patch": "delete"}, QUEUE],
    ],
    ids=["of nothing", "without a name", "before its object"],
)
def test_a_patch_among_manifests_needs_its_object_before_it(given: list[dict[str, Any]]) -> None:
    """It would be read as an object, and its faults would be those of one."""
    with pytest.raises(
        HarnessError, match=r"has \$patch, so it is a patch: add harness/from and write it after its object"
    ):
        cluster_from(given, "the test")


def test_a_cluster_with_times_is_made_again_from_its_manifests_and_can_be_turned() -> None:
    """Its manifests hold the patches, and knobs turn what is so without them."""
    cluster = base().patched(at("3h", "5h", resourceGroups=cpu(4)))
    assert cluster_from(cluster.manifests, "again").digest == cluster.digest
    assert cluster.follows_manifests
    turned = cluster.with_values({"ClusterQueue/a.quota[cpu]": 16})
    assert quotas(turned) == [(3, 4), (5, 16)]
    assert parse_duration("3h") == unrolled(cluster, None).changes[0].at


def manifest(kind: str, name: str, version: str, **content: Any) -> dict[str, Any]:
    """An object."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **content}


BOUNDS = {"min": {"cpu": 1}, "max": {"cpu": 4}}
KUEUE = "kueue.x-k8s.io/v1beta2"
CHANGING = [
    (QUEUE, {"spec": {"stopPolicy": "Hold"}}),
    (manifest("Cohort", "all", KUEUE), {"spec": {"parentName": "top"}}),
    (manifest("LocalQueue", "l", KUEUE, spec={"clusterQueue": "a"}), {"spec": {"stopPolicy": "Hold"}}),
    (
        manifest("ElasticQuota", "q", "scheduling.x-k8s.io/v1alpha1", spec=BOUNDS),
        {"spec": {"min": {"cpu": 2}}},
    ),
    (
        manifest(
            "ElasticQuotaTree",
            "tree",
            "scheduling.sigs.k8s.io/v1beta1",
            spec={"root": {"name": "root", **BOUNDS}},
        ),
        {"spec": {"root": {"min": {"cpu": 2}}}},
    ),
    (
        manifest("Node", "n", "v1", status={"allocatable": {"cpu": 4}}),
        {"status": {"allocatable": {"cpu": 2}}},
    ),
    (
        manifest("NodePool", "p", "harness/v1", spec={"count": 2, "template": {"allocatable": {"cpu": 4}}}),
        {"spec": {"count": 3}},
    ),
    (manifest("PriorityClass", "c", "scheduling.k8s.io/v1", value=3), {"value": 5}),
    (manifest("WorkloadPriorityClass", "w", KUEUE, value=3), {"value": 5}),
]


def timed_to(content: dict[str, Any], begin: str, end: str) -> dict[str, Any]:
    """The same with a time."""
    annotations = {"harness/from": begin, "harness/until": end}
    return {**content, "metadata": {**content["metadata"], "annotations": annotations}}


@pytest.mark.parametrize(("content", "patch"), CHANGING, ids=[each["kind"] for each, _ in CHANGING])
def test_an_object_of_each_kind_may_have_a_time_and_so_may_a_patch_of_it(
    content: dict[str, Any], patch: dict[str, Any]
) -> None:
    """In manifests it comes and goes; in a patch it becomes another one and what it was again."""
    rest = [FLAVOR] if content is QUEUE else [FLAVOR, QUEUE]
    there = cluster_from([*rest, timed_to(content, "1h", "2h")], "")
    without, with_it = cluster_from(rest, ""), cluster_from([*rest, content], "")
    begun = unrolled(there, None)
    come, gone = begun.changes
    assert without.digest == cluster_from([*rest, timed_to(content, "1h", "2h")][:-1], "").digest
    assert come.edits
    assert all(edit.before is None for edit in come.edits)
    assert [(str(each), each.before) for each in gone.edits] == [(str(e), e.after) for e in come.edits]
    for edit in come.edits:
        begun = edit.on(begun)
    assert replace(begun, changes=(), timed=()).digest == with_it.digest
    named = {"kind": content["kind"], "metadata": {"name": content["metadata"]["name"]}}
    turned = with_it.patched(timed_to({**named, **patch}, "1h", "2h"))
    other, same = unrolled(turned, None).changes
    assert other.edits
    assert [(str(each), each.after) for each in same.edits] == [(str(e), e.before) for e in other.edits]


def test_a_flat_quota_is_found_by_its_namespace_whatever_it_is_called() -> None:
    """The name of its manifest is another one."""
    quota = manifest("ElasticQuota", "of-team", "scheduling.x-k8s.io/v1alpha1", spec=BOUNDS)
    quota["metadata"]["namespace"] = "team"
    less = {
        "kind": "ElasticQuota",
        "metadata": {"name": "of-team", "namespace": "team"},
        "spec": {"min": {"cpu": 0}},
    }
    (instant, _) = unrolled(cluster_from([quota], "").patched(timed_to(less, "1h", "2h")), None).changes
    assert [str(edit) for edit in instant.edits] == ["ElasticQuota team"]


def test_a_change_of_a_node_that_a_smaller_cluster_lacks_is_named() -> None:
    """A warning says when, and what the cluster lacks."""
    nodes = [manifest("Node", f"n{number}", "v1", status={"allocatable": {"cpu": 4}}) for number in range(4)]
    cordon = {"kind": "Node", "spec": {"unschedulable": True}}
    patches = [timed_to({**cordon, "metadata": {"name": f"n{number}"}}, "1h", "2h") for number in range(4)]
    cluster = scaled_cluster(cluster_from(nodes, "").patched(patches), Fraction(1, 2))
    begun = unrolled(cluster, None)
    lacking = [f"n{number}" for number in range(4) if f"n{number}" not in begun.nodes]
    assert len(lacking) == 2
    assert begun.warnings == tuple(
        f"Node {name} changes 1h00m after the origin, but the cluster, scaled by 0.5, does not "
        "have this object, so nothing changes"
        for name in lacking
    )

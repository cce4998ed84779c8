"""`cluster check` warns of what only Koordinator's code explains, where a cluster makes it possible."""

from __future__ import annotations

from quota_worlds import KOORDINATOR, Manifest, cluster, flat, node

CLASS: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 5,
}
FIRM: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {f"{KOORDINATOR}preemptible": "false"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
A, B = flat("a", 0, 10), flat("b", 0, 10)


def warned(*manifests: Manifest) -> list[str]:
    """What is said of a cluster with one node of 10 cores."""
    return list(cluster(node("n", 10), *manifests).warnings)


def test_evictions_that_do_not_help_need_priorities_and_a_quota_that_may_be_full_before_the_nodes() -> None:
    """One quota for all that nodes have refuses nobody for whom a node has room."""
    (both,) = warned(A, B, CLASS)
    assert both.startswith(
        "elastic quota a, b: may still refuse a pod after other pods were evicted for it. With quirks=on"
    )
    assert warned(A, B) == warned(A, CLASS) == []
    (less,) = warned(flat("a", 0, 9), CLASS)
    assert less.startswith("elastic quota a: may still refuse a pod")


def test_several_resources_in_max_are_warned_of() -> None:
    """Dry runs look at those only that a pod requests."""
    more = flat("a", 0, 10, amounts={"memory": 5})
    assert [each for each in warned(more, B, CLASS) if each.startswith("elastic quota a: names several")]


def test_a_resource_that_only_other_quotas_name_is_warned_of() -> None:
    """Its runtime is 0 for dry runs."""
    said = [
        each for each in warned(A, flat("b", 0, 10, amounts={"gpu": 5}), CLASS) if "does not name" in each
    ]
    assert [each.split(",")[0] for each in said] == ["elastic quota a: does not name gpu in its max"]


def test_pods_that_must_not_be_preempted_are_warned_of_where_there_are_any() -> None:
    """By their label, where a quota may use more than is guaranteed."""
    assert [each for each in warned(A, CLASS, FIRM) if each.startswith("elastic quota a: has a min below")]
    assert warned(flat("a", 10, 10), CLASS, FIRM) == []


def test_guarantees_that_are_scaled_are_warned_of() -> None:
    """Beyond what nodes have; also that one is not lent, and one without weight below another quota."""
    (scaled, idle) = warned(flat("a", 6, 10), flat("b", 6, 10, allow_lent_resource="false"))
    assert scaled.endswith("with enableMinQuotaScale=true each min is scaled down when its quota is queried")
    assert idle.startswith("elastic quota b: does not lend its min: with quirks=on")
    group, below = flat("group", 4, 10, is_parent="true"), flat("a", 2, 10, parent="group")
    assert warned(group, below) == []
    note = f"{KOORDINATOR}shared-weight"
    below["metadata"]["annotations"] = {note: '{"cpu": 0, "memory": 1}'}
    (unweighted,) = warned(group, below)
    assert (
        "has weight 0 in cpu: with enableMinQuotaScale=true, the quota gets less than its min" in unweighted
    )

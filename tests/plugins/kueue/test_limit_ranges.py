"""Workloads and jobs outside the bounds of a LimitRange, which Kueue never admits (`ValidateLimitRange`)."""

from __future__ import annotations

from typing import Any

import pytest
from live_dumps import GPU, node, queue, workload

import harness
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.studies.simulation.answer import Answer

LIBRARY = load(block=["metrics"])
Manifest = dict[str, Any]


def limit_range(kind: str, name: str = "l", namespace: str = "d", **bounds: Manifest) -> Manifest:
    """A LimitRange with bounds for containers or pods."""
    metadata = {"name": name, "namespace": namespace}
    spec = {"limits": [{"type": kind, **bounds}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}


def answered(containers: list[tuple[Manifest, Manifest]], *ranges: Manifest) -> Answer:
    """What happens to a Workload whose pod has containers with these requests and limits."""
    waits: Manifest = workload("w", 1)
    template = waits["spec"]["podSets"][0]["template"]
    template["spec"]["containers"] = [
        {"name": f"c{n}", "resources": {"requests": requests, "limits": limits}}
        for n, (requests, limits) in enumerate(containers)
    ]
    found = harness.simulate(cluster_from([node("n"), *queue(), waits, *ranges], "d"), plugins=LIBRARY)
    return found.answers[0]


@pytest.mark.parametrize(
    ("kind", "bounds", "starts"),
    [
        ("Container", {"max": {GPU: 2}}, True),
        ("Container", {"max": {GPU: 1}}, False),
        ("Container", {"min": {GPU: 1}}, True),
        ("Container", {"min": {GPU: 2}}, False),
        ("Pod", {"max": {GPU: 2, "memory": 1}}, True),
        ("Pod", {"max": {GPU: 1}}, False),
        ("Pod", {"min": {GPU: 3}}, False),
        ("PersistentVolumeClaim", {"max": {GPU: 0}}, True),
    ],
)
def test_a_workload_outside_the_bounds_of_its_namespace_never_starts(
    kind: str, bounds: Manifest, starts: bool
) -> None:
    """By each container's request and limit, and by the request of the pod."""
    containers = [({GPU: 1}, {GPU: 2}), ({GPU: 1}, {GPU: 1})]
    found = answered(containers, limit_range(kind, **bounds))
    assert (found.verdict == "starts") == starts
    if not starts:
        what = f"a {kind.lower()} requests more or less than a LimitRange of its namespace allows"
        assert found.why.endswith(what)
    elsewhere = limit_range(kind, namespace="other", **bounds)
    assert answered(containers, elsewhere).verdict == "starts"


def test_the_closest_bounds_of_several_limit_ranges_count() -> None:
    """Whichever comes first by name."""
    wide, close = limit_range("Pod", "a", max={GPU: 9}), limit_range("Pod", "b", max={GPU: 1})
    assert answered([({GPU: 2}, {GPU: 2})], wide).verdict == "starts"
    assert answered([({GPU: 2}, {GPU: 2})], wide, close).verdict != "starts"

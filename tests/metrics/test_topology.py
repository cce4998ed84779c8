"""How jobs are spread over a topology: by hand, on two racks of two nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

TOPOLOGY = [{"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]


def manifest(kind: str, name: str, version: str = "kueue.x-k8s.io/v1beta2", **spec: Any) -> dict[str, Any]:
    """An object."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def racks(*, topology: bool = True) -> str:
    """Two racks of two nodes of two cores each."""
    template = {"allocatable": {"cpu": 2}}
    pools = [
        manifest(
            "NodePool",
            f"r{number}",
            "harness/v1",
            count=2,
            template={**template, "metadata": {"labels": {"example.com/rack": f"r{number}"}}},
        )
        for number in range(2)
    ]
    flavor = {"topologyName": "t"} if topology else {}
    quotas = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 8}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": quotas}]
    queue = manifest("ClusterQueue", "q", namespaceSelector={}, resourceGroups=groups)
    objects = [*pools, manifest("Topology", "t", levels=TOPOLOGY), manifest("ResourceFlavor", "f", **flavor)]
    return yaml.safe_dump_all([*objects, queue])


def test_jobs_of_several_pods_count_by_the_domains_that_they_are_spread_over(
    measured: Callable[..., Any],
) -> None:
    """`wide` has six pods in both racks for 30 s, `near` two in one node for 10 s; one pod does not count."""
    job = {"queue": "q", "request.cpu": 1000, "submit_time": 0}
    value = measured(
        {**job, "pods": 6, "duration": 30, "topology_preferred": "example.com/rack"},
        {**job, "pods": 2, "duration": 10, "submit_time": 40},
        {**job, "duration": 10, "submit_time": 40},
        cluster=racks(),
        plugin="kueue-classic",
    )
    assert value("topology.domains_per_job") == 1.5
    assert value("topology.cross_rack") == 0.5
    assert value("topology.cross_rack.pod_hours") == 180 / 200
    assert value("topology.cross_hostname") == 0.5


def test_who_is_refused_for_a_place_alone_waits_for_it(measured: Callable[..., Any]) -> None:
    """Quota is free: one waits from 5 s to 30 s for a rack; who lacks quota, too, does not count."""
    job = {"queue": "q", "request.cpu": 1000, "topology_required": "example.com/rack"}
    value = measured(
        {**job, "pods": 3, "duration": 30, "submit_time": 0},
        {**job, "pods": 2, "duration": 60, "submit_time": 0},
        {**job, "pods": 3, "duration": 10, "submit_time": 5},
        {**job, "pods": 2, "duration": 10, "submit_time": 5, "request.cpu": 2000},
        cluster=racks(),
        plugin="kueue-classic",
    )
    assert value("topology.no_place") == 1
    assert value("topology.no_place.wait") == 25


def test_who_lacked_quota_before_waits_for_a_place_from_when_there_is_quota(
    measured: Callable[..., Any],
) -> None:
    """All 8 cores are taken until 20 s; then 4 are free, 2 in each rack, and from 30 s on a whole rack."""
    job = {"queue": "q", "request.cpu": 1000, "submit_time": 0}
    tight = {**job, "pods": 2, "topology_required": "kubernetes.io/hostname"}
    value = measured(
        {**tight, "duration": 20},
        {**tight, "duration": 30},
        {**tight, "duration": 20},
        {**tight, "duration": 60},
        {**job, "pods": 3, "duration": 10, "submit_time": 5, "topology_required": "example.com/rack"},
        cluster=racks(),
        plugin="kueue-classic",
    )
    assert value("topology.no_place") == 1
    assert value("topology.no_place.wait") == 10


def test_a_run_without_a_topology_has_none(measured: Callable[..., Any]) -> None:
    """No row, rather than one without a value."""
    value = measured(
        {"queue": "q", "request.cpu": 1000, "pods": 2}, cluster=racks(topology=False), plugin="kueue-classic"
    )
    try:
        value("topology.domains_per_job")
    except KeyError:
        return
    raise AssertionError("there is a row")


def flavored(levels: dict[str, list[str]]) -> str:
    """For each flavor four nodes of two cores, each in a rack of its own, all in one zone, and a queue."""
    objects: list[dict[str, Any]] = []
    for flavor, (zone, rack) in levels.items():
        labels = [{"part": flavor, zone: f"{flavor}-z", rack: f"{flavor}-r{number}"} for number in range(4)]
        objects += [
            manifest(
                "NodePool",
                f"{flavor}-{number}",
                "harness/v1",
                count=1,
                template={"allocatable": {"cpu": 2}, "metadata": {"labels": each}},
            )
            for number, each in enumerate(labels)
        ]
        keys = [{"nodeLabel": each} for each in (zone, rack, "kubernetes.io/hostname")]
        quotas = [{"name": flavor, "resources": [{"name": "cpu", "nominalQuota": 8}]}]
        groups = [{"coveredResources": ["cpu"], "flavors": quotas}]
        objects += [
            manifest("Topology", flavor, levels=keys),
            manifest("ResourceFlavor", flavor, topologyName=flavor, nodeLabels={"part": flavor}),
            manifest("ClusterQueue", f"q-{flavor}", namespaceSelector={}, resourceGroups=groups),
        ]
    return yaml.safe_dump_all(objects)


@pytest.mark.parametrize(
    ("zone", "rack"), [("topology.kubernetes.io/zone", "example.com/rack"), ("a/zone", "b/rack"), ("b", "a")]
)
def test_the_finest_level_is_not_told_from_its_name(
    measured: Callable[..., Any], zone: str, rack: str
) -> None:
    """Eight pods on four racks of one zone."""
    job = {"queue": "q-f", "request.cpu": 1000, "pods": 8, "duration": 30}
    value = measured(job, cluster=flavored({"f": [zone, rack]}), plugin="kueue-classic")
    assert value("topology.domains_per_job") == 4


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_jobs_of_all_topologies_count_whichever_comes_first(
    measured: Callable[..., Any], order: tuple[int, int]
) -> None:
    """One is on two racks of one, one on four of the other; both have a level that is called rack."""
    jobs = [
        {"queue": "q-f", "request.cpu": 2000, "pods": 2, "duration": 30},
        {"queue": "q-g", "request.cpu": 2000, "pods": 4, "duration": 30},
    ]
    levels = {"f": ["a.com/zone", "a.com/rack"], "g": ["z", "b.com/rack"]}
    value = measured(*(jobs[each] for each in order), cluster=flavored(levels), plugin="kueue-classic")
    assert value("topology.domains_per_job") == 3
    assert value("topology.cross_rack") == 1
    assert value("topology.cross_z") == 0


def test_a_queue_may_be_called_as_what_is_searched_for(measured: Callable[..., Any]) -> None:
    """Details name queues, here beside one that has a topology."""
    text = flavored({"f": ["zone", "rack"], "g": ["zone", "rack"]}).replace("q-g", "spans")
    text = text.replace("topologyName: g", "nodeTaints: []")
    job = {"request.cpu": 2000, "pods": 2, "duration": 30}
    value = measured(
        {**job, "queue": "q-f"}, *[{**job, "queue": "spans"}] * 3, cluster=text, plugin="fairsharing"
    )
    assert value("topology.domains_per_job") == 2

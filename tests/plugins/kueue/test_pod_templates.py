"""What Kueue looks at in the pods of a job: limits container by container, and where they may run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kueue_worlds import Happened, Jobs, cluster, flavor, pod_set, queue

from harness import PodSet
from harness.base.errors import ClusterError
from harness.cluster.kinds.workloads import read_pod_set
from harness.cluster.model import frozen
from harness.cluster.yaml.fields import Fields

SPOT, DEMAND = "spot", "on-demand"


def container(request: int, limit: int | None = None, **fields: Any) -> dict[str, Any]:
    """A container that requests so many cores and is limited to so many."""
    limits = {} if limit is None else {"limits": {"cpu": limit}}
    return {"name": "c", "resources": {"requests": {"cpu": request}, **limits}, **fields}


def pods_of(**spec: Any) -> PodSet:
    """One pod with this spec, as a Workload's manifest has it."""
    faults: list[Any] = []
    found = read_pod_set(Fields({"name": "main", "count": 1, "template": {"spec": spec}}, "w", faults))
    assert not faults
    return found


SIDECAR = container(3, restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "admitted"),
    [
        ({"containers": [container(2, 2)]}, True),
        ({"containers": [container(3, 2)]}, False),
        ({"containers": [container(1, 1), container(1)]}, True),
        ({"containers": [container(1, 4), container(2, 1)]}, False),
        ({"containers": [container(2, 2)], "overhead": {"cpu": 1}}, True),
        ({"containers": [container(2, 2)], "initContainers": [container(5)]}, True),
        ({"containers": [container(2, 2)], "initContainers": [SIDECAR]}, True),
        ({"containers": [container(2, 2)], "initContainers": [container(2, 1)]}, False),
        ({"containers": [container(1, 2)], "resources": {"requests": {"cpu": 4}}}, True),
        ({"containers": [container(1)], "resources": {"requests": {"cpu": 4}, "limits": {"cpu": 3}}}, False),
    ],
)
def test_requests_are_compared_with_limits_container_by_container(
    spec: dict[str, Any], admitted: bool
) -> None:
    """Overhead, sidecars and init containers do not count against the limits of other containers."""
    where = cluster(queue("q", cpu=8))
    happened = Happened(where, Jobs().add("a", "q", pod_sets=(pods_of(**spec),)))
    assert happened.admitted == (["a"] if admitted else [])


def test_a_trace_without_templates_has_pods_of_one_container() -> None:
    """Its requests are compared with its limits, where it has some."""
    shapes = {"within": {"cpu": 2000}, "beyond": {"cpu": 1000}, "other": {"memory": 1}}
    jobs = Jobs()
    for name, limits in shapes.items():
        jobs.add(name, "q", pod_sets=(pod_set("main", 1, 2, limits=frozen(limits)),))
    assert Happened(cluster(queue("q", cpu=8)), jobs).admitted == ["within", "other"]


def test_jobs_that_differ_in_their_limits_alone_become_inadmissible_together() -> None:
    """Kueue's hash covers what containers request: the second one has no turn of its own."""
    two = [pods_of(containers=[container(9, limit), container(1)]) for limit in (9, 10)]
    jobs = Jobs().add("first", "q", pod_sets=(two[0],)).add("second", "q", pod_sets=(two[1],))
    jobs.add("large", "q", 8, priority=1).add("small", "q", 1)
    happened = Happened(cluster(queue("q", cpu=16)), jobs, until=0)
    refused = "0 refuse first: PreemptionNoCandidates"
    assert happened.lines("refuse", "admit") == ["0 admit large", refused, "0 admit small"]


def test_requests_of_the_pod_itself_tell_jobs_apart() -> None:
    """Kueue's hash covers them: the second job has a turn of its own, although its pod asks for no more."""
    one = {"containers": [container(9, 9), container(1)]}
    jobs = Jobs().add("first", "q", pod_sets=(pods_of(**one),))
    jobs.add("second", "q", pod_sets=(pods_of(**one, resources={"requests": {"cpu": 10}}),))
    happened = Happened(cluster(queue("q", cpu=16)), jobs.add("large", "q", 8, priority=1), until=0)
    refused = ["0 refuse first: PreemptionNoCandidates", "0 refuse second: PreemptionNoCandidates"]
    assert happened.lines("refuse") == refused


def test_what_the_template_says_of_nodes_counts_for_flavors() -> None:
    """Its selector, tolerations and affinity stand beside the columns of that name."""
    where = cluster(
        flavor(SPOT, nodeLabels={"kind": SPOT}, nodeTaints=[{"key": "spot", "effect": "NoSchedule"}]),
        flavor(DEMAND, nodeLabels={"kind": DEMAND}),
        queue("q", flavors={SPOT: {"cpu": 8}, DEMAND: {"cpu": 8}}),
    )
    tolerates = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
    templates = {
        "plain": {},
        "tolerant": tolerates,
        "demand": {**tolerates, "nodeSelector": {"kind": DEMAND}},
    }
    jobs = Jobs()
    for name, template in templates.items():
        shape = pod_set("main", 1, 1, pod_template=json.dumps(template))
        jobs.add(name, "q", pod_sets=(shape,))
    happened = Happened(where, jobs)
    assert [happened.flavors(name) for name in templates] == [[DEMAND], [SPOT], [DEMAND]]


def test_a_template_with_a_wrong_amount_is_a_named_error() -> None:
    """The job, its pod set and the field are told."""
    template = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "many"}}}]}
    shape = pod_set("main", 1, 1, pod_template=json.dumps(template))
    with pytest.raises(ClusterError, match=r"job a, pod set main: containers\[0\].resources.requests.cpu"):
        Happened(cluster(queue("q", cpu=8)), Jobs().add("a", "q", pod_sets=(shape,)))

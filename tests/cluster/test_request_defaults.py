"""What RuntimeClasses and LimitRanges add to the requests of Workloads, as Kueue's `AdjustResources` does."""

from __future__ import annotations

from typing import Any

import pytest
from live_dumps import GPU, node, queue, workload

import harness
from harness.base.errors import ClusterError
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.studies.forecasting.new_job import submitted

Manifest = dict[str, Any]

GI = 2**30


def runtime_class(**overhead: Any) -> Manifest:
    """The RuntimeClass `kata`."""
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": overhead},
    }


def limit_range(*items: Manifest, name: str = "l", namespace: str = "d", kind: str = "Container") -> Manifest:
    """A LimitRange with an item for each mapping."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"limits": [{"type": kind, **item} for item in items]},
    }


def of(spec: Manifest, held: Manifest | None = None) -> Manifest:
    """A Workload with one pod of this spec, which holds so much or waits."""
    made: Manifest = workload("w", 1, held=None if held is None else 1)
    made["spec"]["podSets"][0]["template"]["spec"] = spec
    if held is not None:
        given = made["status"]["admission"]["podSetAssignments"][0]
        given.update(flavors=dict.fromkeys(held, "f"), resourceUsage=held)
    return made


def container(requests: Manifest | None = None, limits: Manifest | None = None) -> Manifest:
    """A container."""
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}


def read(*manifests: Manifest) -> Cluster:
    """A cluster with a queue."""
    return cluster_from([node("n"), *queue(), *manifests], "dump")


def requests(*manifests: Manifest) -> dict[str, int]:
    """What a pod of the only Workload requests."""
    (found,) = read(*manifests).workloads
    return dict(found.pod_sets[0].requests)


def test_the_overhead_of_its_class_counts_unless_the_pod_has_one() -> None:
    """A Workload of a live Pod has what the API server has written into the Pod."""
    spec = {"runtimeClassName": "kata", "containers": [container({"cpu": 1})]}
    kata = runtime_class(cpu="250m", memory="1Gi")
    assert requests(of(spec), kata) == {"cpu": 1250, "memory": GI}
    assert requests(of({**spec, "overhead": {"cpu": "100m"}}), kata) == {"cpu": 1100}
    assert requests(of(spec), runtime_class()) == {"cpu": 1000}


def test_a_class_that_is_not_in_the_dump_is_warned_of() -> None:
    """Its overhead is unknown."""
    spec = {"runtimeClassName": "kata", "containers": [container({"cpu": 1})]}
    warning = "Workload d/job-w-1a2b3: the manifests have no RuntimeClass kata, so no overhead is added"
    assert warning in read(of(spec)).warnings
    assert warning not in read(of(spec), runtime_class()).warnings


@pytest.mark.parametrize(
    ("resources", "item", "found"),
    [
        (({}, {}), {"defaultRequest": {"cpu": 2}}, 2),
        (({"cpu": 1}, {}), {"defaultRequest": {"cpu": 2}}, 1),
        (({}, {"cpu": 4}), {"defaultRequest": {"cpu": 2}}, 2),  # before the limit counts as request
        (({}, {"cpu": 4}), {"default": {"memory": "1Gi"}}, 4),
        (({}, {}), {"default": {"cpu": 3}}, 3),
        (({}, {}), {"default": {"cpu": 3}, "defaultRequest": {"cpu": 2}}, 2),
        (({}, {}), {"max": {"cpu": 5}}, 5),
        (({}, {}), {"min": {"cpu": "500m"}, "max": {"memory": "1Gi"}}, 0.5),
        (({}, {}), {"min": {"cpu": 1}, "default": {"cpu": 3}}, 3),
    ],
)
def test_containers_get_the_defaults_of_their_namespace(
    resources: tuple[Manifest, Manifest], item: Manifest, found: float
) -> None:
    """Only what they lack, and with the defaults that an API server writes into the LimitRange."""
    spec = {"containers": [container(*resources)]}
    assert requests(of(spec), limit_range(item))["cpu"] == found * 1000
    elsewhere = limit_range(item, namespace="other")
    assert requests(of(spec), elsewhere) == requests(of(spec))
    assert requests(of(spec), limit_range(item, kind="Pod")) == requests(of(spec))


def test_every_container_has_defaults() -> None:
    """Those of init containers and sidecars, too."""
    spec = {
        "containers": [container(), container({"cpu": 1})],
        "initContainers": [{**container(), "restartPolicy": "Always"}, container({"cpu": 9})],
    }
    assert requests(of(spec), limit_range({"defaultRequest": {"cpu": 2}})) == {"cpu": 11_000}
    assert requests(of(spec), limit_range({"defaultRequest": {"cpu": 4}})) == {"cpu": 13_000}


def test_the_first_default_counts() -> None:
    """By the names of the LimitRanges, and then in the order of their items."""
    first, last = {"defaultRequest": {"cpu": 1}}, {"defaultRequest": {"cpu": 2, "memory": 5}}
    spec = {"containers": [container()]}
    two = [limit_range(last, name="z"), limit_range(first, name="a")]
    assert (
        requests(of(spec), *two) == requests(of(spec), limit_range(first, last)) == {"cpu": 1000, "memory": 5}
    )


def test_default_limits_are_limits() -> None:
    """Kueue admits no pod that requests more than its limit."""
    (found,) = read(
        of({"containers": [container({"cpu": 4})]}), limit_range({"default": {"cpu": 2}})
    ).workloads
    assert (found.pod_sets[0].requests, found.pod_sets[0].limits) == ({"cpu": 4000}, {"cpu": 2000})


def test_a_workload_that_holds_less_was_admitted_before() -> None:
    """It keeps its requests; one that holds as much was admitted with the defaults."""
    spec = {"containers": [container({GPU: 1})]}
    default = limit_range({"defaultRequest": {"cpu": 2}})
    assert requests(of(spec, {GPU: 1}), default) == {GPU: 1}
    assert requests(of(spec, {GPU: 1, "cpu": 2}), default) == {GPU: 1, "cpu": 2000}


LABEL = {"kueue.x-k8s.io/queue-name": "q"}


@pytest.mark.parametrize(
    ("kind", "version", "labels", "cpu"),
    [
        ("Job", "batch/v1", LABEL, 2),
        ("Job", "batch/v1", {}, 4),
        ("Pod", "v1", LABEL, 4),
        ("StatefulSet", "apps/v1", LABEL, 4),
    ],
)
def test_a_submitted_job_gets_them_too(kind: str, version: str, labels: dict[str, str], cpu: int) -> None:
    """From Kueue, or from the API server that creates its pods, where a limit comes before a default."""
    spec = {"runtimeClassName": "kata", "containers": [container({GPU: 1}, {"cpu": 4})]}
    job = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "mine", "namespace": "d", "labels": labels},
        "spec": spec if kind == "Pod" else {"template": {"spec": spec}},
    }
    cluster = read(runtime_class(cpu="250m"), limit_range({"defaultRequest": {"cpu": 2}}))
    made = submitted(cluster, job, "job")
    found = made.workloads[0].pod_sets[0].requests if labels else made.pods[0].spec.requests
    assert found == {GPU: 1, "cpu": cpu * 1000 + 250}


def test_a_job_that_fits_only_without_its_defaults_does_not_start() -> None:
    """As with Kueue: the quota is 16."""
    waiting = of({"containers": [container()]})
    verdicts = [
        harness.simulate(read(waiting, *more), [], plugins=load(block=["metrics"])).answers[0].verdict
        for more in ((), (limit_range({"defaultRequest": {GPU: 17}}),))
    ]
    assert verdicts == ["starts", "never"]


@pytest.mark.parametrize("labels", [LABEL, {}])
@pytest.mark.parametrize(
    "spec",
    [
        {"containers": ["x"]},
        {"containers": {"a": 1}},
        {"containers": [{"name": "c", "resources": ["x"]}]},
        {"containers": [{"name": "c", "resources": {"limits": 3}}]},
        {"containers": [container()], "initContainers": {"a": 1}},
    ],
)
def test_faulty_containers_are_told(spec: Manifest, labels: dict[str, str]) -> None:
    """Defaults hide no fault of a submitted job."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "mine", "namespace": "d", "labels": labels},
        "spec": {"template": {"spec": spec}},
    }
    with pytest.raises(ClusterError, match=r"ontainers.*must be"):
        submitted(read(limit_range({"defaultRequest": {"cpu": 2}})), job, "job")

"""Scores, with figures worked out by hand."""

from __future__ import annotations

from typing import Any

from kube_worlds import HOSTNAME, World, job, manifest, node

from harness.cluster.fields import Fields
from harness.cluster.load import cluster_from
from harness.cluster.pod_reading import read_pod
from harness.models.kube.cache import Cache
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.pod import PodInfo, Templates

ZONE = "topology.kubernetes.io/zone"


class Cluster:
    """Nodes with pods on them, and the scores that a further pod would get."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        self.cache = Cache(cluster_from(nodes, "test"))
        self.templates = Templates(self.cache.resources, lambda namespace, labels: ())
        self.scheduling = Scheduling(self.cache, hard_affinity_weight=1)

    def pod(self, requests: Any = None, labels: Any = None, **spec: Any) -> PodInfo:
        found = read_pod(Fields(manifest("p", requests, labels, **spec), "p", []))
        return PodInfo("p", self.templates.of("default", found.labels, found.spec), 0, preempts=True)

    def put(self, name: str, requests: Any = None, labels: Any = None, **spec: Any) -> None:
        self.cache.add_pod(self.pod(requests, labels, **spec), self.cache.by_name[name])

    def scores(self, plugin: str, *args: Any, **spec: Any) -> list[int]:
        """One plugin's weighted scores of all nodes."""
        pod = self.pod(*args, **spec)
        return [found.get(plugin, 0) for found in self.scheduling.scores(pod, self.cache.nodes)]


def test_least_allocated_assumes_something_for_what_is_not_requested() -> None:
    """8,900 of 10,000 millicores and 600 of 1,000 MiB are left: 89 and 60, on average 74."""
    cluster = Cluster(node("n1", memory="1000Mi"))
    cluster.put("n1")
    assert cluster.scores("NodeResourcesFit", {"cpu": 1}) == [74]


def test_least_allocated_is_0_for_what_is_more_than_allocatable() -> None:
    """The assumed requests may be more than there is, and a missing resource does not count."""
    assert Cluster(node("n1", memory="100Mi")).scores("NodeResourcesFit", {"cpu": 5}) == [25]
    assert Cluster(node("n1", memory=0)).scores("NodeResourcesFit", {"cpu": 5}) == [50]


def test_balanced_allocation_looks_at_what_the_pod_changes() -> None:
    """From 100 when it is empty to 75 with 5 of 10 cpus and no memory: 50 + (50 + 75 - 100) / 2."""
    plugin = "NodeResourcesBalancedAllocation"
    cluster = Cluster(node("n1"))
    assert cluster.scores(plugin, {"cpu": 5}) == [62]
    assert cluster.scores(plugin, {"nvidia.com/gpu": 1}) == [0], "neither cpu nor memory is requested"
    cluster.put("n1", {"cpu": 5})
    assert cluster.scores(plugin, {"memory": "32Gi"}) == [87]


def test_taints_that_are_not_tolerated_lower_the_score() -> None:
    """Counted against the node with most of them; without any all nodes have 100, with weight 3."""
    soft = [{"key": key, "effect": "PreferNoSchedule"} for key in "abc"]
    cluster = Cluster(*(node(f"n{count}", spec={"taints": soft[:count]}) for count in range(4)))
    assert cluster.scores("TaintToleration") == [300, 201, 102, 0]
    assert cluster.scores("TaintToleration", tolerations=[{"operator": "Exists"}]) == [300] * 4


def test_preferred_nodes_raise_the_score() -> None:
    """Weights of matching terms, scaled so that the best node has 100, with weight 2."""
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for key, weight in (("ssd", 30), ("gpu", 10))
    ]
    cluster = Cluster(node("n1"), node("n2", labels={"gpu": ""}), node("n3", labels={"gpu": "", "ssd": ""}))
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    assert cluster.scores("NodeAffinity", affinity=wish) == [0, 50, 200]


def spread(key: str) -> list[dict[str, Any]]:
    """A soft constraint over pods of app x."""
    selector = {"matchLabels": {"app": "x"}}
    return [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
    ]


def test_soft_spreading_prefers_domains_with_fewer_matching_pods() -> None:
    """Two zones weigh ln 4 each: raw scores 3 and 1 (rounded), and a node without the key scores 0."""
    cluster = Cluster(node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}), node("n3"))
    for name in ("n1", "n1", "n2"):
        cluster.put(name, labels={"app": "x"})
    cluster.put("n2", labels={"app": "y"})
    scores = dict(
        zip(
            (each.name for each in cluster.cache.nodes),
            cluster.scores("PodTopologySpread", topologySpreadConstraints=spread(ZONE)),
            strict=True,
        )
    )
    assert scores == {"n1": 66, "n2": 200, "n3": 0}


def test_soft_spreading_over_nodes_counts_the_pods_of_each() -> None:
    """Two nodes weigh ln 4 each: raw scores 1 and 0; terminating pods do not count."""
    cluster = Cluster(node("n1"), node("n2"))
    cluster.put("n1", labels={"app": "x"})
    cluster.put("n2", labels={"app": "x"})
    cluster.cache.terminate(next(iter(cluster.cache.by_name["n2"].pods)))
    assert cluster.scores("PodTopologySpread", topologySpreadConstraints=spread(HOSTNAME)) == [0, 200]


def preferred(kind: str, app: str, weight: int) -> dict[str, Any]:
    """A wish to be near, or far from, pods of an app."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
    return {
        kind: {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]
        }
    }


def test_preferred_affinity_is_scaled_between_the_worst_and_the_best_node() -> None:
    """Of 20 (twice 10), -5 and 0 points the least becomes 0 and the most 100, with weight 2."""
    cluster = Cluster(node("n1"), node("n2"), node("n3"))
    cluster.put("n1", labels={"app": "x"})
    cluster.put("n1", labels={"app": "x"})
    cluster.put("n2", labels={"app": "y"})
    wish = {**preferred("podAffinity", "x", 10), **preferred("podAntiAffinity", "y", 5)}
    assert cluster.scores("InterPodAffinity", affinity=wish) == [200, 0, 40]


def test_bound_pods_attract_and_repel_by_their_own_terms() -> None:
    """Their preferences count with their weights, and a required affinity with weight 1."""
    cluster = Cluster(node("n1"), node("n2"), node("n3"))
    required = preferred("podAffinity", "x", 1)["podAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    term = [each["podAffinityTerm"] for each in required]
    cluster.put("n1", affinity=preferred("podAffinity", "x", 4))
    cluster.put("n2", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}})
    assert cluster.scores("InterPodAffinity", labels={"app": "x"}) == [200, 50, 0]
    assert cluster.scores("InterPodAffinity", labels={"app": "z"}) == [0, 0, 0]


def test_a_preference_outweighs_a_fuller_node() -> None:
    """The total decides: 200 points of affinity are more than a full node costs."""
    wish = preferred("podAffinity", "x", 1)
    jobs = [
        job("x", {"cpu": 9}, labels={"app": "x"}, nodeSelector={HOSTNAME: "n2"}),
        job("wishes", {"cpu": 1}, at=1, runs=10, affinity=wish),
        job("indifferent", {"cpu": 1}, at=20),
    ]
    world = World([node("n1"), node("n2")], *jobs)
    assert world.about("bind")[1:] == ["1 bind wishes on n2", "20 bind indifferent on n1"]

"""Scores, with figures worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from kube_worlds import HOSTNAME, World, job, manifest, node

from harness.cluster.kinds.pod_reading import read_pod
from harness.cluster.kinds.scheduler_configuration import USUAL_STRATEGY, ScoringStrategy
from harness.cluster.load import cluster_from
from harness.cluster.yaml.fields import Fields
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.shape_nodes import ShapeNodes, rank_of
from harness.models.kube.pod import PodInfo, Shape, Templates

ZONE = "topology.kubernetes.io/zone"


class Cluster:
    """Nodes with pods on them, and the scores that a further pod would get."""

    def __init__(self, *nodes: dict[str, Any], scoring: ScoringStrategy = USUAL_STRATEGY) -> None:
        self.cache = Cache(cluster_from(nodes, "test"))
        self.templates = Templates(self.cache.resources, lambda namespace, labels: ())
        self.scheduling = Scheduling(self.cache, hard_affinity_weight=1, scoring=scoring)

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


GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("kind", "asked", "scores"),
    [
        ("MostAllocated", {"cpu": 1, GPU: 2}, [50, 63]),
        ("LeastAllocated", {"cpu": 1, GPU: 2}, [50, 36]),
        ("MostAllocated", {"cpu": 1}, [50, 30]),
        ("MostAllocated", {"cpu": 9}, [100, 100]),
    ],
)
def test_resources_count_by_their_weights(kind: str, asked: dict[str, int], scores: list[int]) -> None:
    """On n2 3 of 10 cpus and 6 of 8 GPUs would be taken: with weights 1 and 3, (30 + 3 * 75) / 4 is 63."""
    weights = (("cpu", 1), (GPU, 3), ("absent", 9))
    nodes = [node(name, **{GPU: 8}) for name in ("n1", "n2")]
    cluster = Cluster(*nodes, scoring=ScoringStrategy(kind, weights))
    cluster.put("n1", {"cpu": 4, GPU: 2})
    cluster.put("n2", {"cpu": 2, GPU: 4})
    assert cluster.scores("NodeResourcesFit", asked) == scores


@pytest.mark.parametrize(
    ("points", "score"),
    [
        (((0, 0), (100, 10)), 60),  # 75, 50 and 37 with weights 5, 1 and 3 are 59.6
        (((0, 10), (100, 0)), 40),  # 25, 50 and 63
        (((60, 0), (80, 8), (90, 0)), 60),  # 60 of the GPUs, and nothing of the others, which do not count
        (((20, 1), (30, 5)), 50),  # beyond the last point
    ],
)
def test_a_shape_says_how_well_allocated_a_resource_is(
    points: tuple[tuple[int, int], ...], score: int
) -> None:
    """The example of Kubernetes' page on bin packing: 3 of 4 GPUs, half the memory, and 3 of 8 cpus."""
    weights = ((GPU, 5), ("memory", 1), ("cpu", 3))
    where = node("n1", cpu=8, memory="1Gi", **{GPU: 4})
    cluster = Cluster(where, scoring=ScoringStrategy("RequestedToCapacityRatio", weights, points))
    cluster.put("n1", {"cpu": 1, "memory": "256Mi", GPU: 1})
    assert cluster.scores("NodeResourcesFit", {"cpu": 2, "memory": "256Mi", GPU: 2}) == [score]


def test_a_strategy_of_the_manifests_packs_pods() -> None:
    """The usual one spreads them; a profile's arguments reach the scheduler."""
    nodes = [node("n1"), node("n2")]
    jobs = [job(name, {"cpu": 1}, at=at) for at, name in enumerate("abc")]
    assert [line[-2:] for line in World(nodes, *jobs).about("bind")] == ["n1", "n2", "n1"]
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu"}]}
    profile = {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    packed = World([*nodes, configuration], *jobs)
    assert [line[-2:] for line in packed.about("bind")] == ["n1", "n1", "n1"]


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


def spread(key: str, **fields: Any) -> list[dict[str, Any]]:
    """A soft constraint over pods of app x, unless fields say otherwise."""
    selector = {"matchLabels": {"app": "x"}}
    soft = {"whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
    return [{"maxSkew": 1, "topologyKey": key, **soft, **fields}]


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


@pytest.mark.parametrize("key", [ZONE, HOSTNAME])
def test_spreading_by_an_empty_selector_counts_no_pod(key: str) -> None:
    """It matches all pods, but kube-scheduler counts none where a selector is empty."""
    cluster = Cluster(node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}))
    cluster.put("n1", labels={"app": "x"})
    cluster.put("n1", labels={"app": "x"})
    soft = spread(key, labelSelector={})
    assert cluster.scores("PodTopologySpread", topologySpreadConstraints=soft) == [200, 200]
    hard = spread(key, labelSelector={}, whenUnsatisfiable="DoNotSchedule")
    found = cluster.scheduling.schedule(cluster.pod({"cpu": 1}, topologySpreadConstraints=hard))
    assert isinstance(found, NodeInfo)
    cluster.put("n2", {"cpu": 10})
    found = cluster.scheduling.schedule(cluster.pod({"cpu": 1}, topologySpreadConstraints=hard))
    assert isinstance(found, NodeInfo)
    assert found.name == "n1"


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


def test_only_the_nodes_that_a_search_visits_get_a_score() -> None:
    """A search for one feasible node begins at the second of four nodes, and the next at the last one."""
    cluster = Cluster(*(node(f"n{number}") for number in range(4)))
    cluster.put("n1", {"cpu": 10})
    scored: list[str] = []

    def score(shape: Shape, node: NodeInfo) -> int:
        scored.append(node.name)
        return 0

    nodes = ShapeNodes(cluster.pod({"cpu": 1}).template.shape, cluster.cache, score)
    assert scored == []
    assert cluster.cache.by_rank[rank_of(nodes.best(1, 2))].name == "n2"
    assert scored == ["n2"]
    nodes.best(3, 2)
    assert scored == ["n2", "n3", "n0"]
    nodes.best(0, 4)
    assert scored == ["n2", "n3", "n0"]

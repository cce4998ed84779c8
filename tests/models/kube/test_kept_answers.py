"""What the scheduler keeps between attempts never changes a decision."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kube_worlds import HOSTNAME, budget, manifest, node

from harness.cluster.kinds.pod_reading import read_pod
from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster, Node
from harness.cluster.yaml.fields import Fields
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Diagnosis, Scheduling
from harness.models.kube.placement.shape_nodes import FITS, ShapeNodes
from harness.models.kube.pod import PodInfo, Templates
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import Found, Preemption, pick_one_node_for_preemption

APPS = ("a", "b", "c")


def terms(app: str) -> dict[str, Any]:
    """A required term that means pods of an app on the same node."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def random_cluster(rng: random.Random) -> Cluster:
    """Nodes of several sizes, some tainted, and two budgets."""
    soft = {"taints": [{"key": "slow", "effect": "PreferNoSchedule"}]}
    nodes = [
        node(
            f"n{number}",
            labels={"zone": f"z{number % 3}"},
            spec=soft if rng.random() < 0.2 else {},
            cpu=rng.choice([4, 8, 16]),
            memory=rng.choice(["8Gi", "32Gi"]),
            pods=rng.choice([3, 110]),
        )
        for number in range(rng.randint(1, 12))
    ]
    budgets = [budget(app, {"app": app}, minAvailable=rng.randint(0, 3)) for app in APPS[:2]]
    return cluster_from([*nodes, *budgets], "test")


def random_pod(rng: random.Random, name: str, templates: Templates) -> PodInfo:
    """A pod of one of some fifty kinds."""
    spec: dict[str, Any] = {}
    kind = rng.random()
    if kind < 0.1:
        spec["affinity"] = {"podAntiAffinity": terms(rng.choice(APPS))}
    elif kind < 0.15:
        spec["affinity"] = {"podAffinity": terms(rng.choice(APPS))}
    elif kind < 0.25:
        selector = {"matchLabels": {"app": rng.choice(APPS)}}
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, "labelSelector": selector}
            for when in rng.sample(["DoNotSchedule", "ScheduleAnyway"], rng.randint(1, 2))
        ]
    written = manifest(
        name,
        {"cpu": rng.randint(0, 6), "memory": f"{rng.randint(0, 8)}Gi"},
        {"app": rng.choice(APPS)} if rng.random() < 0.7 else None,
        **spec,
    )
    if rng.random() < 0.3:
        written["spec"]["containers"][0]["ports"] = [{"hostPort": rng.choice([80, 81])}]
    pod = read_pod(Fields(written, name, []))
    return PodInfo(
        name, templates.of("default", pod.labels, pod.spec), rng.choice([0, 1, 5, 9]), preempts=True
    )


class Answers:
    """The scheduler's answers to one pod."""

    def __init__(
        self, cluster: Cluster, cache: Cache, budgets: Budgets, configuration: SchedulerConfiguration
    ) -> None:
        self.scheduling = Scheduling(cache)
        self.preemption = Preemption(cache, budgets, configuration)

    def to(self, pod: PodInfo) -> tuple[Any, ...]:
        """The node that it gets, or the victims of its preemption and what rejected it."""
        found = self.scheduling.schedule(pod)
        self._agrees(pod, found)
        if isinstance(found, NodeInfo):
            return (found.name,)
        search = self.preemption.find_candidates(pod, found)
        one_by_one = self.preemption.find_candidates(pod, found, explain=True)
        assert _keys(search) == _keys(one_by_one)
        assert search.failed == one_by_one.failed
        if not search.candidates:
            return (found.rejecting, search.failed)
        chosen = pick_one_node_for_preemption(search.candidates)
        return (
            found.rejecting,
            len(search.candidates),
            chosen.node.name,
            [victim.name for victim in chosen.victims],
            chosen.violations,
        )

    def _agrees(self, pod: PodInfo, found: NodeInfo | Diagnosis) -> None:
        """It is what all filters say of the nodes one by one."""
        scheduling = self.scheduling
        state, nodes = scheduling.pre_filter(pod), scheduling.shape_nodes(pod.template.shape)
        examined = scheduling.examine(pod, state, nodes)
        if isinstance(found, NodeInfo):
            assert found in examined.feasible
            return
        assert not examined.feasible
        for each in scheduling.cache.nodes:
            assert found.status(each) == examined.statuses[each.position]
        assert found.rejecting == {status.plugin for status in examined.statuses.values()}


def _keys(found: Found) -> list[Any]:
    return [candidate.key for candidate in found.candidates]


@given(st.integers(0, 10**6))
def test_answers_that_are_kept_are_those_that_would_be_found_anew(seed: int) -> None:
    """After any series of bindings, ends, evictions and nominations, old and new schedulers agree."""
    rng = random.Random(seed)
    cluster = random_cluster(rng)
    cache = Cache(cluster)
    budgets = Budgets(cluster.disruption_budgets, live=True)
    templates = Templates(cache.resources, budgets.covering)
    wanted = SchedulerConfiguration(
        min_candidate_nodes_absolute=rng.choice((0, 1, 2, 4, 100)),
        min_candidate_nodes_percentage=rng.choice((10, 40)),
    )
    kept = Answers(cluster, cache, budgets, wanted)
    bound: list[PodInfo] = []
    nominated: list[PodInfo] = []
    looked_at: list[ShapeNodes] = []
    for step in range(60):
        budgets.refresh()
        pod = random_pod(rng, f"p{step}", templates)
        budgets.exists(pod.template, 1)
        if rng.random() < 0.15:
            cache.nominate(pod, rng.choice(cache.nodes).name)
            nominated.append(pod)
        answer = kept.to(pod)
        assert answer == Answers(cluster, cache, budgets, wanted).to(pod)
        looked_at.append(kept.scheduling.shape_nodes(pod.template.shape))
        for nodes in rng.sample(looked_at, min(3, len(looked_at))):
            anew = FITS in ShapeNodes(nodes.shape, cache).kinds
            assert (nodes.any_fits() if rng.random() < 0.5 else not nodes.still_none()) == anew
        if rng.random() < 0.5:
            for resource in range(len(cache.names)):
                assert cache.free_of(resource) == [each.free[resource] for each in cache.nodes]
            assert cache.slots() == [each.slots for each in cache.nodes]
        if len(answer) == 1:
            cache.nominate(pod, "")
            pod.start = step
            cache.add_pod(pod, cache.by_name[answer[0]])
            budgets.runs(pod.template, 1)
            bound.append(pod)
        if bound and rng.random() < 0.3:
            gone = bound.pop(rng.randrange(len(bound)))
            cache.remove_pod(gone)
            if not gone.terminating:
                budgets.runs(gone.template, -1)
        if bound and rng.random() < 0.2:
            leaving = rng.choice(bound)
            if not leaving.terminating:
                cache.terminate(leaving)
                budgets.runs(leaving.template, -1)
        if nominated and rng.random() < 0.3:
            cache.nominate(nominated.pop(), "")


def random_node(rng: random.Random, name: str) -> Node:
    """A node of several sizes in one of three zones; some are cordoned."""
    written = node(
        name,
        labels={"topology.kubernetes.io/zone": f"z{rng.randrange(3)}"},
        spec={"unschedulable": True} if rng.random() < 0.2 else {},
        cpu=rng.choice([2, 4, 8]),
        memory="8Gi",
        pods=rng.choice([1, 3]),
    )
    return cluster_from([written], "test").nodes[name]


@given(st.integers(0, 10**6))
@settings(deadline=None)
def test_what_a_shape_finds_is_kept_over_changes_of_nodes(seed: int) -> None:
    """Nodes of several zones come, go, return and change, with pods on them; all answers stay right."""
    rng = random.Random(seed)
    cache = Cache(random_cluster(rng))
    templates = Templates(cache.resources, Budgets({}, live=True).covering)
    kept = [ShapeNodes(random_pod(rng, f"s{number}", templates).template.shape, cache) for number in range(3)]
    for step in range(30):
        for _ in range(rng.choice((1, 1, 1, 3))):
            name = f"n{rng.randrange(14)}"
            if name in cache.by_name and rng.random() < 0.6:
                gone = cache.by_name[name]
                cache.drop(name)
                for pod in list(gone.pods):
                    cache.remove_pod(pod)
            else:
                cache.put(random_node(rng, name))
        cache.settle()
        for pod in [random_pod(rng, f"p{step}-{number}", templates) for number in range(2)]:
            free = [each for each in cache.nodes if each.slots > 0]
            if free:
                cache.add_pod(pod, rng.choice(free))
        for nodes in rng.sample(kept, 2):  # the third one follows several changes at once later
            nodes.follow()
            nodes.refresh()
            anew = ShapeNodes(nodes.shape, cache)
            every = len(nodes.kinds)
            assert (nodes.kinds, nodes.keys(0, every)) == (anew.kinds, anew.keys(0, every))
            assert nodes.unschedulable() == anew.unschedulable()
            assert [*map(nodes.status, cache.nodes)] == [*map(anew.status, cache.nodes)]

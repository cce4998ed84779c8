"""What a finished job costs while others wait: it should not follow the length of the queue."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from typing import Any

from harness.base.collector import seldom_collected
from harness.base.options import resolve
from harness.base.units import MINUTE, SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.engine import Engine
from harness.engine.events import FINISH, Fact, NullRecorder
from harness.plugins import load
from harness.policy import Arrival, Job, PodSet

CORES, NODES = 320, 10
WAITING = (1_000, 10_000, 100_000)
POLICIES = ("none", "default-preemption", "kueue-classic", "fairsharing", "elasticquota")
_WITH_COHORTS = ("kueue", "fair")
# Jobs that end before the clock runs, and while it does: fewer than the 250 of a high priority among 1,000,
# so that there is the same to do however many wait.
_SKIPPED, _FINISHED = 50, 150
_BETWEEN = 4 * SECOND  # about 137 jobs run for 10 minutes each
_SHAPES = tuple((PodSet("main", 1, 1, {"cpu": 1000 << power}),) for power in range(3))


class _Clock(NullRecorder):
    """A recorder that keeps nothing but what some hundred ends cost, CPU-seconds, and how much happened."""

    def __init__(self) -> None:
        self.ends = self.facts = 0
        self.began = self.over = 0.0

    def record(self, fact: Fact) -> None:
        """See `harness.engine.events.Recorder`."""
        self.facts += _SKIPPED <= self.ends < _SKIPPED + _FINISHED
        if fact.action == FINISH:
            self.ends += 1
            if self.ends == _SKIPPED:
                self.began = time.process_time()
            elif self.ends == _SKIPPED + _FINISHED:
                self.over = time.process_time()

    def has_enough(self) -> bool:
        """Whether as many jobs have ended as are counted."""
        return self.ends >= _SKIPPED + _FINISHED


def arrivals(waiting: int, queues: int) -> list[list[Arrival]]:
    """Jobs of 1 to 4 cores and 5 to 15 minutes: many within a second, then as many as end."""
    draw = random.Random(3)
    jobs: list[Arrival] = []
    for index in range(waiting + 2 * (_SKIPPED + _FINISHED)):
        submit = min(index, waiting) * SECOND // waiting + max(0, index - waiting) * _BETWEEN
        job = Job(
            index, f"job-{index}", submit, f"q{draw.randrange(queues)}", "default", "",
            draw.choice((0, 0, 0, 10)), "", True, False, 0, f"{index:07}", draw.choice(_SHAPES), 1,
        )  # fmt: skip
        jobs.append((job, draw.randrange(5 * MINUTE, 15 * MINUTE), None))
    return [jobs]


def world(policy: str, queues: int, levels: int) -> Cluster:
    """So many queues of equal quota in cohorts of so many levels, or nodes for schedulers of pods."""
    documents: list[dict[str, Any]] = []
    share = f"{1000 * CORES // queues}m"
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    if policy in ("none", "default-preemption", "elasticquota", "auto"):
        status = {"allocatable": {"cpu": CORES // NODES, "memory": "1Ti", "pods": 1000}}
        documents += [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{at}"}, "status": status}
            for at in range(NODES)
        ]
    if policy in ("elasticquota", "auto"):
        leaves = [
            {"name": f"q{at}", "min": {"cpu": share}, "max": {"cpu": CORES}, "namespaces": [f"q{at}"]}
            for at in range(queues)
        ]
        tree = {"name": "root", "min": {"cpu": CORES}, "max": {"cpu": CORES}, "children": leaves}
        about = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
        documents.append({**about, "metadata": {"name": "tree"}, "spec": {"root": tree}})
    elif policy not in ("none", "default-preemption"):
        documents.append({**kueue, "kind": "ResourceFlavor", "metadata": {"name": "default"}})
        if levels > 2:
            documents += [
                {**kueue, "kind": "Cohort", "metadata": {"name": f"c{at}"}, "spec": {"parentName": "all"}}
                for at in range(min(queues, 20))
            ]
        for at in range(queues):
            quota = {"name": "cpu", "nominalQuota": share}
            group = {"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [quota]}]}
            spec = {
                "cohortName": f"c{at % 20}" if levels > 2 else "all",
                "namespaceSelector": {},
                "resourceGroups": [group],
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            }
            documents.append({**kueue, "kind": "ClusterQueue", "metadata": {"name": f"q{at}"}, "spec": spec})
    return cluster_from(documents, "benchmark")


def cost(policy: str, waiting: int, *, queues: int = 4, levels: int = 2, per_event: bool = False) -> float:
    """CPU-microseconds for each finished job, or for each thing that happened, with so many waiting."""
    spec = load().policy(policy)
    cluster, clock = world(policy, queues, levels), _Clock()
    engine = Engine(arrivals(waiting, queues), cluster, clock, enough=clock.has_enough)
    made = spec.factory(cluster, engine.view, resolve(spec.options, {}, owner=policy))
    with seldom_collected:  # as replays do it
        engine.run(made)
    return 1e6 * (clock.over - clock.began) / (clock.facts if per_event else _FINISHED)


def exponent(costs: Mapping[int, float]) -> float:
    """By which power of the backlog the cost grows between the shortest and the longest one."""
    least, most = min(costs), max(costs)
    return math.log(costs[most] / costs[least]) / math.log(most / least)


class Backlog:
    """What a finished job costs with so many waiting; flat is what it should be."""

    unit = "us"
    timeout = 1800
    param_names = ("policy", "waiting", "queues", "levels")
    params = (POLICIES, WAITING, (1, 4, 500), (2, 3))

    def track_cost(self, policy: str, waiting: int, queues: int, levels: int) -> float:
        """CPU-microseconds."""
        if levels == 3 and not policy.startswith(_WITH_COHORTS):
            raise NotImplementedError  # asv leaves it out: there are no cohorts
        if queues != 4 and policy in ("none", "default-preemption"):
            raise NotImplementedError  # queues mean nothing there
        if queues == 500 and waiting > 1_000 and policy == "fairsharing":
            raise NotImplementedError  # until all have come takes longer than is allowed
        return cost(policy, waiting, queues=queues, levels=levels)


class Growth:
    """The power of the backlog with which the cost of what happens grows; at most 0.15 is wanted."""

    unit = "exponent"
    timeout = 3600
    param_names = ("policy", "per_event")
    params = (POLICIES, (False, True))

    def track_exponent(self, policy: str, per_event: bool) -> float:
        """Over the whole range, with four queues: of a finished job, or of whatever happened."""
        return exponent({waiting: cost(policy, waiting, per_event=per_event) for waiting in WAITING})

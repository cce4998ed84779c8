"""kube-scheduler's model: what an attempt costs on a large cluster, and a preemption."""

from __future__ import annotations

import random
import time

from harness.cluster.kinds.pods import PodSpec
from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
from harness.cluster.load import cluster_from
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Diagnosis, Scheduling
from harness.models.kube.pod import PodInfo, Templates
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import Preemption, pick_one_node_for_preemption

NODES = 1500
GIB = 2**30


class World:
    """Nodes of 96 cpus, and pods of some hundred shapes."""

    def __init__(self) -> None:
        allocatable = {"cpu": 96, "memory": "768Gi", "pods": 110}
        names = (f"n{number:04}" for number in range(NODES))
        nodes = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "status": {"allocatable": allocatable},
            }
            for name in names
        ]
        self.cache = Cache(cluster_from(nodes, "benchmark"))
        self.budgets = Budgets((), live=True)
        self.templates = Templates(self.cache.resources, self.budgets.covering)
        self.scheduling = Scheduling(self.cache, percentage=100)
        self.draw = random.Random(1)

    def pod(self, cpu: int, priority: int = 0) -> PodInfo:
        """A pod of some cpus and as many times 4 GiB."""
        memory = 4 * cpu * GIB
        spec = PodSpec({"cpu": 1000 * cpu, "memory": memory}, 1000 * cpu, memory)
        return PodInfo("p", self.templates.of("default", {}, spec), priority, preempts=True)

    def fill(self) -> None:
        """Eight pods of 12 cpus on every node."""
        for count, node in enumerate(self.cache.nodes):
            for _ in range(8):
                pod = self.pod(12, self.draw.choice((0, 1, 5, 9)))
                pod.start = count
                self.cache.add_pod(pod, node)


class Scheduling1500Nodes:
    """Every node filtered and scored, pods of a hundred shapes."""

    unit = "pods/CPU-s"

    def setup(self) -> None:
        """An empty cluster."""
        self.world = World()

    def track_pods_per_second(self) -> float:
        """Pods bound in a CPU-second."""
        world, count = self.world, 4000
        began = time.process_time()
        for _ in range(count):
            pod = world.pod(world.draw.randint(1, 100) % 24 + 1)
            found = world.scheduling.schedule(pod)
            if isinstance(found, NodeInfo):
                world.cache.add_pod(pod, found)
        return count / (time.process_time() - began)


class Preempting1500Nodes:
    """The search for victims on every node of a full cluster, and the choice among them."""

    unit = "ms"

    def setup(self) -> None:
        """A full cluster, and a pod that fits nowhere."""
        self.world = World()
        self.world.fill()
        everything = SchedulerConfiguration(min_candidate_nodes_percentage=100)
        self.preemption = Preemption(self.world.cache, self.world.budgets, everything)

    def search(self) -> float:
        """CPU-milliseconds of one search."""
        began = time.process_time()
        pod = self.world.pod(60, 1000)
        diagnosis = self.world.scheduling.schedule(pod)
        assert isinstance(diagnosis, Diagnosis)
        pick_one_node_for_preemption(self.preemption.find_candidates(pod, diagnosis).candidates)
        return 1000 * (time.process_time() - began)

    def track_cold(self) -> float:
        """The first search."""
        self.world.scheduling.schedule(self.world.pod(60, 1000))
        return self.search()

    def track_after_a_small_change(self) -> float:
        """A search after a pod of one node was replaced, the median of many."""
        self.search()
        times = []
        for node in self.world.cache.nodes[:50]:
            pod = next(iter(node.pods))
            self.world.cache.remove_pod(pod)
            self.world.cache.add_pod(pod, node)
            times.append(self.search())
        return sorted(times)[len(times) // 2]

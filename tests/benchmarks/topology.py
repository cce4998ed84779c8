"""Kueue's topology-aware scheduling: where pods go in 1,000 nodes in blocks, racks and hosts."""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

from harness.base.options import resolve
from harness.base.pod_set import TopologyRequest
from harness.base.units import MINUTE, SECOND
from harness.cluster.load import cluster_from
from harness.cluster.manifests import topology_manifest
from harness.cluster.model import Cluster, frozen
from harness.engine import Engine
from harness.engine.events import NullRecorder
from harness.plugins import load
from harness.policy import Arrival, Job, PodSet
from harness_plugins.kueue.rules.topology.capacity import capacity_of
from harness_plugins.kueue.rules.topology.placement import (
    PodSetRequest,
    WorkloadTopologies,
    WorkloadTopology,
    suitable_leaves,
)
from harness_plugins.kueue.shortcuts.kept_capacities import KeptCapacities
from harness_plugins.kueue.shortcuts.kept_flavors import kept_suitable_leaves
from harness_plugins.kueue.state.topology.flavors import TopologyFlavors

_KUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
_QUOTAS = {"nvidia.com/gpu": 2_000, "cpu": 24_000, "memory": "250Ti"}
_JOBS = 200
HOST = "kubernetes.io/hostname"
REPEATS = 30


def racks(*more: dict[str, Any]) -> Cluster:
    """Ten blocks of ten racks of ten hosts with 8 GPUs each, and more manifests."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"n{number:04}",
                "labels": {"block": f"b{number // 100}", "rack": f"r{number // 10}", HOST: f"n{number:04}"},
            },
            "status": {"allocatable": {"nvidia.com/gpu": 8, "cpu": 96, "memory": "1Ti", "pods": 110}},
        }
        for number in range(1000)
    ]
    flavor = {**_KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {"topologyName": "t"}}
    return cluster_from([topology_manifest("t", ["block", "rack", HOST]), flavor, *nodes, *more], "benchmark")


def arrivals() -> list[Arrival]:
    """Jobs of 4 to 32 pods in four queues, which have to be, should be or need not be in one rack.

    Half of the jobs select the nodes of one block.
    """
    draw = random.Random(3)
    requests = frozen({"nvidia.com/gpu": 2, "cpu": 8_000, "memory": 64 << 30})
    asked = [
        TopologyRequest(required="rack"),
        TopologyRequest(preferred="rack"),
        TopologyRequest(unconstrained=True),
    ]
    jobs: list[Arrival] = []
    for index in range(_JOBS):
        count = 4 * draw.randrange(1, 9)
        selector = frozen({"block": f"b{draw.randrange(10)}"} if index % 2 else {})
        topology = draw.choice(asked)
        pods = (PodSet("main", count, count, requests, node_selector=selector, topology=topology),)
        job = Job(
            index, f"job-{index}", index * SECOND, f"q{draw.randrange(4)}", "default", "",
            draw.choice((0, 0, 0, 10)), "", True, False, 0, f"{index:07}", pods, count,
        )  # fmt: skip
        jobs.append((job, draw.randrange(5 * MINUTE, 15 * MINUTE), None))
    return jobs


def replay(plugin: str) -> None:
    """Replays the jobs with four queues in one cohort, and records nothing."""
    resources = [{"name": name, "nominalQuota": quota} for name, quota in _QUOTAS.items()]
    spec = {
        "cohortName": "all",
        "namespaceSelector": {},
        "resourceGroups": [
            {"coveredResources": list(_QUOTAS), "flavors": [{"name": "f", "resources": resources}]}
        ],
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
    }
    queues = [
        {**_KUEUE, "kind": "ClusterQueue", "metadata": {"name": f"q{at}"}, "spec": spec} for at in range(4)
    ]
    cluster, policy = racks(*queues), load().policy(plugin)
    engine = Engine([arrivals()], cluster, NullRecorder())
    engine.run(policy.factory(cluster, engine.view, resolve(policy.options, {}, owner=plugin)))


class Placement:
    """The places of 16 pods of 2 GPUs, 8 cores and 64 GiB, where each host has from 1 to 8 GPUs left."""

    params = ("required", "preferred", "unconstrained")
    param_names = ("request",)
    unit = "ms"

    def setup(self, request: str) -> None:
        """The cluster, which a replay reads once."""
        self.cluster = racks()
        named = {request: True if request == "unconstrained" else "rack"}
        self.request = TopologyRequest(**named)  # type: ignore[arg-type]

    def track_cold(self, request: str) -> float:
        """The first placement, of which nothing is known: the median of CPU-milliseconds."""
        return statistics.median(_millis(self._world()[1]) for _ in range(REPEATS))

    def track_repeated(self, request: str) -> float:
        """The same again after another workload has taken room in a host: the median of CPU-milliseconds."""
        flavors, workload = self._world()
        workload.place()
        room, spent = flavors.by_name["f"].room, []
        for number in range(REPEATS):
            room.take(37 * number % 1000, {"nvidia.com/gpu": 1}, 1)
            spent.append(_millis(workload))
        return statistics.median(spent)

    def _world(self) -> tuple[TopologyFlavors, WorkloadTopology]:
        """The flavor, with what others hold of it, and what is asked; nothing is kept from before."""
        flavors = TopologyFlavors(self.cluster, overlapping=True)
        flavor = flavors.by_name["f"]
        for leaf in range(1000):
            flavor.room.take(leaf, {"nvidia.com/gpu": leaf * 7 % 8}, 1)
        requests = {"nvidia.com/gpu": 2, "cpu": 8000, "memory": 64 << 30}
        pods = PodSet("main", 16, 16, frozen(requests), topology=self.request)
        kept = kept_suitable_leaves(suitable_leaves), KeptCapacities(capacity_of)
        finder = WorkloadTopologies(flavors, True, *kept)
        asked = [PodSetRequest(pods, 16, self.request)]
        return flavors, WorkloadTopology([(flavor, asked)], frozenset(), finder)


def _millis(workload: WorkloadTopology) -> float:
    began = time.process_time_ns()
    assert workload.place() is not None
    return (time.process_time_ns() - began) / 1e6

"""What a queue with many resources costs: at most in proportion to their number, see docs/reliability.md."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import harness
import harness_plugins
from harness.base.build import is_compiled
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.engine import Engine
from harness.engine.events import NullRecorder
from harness.plugins import load
from harness.policy import Arrival, Job, PodSet

_FOLDERS = tuple(str(Path(each)) for each in (*harness.__path__, *harness_plugins.__path__))
_A_GROUP = 16
QUEUES = ("q0", "q1")


def world(policy: str, names: list[str]) -> Cluster:
    """Two queues that borrow from each other, each with 40 of each resource; or two such elastic quotas."""
    if policy == "elasticquota":
        allocatable = {**dict.fromkeys(names, 20), "pods": 1000, "memory": "1Ti"}
        mins, maxes = dict.fromkeys(names, 40), dict.fromkeys(names, 80)
        leaves = [{"name": name, "min": mins, "max": maxes, "namespaces": [name]} for name in QUEUES]
        tree: dict[str, Any] = {
            "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
            "kind": "ElasticQuotaTree",
            "metadata": {"name": "tree"},
            "spec": {"root": {"name": "root", "min": maxes, "max": maxes, "children": leaves}},
        }
        node = {"apiVersion": "v1", "kind": "Node", "status": {"allocatable": allocatable}}
        return cluster_from([tree, *({**node, "metadata": {"name": f"n{at}"}} for at in range(4))], "test")
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    groups, flavors = [], []
    for first in range(0, len(names), _A_GROUP):
        covered = names[first : first + _A_GROUP]
        resources = [{"name": name, "nominalQuota": 40} for name in covered]
        groups.append(
            {"coveredResources": covered, "flavors": [{"name": f"f{first}", "resources": resources}]}
        )
        flavors.append({**kueue, "kind": "ResourceFlavor", "metadata": {"name": f"f{first}"}})
    spec = {
        "cohortName": "all",
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": groups,
    }
    queues = [{**kueue, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec} for name in QUEUES]
    return cluster_from([*flavors, *queues], "test")


def arrivals(names: list[str]) -> list[Arrival]:
    """Forty jobs that ask for the same amount of each resource, some of them important."""
    draw, jobs, at = random.Random(5), list[Arrival](), 0
    for index in range(40):
        at += draw.randrange(1, 40) * SECOND
        amount, queue = draw.choice((1, 2, 4, 8)), draw.choice(QUEUES)
        shape = PodSet("main", 1, 1, {name: amount * (1000 if name == "cpu" else 1) for name in names})
        job = Job(
            index, f"j{index}", at, queue, queue, "", draw.choice((0, 0, 0, 10)), "", True, False, 0,
            f"{index:07}", (shape,), 1,
        )  # fmt: skip
        jobs.append((job, draw.randrange(100, 800) * SECOND, None))
    return jobs


def lines_of(policy: str, resources: int) -> tuple[int, int]:
    """How many lines of ours a replay executes, rounds of loops included, and how many cycles it has."""
    names = ["cpu", *(f"example.com/r{number}" for number in range(resources - 1))]
    cluster, spec, count = world(policy, names), load().policy(policy), 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, event: str, argument: object) -> Any:
        return line if frame.f_code.co_filename.startswith(_FOLDERS) else None

    engine = Engine([arrivals(names)], cluster, NullRecorder())
    made = spec.factory(cluster, engine.view, resolve(spec.options, {}, owner=policy))
    before = sys.gettrace()
    sys.settrace(call)
    try:
        outcome = engine.run(made)
    finally:
        sys.settrace(before)
    return count, outcome.cycles


@pytest.mark.skipif(is_compiled(), reason="compiled code does not tell its lines")
@pytest.mark.parametrize(
    ("policy", "most"), list({"kueue-classic": 7.1, "fairsharing": 9, "elasticquota": 6}.items())
)
def test_ten_times_as_many_resources_cost_at_most_nine_times_as_much(policy: str, most: float) -> None:
    """Where each job asks for all of them, as counted in executed lines."""
    (few, cycles), (many, cycles_of_many) = lines_of(policy, 10), lines_of(policy, 100)
    assert cycles == cycles_of_many, "the same happens"
    assert many <= most * few

"""Any number of jobs may arrive at one instant, with every plugin, with nodes and without."""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from harness.base.options import resolve
from harness.base.units import HOUR, SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.engine import Engine
from harness.engine.engine import Outcome
from harness.engine.events import ACTIONS, Fact, NullRecorder
from harness.plugins import load
from harness.testing import Script

QUEUES = ("a", "b", "c")
NODES, CORES = 4, 15
EARLY = NODES * CORES // 5
PLUGINS = load()
EVERY = [
    ("none", False),
    ("backfill", False),
    ("kueue-classic", False),
    ("fairsharing", False),
    *((plugin, True) for plugin in ("none", "backfill", "default-preemption", "elasticquota", "auto")),
    *((plugin, True) for plugin in ("kueue-classic", "fairsharing")),
]


class Counted(NullRecorder):
    """A recorder that counts."""

    def __init__(self) -> None:
        self.actions: Counter[str] = Counter()

    def record(self, fact: Fact) -> None:
        """Each action is counted."""
        self.actions[ACTIONS[fact.action]] += 1


def cluster(*, nodes: bool) -> Cluster:
    """Quotas of all families for three queues, which share a third of the cores each."""
    third = NODES * CORES // 3
    core, kueue = "v1", "kueue.x-k8s.io/v1beta2"

    def manifest(kind: str, name: str, version: str = kueue, **fields: Any) -> dict[str, Any]:
        return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}

    flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": third}]}
    spec = {
        "cohortName": "all",
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
    }
    leaves = [{"name": name, "min": {"cpu": third}, "max": {"cpu": NODES * CORES}} for name in QUEUES]
    root = {"name": "root", "min": {"cpu": 3 * third}, "max": {"cpu": NODES * CORES}, "children": leaves}
    tree = manifest("ElasticQuotaTree", "tree", "scheduling.sigs.k8s.io/v1beta1", spec={"root": root})
    tree["metadata"]["namespace"] = "kube-system"
    manifests = [manifest("ResourceFlavor", "f"), tree]
    manifests += [manifest("ClusterQueue", name, spec=spec) for name in QUEUES]
    amounts = {"cpu": CORES, "pods": 110}
    for number in range(NODES if nodes else 0):
        manifests.append(manifest("Node", f"n{number}", core, status={"allocatable": amounts}))
    return cluster_from(manifests, "test")


def burst(jobs: int) -> Script:
    """So many jobs at one instant, after some that fill the cluster."""
    draw = random.Random(1)
    script = Script()
    for number in range(EARLY):
        script.job(f"early-{number}", queue="a", cpu=5000, seconds=10_000, grace=30)
    for number in range(jobs):
        cpu, queue, priority = draw.choice((1, 2, 4)), draw.choice(QUEUES), draw.choice((0, 0, 100))
        script.job(f"j{number}", at=60, queue=queue, cpu=1000 * cpu, priority=priority, seconds=600, grace=30)
    return script


class Burst:
    """A burst that is replayed, by default until shortly before its victims are gone."""

    def __init__(self, plugin: str, jobs: int, *, nodes: bool, until: int = 80 * SECOND) -> None:
        spec, where, self._record = PLUGINS.policy(plugin), cluster(nodes=nodes), Counted()
        self._engine = Engine(burst(jobs).chunks(), where, self._record, until=until)
        options: Mapping[str, Any] = resolve(spec.options, {}, owner=plugin)
        self._policy = spec.factory(where, self._engine.view, options)
        self._name = plugin

    def replayed(self) -> tuple[Outcome, Counter[str]]:
        """How it went."""
        return self._engine.run(self._policy, name=self._name), self._record.actions


@pytest.mark.parametrize(
    ("plugin", "nodes"), [pytest.param(*each, marks=() if each[1] else pytest.mark.nightly) for each in EVERY]
)
def test_thousands_of_jobs_arrive_at_one_instant(plugin: str, nodes: bool) -> None:
    """All of them wait, those start that fit, and some evict others."""
    _check(plugin, 2_000, nodes=nodes)


@pytest.mark.parametrize(
    ("plugin", "nodes"), [pytest.param(*each, marks=() if each[1] else pytest.mark.nightly) for each in EVERY]
)
def test_what_decides_leaves_no_garbage_in_cycles(plugin: str, nodes: bool) -> None:
    """Only the collector would find it, which takes a second each time there are many jobs."""
    Burst(plugin, 1, nodes=nodes).replayed()  # what is set up once
    world = Burst(plugin, 300, nodes=nodes, until=HOUR)
    gc.disable()
    gc.freeze()  # what is there already, which is much in a worker, is not looked at
    try:
        world.replayed()
        assert gc.collect() < 300
    finally:
        gc.unfreeze()
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize(("plugin", "nodes"), EVERY)
def test_a_hundred_thousand_jobs_arrive_at_one_instant(plugin: str, nodes: bool) -> None:
    """No number of jobs is too many."""
    _check(plugin, 100_000, nodes=nodes)


def _check(plugin: str, jobs: int, *, nodes: bool) -> None:
    outcome, actions = Burst(plugin, jobs, nodes=nodes).replayed()
    assert outcome.stopped is None
    assert outcome.jobs == actions["submit"] == jobs + EARLY
    assert actions["bind" if nodes else "admit"] >= EARLY
    assert (actions["preempt"] > 0) == (plugin not in ("none", "backfill"))

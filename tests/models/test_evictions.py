"""What an eviction costs beyond the grace period, for all plugins: the latency, and rounds that slow down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.options import resolve
from harness.base.units import DAY, MINUTE, SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.engine.livelock import SPAN
from harness.models.evictions import LATENCY, LONGEST, Evictions, Round
from harness.plugins import load
from harness.policy import PodSet
from harness.testing import Decisions, Script, replayed

PLUGINS = load()
ON_NODES = ("default-preemption", "elasticquota", "auto")
CAPACITY = {"semantics": "capacity-scheduling"}


def node(name: str, cpu: int) -> dict[str, Any]:
    """A Node with so many cores."""
    amounts = {"cpu": cpu, "pods": 110}
    manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return {**manifest, "status": {"allocatable": amounts}}


def cluster(nodes: int = 1, **least: int) -> Cluster:
    """Nodes of 4 cores, and elastic quotas with so much guaranteed, which may use whatever is guaranteed."""
    most = sum(least.values())
    leaves = [{"name": name, "min": {"cpu": cpu}, "max": {"cpu": most}} for name, cpu in least.items()]
    root = {"name": "root", "min": {"cpu": most}, "max": {"cpu": most}, "children": leaves}
    tree = {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "tree", "namespace": "kube-system"},
        "spec": {"root": root},
    }
    return cluster_from([*(node(f"n{number}", 4) for number in range(nodes)), tree], "test")


def happened(
    plugin: str, jobs: Script, where: Cluster, *, until: float | None = None, **given: Any
) -> Decisions:
    """A replay through a registered plugin, with the defaults of its options."""
    spec = PLUGINS.policy(plugin)

    def make(where: Cluster, view: Any, options: Mapping[str, Any]) -> Any:
        return spec.factory(where, view, resolve(spec.options, options, owner=plugin))

    return replayed(make, jobs, where, options=given, until=until)


def lines(found: Decisions, *actions: str) -> list[str]:
    """What happened, such as `10 preempt a`."""
    return [f"{row.time / SECOND:g} {row.action} {row.pod or row.job}" for row in found.of(*actions)]


def overtaking(*, grace: float = 0, seconds: float = 10**8) -> Script:
    """`mine` is within its guarantee and takes the place of `theirs`, which takes it back.

    It is more important, and capacity scheduling keeps room that was reclaimed only from pods that are not.
    """
    jobs = Script().job("theirs", queue="b", cpu=4000, priority=9, grace=grace, seconds=seconds)
    return jobs.job("mine", queue="a", at=5, cpu=4000, grace=grace, seconds=seconds)


LENT = {"a": 4, "b": 0, "spare": 8}
"""What nobody uses is lent to whoever asks first, so that both sides of a loop are within all bounds."""


# --- the latency ------------------------------------------------------------------------------------------


def test_all_plugins_that_preempt_have_the_same_option() -> None:
    """With the same default and meaning: there is one declaration."""
    having = {spec.name for spec in PLUGINS.policies if LATENCY in spec.options}
    assert having == {*ON_NODES, "kueue-classic", "fairsharing"}
    assert LATENCY.default == SECOND


@pytest.mark.parametrize("plugin", ON_NODES)
def test_a_preemptor_gets_its_node_after_grace_period_and_latency(plugin: str) -> None:
    """The victim waits again from that very moment on, behind those that waited already."""
    jobs = Script().job("low", queue="a", cpu=4000, grace=30, seconds=100)
    jobs.job("high", queue="a", at=5, cpu=4000, priority=9, seconds=10)
    jobs.job("later", queue="a", at=6, cpu=4000, seconds=10)
    where = cluster(a=4)
    found = happened(plugin, jobs, where, until=60)
    assert lines(found, "preempt", "gone", "bind") == [
        "0 bind low",
        "5 preempt low",
        "35 gone low",
        "36 bind high",
        "46 bind later",
        "56 bind low-r1",
    ]
    at_once = happened(plugin, jobs, where, until=60, evictionLatency="0s")
    assert lines(at_once, "bind")[1] == "35 bind high"
    slow = happened(plugin, jobs, where, until=60, evictionLatency="7s")
    assert lines(slow, "bind")[1] == "42 bind high"


@pytest.mark.parametrize("plugin", ON_NODES)
def test_without_a_grace_period_only_the_latency_passes(plugin: str) -> None:
    """The node is free at once, but nothing is bound to it before the scheduler knows."""
    jobs = Script().job("low", queue="a", cpu=4000, seconds=100)
    jobs.job("high", queue="a", at=5, cpu=4000, priority=9, seconds=10)
    found = happened(plugin, jobs, cluster(a=4), until=30)
    expected = ["0 bind low", "5 preempt low", "5 gone low", "6 bind high", "16 bind low-r1"]
    assert lines(found, "preempt", "gone", "bind") == expected


def test_pods_of_a_job_come_back_one_by_one() -> None:
    """Each pod has a latency of its own, and its successor has the next name."""
    jobs = Script().job("low", queue="a", cpu=4000, pods=2, gang=False, seconds=100)
    jobs.job("one", queue="a", at=5, cpu=4000, priority=9, seconds=10)
    jobs.job("two", queue="a", at=5.5, cpu=4000, priority=9, seconds=10)
    found = happened("default-preemption", jobs, cluster(2, a=8), until=100)
    said = lines(found, "preempt", "bind")[2:]
    assert said[:4] == ["5 preempt low-1", "5.5 preempt low-0", "6 bind one", "6.5 bind two"]
    assert sorted(line.split()[2] for line in said[4:]) == ["low-0-r1", "low-1-r1"]


def test_what_is_revoked_leaves_with_the_latency_too() -> None:
    """Nobody is the preemptor of what a quota uses beyond its share."""
    jobs = Script().job("theirs", queue="b", cpu=4000, seconds=1000, grace=3)
    jobs.job("mine", queue="a", at=5, cpu=4000, seconds=10)
    found = happened(
        "elasticquota", jobs, cluster(a=4, b=0), until=60, semantics="koordinator", revokeAfter="10s"
    )
    assert lines(found, "evict", "gone", "bind")[1:4] == ["20 evict theirs", "23 gone theirs", "24 bind mine"]


# --- rounds that slow down --------------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", ["elasticquota", "auto"])
@pytest.mark.parametrize("grace", [0, 1e-6, 30])
def test_a_loop_of_evictions_doubles_its_latency_up_to_10_minutes(plugin: str, grace: float) -> None:
    """As with Kueue: from 1 s on, and each round is recorded with its number."""
    found = happened(plugin, overtaking(grace=grace), cluster(**LENT), until=5000, **CAPACITY)
    preemptions = found.of("preempt")
    took = [after.time - before.time for before, after in pairwise(preemptions)]
    expected = [min(2**number * SECOND, 10 * MINUTE) + round(grace * SECOND) for number in range(len(took))]
    assert took == expected
    assert len(took) > 12
    rounds = [(row.detail or {}).get("round") for row in preemptions]
    assert rounds == [None, *range(2, len(rounds) + 1)]


def test_a_loop_of_default_preemption_ends_when_the_victim_comes_late_enough() -> None:
    """A pod keeps a zone for itself: its victim is back first, on another node of that zone."""
    apart = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    containers = [{"name": "c", "resources": {"requests": {"cpu": 1}}}]
    alone = {"containers": containers, "affinity": {"podAntiAffinity": terms}}
    victim = PodSet("main", 1, 1, {"cpu": 1000}, labels={"app": "x"})
    preemptor = PodSet("main", 1, 1, {"cpu": 1000}, pod_template=json.dumps(alone))
    jobs = Script().job("theirs", pod_sets=(victim,), seconds=1000)
    jobs.job("mine", at=5, pod_sets=(preemptor,), seconds=1000, priority=9)
    zone = {"metadata": {"labels": {"zone": "z"}}}
    nodes = [node(name, 4) for name in ("n1", "n2")]
    where = cluster_from(
        [{**each, "metadata": each["metadata"] | zone["metadata"]} for each in nodes], "test"
    )
    found = happened("default-preemption", jobs, where)
    took = [after.time - before.time for before, after in pairwise(found.of("preempt"))]
    assert took == [2**number * SECOND for number in range(4)]
    assert [row.job for row in found.of("finish")] == ["mine", "theirs"]  # its backoff is 10 s at most


@pytest.mark.parametrize("plugin", ["elasticquota", "auto"])
def test_a_loop_takes_time_also_where_evictions_take_none(plugin: str) -> None:
    """From the second round on a second at least."""
    found = happened(plugin, overtaking(), cluster(**LENT), until=100, evictionLatency="0s", **CAPACITY)
    assert [row.time // SECOND for row in found.of("preempt")] == [5, 5, 6, 8, 12, 20, 36, 68]


def test_a_loop_ends_after_30_days() -> None:
    """With a grace period of a microsecond too it neither goes on for ever nor is it the policy's fault."""
    found = happened("elasticquota", overtaking(grace=1e-6), cluster(**LENT), **CAPACITY)
    assert found.outcome is not None
    assert found.outcome.stopped is not None
    assert [party.job for party in found.outcome.stopped.jobs] == ["theirs", "mine"]
    assert SPAN <= found.outcome.end < SPAN + DAY


# --- the rule, by itself ----------------------------------------------------------------------------------


class Someone:
    """A preemptor."""

    def __init__(self) -> None:
        self.admissions = 0


def rounds(*whom: Someone | None, held: int = 0, at: Iterable[int] = count()) -> list[int]:
    """The numbers of evictions of one victim in a row, with progress elsewhere in between."""
    evictions: Evictions[str] = Evictions(SECOND)
    last: Round | None = None
    found = []
    for preemptor, now in zip(whom, at, strict=False):
        evictions.progressed += 1
        last = evictions.begin(last, preemptor, held, now)
        found.append(last.number)
    return found


def test_a_round_is_one_more_when_the_one_before_was_to_no_avail() -> None:
    """Whoever it is for now; it was of avail to who was given something since."""
    first, other = Someone(), Someone()
    assert rounds(first, first, other, None) == [1, 2, 3, 4]
    assert rounds(first, None, first, first) == [1, 2, 1, 2]
    assert rounds(first, first, held=LONGEST + 1) == [1, 1]
    assert rounds(None, None, None, at=(5, 5, 6)) == [1, 2, 1]
    evictions: Evictions[str] = Evictions(SECOND)
    last = evictions.begin(None, first, 0, 0)
    first.admissions += 1
    assert evictions.begin(last, first, 0, 1).number == 1
    assert evictions.begin(last, first, LONGEST + 1, 0).number == 2  # twice at one instant


@given(st.lists(st.sampled_from("abc"), min_size=11, max_size=60))
def test_a_victim_that_only_goes_slows_down_whoever_it_goes_for(whom: list[str]) -> None:
    """Where nothing progresses in the cluster, from the eleventh eviction on each is a further round."""
    preemptors = {name: Someone() for name in "abc"}
    evictions: Evictions[str] = Evictions(SECOND)
    last: Round | None = None
    numbers = []
    for now, name in enumerate(whom):
        last = evictions.begin(last, preemptors[name], 0, now)
        preemptors[name].admissions += 1
        numbers.append(last.number)
    assert numbers[:10] == [1] * 10
    assert numbers[10:] == list(range(2, len(numbers) - 8))


@given(st.integers(0, 20 * MINUTE), st.integers(1, 100))
def test_latencies_double_up_to_10_minutes_or_stay_what_they_are(latency: int, number: int) -> None:
    """A further round takes a second at least, and a latency of more than 10 minutes does not grow."""
    evictions: Evictions[str] = Evictions(latency)
    due = evictions.leave("victim", "victim", Round(number, 0, None, 0, 0, 1), 7)
    longer = max(latency, SECOND // 2) * 2 ** (number - 1)
    assert due - 7 == (latency if number == 1 else min(longer, max(LONGEST, latency)))
    assert [wake.at for wake in evictions.wakes()] == ([due] if due > 7 else [])
    assert list(evictions.wakes()) == []
    if due > 7:
        assert list(evictions.due(due - 1)) == []
        assert list(evictions.due(due)) == ["victim"]


def test_a_scheduler_that_knows_at_once_always_does() -> None:
    """As recorded sequences of a component by itself have it."""
    evictions: Evictions[str] = Evictions(None)
    assert evictions.leave("victim", "victim", Round(9, 0, None, 0, 0, 1), 7) == 7
    assert list(evictions.wakes()) == []

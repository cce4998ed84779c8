"""Idle wakes that repeat what was: a century of them takes as many calls of a policy as some hours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from kube_worlds import node

from harness.analysis.explanation.cycles import Cycle, Observer
from harness.base.options import resolve
from harness.base.units import DAY, SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.engine import recurrence
from harness.plugins import load
from harness.policy import Decision, Policy, View
from harness.testing import Decisions, Script, replayed

YEAR = 365 * DAY // SECOND
NODES = [node("n1", cpu="6m"), node("n2", cpu="4m")]
QUEUE = "q"


def queues(nominal: int) -> list[dict[str, Any]]:
    """A ClusterQueue, and the LocalQueue of its name."""
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    quota = {"name": "cpu", "nominalQuota": f"{nominal}m"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [quota]}]}
    return [
        {**kueue, "kind": "ResourceFlavor", "metadata": {"name": "default"}},
        {
            **kueue,
            "kind": "ClusterQueue",
            "metadata": {"name": QUEUE},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
        },
    ]


ELASTIC = {
    "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
    "kind": "ElasticQuota",
    "metadata": {"name": QUEUE, "namespace": "default"},
    "spec": {"min": {"cpu": "8m"}, "max": {"cpu": "10m"}},
}
NO_TIME_LIMIT = {"featureGates": "DisableWaitForPodsReady=true"}
KINDS: dict[str, tuple[str, list[dict[str, Any]], dict[str, Any]]] = {
    "none": ("none", NODES, {}),
    "none, quotas": ("none", queues(10), {}),
    "default-preemption": ("default-preemption", NODES, {}),
    "gangs together": ("default-preemption", NODES, {"gang": "all-or-nothing"}),
    "own gangs": ("default-preemption", NODES, {"gangScheduling": True}),
    "ack": ("elasticquota", [*NODES, ELASTIC], {"semantics": "ack"}),
    "capacity-scheduling": ("elasticquota", [*NODES, ELASTIC], {"semantics": "capacity-scheduling"}),
    "koordinator": ("elasticquota", [*NODES, ELASTIC], {"semantics": "koordinator"}),
    "auto": ("auto", [*NODES, ELASTIC], {}),
    "kueue-classic": ("kueue-classic", queues(10), {}),
    "kueue-classic, nodes": ("kueue-classic", [*NODES, *queues(100)], NO_TIME_LIMIT),
    "fairsharing, nodes": ("fairsharing", [*NODES, *queues(100)], NO_TIME_LIMIT),
    "backfill": ("backfill", queues(10), {}),
    "backfill, nodes": ("backfill", NODES, {}),
}


def crowd(seconds: int, waiting: int = 5) -> Script:
    """Two jobs run for so long, five or fewer wait meanwhile, two of them gangs, and one comes at the end."""
    jobs = Script().job("long", cpu=6, seconds=seconds + 10, queue=QUEUE)
    jobs.job("other", cpu=2, seconds=seconds + 10, queue=QUEUE)
    shapes = [(7, 4, 1), (44, 3, 1), (97, 1, 3), (131, 2, 2), (222, 6, 1)]
    for number, (at, cpu, pods) in enumerate(shapes[:waiting]):
        jobs.job(f"w{number}", at=at, cpu=cpu, pods=pods, gang=pods > 1, seconds=60, queue=QUEUE)
    return jobs.job("late", at=seconds, cpu=1, seconds=60, queue=QUEUE)


def played(
    kind: str,
    seconds: int,
    *,
    leaps: bool = True,
    report: Callable[[Cycle], None] | None = None,
    waiting: int = 5,
) -> tuple[Decisions, int]:
    """What happened, and how many cycles of the policy were played; `report` watches them."""
    name, documents, options = KINDS[kind]
    spec, calls = load().policy(name), 0

    def made(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
        policy = spec.factory(cluster, view, options)
        if report is not None:
            policy = Observer(policy, report, leaps=leaps)
        cycle = policy.cycle

        class Counted:
            """The policy, with a count of its cycles."""

            def __getattr__(self, method: str) -> Any:
                if method in ("standing", "skip") and not leaps:
                    raise AttributeError(method)
                return getattr(policy, method)

            def cycle(self, now: int) -> Iterator[Decision]:
                nonlocal calls
                calls += 1
                return cycle(now)

        return Counted()

    given = resolve(spec.options, options, owner=name)
    kept = replayed(made, crowd(seconds, waiting), cluster_from(documents, "test"), options=given)
    return kept, calls


@pytest.mark.parametrize("kind", KINDS)
def test_a_century_in_which_nothing_happens_takes_few_calls(kind: str) -> None:
    """As many as a year within a few rounds, though millions of cycles count; see docs/reliability.md."""
    (_, year), (_, century) = played(kind, YEAR), played(kind, 99 * YEAR)
    assert century < 3_000
    assert century < 2 * year


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_leapt_over_leaves_all_as_if_it_had_been_played(kind: str) -> None:
    """All that is recorded, with the numbers of cycles, to the end of the jobs that waited."""
    seconds = recurrence.LONG // SECOND * 6
    (leapt, few), (singly, many) = played(kind, seconds), played(kind, seconds, leaps=False)
    assert leapt == singly
    assert few <= many


@pytest.mark.parametrize("kind", ["none", "default-preemption", "ack"])
def test_the_wake_after_a_leap_may_come_after_the_next_event(kind: str) -> None:
    """As where a single pod waits, whose rounds have one wake each: none is counted before its time."""
    seconds = recurrence.LONG // SECOND * 6
    (leapt, few), (singly, many) = (played(kind, seconds, leaps=leaps, waiting=1) for leaps in (True, False))
    assert leapt == singly
    assert few < many


@pytest.mark.parametrize("kind", ["default-preemption", "ack", "kueue-classic, nodes"])
def test_a_watched_replay_leaps_as_well_and_tells_the_same_of_jobs(kind: str) -> None:
    """Cycles that concern a job have their numbers and times; those of which nothing comes are counted."""
    seconds = recurrence.LONG // SECOND * 6
    told: dict[bool, list[str]] = {True: [], False: []}
    played_cycles = {}
    for leaps, texts in told.items():

        def report(cycle: Cycle, texts: list[str] = texts) -> None:
            if any(said.jobs for said in cycle.said):
                texts.append(cycle.text())

        _, played_cycles[leaps] = played(kind, seconds, leaps=leaps, report=report)
    assert told[True] == told[False]
    assert any(text.startswith("cycle ") and "late" in text for text in told[True])
    assert played_cycles[True] < played_cycles[False]
    _, of_years = played(kind, 99 * YEAR, report=lambda cycle: None)
    assert of_years < 3_000

"""Answers that are kept, and trees that rest, save work and change nothing.

A scheduler that forgets before each cycle whatever it could go without decides the same. By default this is
tried on a few random worlds, `KUEUE_FUZZ=50 pytest tests/plugins/kueue/test_shortcuts.py` tries more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from kueue_fuzz import World, by_usage, fuzz, world
from kueue_worlds import cluster

from harness import Cluster, Policy, View
from harness.errors import DecisionError
from harness.options import resolve
from harness.plugins import load
from harness.testing import replayed
from harness_plugins.kueue.admission import Admitted, Preempted
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.scheduler import Scheduler


class _Watched:
    """A scheduler that forgets or looks at all samples if it is told to."""

    def __init__(self, scheduler: Scheduler, *, forgets: bool, looks: bool) -> None:
        self._scheduler = scheduler
        self._forgets = forgets
        self._looks = looks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def cycle(self) -> Iterator[Admitted | Preempted]:
        if self._forgets:
            forget(self._scheduler)
        return self._scheduler.cycle()

    def next_sample(self) -> int | None:
        ledger = self._scheduler.ledger
        if not self._looks or ledger is None:
            return self._scheduler.next_sample()
        every = [account for accounts in ledger._accounts.values() for account in accounts.values()]
        return min((each.updated + ledger._interval for each in every if each.sampled), default=None)


def forget(scheduler: Scheduler) -> None:
    """Drop all that was worked out before: every head is tried, and every assignment looked for, again."""
    cache = scheduler.cache
    for root in cache.members:
        scheduler._heads.stir(root)
        cache.version[root] += 1  # outdates what is kept for as long as nothing changes in a tree
    for pending in scheduler.pending.values():
        for kin in pending._kins.values():
            kin.hopeless = None
    for known in scheduler.shares._known:
        known.clear()
    for record in cache._watching:
        record.update((queue.node, queue) for queue in cache.queues.values())
    scheduler.nominator._assigner._known.clear()


def replay(given: World, *, forgets: bool, looks: bool = False) -> dict[str, Any] | None:
    """Everything that happens in a world; None where workloads preempt each other for ever at one instant."""
    spec = load().policy(given.plugin)
    where = cluster(*given.manifests, flavors=False)
    made: list[KueuePolicy] = []

    def make(where: Cluster, view: View, options: Any) -> Policy:
        policy = spec.factory(where, view, resolve(spec.options, options, owner=given.plugin))
        assert isinstance(policy, KueuePolicy)
        policy.scheduler = _Watched(policy.scheduler, forgets=forgets, looks=looks)  # type: ignore[assignment]
        made.append(policy)
        return policy

    try:
        decisions = replayed(make, given.jobs, where, options=given.options, until=150)
    except DecisionError as error:
        if "it decides for ever, at one instant" in error.message:
            return None
        raise
    return {
        "rows": [astuple(row) for row in decisions.rows],
        "shares": decisions.shares,
        "jobs": decisions.jobs,
        "cycles": made[0].scheduler.cycles,
        "heads": made[0].scheduler.heads,
    }


def _decides_the_same(given: World) -> None:
    kept = replay(given, forgets=False)
    assume(kept is not None)
    assert kept is not None
    forgotten = replay(given, forgets=True)
    assert forgotten is not None
    for each, what in kept.items():
        assert what == forgotten[each]


@fuzz(120)
@given(seed=st.integers(0, 2**32), jobs=st.integers(2, 40))
def test_a_scheduler_that_forgets_decides_the_same(seed: int, jobs: int) -> None:
    """Every decision with its figures, every share, and the numbers of cycles and heads."""
    _decides_the_same(world(seed, jobs))


@fuzz(40)
@given(seed=st.integers(0, 2**32), jobs=st.integers(2, 30))
def test_a_scheduler_that_forgets_decides_the_same_where_pods_run_on_nodes(seed: int, jobs: int) -> None:
    """Pods that end one by one give quota back one by one."""
    _decides_the_same(world(seed, jobs, nodes=True))


@fuzz(40)
@given(seed=st.integers(0, 2**32), jobs=st.integers(2, 40))
def test_a_scheduler_that_forgets_decides_the_same_where_usage_orders_queues(seed: int, jobs: int) -> None:
    """Heads and candidates change places without anything happening in their tree."""
    _decides_the_same(by_usage(world(seed, jobs), seed))


@fuzz(15)
@given(seed=st.integers(0, 2**32), jobs=st.integers(2, 40))
def test_a_scheduler_that_forgets_decides_the_same_where_uids_are_equal(seed: int, jobs: int) -> None:
    """Who waited first stays first, however often its turn came in vain."""
    given = world(seed, jobs)
    for job, _, _ in next(given.jobs.chunks()):
        job.uid = "same"
    _decides_the_same(given)


@fuzz(40)
@given(seed=st.integers(0, 2**32), jobs=st.integers(2, 40))
def test_samples_that_nobody_looks_at_change_nothing(seed: int, jobs: int) -> None:
    """A scheduler that takes each sample when it is due, and tries all heads then, decides the same.

    How often a replay has cycles differs, on which it depends which of several flavors is tried.
    """
    given = by_usage(world(seed, jobs), seed)
    queues = [each["spec"] for each in given.manifests if each["kind"] == "ClusterQueue"]
    groups = [group for spec in queues for group in spec["resourceGroups"]]
    assume(all(len(group["flavors"]) == 1 for group in groups))
    late = replay(given, forgets=False)
    assume(late is not None)
    at_once = replay(given, forgets=True, looks=True)
    assert late is not None
    assert at_once is not None
    assert [row[:-1] for row in late["rows"]] == [row[:-1] for row in at_once["rows"]]
    assert (late["shares"], late["jobs"]) == (at_once["shares"], at_once["jobs"])


@fuzz(20)
@given(seed=st.integers(0, 2**32), jobs=st.integers(2, 40))
def test_the_head_is_of_the_local_queue_that_used_least(seed: int, jobs: int) -> None:
    """Whoever is admitted, no other LocalQueue with an active head had used less."""
    found = replay(by_usage(world(seed, jobs), seed), forgets=False)
    assume(found is not None)
    assert found is not None
    for _, action, *_, detail, _ in found["rows"]:
        usages = [
            math.inf if each == "infinite" else each
            for each in (detail or {}).get("localQueues", {}).values()
        ]
        assert action != "admit" or usages == sorted(usages)

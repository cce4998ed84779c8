"""Shortcuts save work and change nothing: without them every decision is the same.

A 160th of the random worlds and an eightieth of the recorded cases are replayed both ways by default, all of
them in the slow tests. `KUEUE_FUZZ=50 pytest tests/plugins/kueue/test_shortcuts.py` tries fifty times as many
worlds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import astuple
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
import targets_fuzz
from hypothesis import assume, given
from hypothesis import strategies as st
from kueue_fuzz import (
    STRATEGIES,
    TIMES,
    World,
    alike,
    by_usage,
    changing,
    contested,
    crowded,
    each_its_own,
    each_its_own_below_cohorts,
    failing,
    fuzz,
    placed,
    previewed,
    released,
    starting,
    world,
)
from kueue_worlds import cluster

from harness import Cluster, Policy, View
from harness.base.build import is_compiled
from harness.base.errors import DecisionError
from harness.base.options import resolve
from harness.cluster.changes.over_time import unrolled
from harness.plugins import load
from harness.plugins.conformance import read_cases
from harness.policy import Decision
from harness.testing import replayed
from harness_plugins.kueue.conformance import cycles, targets
from harness_plugins.kueue.factory import classic, fair_sharing
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.nomination import Fit
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts
from harness_plugins.kueue.state.cache import Cache

EXCERPTS = Path(__file__).parents[2] / "conformance"
WHOLE = Path(__file__).parents[4] / "shared" / "conformance"
"""Where the whole corpora are, on machines that have them."""


class _TakesEverySample:
    """A scheduler that asks for every sample of usage, also for those that can change nothing."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def next_sample(self) -> int | None:
        usages = self._scheduler.local_queues
        return None if usages is None else usages.next_real_sample()


class _AsksForAll:
    """A policy that compares what it says of the quota for each workload with a whole scan of the flavors."""

    def __init__(self, policy: KueuePolicy) -> None:
        self._policy = policy
        self.answers: list[bool] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def cycle(self, now: int) -> Iterator[Decision]:
        yield from self._policy.cycle(now)
        scheduler, offers = self._policy.scheduler, self._policy.scheduler._machinery._offers
        known = scheduler.within_quota
        fits = Fit(scheduler.cache, offers, scheduler._gates, fair=scheduler.fair).fits
        for workload in self._policy._workloads.values():
            if not workload.has_quota:
                self.answers.append(fits(workload))
                assert known(workload) is self.answers[-1], workload


def replay(given: World, shortcuts: Shortcuts, *, looks: bool = False) -> dict[str, Any] | None:
    """Everything that happens in a world; None where workloads preempt each other for ever at one instant."""
    spec = load().policy(given.plugin)
    factory = classic if given.plugin == "kueue-classic" else fair_sharing
    where = unrolled(cluster(*given.manifests, flavors=False), None)
    made: list[KueuePolicy] = []

    def make(where: Cluster, view: View, options: Any) -> Policy:
        policy = factory(where, view, resolve(spec.options, options, owner=given.plugin), shortcuts)
        if looks:
            policy.scheduler = _TakesEverySample(policy.scheduler)  # type: ignore[assignment]
        made.append(policy)
        return policy

    try:
        decisions = replayed(make, given.jobs, where, options=given.options, until=150)
    except DecisionError as error:
        if "decisions at this time never end" in error.message:
            return None
        raise
    return {
        "rows": [astuple(row) for row in decisions.rows],
        "shares": decisions.shares,
        "jobs": decisions.jobs,
        "cycles": made[0].scheduler.cycles,
        "heads": made[0].scheduler.heads,
    }


def answers_of(given: World) -> list[bool]:
    """Whether there was quota for each workload that waited, after each cycle of a world."""
    spec = load().policy(given.plugin)
    factory = classic if given.plugin == "kueue-classic" else fair_sharing
    asking: list[_AsksForAll] = []

    def make(where: Cluster, view: View, options: Any) -> Policy:
        resolved = resolve(spec.options, options, owner=given.plugin)
        asking.append(_AsksForAll(factory(where, view, resolved, Shortcuts())))
        return asking[0]  # type: ignore[return-value]

    where = unrolled(cluster(*given.manifests, flavors=False), None)
    with suppress(DecisionError):  # some preempt each other for ever, on purpose
        replayed(make, given.jobs, where, options=given.options, until=150)
    return asking[0].answers


def test_quota_is_found_as_by_a_scan_of_all_flavors() -> None:
    """A look at each pod set alone, which spares most scans, never says otherwise than the scan."""
    kinds = plain, in_topologies, of_a_release, that_changes
    answers = [answer for seed in range(20) for make in kinds for answer in answers_of(make(seed))]
    assert 200 < sum(answers) < len(answers) - 200


# --- random worlds ----------------------------------------------------------------------------------------


def plain(seed: int) -> World:
    """Jobs that run as a whole."""
    return world(seed, 2 + seed % 39)


def on_nodes(seed: int) -> World:
    """Pods that end one by one give quota back one by one."""
    return world(seed, 2 + seed % 29, nodes=True)


def ordered_by_usage(seed: int) -> World:
    """Heads and candidates change places without anything happening in their tree."""
    return by_usage(world(seed, 2 + seed % 39), seed)


def in_topologies(seed: int) -> World:
    """Trees of cohorts take room from each other."""
    return placed(world(seed, 2 + seed % 29, nodes=True), seed)


def on_nodes_that_fail(seed: int) -> World:
    """Marks, second passes and other places, where rooms change under all that is kept."""
    return failing(in_topologies(seed), seed)


def of_one_uid(seed: int) -> World:
    """Who waited first stays first, however often its turn came in vain."""
    given = world(seed, 2 + seed % 39)
    return given._replace(jobs=given.jobs.of_one_uid())


def whose_pods_start(seed: int) -> World:
    """Time-outs, backoffs and blocked admission; readiness outdates what scans have tried."""
    return starting(world(seed, 2 + seed % 39), seed)


def of_a_release(seed: int) -> World:
    """Older releases have other rules, and some of them crash."""
    return released(world(seed, 2 + seed % 39), seed)


def that_changes(seed: int) -> World:
    """Quotas, limits, weights, policies and stops change; queues move, appear and go."""
    given = world(seed, 2 + seed % 39, nodes=seed % 5 == 0)
    return changing(by_usage(given, seed) if seed % 3 == 0 else given, seed)


def with_previews(seed: int) -> World:
    """Candidates are spared for a time, and heads wait for a limit."""
    given = world(seed, 2 + seed % 39, nodes=seed % 5 == 0)
    given = changing(given, seed) if seed % 7 == 0 else given
    return previewed(placed(given, seed) if seed % 11 == 0 else given, seed)


def that_changes_under_own_amounts(seed: int) -> World:
    """Bounds of what many ask for do not outlast the quotas that they were compared with."""
    return changing(each_its_own(seed), seed)


KINDS = (
    (crowded, 150),
    (each_its_own, 200),
    (each_its_own_below_cohorts, 600),
    (that_changes_under_own_amounts, 60),
    (with_previews, 800),
    (that_changes, 2000),
    (plain, 1200),
    (on_nodes, 400),
    (ordered_by_usage, 400),
    (in_topologies, 600),
    (on_nodes_that_fail, 400),
    (of_one_uid, 150),
    (whose_pods_start, 240),
    (alike, 150),
    (contested, 150),
    (of_a_release, 800),
)
"""Random worlds, and how many there are of each kind."""


def _decides_the_same(make: Callable[[int], World], seeds: Iterable[int]) -> None:
    """Every decision with its figures, every share, and the numbers of cycles and heads."""
    for seed in seeds:
        kept = replay(make(seed), Shortcuts())
        again = replay(make(seed), Shortcuts.none())
        assert (kept is None) is (again is None), seed
        for each, what in (kept or {}).items():
            assert again is not None
            assert what == again[each], (seed, each)


@pytest.mark.parametrize(
    ("make", "worlds"),
    [
        pytest.param(
            *kind, marks=pytest.mark.nightly if kind[0] in (contested, each_its_own_below_cohorts) else ()
        )
        for kind in KINDS
    ],
)
def test_without_shortcuts_some_worlds_go_the_same_way(make: Callable[[int], World], worlds: int) -> None:
    """A fixed 160th. Worlds of two kinds, which take longest, are tried below."""
    _decides_the_same(make, range(0, worlds * TIMES, 160))


def test_without_the_fungibility_gate_a_head_that_fits_in_part_is_tried_once_more() -> None:
    """The first pod set of j13 fits at 50 s and the second does not, so its scan counts as unfinished."""
    _decides_the_same(of_a_release, [292])


def test_futile_heads_of_cohorts_do_not_keep_out_a_head_right_below_the_root() -> None:
    """A head that their reservations would keep out is admitted, because its turn comes first."""
    _decides_the_same(each_its_own_below_cohorts, [347])


def test_an_evicted_workload_comes_before_candidates_of_other_queues_with_the_same_share() -> None:
    """Although the order of its own queue stays the same, another search finds other targets."""
    _decides_the_same(contested, [7, 9])


def test_a_search_within_a_cycle_is_only_left_out_if_others_give_up_too_little() -> None:
    """Other searches of these cycles find targets, although earlier heads have victims and reservations."""
    _decides_the_same(contested, [1, 3])


@pytest.mark.slow
@pytest.mark.parametrize(("make", "worlds"), KINDS)
def test_without_shortcuts_all_worlds_go_the_same_way(make: Callable[[int], World], worlds: int) -> None:
    """All of them."""
    _decides_the_same(make, range(worlds))


# --- targets and shares -----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategies", STRATEGIES)
@fuzz(70)
@given(seed=st.integers(0, 2**32), holders=st.integers(1, 35))
def test_targets_and_shares_are_those_of_the_rules_alone(strategies: str, seed: int, holders: int) -> None:
    """In trees of three levels and more, while workloads come and go; shares are equal in every bit."""
    asked = targets_fuzz.case(seed, holders, strategies)
    kept, plain = (targets.question(asked, shortcuts) for shortcuts in (Shortcuts(), Shortcuts.none()))
    for step in range(4):
        for random, (cache, _, _) in ((Random(seed + step), each) for each in (kept, plain)):
            _let_one_go_or_come_back(random, cache)
        (cache, incoming, search), (_, again, rule) = kept, plain
        assert isinstance(search, FairSharing)
        assert isinstance(rule, FairSharing)
        for node in range(len(cache.tree.names)):
            assert repr(search.shares.of(node)) == repr(rule.shares.of(node))
        before = list(cache.tree.usage)
        found, expected = search.find_targets(incoming), rule.find_targets(again)
        assert [(each.workload.uid, each.reason) for each in found] == [
            (each.workload.uid, each.reason) for each in expected
        ]
        assert cache.tree.usage == before


def _let_one_go_or_come_back(random: Random, cache: Cache) -> None:
    holders = [each for queue in cache.queues.values() for each in cache.holders[queue.node].workloads]
    if holders:
        workload = random.choice(sorted(holders, key=lambda each: each.uid))
        cache.drop(workload)
        if random.random() < 0.5:
            cache.hold(workload, workload.cluster_queue, workload.usage, workload.uses, workload.reserved)


# --- recorded cases ---------------------------------------------------------------------------------------


def _answers_the_same(path: Path, *, step: int) -> None:
    """Cases of corpora in which something is kept: single placements have no state."""
    known = {"kueue/cycles": cycles.answer, "kueue/targets": targets.answer}
    asked = 0
    for case in islice(read_cases([path]), 0, None, step):
        answer = known[case["component"]]
        assert answer(case, Shortcuts.none()) == answer(case), case["id"]
        asked += 1
    assert asked


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(each, marks=pytest.mark.nightly if re.search(r"-v0\.1[3-8]-|-deep-", each.name) else ())
        for each in sorted(EXCERPTS.glob("kueue-*.jsonl.gz"))
        if "kueue-tas-dev" not in each.name
    ],
    ids=lambda path: path.name[: -len(".jsonl.gz")],
)
def test_without_shortcuts_an_eightieth_of_the_excerpts_is_answered_alike(path: Path) -> None:
    """A fixed eightieth; with shortcuts they are answered as recorded, see `tests/conformance`."""
    _answers_the_same(path, step=80)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    sorted(each for each in WHOLE.glob("kueue-*.jsonl.gz") if "kueue-tas-dev" not in each.name),
    ids=lambda path: path.name[: -len(".jsonl.gz")],
)
def test_without_shortcuts_whole_corpora_are_answered_alike(path: Path) -> None:
    """All cases there are."""
    _answers_the_same(path, step=1)


# --- usage of LocalQueues ---------------------------------------------------------------------------------


@pytest.mark.skipif(is_compiled(), reason="a compiled policy takes no other scheduler in place of its own")
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
    late = replay(given, Shortcuts())
    assume(late is not None)
    at_once = replay(given, Shortcuts.none(), looks=True)
    assert late is not None
    assert at_once is not None
    assert [row[:-1] for row in late["rows"]] == [row[:-1] for row in at_once["rows"]]
    assert (late["shares"], late["jobs"]) == (at_once["shares"], at_once["jobs"])


@fuzz(20)
@given(seed=st.integers(0, 2**32), jobs=st.integers(2, 40))
def test_the_head_is_of_the_local_queue_that_used_least(seed: int, jobs: int) -> None:
    """Whoever is admitted, no other LocalQueue with an active head had used less."""
    found = replay(by_usage(world(seed, jobs), seed), Shortcuts())
    assume(found is not None)
    assert found is not None
    for _, action, *_, detail, _ in found["rows"]:
        usages = [
            math.inf if each == "infinite" else each
            for each in (detail or {}).get("localQueues", {}).values()
        ]
        assert action != "admit" or usages == sorted(usages)

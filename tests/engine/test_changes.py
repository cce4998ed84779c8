"""The cluster changes while a replay goes on: when a policy hears of it, and what the referee makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from policies import Greedy

from harness import Admit, Cluster, Decision, Job, Preempt, View
from harness.base.errors import DecisionError, PolicyError
from harness.base.units import SECOND
from harness.cluster.changes.edits import Change, Edit, Instant
from harness.testing import Script, pool, queues, replayed


class Listening(Greedy):
    """Starts what fits, and notes what changes."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        super().__init__(cluster, view, options)
        assert view.capacity == cluster.capacity

    def changed(self, change: Change, now: int) -> Iterator[Decision]:
        """Note it; the engine's truth has changed already."""
        assert self.view.capacity == change.cluster.capacity
        self.heard.append(("changed", str(change.edit), now))
        yield from ()


def at(seconds: int, before: Cluster, after: Cluster) -> Instant:
    """What changes of queues at a time."""
    names = {**before.cluster_queues, **after.cluster_queues}
    edits = [
        Edit("ClusterQueue", name, before.cluster_queues.get(name), after.cluster_queues.get(name))
        for name in names
    ]
    return Instant(seconds * SECOND, tuple(edit for edit in edits if edit.before != edit.after))


def changing(cluster: Cluster, *then: tuple[int, Cluster]) -> Cluster:
    """A cluster that becomes others at some times."""
    instants, before = [], cluster
    for seconds, after in then:
        instants.append(at(seconds, before, after))
        before = after
    return replace(cluster, changes=tuple(instants))


def test_a_change_comes_after_ends_and_before_arrivals_of_its_instant() -> None:
    """The policy hears of the end at 5 s, then of the change, then of who arrives."""
    heard: list[tuple[str, str, int]] = []

    class Kept(Listening):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.heard = heard

    jobs = Script().job("first", cpu=1, seconds=5).job("second", at=5, cpu=2, seconds=1)
    happened = replayed(Kept, jobs, changing(pool(cpu=1), (5, pool(cpu=2))))
    now = [each[:2] for each in heard if each[2] == 5 * SECOND]
    assert now == [("ended", "first"), ("changed", "ClusterQueue default"), ("submit", "second")]
    assert [row.time for row in happened.of("admit")] == [0, 5 * SECOND]


def test_changes_of_one_instant_are_heard_one_by_one_each_with_its_own_cluster() -> None:
    """At the first of two changes the second queue is what it was."""
    seen: list[list[int]] = []

    class Kept(Listening):
        def changed(self, change: Change, now: int) -> Iterator[Decision]:
            capacity = [
                queue.resource_groups[0].flavors[0].resources["cpu"].nominal
                for queue in change.cluster.cluster_queues.values()
            ]
            seen.append(capacity)
            yield from ()

    cluster = changing(queues(a={"cpu": 1}, b={"cpu": 2}), (3, queues(a={"cpu": 5}, b={"cpu": 6})))
    replayed(Kept, Script().job("long", cpu=1, seconds=9), cluster)
    assert seen == [[5, 2], [5, 6]]


def test_what_a_change_makes_a_policy_decide_is_done_before_the_next_change() -> None:
    """The victim is gone and back in its queue when the policy hears of the second queue."""
    order: list[str] = []

    class Drains(Listening):
        def release(self, job: Job, pods: range, now: int, why: Any) -> None:
            order.append(f"{why.value} {job.id}")
            super().release(job, pods, now, why)

        def changed(self, change: Change, now: int) -> Iterator[Decision]:
            order.append(change.edit.name)
            for job in list(self.running):
                yield Preempt(job, by=None, reason="Drained")

    cluster = changing(queues(a={"cpu": 1}, b={"cpu": 2}), (3, queues(a={"cpu": 5}, b={"cpu": 6})))
    jobs = Script().job("long", cpu=1, seconds=9, grace=0, queue="a")
    happened = replayed(Drains, jobs, cluster)
    assert order[:3] == ["a", "evicted long", "b"]
    assert [(row.action, row.time // SECOND) for row in happened.of("evict", "finish")] == [
        ("evict", 3),
        ("finish", 12),
    ]


def test_an_instant_at_which_nothing_changes_is_one_all_the_same() -> None:
    """A cycle runs at 3 s although no object changes."""
    times: list[int] = []

    class Kept(Listening):
        def cycle(self, now: int) -> Iterator[Decision]:
            times.append(now // SECOND)
            return super().cycle(now)

    cluster = replace(pool(cpu=1), changes=(Instant(3 * SECOND, ()),))
    replayed(Kept, Script().job("long", cpu=1, seconds=9), cluster)
    assert times == [0, 3, 9]


def test_a_change_keeps_a_replay_alive_for_a_job_that_waits_for_it_and_none_when_all_is_over() -> None:
    """The job that is too large starts at 60 s; what changes after all jobs are over is not played."""
    cluster = changing(pool(cpu=1), (60, pool(cpu=2)), (1000, pool(cpu=3)), (2000, pool(cpu=4)))
    happened = replayed(Listening, Script().job("large", cpu=2, seconds=1), cluster)
    assert [row.time for row in happened.of("admit")] == [60 * SECOND]
    assert happened.outcome.end == 61 * SECOND


def test_a_policy_that_does_not_hear_of_changes_is_an_error_that_names_the_first() -> None:
    """It says what changes, when, and what to do."""
    cluster = changing(pool(cpu=1), (60, pool(cpu=2)))
    with pytest.raises(PolicyError) as refused:
        replayed(Greedy, Script().job("large", cpu=2), cluster)
    assert refused.value.message == (
        "policy Greedy is not notified of changes, but ClusterQueue default changes 1m00s after the origin"
    )
    assert "--ignore-events" in str(refused.value.hint)


class Trusting(Listening):
    """Starts whatever arrives, whether or not it fits."""

    def cycle(self, now: int) -> Iterator[Decision]:
        while self.waiting:
            job = self.waiting.pop(0)
            self.running.append(job)
            yield Admit(job)


def test_quota_that_falls_below_what_is_held_takes_nothing_and_leaves_others_theirs() -> None:
    """Of two queues one falls from 4 to 1 while it uses 4: the other still takes its own 3, and no more."""
    before, after = queues(a={"cpu": 4}, b={"cpu": 3}), queues(a={"cpu": 1}, b={"cpu": 3})
    jobs = Script().job("of-a", cpu=4, seconds=50, queue="a").job("of-b", at=20, cpu=3, seconds=5, queue="b")
    happened = replayed(Trusting, jobs, changing(before, (10, after)))
    assert [(row.job, row.time // SECOND) for row in happened.of("finish")] == [("of-b", 25), ("of-a", 50)]
    more = jobs.job("another", at=21, cpu=1, seconds=5, queue="b")
    with pytest.raises(DecisionError, match=r"another .* has 0m? cpu free"):
        replayed(Trusting, more, changing(before, (10, after)))


def test_nothing_may_be_beyond_the_capacity_once_all_was_given_back() -> None:
    """After the fall all 4 are given back: from then on no more than the capacity of 4 can be held."""
    before, after = queues(a={"cpu": 4}, b={"cpu": 3}), queues(a={"cpu": 1}, b={"cpu": 3})
    jobs = Script().job("of-a", cpu=4, seconds=15, queue="a").job("all", at=20, cpu=4, seconds=5, queue="b")
    replayed(Trusting, jobs, changing(before, (10, after)))
    jobs.job("more", at=21, cpu=1, seconds=5, queue="a")
    with pytest.raises(DecisionError, match="more"):
        replayed(Trusting, jobs, changing(before, (10, after)))

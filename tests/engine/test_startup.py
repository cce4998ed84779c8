"""The start-up of pods: they hold what they asked for and make no progress before they are ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from policies import Greedy, PodByPod, Priority

from harness import Cluster, Decision, Job, PodSet, View, Why
from harness.base.units import SECOND
from harness.cluster.model import frozen
from harness.engine import parse_losses
from harness.policy import PolicyFactory
from harness.testing import Decisions, Script, nodes, pool, replayed


def stints(happened: Decisions, job: str) -> list[tuple[str, float, float]]:
    """A job's stints as (state, start, end), seconds."""
    return [
        (each.state, each.start / SECOND, each.end / SECOND) for each in happened.stints if each.job == job
    ]


class Listening:
    """A policy that does what another one does, and notes when pods are ready."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.submit = inner.submit
        self.release = inner.release
        self.cycle = inner.cycle
        self.heard: list[tuple[str, range, float]] = []

    def ready(self, job: Job, pods: range, now: int) -> None:
        """Note it."""
        self.heard.append((job.id, pods, now / SECOND))


def heard(policy: PolicyFactory, jobs: Script, where: Cluster) -> list[tuple[str, range, float]]:
    """Who was ready when: job, pods, seconds."""
    made: list[Listening] = []

    def make(where: Cluster, view: View, options: Mapping[str, Any]) -> Listening:
        made.append(Listening(policy(where, view, options)))
        return made[-1]

    replayed(make, jobs, where)
    return made[0].heard


def test_the_run_time_counts_from_when_the_pods_are_ready() -> None:
    """10 s of start-up, then 5 s of run: the end is at 15 s, the first progress at 10 s."""
    happened = replayed(Greedy, Script().job("a", cpu=1, seconds=5, startup=10), pool(cpu=1))
    assert stints(happened, "a") == [("starting", 0, 10), ("progress", 10, 15)]
    assert happened.jobs["a"].start == 10 * SECOND
    assert happened.jobs["a"].finish == 15 * SECOND
    assert happened.jobs["a"].idle == 10 * SECOND


def test_a_gang_starts_up_once_its_last_pod_is_bound() -> None:
    """The second node is free at 3 s; both pods are ready 4 s later."""
    jobs = Script().job("before", cpu=1, seconds=3).job("a", cpu=1, pods=2, seconds=5, startup=4)
    happened = replayed(PodByPod, jobs, nodes(n1={"cpu": 1}, n2={"cpu": 1}))
    assert stints(happened, "a") == [("waiting", 0, 3), ("starting", 3, 7), ("progress", 7, 12)]


def test_independent_pods_start_up_each_on_its_own() -> None:
    """The job's first progress is that of the pod that was ready first, although the other one ends first."""
    sets = (PodSet("main", 2, 2, frozen({"cpu": 1})),)
    jobs = Script().job("before", cpu=1, seconds=3)
    jobs.job("a", pod_sets=sets, gang=False, seconds=5, startup=4)
    happened = replayed(PodByPod, jobs, nodes(n1={"cpu": 1}, n2={"cpu": 1}))
    assert [row.time / SECOND for row in happened.of("finish")] == [3, 9, 12]
    assert happened.jobs["a"].start == 4 * SECOND


def test_who_is_preempted_while_starting_loses_no_progress_and_starts_up_again() -> None:
    """25 s of 30 s were over; they are idle, not lost."""
    jobs = Script().job("low", cpu=1, seconds=10, startup=30)
    jobs.job("high", at=25, cpu=1, priority=1, seconds=5)
    happened = replayed(Priority, jobs, pool(cpu=1))
    assert stints(happened, "low") == [("starting", 0, 25), ("starting", 30, 60), ("progress", 60, 70)]
    assert happened.jobs["low"].lost == 0
    assert happened.jobs["low"].start == 60 * SECOND


def test_a_checkpoint_is_restored_after_the_start_up() -> None:
    """Of 15 s of progress 10 are kept; 3 s of start-up and 2 s of restoring precede the rest."""
    jobs = Script().job("low", cpu=1, seconds=20, startup=3)
    jobs.job("high", at=18, cpu=1, priority=1, seconds=5)
    happened = replayed(Priority, jobs, pool(cpu=1), losses=parse_losses("checkpoint=10s,restore=2s"))
    assert stints(happened, "low") == [
        ("starting", 0, 3),
        ("progress", 3, 18),
        ("starting", 23, 26),
        ("restoring", 26, 28),
        ("progress", 28, 38),
    ]


def test_pods_that_never_are_ready_hold_what_they_have_to_the_end() -> None:
    """They do not keep the replay alive; the job never started, and all of its time is idle."""
    jobs = Script().job("stuck", cpu=1, startup=None).job("other", at=1, cpu=1, seconds=8)
    happened = replayed(Greedy, jobs, pool(cpu=2))
    assert happened.outcome is not None
    assert happened.outcome.end == 9 * SECOND
    assert stints(happened, "stuck") == [("starting", 0, 9)]
    row = happened.jobs["stuck"]
    assert (row.state, row.start, row.finish, row.idle) == ("running", -1, -1, 9 * SECOND)


def test_the_last_instant_may_fall_into_a_start_up() -> None:
    """What was not reached is not counted."""
    happened = replayed(Greedy, Script().job("a", cpu=1, seconds=5, startup=10), pool(cpu=1), until=4)
    assert stints(happened, "a") == [("starting", 0, 4)]
    assert happened.jobs["a"].start == -1


@pytest.mark.parametrize("startup", [0, 4])
def test_a_policy_that_listens_hears_when_pods_are_ready(startup: float) -> None:
    """Jobs that start as a whole are heard of as a whole, after the start-up of each."""
    jobs = Script().job("b", cpu=1, pods=2, seconds=5, startup=startup).job("a", cpu=1, seconds=9)
    assert heard(Greedy, jobs, pool(cpu=3)) == sorted(
        [("a", range(1), 0), ("b", range(2), startup)], key=lambda each: (each[2], each[0])
    )


def test_a_policy_hears_of_independent_pods_one_by_one() -> None:
    """Each when it is ready."""
    sets = (PodSet("main", 2, 2, frozen({"cpu": 1})),)
    jobs = Script().job("before", cpu=1, seconds=3)
    jobs.job("a", pod_sets=sets, gang=False, seconds=5, startup=4)
    found = heard(PodByPod, jobs, nodes(n1={"cpu": 1}, n2={"cpu": 1}))
    assert found == [("before", range(1), 0), ("a", range(1), 4), ("a", range(1, 2), 7)]


def test_nobody_hears_of_pods_that_end_or_go_before_they_are_ready() -> None:
    """A job without run time is over when it would be ready; `low` is preempted at 25 s."""
    assert heard(Greedy, Script().job("a", cpu=1, seconds=0), pool(cpu=1)) == []
    jobs = Script().job("low", cpu=1, seconds=10, startup=30)
    jobs.job("high", at=25, cpu=1, priority=1, seconds=5)
    assert heard(Priority, jobs, pool(cpu=1)) == [("high", range(1), 25), ("low", range(1), 60)]


def test_start_ups_that_are_cut_short_again_and_again_are_no_progress() -> None:
    """Only the first start counts, or a loop of preemptions would never be noticed."""

    class Restless:
        """Admits one job and evicts it at the next instant, for ever."""

        def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
            self._job: Job | None = None
            self._runs = False

        def submit(self, job: Job, pods: range, now: int) -> None:
            self._job = job
            self._runs = False

        def release(self, job: Job, pods: range, now: int, why: Why) -> None:
            pass

        def cycle(self, now: int) -> Iterator[Decision]:
            from harness import Admit, Preempt, Wake

            assert self._job is not None
            if self._runs:
                yield Preempt(self._job, None, "Restless")
            yield Admit(self._job)
            self._runs = True
            yield Wake(now + 3600 * SECOND)

    happened = replayed(Restless, Script().job("a", cpu=1, startup=7200), pool(cpu=1))
    assert happened.outcome is not None
    assert "evictions brought no progress: job a (evicted 1,001 times)" in str(happened.outcome.stopped)

"""The order of what happens within one instant, and how a replay ends."""

from __future__ import annotations

from collections.abc import Iterator

from policies import Greedy, Priority

from harness import Decision, Wake
from harness.base.units import SECOND
from harness.testing import Script, pool, replayed


def actions(rows: list) -> list[tuple[str, str, float]]:
    return [(row.action, row.job, row.time / SECOND) for row in rows]


def test_finish_is_delivered_before_arrival_at_one_instant() -> None:
    """What ends at the instant of an arrival has made room for it."""
    jobs = Script().job("first", cpu=1, seconds=5).job("second", at=5, cpu=1, seconds=1)
    happened = replayed(Greedy, jobs, pool(cpu=1))
    assert actions(happened.rows) == [
        ("submit", "first", 0),
        ("admit", "first", 0),
        ("finish", "first", 5),
        ("submit", "second", 5),
        ("admit", "second", 5),
        ("finish", "second", 6),
    ]


def test_ends_of_one_instant_are_ordered_by_name_as_text() -> None:
    """`job-10` ends before `job-9`, whatever order they started in."""
    jobs = Script()
    for name in ("job-9", "job-10", "b", "a"):
        jobs.job(name, cpu=1, seconds=3)
    happened = replayed(Greedy, jobs, pool(cpu=9))
    assert [row.job for row in happened.of("finish")] == ["a", "b", "job-10", "job-9"]


def test_arrivals_of_one_instant_keep_the_order_of_the_trace() -> None:
    """Equal submit times do not reorder jobs."""
    jobs = Script().job("z", cpu=1).job("a", cpu=1).job("m", cpu=1)
    happened = replayed(Greedy, jobs, pool(cpu=1))
    assert [row.job for row in happened.of("submit")] == ["z", "a", "m"]


def test_what_is_gone_returns_to_the_queue_before_anything_arrives() -> None:
    """An end, then a victim that is gone and back, then an arrival, at one instant."""
    jobs = (
        Script()
        .job("victim", cpu=2, seconds=100, grace=10)
        .job("short", cpu=1, seconds=11, priority=9)
        .job("vip", at=1, cpu=3, priority=9, seconds=5)
        .job("late", at=11, cpu=1)
    )
    happened = replayed(Priority, jobs, pool(cpu=3), until=11)
    at_eleven = [(row.action, row.job) for row in happened.rows if row.time == 11 * SECOND]
    assert at_eleven[:4] == [
        ("finish", "short"),
        ("gone", "victim"),
        ("requeue", "victim"),
        ("submit", "late"),
    ]


def test_a_preemption_without_grace_is_delivered_before_the_policy_goes_on() -> None:
    """`release` and `submit` of the victim reach the policy at its own `yield`."""

    class Watching(Priority):
        def preempt(self, now: int) -> Iterator[Decision]:
            for decision in super().preempt(now):
                before = len(self.heard)
                yield decision
                assert [what for what, _, _ in self.heard[before:]] == ["evicted", "submit"]

    jobs = Script().job("low", cpu=1, seconds=9).job("high", at=1, cpu=1, priority=1, seconds=2)
    happened = replayed(Watching, jobs, pool(cpu=1))
    assert [row.action for row in happened.rows if row.job == "low"] == [
        "submit", "admit", "preempt", "gone", "requeue", "admit", "finish",
    ]  # fmt: skip


def test_a_cancelled_end_makes_no_instant_happen() -> None:
    """The policy is not asked at the time at which a preempted job would have ended."""
    asked: list[int] = []

    class Counting(Priority):
        def cycle(self, now: int) -> Iterator[Decision]:
            asked.append(now // SECOND)
            yield from super().cycle(now)

    jobs = Script().job("low", cpu=1, seconds=10).job("high", at=1, cpu=1, priority=1, seconds=20)
    replayed(Counting, jobs, pool(cpu=1))
    assert asked == [0, 1, 21, 31]


def test_the_policy_is_asked_once_an_instant_unless_something_becomes_due() -> None:
    """A job of no length ends at its own instant, and only then is the policy asked again."""
    asked: list[int] = []

    class Counting(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            asked.append(now)
            yield from super().cycle(now)

    jobs = Script().job("nothing", cpu=1, seconds=0).job("next", cpu=1, seconds=1)
    happened = replayed(Counting, jobs, pool(cpu=1))
    assert asked == [0, 0, SECOND]
    assert happened.starts() == {"nothing": 0, "next": 0}


def test_an_idle_wake_does_not_keep_a_replay_alive() -> None:
    """A periodic flush ends with the last job; a wake that can start work is waited for."""

    class Flushing(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            yield from super().cycle(now)
            yield Wake(now + 30 * SECOND, idle=True)

    jobs = Script().job("only", cpu=1, seconds=65)
    happened = replayed(Flushing, jobs, pool(cpu=1))
    assert happened.outcome is not None
    assert happened.outcome.end == 65 * SECOND
    assert happened.outcome.cycles == 4  # at 0, 30, 60 and 65 s


def test_a_wake_that_can_start_nothing_does_not_keep_a_replay_alive() -> None:
    """It is asked for when no job is alive or to arrive, as by a policy that wakes itself in every cycle."""

    class Periodic(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            yield from super().cycle(now)
            yield Wake(now + 3 * SECOND)

    jobs = Script().job("first", cpu=1, seconds=5).job("late", at=20, cpu=1, seconds=0)
    happened = replayed(Periodic, jobs, pool(cpu=1))
    assert happened.outcome is not None
    assert happened.jobs["late"].state == "finished"
    assert happened.outcome.end == 20 * SECOND
    assert happened.outcome.cycles < 20


def test_a_bare_wake_does_not_move_the_end_of_the_replay() -> None:
    """The measured window ends with the last thing that happened, not with a timer."""

    class Patient(Greedy):
        woken = 0

        def cycle(self, now: int) -> Iterator[Decision]:
            yield from super().cycle(now)
            if self.woken < 1:
                self.woken += 1
                yield Wake(now + 100 * SECOND)

    happened = replayed(Patient, Script().job("only", cpu=1, seconds=5), pool(cpu=1))
    assert happened.outcome is not None
    assert happened.outcome.end == 5 * SECOND
    assert happened.outcome.cycles == 3


def test_until_is_inclusive_and_nothing_happens_after_it() -> None:
    """An end exactly at the limit is played, one behind it is not."""
    jobs = Script().job("a", cpu=1, seconds=10).job("b", cpu=1, seconds=11).job("c", at=12, cpu=1)
    happened = replayed(Greedy, jobs, pool(cpu=2), until=10)
    assert {name: job.state for name, job in happened.jobs.items()} == {"a": "finished", "b": "running"}
    assert happened.outcome is not None
    assert (happened.outcome.end, happened.outcome.jobs) == (10 * SECOND, 2)


def test_a_limit_before_the_first_arrival_is_the_whole_window() -> None:
    """Nothing is played: the window begins and ends with the limit."""
    happened = replayed(Greedy, Script().job("a", at=5, cpu=1, seconds=3), pool(cpu=1), until=2)
    assert happened.outcome is not None
    assert (happened.outcome.start, happened.outcome.end) == (2 * SECOND, 2 * SECOND)
    assert (happened.outcome.jobs, happened.rows) == (0, [])


def test_a_limit_after_the_last_event_does_not_stretch_the_window() -> None:
    """A replay that is over before `until` ends with its last event."""
    happened = replayed(Greedy, Script().job("a", cpu=1, seconds=3), pool(cpu=1), until=1000)
    assert happened.outcome is not None
    assert happened.outcome.end == 3 * SECOND

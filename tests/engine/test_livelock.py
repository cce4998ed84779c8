"""Preemptions that lead to nothing end a replay, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples
from policies import Greedy

from harness import (
    Admit,
    Bind,
    Cluster,
    Decision,
    Job,
    Nominate,
    Preempt,
    QueueShare,
    Refuse,
    Unnominate,
    View,
    Wake,
)
from harness.base.errors import DecisionError
from harness.base.units import DAY, HOUR, MINUTE, SECOND
from harness.engine import Engine, Losses, livelock, waking
from harness.engine.engine import Outcome
from harness.engine.events import NullRecorder
from harness.engine.livelock import ROUNDS, SPAN, Livelock, Party
from harness.testing import Script, nodes, pool, replayed

POOL = pool(cpu=1000)
FOREVER = 10**9


class Overtaken(Greedy):
    """What was preempted is back before its preemptor gets its place, so that nothing ever comes of it."""

    def submit(self, job: Job, pods: range, now: int) -> None:
        self.waiting.append(job)
        self.waiting.sort(key=lambda job: job.index)

    def cycle(self, now: int) -> Iterator[Decision]:
        yield from super().cycle(now)
        second = [job for job in self.waiting if job.id == "second"]
        for job in [job for job in self.running if job.id == "first"] if second else ():
            self.running.remove(job)
            yield Preempt(job, by=second[0], reason="again")


def pair(*, grace: float, seconds: float = FOREVER) -> Script:
    """Two jobs of which one fits."""
    script = Script().job("first", cpu=1000, grace=grace, seconds=seconds)
    return script.job("second", at=1, cpu=1000, grace=grace, seconds=seconds)


def ended(policy: type[Greedy], jobs: Script, where: Cluster = POOL, **fields: Any) -> Outcome:
    """How a replay of which nothing is kept went."""
    engine = Engine(jobs.chunks(), where, NullRecorder(), **fields)
    return engine.run(policy(where, engine.view, {}), name="policy")


def stopped(outcome: Outcome) -> Livelock:
    """The livelock that ended a replay."""
    assert outcome.stopped is not None
    assert outcome.end == outcome.stopped.at
    return outcome.stopped


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand times is enough where a replay goes on for a million."""
    assert (waking.MOST, livelock.MOST_ROUNDS) == (1_000_000, 100_000)
    monkeypatch.setattr(waking, "MOST", 1000)
    monkeypatch.setattr(livelock, "MOST_ROUNDS", 1000)


# --- over simulated time ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grace", "rounds"), [(10 * MINUTE, SPAN // (10 * MINUTE)), (20 * MINUTE, SPAN // (20 * MINUTE))]
)
def test_a_loop_ends_after_30_days_without_progress(grace: int, rounds: int) -> None:
    """At the end of that very instant, with what happened until then; both sides are named."""
    livelock = stopped(ended(Overtaken, pair(grace=grace / SECOND)))
    assert livelock.since == SECOND
    assert livelock.at - livelock.since == SPAN
    assert livelock.preemptions == rounds + 1
    assert [tuple(each) for each in livelock.jobs] == [("first", rounds + 1, 0), ("second", 0, rounds + 1)]
    assert str(livelock) == (
        f"{rounds + 1:,} preemptions brought no progress: job first (preempted {rounds + 1:,} times), "
        f"job second (preemptor {rounds + 1:,} times)"
    )


def test_30_days_are_not_enough_where_preemptions_are_few() -> None:
    """Preemptions count that hit what had been preempted in this time before."""
    livelock = stopped(ended(Overtaken, pair(grace=HOUR / SECOND)))
    assert livelock.preemptions == ROUNDS + 1
    assert livelock.at - livelock.since == ROUNDS * HOUR > SPAN


@pytest.mark.usefixtures("soon")
def test_a_loop_of_quick_rounds_ends_sooner() -> None:
    """Rounds of a second would go on for millions of instants."""
    loop = stopped(ended(Overtaken, pair(grace=1)))
    assert loop.preemptions == livelock.MOST_ROUNDS + 1
    assert loop.at - loop.since < SPAN


def test_a_loop_that_hardly_takes_time_ends_within_a_second() -> None:
    """A grace period of a microsecond: no cluster is that quick, so there is nothing to wait for."""
    livelock = stopped(ended(Overtaken, pair(grace=1e-6)))
    assert livelock.preemptions < 200
    assert livelock.at - livelock.since < SECOND


def test_all_jobs_of_a_ring_are_named() -> None:
    """Those of several preemptors and victims, the most frequent first, however many there are."""

    class Ring(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            if self.running and self.waiting:
                yield Preempt(self.running.pop(), by=self.waiting[0], reason="Ring")
            if not self.running and self.view.fits(self.waiting[0]):
                self.running.append(self.waiting.pop(0))
                yield Admit(self.running[0])
                yield Wake(now + MINUTE)

    jobs = Script()
    for number in range(7):
        jobs.job(f"j{number}", cpu=1000, seconds=FOREVER, grace=600)
    livelock = stopped(ended(Ring, jobs))
    assert sorted(each.job for each in livelock.jobs) == [f"j{number}" for number in range(7)]
    assert "and 4 more" in str(livelock)


@given(every=st.integers(2, 29), gap=st.sampled_from([20, 30, 40]))
@examples(10)
def test_a_loop_with_progress_is_never_ended(every: int, gap: int) -> None:
    """A job that arrives, starts and ends every few days is progress, however long all else goes round."""
    jobs = pair(grace=gap * 60)
    for number in range(1, 100 // every + 1):
        jobs.job(f"small-{number}", at=number * every * 86400, cpu=1, seconds=60)
    happened = ended(Overtaken, jobs, pool(cpu=1001), until=100 * DAY)
    assert happened.stopped is None
    assert happened.end == 100 * DAY


@pytest.mark.parametrize("kind", ["arrival", "first start", "end"])
def test_an_arrival_a_first_start_and_an_end_are_progress(kind: str) -> None:
    """Each of them alone puts the end of a loop off by 30 days."""
    jobs = pair(grace=1800)
    if kind == "arrival":
        jobs.job("late", at=20 * 86400, cpu=10**6)  # never fits
    elif kind == "end":
        jobs.job("long", at=2, cpu=1, seconds=20 * 86400)
    else:
        jobs.job("held back", at=2, cpu=1, seconds=FOREVER)

    class Late(Overtaken):
        def cycle(self, now: int) -> Iterator[Decision]:
            late = [job for job in self.waiting if job.id == "held back" and now < 20 * DAY]
            for job in late:
                self.waiting.remove(job)
            yield from super().cycle(now)
            self.waiting += late

    livelock = stopped(ended(Late, jobs, pool(cpu=1001)))
    assert livelock.at - livelock.since == SPAN
    assert 20 * DAY <= livelock.since < 20 * DAY + HOUR


def test_many_jobs_that_are_each_preempted_a_few_times_are_no_loop() -> None:
    """2,000 of them, each three times in 60 days in which nothing else happens."""

    class Now(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            yield from super().cycle(now)
            if now < 60 * DAY:
                yield Wake(now + 20 * DAY)

        def preempt(self, now: int) -> Iterator[Decision]:
            victims, self.running = self.running, []
            for job in victims:
                yield Preempt(job, None, "repacked")

    jobs = Script()
    for number in range(2000):
        jobs.job(f"j{number}", cpu=1, grace=1, seconds=100 * 86400)
    outcome = ended(Now, jobs, pool(cpu=2000))
    assert outcome.stopped is None
    assert outcome.end > 160 * DAY


@pytest.mark.parametrize("losses", ["resume", "checkpoint"])
def test_jobs_that_take_turns_and_keep_their_work_are_no_loop(losses: str) -> None:
    """Time slicing: nothing ends for 60 days, but every turn brings the jobs nearer to their ends."""

    class Slices(Greedy):
        def preempt(self, now: int) -> Iterator[Decision]:
            if now % HOUR == 0 and self.waiting and self.running:
                yield Preempt(self.running.pop(), by=self.waiting[0], reason="its turn")
            if self.waiting or self.running:
                yield Wake((now // HOUR + 1) * HOUR)

    model = Losses("resume") if losses == "resume" else Losses("checkpoint", 10 * MINUTE)
    outcome = ended(Slices, pair(grace=0, seconds=60 * 86400), losses=model)
    assert outcome.stopped is None
    assert outcome.end >= 120 * DAY
    assert stopped(ended(Slices, pair(grace=0, seconds=60 * 86400))).at < 50 * DAY


def test_a_replay_that_was_ended_is_accounted_for() -> None:
    """What was held until then is in the stints, and the jobs have a row each."""
    happened = replayed(Overtaken, pair(grace=1800), POOL)
    assert happened.outcome is not None
    end = stopped(happened.outcome).at
    assert max(row.time for row in happened.rows) == end == max(stint.end for stint in happened.stints)
    assert {name: job.state for name, job in happened.jobs.items()} == {
        "first": "running",  # it is terminating
        "second": "pending",
    }
    held = sum(stint.end - stint.start for stint in happened.stints)
    assert held == end


# --- at one instant ---------------------------------------------------------------------------------------


def test_a_loop_at_one_instant_names_its_jobs_and_what_to_do() -> None:
    """It cannot be ended as others are, since its cycle has no end."""

    class Endless(Overtaken):
        def cycle(self, now: int) -> Iterator[Decision]:
            while self.waiting:
                yield from super().cycle(now)

    with pytest.raises(
        DecisionError, match=r"decisions at this time never end: .*job first \(preempted"
    ) as error:
        replayed(Endless, pair(grace=0), POOL)
    assert error.value.hint is not None
    assert "evictionLatency" in error.value.hint


@pytest.mark.parametrize("jobs", [2, 100, 5000])
@pytest.mark.parametrize("endless", ["two", "all"])
def test_a_loop_at_one_instant_ends_soon_whatever_is_alive(endless: str, jobs: int) -> None:
    """How many jobs go round counts, up to a bound, and not how many there are."""
    seen = 0

    class Endless(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            nonlocal seen
            whom = self.waiting[: 2 if endless == "two" else None]
            while True:
                for job in whom:
                    yield Admit(job)
                for job in whom:
                    seen += 1
                    yield Preempt(job, None, "again")

    script = Script()
    for number in range(jobs):
        script.job(f"j{number}", cpu=1)
    with pytest.raises(DecisionError, match=r"decisions (at this time )?never end"):
        ended(Endless, script, pool(cpu=jobs))
    going = min(jobs, 2) if endless == "two" else jobs
    assert seen <= 101 + going + 10 * min(going, 1000) + 1


def test_every_pod_of_a_job_may_be_preempted_at_one_instant() -> None:
    """One decision for each of them is no loop."""

    class Emptied:
        def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
            self.pods: list[int] = []
            self.again = 3

        def submit(self, job: Job, pods: range, now: int) -> None:
            self.job = job
            self.pods += pods

        def release(self, job: Job, pods: range, now: int, why: object) -> None:
            pass

        def cycle(self, now: int) -> Iterator[Decision]:
            bound, self.pods = self.pods, []
            for pod in bound:
                yield Bind(self.job, range(pod, pod + 1), "n")
            self.again -= 1
            for pod in bound if self.again else ():
                yield Preempt(self.job, None, "emptied", range(pod, pod + 1))
            if self.pods:
                yield from self.cycle(now)

    jobs = Script().job("large", pods=500, gang=False, cpu=1)
    happened = replayed(Emptied, jobs, nodes(n={"cpu": 500}))
    assert len(happened.of("evict")) == 1000
    assert happened.jobs["large"].state == "finished"


@pytest.mark.parametrize("kind", ["wake", "share", "refuse", "nominate"])
def test_decisions_that_change_nothing_are_bounded(kind: str) -> None:
    """A policy that goes on recording what it does not do stops with a message instead of hanging."""

    class Endless(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            (job,) = self.waiting
            while True:
                if kind == "wake":
                    yield Wake(now + 1)
                elif kind == "share":
                    yield QueueShare("default", 0.5, 1)
                elif kind == "refuse":
                    yield Refuse(job, "no")
                else:
                    yield Nominate(job, 0, "n")
                    yield Unnominate(job, 0)

    with pytest.raises(DecisionError, match="decisions in a row changed nothing"):
        ended(Endless, Script().job("a", cpu=1), nodes(n={"cpu": 1}))


# --- wakes ------------------------------------------------------------------------------------------------


class Wakeful(Greedy):
    """Wakes itself again and again."""

    gap = 1
    idle = False

    def cycle(self, now: int) -> Iterator[Decision]:
        yield from super().cycle(now)
        yield Wake(now + self.gap, idle=self.idle)


def wakeful(gap: int, *, idle: bool = False) -> type[Wakeful]:
    """One that wakes itself so often, microseconds."""
    return type("Wakeful", (Wakeful,), {"gap": gap, "idle": idle})


@pytest.mark.usefixtures("soon")
def test_a_policy_that_only_wakes_itself_while_a_job_waits_is_refused() -> None:
    """Nothing would end it: its job never fits, and no other is to come."""
    jobs = Script().job("never", cpu=2000)
    with pytest.raises(DecisionError, match=r"decisions never end: 1,001 times in a row") as refused:
        ended(wakeful(MINUTE), jobs)
    assert refused.value.hint is not None
    assert "idle=True" in refused.value.hint
    assert ended(wakeful(MINUTE, idle=True), jobs).cycles == 1


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("idle", [False, True])
def test_wakes_that_take_for_ever_to_get_to_what_is_due_are_refused(idle: bool) -> None:
    """A microsecond apart, while a job runs for a day."""
    with pytest.raises(DecisionError, match=r"decisions never end: 1,001 times in a row") as refused:
        ended(wakeful(1, idle=idle), Script().job("long", cpu=1, seconds=86400))
    assert refused.value.hint is not None
    assert "less than a millisecond apart" in refused.value.hint


@pytest.mark.usefixtures("soon")
def test_wakes_until_something_happens_are_no_loop() -> None:
    """However many there are: every minute for 7 days, until a job ends, or the replay does."""
    long = ended(wakeful(MINUTE), Script().job("long", cpu=1, seconds=7 * 86400))
    assert (long.end, long.stopped) == (7 * DAY, None)
    cut = ended(wakeful(MINUTE), Script().job("never", cpu=2000), until=7 * DAY)
    assert (cut.end, cut.stopped) == (7 * DAY, None)


def test_what_happened_once_is_told_as_once() -> None:
    """One job is preempted again and again by another, which a third one preempted before."""
    found = Livelock(0, 40 * DAY, 1_001, (Party("a", 1_000, 0), Party("b", 1, 1_000), Party("c", 0, 1)))
    b = "job b (preempted once, preemptor 1,000 times)"
    assert f"job a (preempted 1,000 times), {b}, job c (preemptor once)" in str(found)

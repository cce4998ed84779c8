"""Progress and its loss: what each loss model leaves, and where the time of every held pod goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import AtRandom, Eager, PodByPod, Priority

from harness import Admit, Bind, Decision, Job, PodSet, Preempt, Wake, Why
from harness.base.errors import OptionError
from harness.base.units import MINUTE, SECOND
from harness.engine import Losses, parse_losses
from harness.policy import ENDLESS, PolicyFactory
from harness.testing import Decisions, Script, nodes, pool, replayed

LOW_THEN_HIGH = {"at": 25, "cpu": 1, "priority": 1, "seconds": 5}


def stints(happened: Decisions, job: str) -> list[tuple[str, float, float, float]]:
    """A job's stints as (state, start, end, lost), seconds."""
    return [
        (each.state, each.start / SECOND, each.end / SECOND, each.lost / SECOND)
        for each in happened.stints
        if each.job == job
    ]


def preempted_at_25(losses: str, **low: Any) -> Decisions:
    """A job of 100 s that is preempted 25 s into its run and waits 5 s."""
    jobs = Script().job("low", cpu=1, seconds=100, **low).job("high", **LOW_THEN_HIGH)
    return replayed(Priority, jobs, pool(cpu=1), losses=parse_losses(losses))


def test_restart_loses_all_progress() -> None:
    """25 s are thrown away; the job runs 100 s again."""
    happened = preempted_at_25("restart")
    assert stints(happened, "low") == [("progress", 0, 25, 25), ("progress", 30, 130, 0)]
    assert happened.jobs["low"].lost == 25 * SECOND


def test_resume_loses_nothing() -> None:
    """The remaining 75 s are all that is left to do."""
    happened = preempted_at_25("resume")
    assert stints(happened, "low") == [("progress", 0, 25, 0), ("progress", 30, 105, 0)]


def test_checkpoint_loses_what_came_after_the_last_one() -> None:
    """With a checkpoint every 10 s, 5 s are lost; restoring takes 2 s without progress."""
    happened = preempted_at_25("checkpoint=10s,restore=2s")
    assert stints(happened, "low") == [
        ("progress", 0, 25, 5),
        ("restoring", 30, 32, 0),
        ("progress", 32, 112, 0),
    ]
    assert happened.jobs["low"].idle == 2 * SECOND


def test_a_job_may_have_its_own_checkpoints() -> None:
    """A job's own interval holds, whatever the replay's loss model is."""
    assert stints(preempted_at_25("restart", checkpoint=20), "low")[0] == ("progress", 0, 25, 5)


def test_a_first_start_restores_nothing() -> None:
    """Without progress that was kept there is no checkpoint to load."""
    assert stints(preempted_at_25("checkpoint=60s,restore=2s"), "low")[1] == ("progress", 30, 130, 0)


def test_preempted_while_restoring_loses_nothing_and_gains_nothing() -> None:
    """Progress that a checkpoint kept survives a second preemption."""
    jobs = (
        Script()
        .job("low", cpu=1, seconds=100)
        .job("high", at=25, cpu=1, priority=1, seconds=5)
        .job("again", at=31, cpu=1, priority=1, seconds=5)
    )
    happened = replayed(Priority, jobs, pool(cpu=1), losses=parse_losses("checkpoint=10s,restore=4s"))
    assert stints(happened, "low") == [
        ("progress", 0, 25, 5),
        ("restoring", 30, 31, 0),
        ("restoring", 36, 40, 0),
        ("progress", 40, 120, 0),
    ]


def test_a_grace_period_holds_resources_without_progress() -> None:
    """The victim keeps what it holds for 10 s, idle; only then can the preemptor start."""
    jobs = Script().job("low", cpu=1, seconds=100, grace=10).job("high", **LOW_THEN_HIGH)
    happened = replayed(Priority, jobs, pool(cpu=1))
    assert stints(happened, "low")[:2] == [("progress", 0, 25, 25), ("terminating", 25, 35, 0)]
    assert happened.starts()["high"] == 35


def test_a_gang_progresses_only_while_all_its_pods_are_bound() -> None:
    """The first pod waits idle for the second, which finds room when the other job ends."""
    jobs = Script().job("other", cpu=3, seconds=10, gang=False).job("gang", cpu=2, pods=2, seconds=5)
    happened = replayed(PodByPod, jobs, nodes(n1={"cpu": 5}))
    assert stints(happened, "gang") == [("waiting", 0, 10, 0), ("progress", 10, 15, 0)]
    assert happened.jobs["gang"].start == 10 * SECOND


def test_pods_without_a_gang_progress_each_on_its_own() -> None:
    """The second pod starts when the first has ended; the job ends with its last pod."""
    jobs = Script().job("set", cpu=2, pods=2, seconds=5, gang=False)
    happened = replayed(PodByPod, jobs, nodes(n1={"cpu": 2}))
    assert stints(happened, "set") == [("progress", 0, 5, 0), ("progress", 5, 10, 0)]
    assert [(row.pod, row.time / SECOND) for row in happened.of("finish")] == [("set-0", 5), ("set-1", 10)]
    assert happened.jobs["set"].finish == 10 * SECOND


def test_gangs_that_hold_each_other_up_are_named_at_the_end() -> None:
    """Two gangs that each got half of the node wait for ever; nothing is due, so the replay ends."""

    class Alternating(PodByPod):
        def submit(self, job: Any, pods: range, now: int) -> None:
            super().submit(job, pods, now)
            self.waiting.sort(key=lambda entry: (entry[1], entry[0].index))

    jobs = Script().job("left", cpu=1, pods=2, seconds=5).job("right", cpu=1, pods=2, seconds=5)
    happened = replayed(Alternating, jobs, nodes(n1={"cpu": 2}))
    assert happened.outcome is not None
    assert happened.outcome.half_bound == (("left", 1, 2, {"cpu": 1}), ("right", 1, 2, {"cpu": 1}))
    assert {job.state for job in happened.jobs.values()} == {"running"}


@pytest.mark.parametrize(
    ("text", "losses"),
    [
        ("restart", Losses()),
        ("resume", Losses("resume")),
        ("checkpoint=30m", Losses("checkpoint", 30 * MINUTE)),
        ("checkpoint=1h,restore=90s", Losses("checkpoint", 60 * MINUTE, 90 * SECOND)),
    ],
)
def test_a_loss_model_reads_as_it_is_written(text: str, losses: Losses) -> None:
    """What `str` writes of a loss model is read back as the same one."""
    assert parse_losses(text) == losses
    assert parse_losses(str(losses)) == losses


@pytest.mark.parametrize(
    "text",
    ["", "lose", "checkpoint", "checkpoint=0", "restore=5s", "checkpoint=1x", "checkpoint=1s,checkpoint=2s"],
)
def test_a_wrong_loss_model_is_refused(text: str) -> None:
    """The message quotes what was given and says what can be."""
    with pytest.raises(OptionError, match="loss model") as refused:
        parse_losses(text)
    assert refused.value.hint or "duration" in refused.value.message


def allocated(happened: Decisions, sizes: Mapping[str, Mapping[str, int]], end: int) -> int:
    """Resource-time of cpu from the decisions alone: what is held, integrated over time."""
    total, level, last = 0, 0, 0
    per_pod = {name: each["cpu"] for name, each in sizes.items()}
    for row in happened.rows:
        held = row.holding if row.pod is None else {"bind": 1, "gone": -1, "finish": -1}.get(row.action, 0)
        total, last = total + level * (row.time - last), row.time
        level += held * row.pods * per_pod[row.job]
    return total + level * (end - last)


LOSSES = st.sampled_from(["restart", "resume", "checkpoint=3s", "checkpoint=2s,restore=1s"])
JOB = st.fixed_dictionaries(
    {
        "at": st.integers(0, 20),
        "seconds": st.integers(0, 12),
        "cpu": st.integers(0, 3),
        "pods": st.integers(1, 3),
        "gang": st.booleans(),
        "grace": st.integers(0, 4),
        "priority": st.integers(0, 2),
    }
)


@given(
    st.lists(JOB, min_size=1, max_size=12),
    LOSSES,
    st.integers(0, 2**16),
    st.none() | st.integers(0, 60),
    st.sampled_from(["whole", "early", "pods"]),
)
def test_every_held_microsecond_is_accounted_for(
    asked: list[dict[str, Any]], losses: str, seed: int, until: int | None, mode: str
) -> None:
    """Stints add up to exactly what the decisions say was held, whatever is preempted and whenever it stops.

    A job never progresses longer than it runs, and what it kept when it finished is exactly its run time.
    """
    jobs, sizes = Script(), {}
    for number, ask in enumerate(sorted(asked, key=lambda each: each["at"])):
        jobs.job(f"j{number}", **ask)
        sizes[f"j{number}"] = ask
    policy: PolicyFactory = {"whole": AtRandom, "early": Eager, "pods": PodByPod}[mode]
    cluster = nodes(n1={"cpu": 5}, n2={"cpu": 4}) if mode == "pods" else pool(cpu=9)
    options = {"seed": seed, "preemptions": 20}
    happened = replayed(policy, jobs, cluster, options=options, losses=parse_losses(losses), until=until)
    assert happened.outcome is not None
    spans = sum(each.amounts["cpu"] * (each.end - each.start) for each in happened.stints)
    assert spans == allocated(happened, sizes, happened.outcome.end)
    for name, job in happened.jobs.items():
        mine = [each for each in happened.stints if each.job == name]
        assert all(0 <= each.lost <= each.end - each.start for each in mine)
        assert job.lost == sum(each.lost * each.pods for each in mine)
        assert job.idle == sum(
            (each.end - each.start) * each.pods for each in mine if each.state != "progress"
        )
        kept = sum(
            (each.end - each.start - each.lost) * each.pods for each in mine if each.state == "progress"
        )
        work = sizes[name]["seconds"] * SECOND * sizes[name]["pods"]
        assert kept == work if job.state == "finished" else kept <= work


@given(st.integers(0, 2**16))
def test_pod_sets_of_different_sizes_add_up(seed: int) -> None:
    """Pods of one job that ask for different amounts are accounted for with their own."""
    sets = (PodSet("driver", 1, 1, {"cpu": 3}), PodSet("workers", 2, 2, {"cpu": 1, "nvidia.com/gpu": 2}))
    jobs = (
        Script().job("mixed", pod_sets=sets, seconds=4, gang=seed % 2 == 0).job("b", at=1, cpu=2, seconds=3)
    )
    cluster = nodes(n1={"cpu": 4, "gpu": 2}, n2={"cpu": 2, "gpu": 2})
    happened = replayed(PodByPod, jobs, cluster, options={"seed": seed, "preemptions": 6})
    useful = {"cpu": 0, "nvidia.com/gpu": 0}
    for each in happened.stints:
        if each.job == "mixed" and each.state == "progress":
            for resource, amount in each.amounts.items():
                useful[resource] += amount * (each.end - each.start - each.lost)
    assert useful == {"cpu": 5 * 4 * SECOND, "nvidia.com/gpu": 4 * 4 * SECOND}


def test_what_ran_before_it_arrived_goes_on_from_there() -> None:
    """70 s of 100 s were done: it ends 30 s after it started here, and all its stints are of this replay."""
    jobs = Script().job("low", cpu=1, seconds=100, done=70, startup=10)
    happened = replayed(Priority, jobs, pool(cpu=1))
    assert stints(happened, "low") == [("progress", 0, 30, 0)]
    assert happened.jobs["low"].start == 0


@pytest.mark.parametrize(("losses", "again"), [("restart", 100), ("resume", 5), ("checkpoint=40s", 20)])
def test_an_eviction_costs_what_was_done_before_the_arrival_too(losses: str, again: int) -> None:
    """After 70 s before and 25 s here 0, 95 or 80 of 100 s are left; lost here is only what was made here."""
    happened = preempted_at_25(losses, done=70)
    assert happened.jobs["low"].finish == (25 + 5 + again) * SECOND
    assert happened.jobs["low"].lost == {"restart": 25, "resume": 0, "checkpoint=40s": 15}[losses] * SECOND
    before = sum(each.lost_before for each in happened.stints)
    assert before == {"restart": 70, "resume": 0, "checkpoint=40s": 0}[losses] * SECOND


def test_who_is_evicted_as_soon_as_it_arrives_loses_what_was_done_before() -> None:
    """It runs all of 100 s again; a stint without length says what was lost."""

    class Fickle:
        """Starts the job, takes it back at once, and starts it again a second later."""

        def __init__(self, *_: object) -> None:
            self._waits: list[Job] = []
            self._evicted = False

        def submit(self, job: Job, pods: range, now: int) -> None:
            self._waits.append(job)

        def release(self, job: Job, pods: range, now: int, why: Why) -> None:
            """Nothing to do."""

        def cycle(self, now: int) -> Iterator[Decision]:
            if self._evicted and now == 0:
                yield Wake(SECOND)
                return
            while self._waits:
                job = self._waits.pop()
                yield Admit(job)
                if not self._evicted:
                    self._evicted = True
                    yield Preempt(job, None, "fickle")
                    yield Wake(SECOND)
                    return

    happened = replayed(Fickle, Script().job("low", cpu=1, seconds=100, done=70), pool(cpu=1))
    assert stints(happened, "low") == [("progress", 0, 0, 0), ("progress", 1, 101, 0)]
    assert [each.lost_before for each in happened.stints] == [70 * SECOND, 0]
    assert happened.jobs["low"].lost == 0


@pytest.mark.parametrize(("losses", "lost", "finish"), [("restart", 70, 120), ("resume", 0, 50)])
def test_an_eviction_before_it_went_on_costs_what_was_done_before_the_arrival(
    losses: str, lost: float, finish: float
) -> None:
    """A gang of two of which one pod is bound until 10 s: from 20 s on it has 100 or 30 s to do."""

    class Half:
        """Binds one pod of two, takes it back 10 s later, and binds both after as long."""

        def __init__(self, *_: object) -> None:
            self._job: Job | None = None

        def submit(self, job: Job, pods: range, now: int) -> None:
            self._job = job

        def release(self, job: Job, pods: range, now: int, why: Why) -> None:
            """Nothing to do."""

        def cycle(self, now: int) -> Iterator[Decision]:
            job, self._job = self._job, None
            if job is not None and now == 0:
                yield Bind(job, range(1), "n1")
                yield Wake(10 * SECOND)
                self._first = job
            elif now == 10 * SECOND:
                yield Preempt(self._first, None, "half")
                yield Wake(20 * SECOND)
            elif now == 20 * SECOND:
                yield Bind(self._first, range(2), "n1")

    jobs = Script().job("gang", cpu=1, pods=2, seconds=100, done=70)
    happened = replayed(Half, jobs, nodes(n1={"cpu": 2}), losses=parse_losses(losses))
    assert sum(each.lost_before * each.pods for each in happened.stints) == lost * 2 * SECOND
    assert happened.jobs["gang"].finish == finish * SECOND


@pytest.mark.parametrize("losses", ["restart", "resume"])
def test_what_never_ends_does_not_end_because_it_ran_before(losses: str) -> None:
    """Nor where an eviction left that to it: the replay is over with the last job that ends."""
    jobs = Script().job("ever", cpu=1, seconds=ENDLESS / SECOND, done=1000)
    jobs.job("high", cpu=1, seconds=5, at=10, priority=1)
    happened = replayed(Priority, jobs, pool(cpu=1), losses=parse_losses(losses))
    assert happened.outcome is not None
    assert happened.outcome.end == 15 * SECOND


def test_what_had_run_for_as_long_as_it_takes_ends_when_it_arrives() -> None:
    """120 s were done of 100."""
    happened = replayed(Priority, Script().job("over", cpu=1, seconds=100, done=120), pool(cpu=1))
    assert happened.jobs["over"].finish == 0

"""Without nodes an admitted job starts when its resources are there, which victims may still hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import Eager, Greedy, scripted

from harness import Admit, Bind, Cluster, Decision, Job, PodSet, Preempt, View
from harness.base.errors import DecisionError
from harness.base.units import SECOND
from harness.engine import parse_losses
from harness.testing import Decisions, Script, nodes, pool, replayed

POOL = pool(cpu=6)


def lines(happened: Decisions, *actions: str) -> list[str]:
    """Rows as text, such as `10 admit a`, without submissions."""
    wanted = actions or ("admit", "start", "preempt", "evict", "gone", "requeue", "finish")
    return [f"{row.time / SECOND:g} {row.action} {row.job}" for row in happened.of(*wanted)]


def test_it_starts_when_those_who_are_leaving_are_gone() -> None:
    """The victim keeps 4 of 6 cores for 30 s; who was admitted meanwhile waits, and holds nothing."""
    jobs = Script().job("victim", cpu=4, seconds=100, grace=30).job("next", at=5, cpu=3, seconds=10)
    steps = {0: [("admit", "victim")], 5: [("preempt", "victim", "next"), ("admit", "next")]}
    happened = replayed(scripted(steps), jobs, POOL)
    assert lines(happened) == [
        "0 admit victim", "5 preempt victim", "5 admit next",
        "35 gone victim", "35 requeue victim", "35 start next", "45 finish next",
    ]  # fmt: skip
    following = happened.jobs["next"]
    assert (following.admitted, following.start, following.idle) == (5 * SECOND, 35 * SECOND, 0)
    assert [row.holding for row in happened.of("admit", "start")] == [1, 0, 1]


def test_they_start_in_the_order_of_their_admission() -> None:
    """When 2 cores are free at 15 s the small job could start, but the large one was admitted before it."""
    jobs = (
        Script()
        .job("slow", cpu=4, seconds=100, grace=20)
        .job("quick", cpu=2, seconds=100, grace=10)
        .job("large", at=5, cpu=4, seconds=10)
        .job("small", at=5, cpu=2, seconds=10)
        .job("none", at=16, cpu=0, seconds=10)
    )
    steps = {
        0: [("admit", "slow"), ("admit", "quick")],
        5: [
            ("preempt", "slow", "large"),
            ("preempt", "quick", "small"),
            ("admit", "large"),
            ("admit", "small"),
        ],
        16: [("admit", "none")],
    }
    happened = replayed(scripted(steps), jobs, POOL)
    assert lines(happened, "start") == ["25 start large", "25 start small", "25 start none"]


def test_more_than_the_capacity_without_those_who_are_leaving_is_refused() -> None:
    """4 of 6 cores are leaving; 3 are promised to one job, so there is room for 1 beside the other's 2."""
    jobs = Script().job("victim", cpu=4, seconds=100, grace=30).job("stays", cpu=2, seconds=100)
    jobs.job("next", at=5, cpu=3).job("after", at=5, cpu=2)
    steps = {
        0: [("admit", "victim"), ("admit", "stays")],
        5: [("preempt", "victim", None), ("admit", "next"), ("admit", "after")],
    }
    with pytest.raises(
        DecisionError, match=r"job after .*: the cluster has 1m cpu free, but the decision needs 2m"
    ):
        replayed(scripted(steps), jobs, POOL)


def test_evicted_before_it_started_it_leaves_at_once() -> None:
    """It holds nothing whatever its grace period is; what it was promised is there for those behind it."""
    jobs = (
        Script()
        .job("slow", cpu=4, seconds=100, grace=20)
        .job("quick", cpu=2, seconds=100, grace=10)
        .job("first", at=5, cpu=4, seconds=10, grace=30)
        .job("second", at=5, cpu=2, seconds=10)
    )
    steps = {
        0: [("admit", "slow"), ("admit", "quick")],
        5: [
            ("preempt", "slow", "first"),
            ("preempt", "quick", "second"),
            ("admit", "first"),
            ("admit", "second"),
        ],
        16: [("preempt", "first", "second")],
        17: [("admit", "first")],
    }
    happened = replayed(scripted(steps), jobs, POOL)
    assert lines(happened)[4:] == [
        "5 admit first", "5 admit second", "15 gone quick", "15 requeue quick",
        "16 preempt first", "16 requeue first", "16 start second", "17 admit first",
        "25 gone slow", "25 requeue slow", "25 start first", "26 finish second", "35 finish first",
    ]  # fmt: skip
    first = happened.jobs["first"]
    assert (first.admitted, first.start, first.preemptions, first.lost) == (5 * SECOND, 25 * SECOND, 1, 0)
    (back,) = [row for row in happened.of("requeue") if row.job == "first"]
    assert back.pods == 0, "its pod has been waiting all the time"
    assert [stint.state for stint in happened.stints if stint.job == "first"] == ["progress"]


@pytest.mark.parametrize("cluster", [POOL, nodes(n={"cpu": 6})])
def test_a_decision_may_leave_another_grace_period_than_the_job_s_own(cluster: Cluster) -> None:
    """It was told to go 23 s before, so that 7 s of 30 are left; the next time it has 30 s again."""

    class Told(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            for job in self.waiting:
                if cluster.nodes:
                    yield Bind(job, range(1), "n")
                else:
                    yield Admit(job)
            told, self.waiting = self.waiting[:], []
            for job in told:
                yield Preempt(job, None, "told", grace=None if now else 7 * SECOND)

    happened = replayed(Told, Script().job("job", cpu=4, seconds=100, grace=30), cluster, until=50)
    assert lines(happened, "gone") == ["7 gone job", "37 gone job"]
    assert [row.detail for row in happened.of("evict")][:2] == [{"grace_us": 7 * SECOND}, None]


def test_without_a_grace_period_nobody_waits() -> None:
    """The victim is gone when the next decision is made."""
    jobs = Script().job("victim", cpu=4, seconds=100).job("next", at=5, cpu=3, seconds=10)
    steps = {0: [("admit", "victim")], 5: [("preempt", "victim", "next"), ("admit", "next")]}
    happened = replayed(scripted(steps), jobs, POOL)
    assert happened.jobs["next"].start == 5 * SECOND
    assert happened.of("start") == []


def test_a_victim_that_is_gone_at_once_lets_those_start_who_wait() -> None:
    """The one with a grace period holds 2 cores, the one without gives back what the next job needs."""
    jobs = Script().job("slow", cpu=3, seconds=100, grace=20).job("quick", cpu=3, seconds=100)
    jobs.job("next", at=5, cpu=3, seconds=10)
    steps = {
        0: [("admit", "slow"), ("admit", "quick")],
        5: [("preempt", "slow", "next"), ("admit", "next"), ("preempt", "quick", None)],
    }
    happened = replayed(scripted(steps), jobs, POOL)
    assert lines(happened)[2:7] == [
        "5 preempt slow", "5 admit next", "5 evict quick", "5 gone quick", "5 requeue quick",
    ]  # fmt: skip
    assert lines(happened, "start") == ["5 start next"]


def test_a_replay_that_is_cut_short_finds_it_pending() -> None:
    """It was admitted and has not started; the victim is leaving."""
    jobs = Script().job("victim", cpu=4, seconds=100, grace=30).job("next", at=5, cpu=3, seconds=10)
    steps = {0: [("admit", "victim")], 5: [("preempt", "victim", "next"), ("admit", "next")]}
    happened = replayed(scripted(steps), jobs, POOL, until=20)
    following = happened.jobs["next"]
    assert (following.state, following.admitted, following.start) == ("pending", 5 * SECOND, -1)
    assert happened.jobs["victim"].state == "running"
    assert happened.outcome is not None
    assert happened.outcome.half_bound == ()
    assert [(each.job, each.state, each.end / SECOND) for each in happened.stints] == [
        ("victim", "progress", 5),
        ("victim", "terminating", 20),
    ]


def test_partial_admission_counts_with_the_pods_that_it_gave() -> None:
    """Two of four pods fit beside the job that stays; evicted before they start, all four wait again."""
    sets = (PodSet("workers", 4, 1, {"cpu": 2}),)
    jobs = Script().job("victim", cpu=4, seconds=100, grace=10).job("stays", cpu=2, seconds=30)
    jobs.job("elastic", at=1, pod_sets=sets, seconds=10)
    steps = {
        0: [("admit", "victim"), ("admit", "stays")],
        1: [("preempt", "victim", "elastic"), ("admit", "elastic", {"workers": 2})],
        2: [("preempt", "elastic", None)],
        3: [("admit", "elastic", {"workers": 1})],
    }
    happened = replayed(scripted(steps), jobs, POOL)
    assert [(row.pods, row.time / SECOND) for row in happened.of("requeue") if row.job == "elastic"] == [
        (2, 2)
    ]
    assert [(row.pods, row.time / SECOND) for row in happened.of("start")] == [(1, 11)]
    assert [(each.pods, each.amounts) for each in happened.stints if each.job == "elastic"] == [
        (1, {"cpu": 2})
    ]


@pytest.mark.parametrize(("losses", "finish"), [("resume", 32), ("checkpoint=2s,restore=1s", 34)])
def test_what_a_checkpoint_kept_survives_an_eviction_before_the_start(losses: str, finish: int) -> None:
    """Evicted at 3 s, admitted and evicted again while it waits, it goes on at 25 s where it was."""
    jobs = Script().job("job", cpu=4, seconds=10).job("other", at=3, cpu=6, seconds=100, grace=20)
    steps = {
        0: [("admit", "job")],
        3: [("preempt", "job", "other"), ("admit", "other")],
        5: [("preempt", "other", "job"), ("admit", "job")],
        6: [("preempt", "job", None)],
        7: [("admit", "job")],
    }
    happened = replayed(scripted(steps), jobs, POOL, losses=parse_losses(losses))
    assert lines(happened, "start") == ["25 start job"]
    assert happened.jobs["job"].finish == finish * SECOND
    assert happened.jobs["job"].preemptions == 2


def test_a_job_of_no_length_ends_at_the_instant_at_which_it_starts() -> None:
    """What waited starts before the policy is asked, and its end is delivered before time goes on."""
    jobs = Script().job("victim", cpu=4, seconds=100, grace=10).job("next", at=5, cpu=3, seconds=0)
    steps = {0: [("admit", "victim")], 5: [("preempt", "victim", "next"), ("admit", "next")]}
    happened = replayed(scripted(steps), jobs, POOL)
    assert lines(happened, "start", "finish") == ["15 start next", "15 finish next"]


def test_what_fits_starts_at_once() -> None:
    """`View.fits` counts what is promised to admitted jobs as taken, `View.allocated` only what is held."""
    seen: list[tuple[float, bool, int]] = []
    steps = {0: [("admit", "victim")], 5: [("preempt", "victim", "next"), ("admit", "next")]}

    def watching(cluster: Any, view: View, options: Mapping[str, Any]) -> Any:
        policy: Any = scripted(steps)(cluster, view, options)
        cycle = policy.cycle

        def watch(now: int) -> Any:
            yield from cycle(now)
            if "asks" in policy.jobs:
                seen.append((now / SECOND, view.fits(policy.jobs["asks"]), view.allocated["cpu"]))

        policy.cycle = watch
        return policy

    jobs = Script().job("victim", cpu=4, seconds=100, grace=10).job("next", at=5, cpu=5, seconds=3)
    jobs.job("asks", at=6, cpu=2)
    replayed(watching, jobs, POOL)
    assert seen == [(6, False, 4), (15, False, 5), (18, True, 0)]


JOB = st.fixed_dictionaries(
    {
        "at": st.integers(0, 20),
        "seconds": st.integers(0, 12),
        "cpu": st.integers(0, 4),
        "pods": st.integers(1, 3),
        "grace": st.integers(0, 6),
    }
)


@given(st.lists(JOB, min_size=1, max_size=12), st.integers(0, 2**16), st.none() | st.integers(0, 60))
def test_nobody_starts_too_early_too_late_or_before_his_turn(
    asked: list[dict[str, Any]], seed: int, until: int | None
) -> None:
    """Books kept from the rows alone: those who wait start in order, and as soon as the first of them fits.

    What is held fits the capacity, and what is promised fits it without those who are leaving.
    """
    jobs = Script()
    for number, ask in enumerate(sorted(asked, key=lambda each: each["at"])):
        jobs.job(f"j{number}", **ask)
    happened = replayed(Eager, jobs, pool(cpu=9), options={"seed": seed, "preemptions": 20}, until=until)
    size = {row.job: _cpu(jobs[row.job]) for row in happened.of("submit")}
    waits: list[str] = []
    runs: set[str] = set()
    leaves: set[str] = set()
    for place, row in enumerate(happened.rows):
        match row.action:
            case "admit" if row.holding:
                assert not waits
                runs.add(row.job)
            case "admit":
                waits.append(row.job)
            case "start":
                assert waits.pop(0) == row.job
                runs.add(row.job)
            case "preempt" | "evict" if row.job in runs:
                leaves.add(row.job)
            case "preempt" | "evict":
                waits.remove(row.job)
            case "gone" | "finish":
                runs.remove(row.job)
                leaves.discard(row.job)
        held = sum(size[name] for name in runs)
        assert held <= 9
        assert held - sum(size[name] for name in leaves) + sum(size[name] for name in waits) <= 9
        last = place + 1 == len(happened.rows) or happened.rows[place + 1].time > row.time
        assert not (last and waits) or held + size[waits[0]] > 9
    if until is None:
        assert {job.state for job in happened.jobs.values()} <= {"finished", "pending"}
        assert all(job.state == "finished" for name, job in happened.jobs.items() if size[name] <= 9)


def _cpu(job: Job) -> int:
    return job.requests_of(range(job.pods))["cpu"]


def test_a_policy_that_goes_by_what_fits_is_never_late() -> None:
    """One that asks the view has no job wait between its admission and its start."""
    jobs = Script()
    for number in range(9):
        jobs.job(f"j{number}", at=number % 4, cpu=1 + number % 3, seconds=3)
    happened = replayed(Greedy, jobs, POOL)
    assert happened.of("start") == []


def test_pods_that_have_ended_are_among_those_of_a_partial_admission() -> None:
    """The last of three pods ran first; of two pods one is left then, and the job is over with it."""
    sets = (PodSet("main", 3, 1, {"cpu": 1}),)
    jobs = Script().job("a", seconds=5, gang=False, pod_sets=sets)
    steps: dict[float, list[tuple[Any, ...]]] = {
        0: [("admit", "a"), ("bind", "a", 2, "n")],
        6: [("preempt", "a")],
        7: [("admit", "a", {"main": 2}), ("bind", "a", 0, "n")],
    }
    happened = replayed(scripted(steps), jobs, nodes(n={"cpu": 9}))
    assert [(row.time // SECOND, row.pod) for row in happened.of("finish")] == [(5, "a-2"), (12, "a-0")]
    assert [row.pods for row in happened.of("admit")] == [3, 1]
    assert happened.jobs["a"].state == "finished"
    steps[8] = [("bind", "a", 1, "n")]
    with pytest.raises(DecisionError, match="pod 1 should not run: only 2 pods of the job should"):
        replayed(scripted(steps), jobs, nodes(n={"cpu": 9}))


def test_a_partial_admission_of_fewer_pods_than_have_ended_is_of_those() -> None:
    """Two pods have ended when one is admitted: none is left to run, and the third may be admitted later."""
    sets = (PodSet("main", 3, 1, {"cpu": 1}),)
    jobs = Script().job("a", seconds=5, gang=False, pod_sets=sets)
    steps: dict[float, list[tuple[Any, ...]]] = {
        0: [("admit", "a"), ("bind", "a", 0, "n"), ("bind", "a", 1, "n")],
        6: [("preempt", "a")],
        7: [("admit", "a", {"main": 1})],
        8: [("preempt", "a")],
        9: [("admit", "a"), ("bind", "a", 2, "n")],
    }
    happened = replayed(scripted(steps), jobs, nodes(n={"cpu": 9}))
    assert [(row.time // SECOND, row.pods) for row in happened.of("admit")] == [(0, 3), (7, 0), (9, 1)]
    assert happened.jobs["a"].finish == 14 * SECOND


def test_with_a_delay_a_job_joins_those_that_wait_for_resources_when_it_is_over() -> None:
    """`late` was admitted first and may start at 10 s, behind `next`, which waits until 35 s."""
    jobs = Script().job("victim", cpu=4, seconds=100, grace=30).job("late", cpu=2, seconds=10)
    jobs.job("next", at=5, cpu=3, seconds=10)
    steps = {
        0: [("admit", "victim"), ("admit", "late", {}, 10)],
        5: [("preempt", "victim", "next"), ("admit", "next")],
    }
    happened = replayed(scripted(steps), jobs, POOL)
    assert lines(happened, "start") == ["35 start next", "35 start late"]


def test_evicted_before_its_delay_is_over_it_does_not_start_then() -> None:
    """It leaves at once; the delay of its next admission is a new one."""
    jobs = Script().job("a", cpu=4, seconds=5, grace=30)
    steps = {0: [("admit", "a", {}, 10)], 4: [("preempt", "a", None)], 6: [("admit", "a", {}, 10)]}
    assert lines(replayed(scripted(steps), jobs, POOL)) == [
        "0 admit a", "4 evict a", "4 requeue a", "6 admit a", "16 start a", "21 finish a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("delay", "said"),
    [(5, "not let the job start before 5000000 microseconds"), (-1, "before it is admitted")],
)
def test_a_pod_is_not_bound_before_the_delay_of_its_job_is_over(delay: int, said: str) -> None:
    """Whoever decides so has decided that it may not start."""
    steps = {0: [("admit", "a", {}, delay), ("bind", "a", 0, "n")]}
    with pytest.raises(DecisionError, match=said):
        replayed(scripted(steps), Script().job("a", cpu=1), nodes(n={"cpu": 4000}))

"""The plugin `backfill`: who may pass whom, how long jobs are expected to run, ties at one instant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from batch_jobs import Batch
from batch_jobs import backfilled as replay
from hypothesis import given
from hypothesis import strategies as st

from harness import Cluster
from harness.base.errors import InputError
from harness.base.options import resolve
from harness.base.units import HOUR, MINUTE, SECOND
from harness.plugins import load
from harness.policy import ENDLESS
from harness.testing import Script, pool, queues
from harness.testing.worlds import random_world
from harness_plugins.backfill import OPTIONS
from harness_plugins.backfill.expected import STEPS, Expected

PROCESSORS = 5


def crowd() -> Batch:
    """3 of 5 run until 10; `wide` waits for them, then come a short, a small long, and a larger long job."""
    return (
        Batch()
        .asks("first", cpu=3, seconds=10)
        .asks("wide", at=1, cpu=4, seconds=10)
        .asks("short", at=2, cpu=2, seconds=8)
        .asks("small", at=3, cpu=1, seconds=20)
        .asks("large", at=4, cpu=2, seconds=20)
    )


def test_easy_lets_those_pass_that_end_in_time_or_take_what_the_first_one_leaves() -> None:
    """`short` is over when `wide` starts; `small` has 1 of 5 beside it; `large` would delay it."""
    starts = replay(crowd(), pool(cpu=PROCESSORS)).starts()
    assert starts == {"first": 0, "wide": 10, "short": 2, "small": 10, "large": 20}


def test_easy_may_delay_the_second_and_conservative_may_not() -> None:
    """`long` does not delay `wide`, the first that waits, but it does delay `whole` behind it."""
    jobs = (
        Batch()
        .asks("first", cpu=3, seconds=10)
        .asks("wide", at=1, cpu=4, seconds=10)
        .asks("whole", at=2, cpu=5, seconds=10)
        .asks("long", at=3, cpu=1, seconds=100)
    )
    easy = replay(jobs, pool(cpu=PROCESSORS)).starts()
    conservative = replay(jobs, pool(cpu=PROCESSORS), algorithm="conservative").starts()
    assert easy == {"first": 0, "wide": 10, "whole": 103, "long": 3}
    assert conservative == {"first": 0, "wide": 10, "whole": 20, "long": 30}


@pytest.mark.parametrize("algorithm", ["easy", "conservative"])
def test_the_order_decides_who_is_first(algorithm: str) -> None:
    """Of three that wait for all: the oldest, the shortest, or the most important goes first."""
    jobs = (
        Batch()
        .asks("runs", cpu=5, seconds=10)
        .asks("old", at=1, cpu=5, seconds=30)
        .asks("brief", at=2, cpu=5, seconds=5)
        .asks("dear", at=3, cpu=5, seconds=20, priority=9)
    )
    first = {
        order: min(
            (start, name)
            for name, start in replay(jobs, pool(cpu=5), order=order, algorithm=algorithm).starts().items()
            if start
        )
        for order in ("fcfs", "sjf", "priority")
    }
    if algorithm == "easy":
        assert first == {"fcfs": (10, "old"), "sjf": (10, "brief"), "priority": (10, "dear")}
    else:  # whoever has a reservation keeps it
        assert first == dict.fromkeys(first, (10, "old"))


def test_early_ends_make_reservations_come_earlier() -> None:
    """A job asks for 100 s and ends after 10: those behind move up, nobody later than reserved."""
    jobs = Batch().asks("wrong", cpu=5, seconds=10, requested=100)
    jobs.asks("a", at=1, cpu=3, seconds=10).asks("b", at=2, cpu=3, seconds=10)
    for algorithm in ("easy", "conservative"):
        assert replay(jobs, pool(cpu=5), algorithm=algorithm).starts() == {"wrong": 0, "a": 10, "b": 20}


def test_a_job_that_runs_longer_than_expected_is_expected_to_run_on_step_by_step() -> None:
    """After 10 s `over` is expected to take a minute more: 20 s may pass, 90 may not."""
    for algorithm in ("easy", "conservative"):
        jobs = Batch().asks("over", cpu=4, seconds=50, requested=10).asks("head", at=1, cpu=5, seconds=5)
        jobs.asks("long", at=20, cpu=1, seconds=60, requested=90).asks("fits", at=21, cpu=1, seconds=20)
        starts = replay(jobs, pool(cpu=5), algorithm=algorithm).starts()
        assert starts == {"over": 0, "head": 50, "long": 55, "fits": 21}


def test_the_last_two_run_times_of_a_user_are_what_the_next_is_expected_to_run() -> None:
    """Their mean, at most the request; the request where fewer than two have ended, or of other users."""
    options = resolve(OPTIONS, {"estimate": "last-two", "unstated": "1h"}, owner="backfill")
    expected = Expected(options)
    script = Batch()
    for name, user in (("a", "u"), ("b", "other")):
        script.asks(name, cpu=1, requested=100, user=user)
    (arrivals,) = script.chunks()
    job, stranger = (arrival[0] for arrival in arrivals)
    seen = []
    for ran in (10, 20, 40):
        expected.ended(job, ran * SECOND)
        seen.append(expected.of(job) // SECOND)
    assert seen == [100, 15, 30]
    expected.ended(job, 45 * SECOND)
    assert expected.of(job) == 42 * SECOND  # of 42.5
    expected.ended(job, 1000 * SECOND)
    assert expected.of(job) == 100 * SECOND
    assert expected.of(stranger) == 100 * SECOND
    assert expected.of(replace(stranger, requested=None)) == HOUR


def test_a_prediction_that_was_too_short_grows_to_the_request_and_then_beyond() -> None:
    """10 s, a minute more, five minutes more but at most the request, then by steps without a bound."""
    expected = Expected(resolve(OPTIONS, {"estimate": "last-two"}, owner="backfill"))
    script = Batch().asks("a", cpu=1, requested=200)
    ((job, *_),) = next(iter(script.chunks()))
    whole, step, seen = 10 * SECOND, 0, []
    for _ in range(4):
        whole, step = expected.prolonged(job, whole, whole, step)
        seen.append(whole // SECOND)
    assert seen == [70, 200, 200 + 15 * 60, 200 + 45 * 60]
    assert STEPS[0] == MINUTE
    assert STEPS[-1] == 100 * HOUR


@pytest.mark.parametrize(
    ("correction", "minutes"),
    [("steps", [1, 6, 21, 51, 100]), ("from-first", [1, 5, 15, 30, 60]), ("requested", [100, 105, 120])],
)
def test_steps_add_up_or_count_from_the_first_prediction_or_are_none(
    correction: str, minutes: list[int]
) -> None:
    """A job that asks for 100 minutes and is expected to be over at once."""
    expected = Expected(resolve(OPTIONS, {"correction": correction}, owner="backfill"))
    ((job, *_),) = next(iter(Batch().asks("a", cpu=1, requested=6000).chunks()))
    whole, step, seen = 0, 0, []
    for _ in minutes:
        whole, step = expected.prolonged(job, whole, whole, step)
        seen.append(whole // MINUTE)
    assert seen == minutes


def test_what_asks_for_no_time_is_expected_never_to_end_unless_something_else_is_said() -> None:
    """Beside it nobody can be promised anything, so whatever fits starts; with a time it can."""
    jobs = Script().job("first", cpu=3, seconds=10).job("wide", at=1, cpu=4, seconds=10)
    jobs.job("long", at=2, cpu=2, seconds=100)
    assert replay(jobs, pool(cpu=5)).starts() == {"first": 0, "wide": 102, "long": 2}
    assert replay(jobs, pool(cpu=5), unstated="20s").starts() == {"first": 0, "wide": 10, "long": 20}


def test_actual_run_times_are_those_of_the_trace() -> None:
    """`short` asks for too much to pass, and is known to be short."""
    jobs = Batch().asks("first", cpu=3, seconds=10).asks("wide", at=1, cpu=4, seconds=10)
    jobs.asks("short", at=2, cpu=2, seconds=5, requested=1000)
    assert replay(jobs, pool(cpu=5)).starts()["short"] == 20
    assert replay(jobs, pool(cpu=5), estimate="actual").starts()["short"] == 2


def test_ties_at_one_instant_are_played_in_the_order_asked_for() -> None:
    """At 10 `first` ends, 20 s early, as `new` arrives.

    With submissions first nobody knows of the end: `wide` is expected to start at 30, and `new` passes it.
    """
    jobs = Batch().asks("first", cpu=3, seconds=10, requested=30).asks("wide", at=1, cpu=5, seconds=10)
    jobs.asks("new", at=10, cpu=2, seconds=15)
    starts = {
        ties: replay(jobs, pool(cpu=5), ties=ties).starts()
        for ties in ("ends-first", "submissions-first", "together")
    }
    assert starts["ends-first"] == starts["together"] == {"first": 0, "wide": 10, "new": 20}
    assert starts["submissions-first"] == {"first": 0, "wide": 25, "new": 10}


def test_submissions_first_knows_of_ends_that_were_expected() -> None:
    """At 10 `first` ends as `new` arrives: `wide` gets its processors, and not `new`."""
    jobs = Batch().asks("first", cpu=3, seconds=10, requested=10).asks("wide", at=1, cpu=5, seconds=10)
    jobs.asks("new", at=10, cpu=2, seconds=15)
    starts = replay(jobs, pool(cpu=5), ties="submissions-first").starts()
    assert starts == {"first": 0, "wide": 10, "new": 20}


def test_with_submissions_first_a_newcomer_without_room_leads_to_no_decision() -> None:
    """`over` is expected to run on at 11, so that `long` could pass `head`: it may when somebody has room."""
    jobs = Batch().asks("over", cpu=3, seconds=100, requested=10).asks("head", at=1, cpu=5, seconds=5)
    jobs.asks("long", at=2, cpu=1, seconds=30, requested=30).asks("large", at=11, cpu=4, seconds=1)
    jobs.asks("small", at=12, cpu=1, seconds=100, requested=1000)
    assert replay(jobs, pool(cpu=5), ties="ends-first").starts()["long"] == 11
    assert replay(jobs, pool(cpu=5), ties="submissions-first").starts()["long"] == 12


def test_a_decision_after_each_end_is_not_one_after_all_of_them() -> None:
    """Two jobs of 2 end at 10, one of them 40 s early: after the first alone `late` may pass `wide`."""
    jobs = Batch().asks("a", cpu=2, seconds=10).asks("b", cpu=2, seconds=10, requested=50)
    jobs.asks("wide", at=1, cpu=4, seconds=10).asks("late", at=2, cpu=2, seconds=30)
    assert replay(jobs, pool(cpu=4), ties="together").starts() == {"a": 0, "b": 0, "wide": 10, "late": 20}
    assert replay(jobs, pool(cpu=4)).starts() == {"a": 0, "b": 0, "wide": 40, "late": 10}


def test_queues_of_other_cohorts_are_queues_of_their_own() -> None:
    """A job that waits in one tree of quotas holds back nobody in another; in one cohort it does."""
    jobs = Batch().asks("runs", queue="a", cpu=2, seconds=10).asks("waits", at=1, queue="a", cpu=2, seconds=5)
    jobs.asks("else", at=2, queue="b", cpu=2, seconds=100)
    apart = queues(a={"cpu": 2}, b={"cpu": 2})
    assert replay(jobs, apart).starts() == {"runs": 0, "waits": 10, "else": 2}
    jobs = Batch().asks("runs", queue="a", cpu=3, seconds=10).asks("waits", at=1, queue="a", cpu=2, seconds=5)
    jobs.asks("else", at=2, queue="b", cpu=1, seconds=100).asks("more", at=3, queue="b", cpu=2, seconds=1)
    together = queues(cohort="all", a={"cpu": 2}, b={"cpu": 2})
    for algorithm in ("easy", "conservative"):
        starts = replay(jobs, together, algorithm=algorithm).starts()
        assert starts == {"runs": 0, "waits": 10, "else": 2, "more": 15}


def test_a_cluster_without_anything_is_refused_by_name() -> None:
    """There is nothing to run on."""
    with pytest.raises(InputError, match="neither nodes nor ClusterQueues"):
        replay(Script().job("a", cpu=1), Cluster())


def test_a_job_that_can_never_start_is_rejected() -> None:
    """It asks for more than there is; the others go on."""
    happened = replay(Batch().asks("huge", cpu=9).asks("a", cpu=1), pool(cpu=5))
    assert (happened.jobs["huge"].state, happened.starts()) == ("rejected", {"a": 0})


def test_the_first_that_waits_is_told_what_is_missing() -> None:
    """Once each, with the figures."""
    rows = replay(crowd(), pool(cpu=PROCESSORS)).of("refuse")
    assert (rows[0].job, rows[0].time, rows[0].reason) == ("wide", SECOND, "NoQuota")
    assert rows[0].detail is not None
    assert rows[0].detail["short"] == {"default/cpu": 2}


# --- the promise, checked the slow way ----------------------------------------------------------------------

JOBS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 9), st.integers(1, PROCESSORS), st.integers(0, 6)),
    min_size=1,
    max_size=14,
)
"""When each arrives, how long it runs, its processors, and by how much more it asks for."""


def batch(asked: list[tuple[int, int, int, int]]) -> Batch:
    """The jobs, named by number in order of arrival."""
    jobs = Batch()
    for number, (at, seconds, cpu, more) in enumerate(sorted(asked)):
        jobs.asks(f"j{number}", at=at, seconds=seconds, cpu=cpu, requested=seconds + more)
    return jobs


def first_moment(holds: list[tuple[float, float, int]], now: float, cpu: int, length: float) -> float:
    """The first moment from which on so many processors are free for so long, tried at every end."""

    def free(time: float) -> int:
        return PROCESSORS - sum(each for start, end, each in holds if start <= time < end)

    starts = sorted({now, *(end for _, end, _ in holds if end > now)})
    for start in starts:
        changes = [start, *(each for each, _, _ in holds if start < each < start + length)]
        if all(free(time) >= cpu for time in changes):
            return start
    raise AssertionError("there is always a moment")


@given(JOBS, st.sampled_from(["ends-first", "submissions-first", "together"]))
def test_easy_never_delays_the_first_that_waits(asked: list[tuple[int, int, int, int]], ties: str) -> None:
    """Whoever is first of those that wait starts no later than what runs then is expected to let it."""
    jobs = sorted(asked)
    starts = replay(batch(asked), pool(cpu=PROCESSORS), ties=ties).starts()
    began = [starts[f"j{number}"] for number in range(len(jobs))]
    for number, (at, _, cpu, _) in enumerate(jobs):
        since = max([float(at), *began[:number]])  # from now on it is the first that waits
        running = [
            (begin, begin + seconds + more, each)
            for begin, (_, seconds, each, more) in zip(began, jobs, strict=True)
            if begin < since < begin + seconds or (begin == since and begin < began[number])
        ]
        assert began[number] <= first_moment(running, since, cpu, 10**6)


@given(JOBS)
def test_conservative_delays_nobody_and_moves_up_as_a_slow_one_does(
    asked: list[tuple[int, int, int, int]],
) -> None:
    """Every job starts no later than it was promised on arrival, and just when the plain algorithm says."""
    jobs = sorted(asked)
    starts = replay(batch(asked), pool(cpu=PROCESSORS), algorithm="conservative").starts()
    promised, plain = reserved(jobs)
    for number in range(len(jobs)):
        assert starts[f"j{number}"] <= promised[number]
    assert starts == {f"j{number}": start for number, start in plain.items()}


def reserved(jobs: list[tuple[int, int, int, int]]) -> tuple[dict[int, float], dict[int, float]]:
    """What each job is promised on arrival, and when it starts, event by event with no clever step."""
    promised: dict[int, float] = {}
    plans: dict[int, float] = {}
    begun: dict[int, float] = {}
    over: set[int] = set()

    def holds(but: int) -> list[tuple[float, float, int]]:
        known = {number: start for number, start in {**plans, **begun}.items() if number not in {*over, but}}
        return [(at, at + jobs[each][1] + jobs[each][3], jobs[each][2]) for each, at in known.items()]

    def place(number: int, now: float) -> None:
        _, seconds, cpu, more = jobs[number]
        plans[number] = first_moment(holds(number), now, cpu, seconds + more)

    def begin(now: float) -> None:
        for number in [each for each, at in plans.items() if at == now]:
            begun[number] = plans.pop(number)

    now = -1.0
    while len(over) < len(jobs):
        ends = [begun[number] + jobs[number][1] for number in begun if number not in over]
        now = min([*ends, *(float(job[0]) for number, job in enumerate(jobs) if number not in promised)])
        for number in sorted(begun):
            if number not in over and begun[number] + jobs[number][1] == now:
                over.add(number)
                for each in sorted(plans):
                    place(each, now)
                begin(now)
        for number, job in enumerate(jobs):
            if number not in promised and job[0] == now:
                place(number, now)
                promised[number] = plans[number]
                begin(now)
    return promised, begun


@given(
    JOBS, st.sampled_from(["fcfs", "sjf", "priority"]), st.sampled_from(["requested", "actual", "last-two"])
)
def test_every_combination_starts_every_job(
    asked: list[tuple[int, int, int, int]], order: str, estimate: str
) -> None:
    """The referee lets no one start who does not fit; nobody is left behind, even by wrong estimates."""
    jobs = Batch()
    for number, (at, seconds, cpu, more) in enumerate(sorted(asked)):
        user = f"u{number % 2}"
        jobs.asks(f"j{number}", at=at, seconds=seconds, cpu=cpu, requested=1 + more, priority=more, user=user)
    for algorithm in ("easy", "conservative"):
        happened = replay(jobs, pool(cpu=PROCESSORS), algorithm=algorithm, order=order, estimate=estimate)
        assert len(happened.starts()) == len(asked)


@pytest.mark.parametrize("algorithm", ["easy", "conservative"])
def test_random_worlds_without_nodes_are_replayed_without_a_fault(algorithm: str, tmp_path: Any) -> None:
    """Cohorts of three levels, flavors, jobs without an end: checked from outside."""
    worlds = [world for world in map(random_world, range(24)) if world.pooled][:3]
    assert worlds
    plugins = load()
    for number, world in enumerate(worlds):
        options = {"algorithm": algorithm, "unstated": "1h"}
        run = world.replay("backfill", tmp_path / str(number), options=options, plugins=plugins)
        assert world.faults(run) == []


def test_endless_work_is_expected_never_to_end() -> None:
    """Its end is not counted beyond what time is counted to."""
    expected = Expected(resolve(OPTIONS, {}, owner="backfill"))
    ((job, *_),) = next(iter(Script().job("a", cpu=1).chunks()))
    assert expected.of(job) == ENDLESS


def test_every_option_is_documented_with_its_default() -> None:
    """The page's table has a row for each, and names each choice."""
    text = (Path(__file__).parents[2] / "docs" / "backfill.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    for option in OPTIONS:
        assert all(f"`{choice}`" in rows[option.name] for choice in option.choices)
        if option.choices:
            assert rows[option.name].split(" | ")[1].startswith(f"`{option.default}`")

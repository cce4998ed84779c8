"""Previews: what their texts promise holds in every replay, and off they change nothing."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kueue_fuzz import World, fuzz, previewed, world
from kueue_worlds import Happened, Jobs, cluster, queue

from harness import Cluster
from harness.base.errors import DecisionError, OptionError
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.changes.over_time import unrolled
from harness.plugins import load
from harness.testing import Row
from harness_plugins.kueue.factory import assumptions
from harness_plugins.kueue.options import parse_guarantees, parse_rate

RECLAIMS = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}


def replayed(this: World, **options: str) -> list[Row]:
    """Everything that is decided in a world, with these options instead of its own previews."""
    given = {name: value for name, value in this.options.items() if not name.startswith("preview")}
    where = unrolled(cluster(*this.manifests, flavors=False), None)
    try:
        happened = Happened(where, this.jobs, plugin=this.plugin, until=150, **(given | options))
    except DecisionError as error:
        assume("decisions at this time never end" not in error.message)
        raise
    return list(happened.decisions.rows)


# --- a minimum run time -----------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from((1, 5, 20, 60)))
@fuzz(25)
def test_nobody_younger_than_the_guarantee_is_a_target(seed: int, seconds: int) -> None:
    """Whoever goes for another one was admitted at least that long ago, whatever the plugin."""
    since: dict[str, int] = {}
    for row in replayed(world(seed, 2 + seed % 39), previewMinRunTime=f"{seconds}s"):
        if row.action == "admit":
            since[row.job] = row.time
        elif row.action == "preempt" and row.by:
            assert row.time - since[row.job] >= seconds * SECOND


def test_a_head_waits_until_the_guarantee_of_its_target_is_over() -> None:
    """It is tried again at that very instant, though nothing else happens then."""
    where = cluster(queue("a", cpu=1, preemption=RECLAIMS), queue("b", cpu=1))
    jobs = Jobs().add("b0", "b", 2).add("a0", "a", 1, at=7)
    assert Happened(where, jobs, until=50).lines("preempt") == ["7 preempt b0 by a0: InCohortReclamation"]
    happened = Happened(where, jobs, until=50, previewMinRunTime="30s")
    assert happened.lines("preempt") == ["30 preempt b0 by a0: InCohortReclamation"]
    (told,) = [row for row in happened.decisions.of("refuse") if row.job == "a0"]
    assert told.detail["preemption"] == (
        "the workloads that it might preempt have not run for their minimum time yet (preview)"
    )


def test_others_are_taken_where_one_is_guaranteed_to_run() -> None:
    """Kueue takes the newest first; here it is spared."""
    where = cluster(queue("a", cpu=1, preemption=RECLAIMS), queue("b", cpu=1))
    jobs = Jobs().add("old", "b", 1).add("new", "b", 1, at=20).add("a0", "a", 1, at=25)
    assert Happened(where, jobs, until=40).preemptions == ["new by a0: InCohortReclamation"]
    happened = Happened(where, jobs, until=40, previewMinRunTime="10s")
    assert happened.preemptions == ["old by a0: InCohortReclamation"]


@pytest.mark.parametrize(
    ("guaranteed", "at"),
    [
        ("10s", 10),
        ("b=20s", 20),
        ("a=20s", 5),
        ("priority:1=30s", 30),
        ("priority:2=30s", 5),
        ("10s,b=20s,priority:0=40s", 40),
        ("40s,b=1s", 40),
    ],
)
def test_a_workload_has_the_longest_guarantee_that_applies_to_it(guaranteed: str, at: int) -> None:
    """By its ClusterQueue, by its priority, or for everybody."""
    where = cluster(queue("a", cpu=1, preemption=RECLAIMS), queue("b", cpu=1))
    jobs = Jobs().add("b0", "b", 2, priority=1).add("a0", "a", 1, at=5)
    happened = Happened(where, jobs, until=60, previewMinRunTime=guaranteed)
    assert happened.lines("preempt") == [f"{at} preempt b0 by a0: InCohortReclamation"]


def test_within_a_queue_the_guarantee_holds_as_well() -> None:
    """Against a higher priority of its own queue."""
    where = cluster(queue("a", cohort="", cpu=1, preemption=RECLAIMS))
    jobs = Jobs().add("low", "a", 1).add("high", "a", 1, at=1, priority=5)
    happened = Happened(where, jobs, until=60, previewMinRunTime="15s")
    assert happened.lines("preempt") == ["15 preempt low by high: InClusterQueue"]


def test_the_time_counts_from_the_end_of_admission_checks_and_anew_with_each_admission() -> None:
    """While its checks run a workload is no candidate less than without the preview."""
    where = cluster(queue("a", cpu=1, preemption=RECLAIMS), queue("b", cpu=1, admissionChecks=["prov"]))
    jobs = Jobs().add("b0", "b", 2).add("a0", "a", 1, at=25)
    options = {"admissionCheckDelay": "20s", "previewMinRunTime": "30s"}
    assert Happened(where, jobs, until=90, **options).lines("preempt") == [
        "50 preempt b0 by a0: InCohortReclamation"
    ]
    early = Jobs().add("b0", "b", 2).add("a0", "a", 1, at=5, seconds=10)
    assert Happened(where, early, until=30, **options).lines("preempt") == [
        "5 preempt b0 by a0: InCohortReclamation"
    ]


@pytest.mark.parametrize(
    ("strategy", "admitted"), [("StrictFIFO", ["b0", "b1"]), ("BestEffortFIFO", ["b0", "b1", "c0"])]
)
def test_meanwhile_a_strict_queue_keeps_what_others_could_borrow(strategy: str, admitted: list[str]) -> None:
    """Also one that may reclaim from anybody; in a BestEffortFIFO queue its head is put aside."""
    strict = queue("a", cpu=2, preemption=RECLAIMS, queueingStrategy=strategy)
    where = cluster(strict, queue("b", cpu=2), queue("c", cpu=0))
    jobs = Jobs().add("b0", "b", 3).add("b1", "b", 1, seconds=5)
    jobs.add("a0", "a", 2, at=1, seconds=100).add("c0", "c", 1, at=2)
    assert Happened(where, jobs, until=29, previewMinRunTime="30s").admitted == admitted


# --- a rate limit -----------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from((5, 20, 60)))
@fuzz(25)
def test_never_more_than_the_limit_are_preempted_in_any_window(seed: int, most: int, seconds: int) -> None:
    """Of any ClusterQueue, whatever the plugin; the end of a window does not belong to it."""
    past: dict[str, list[int]] = {}
    given = world(seed, 2 + seed % 39)
    queues = {job.id: job.queue for chunk in given.jobs.chunks() for job, *_ in chunk}
    for row in replayed(given, previewPreemptionRate=f"{most}/{seconds}s"):
        if row.action == "preempt" and row.by:
            times = past.setdefault(queues[row.job], [])
            times.append(row.time)
            assert len([each for each in times if each > row.time - seconds * SECOND]) <= most


def test_a_head_beyond_the_limit_preempts_as_soon_as_there_is_room() -> None:
    """It is tried again at that very instant."""
    where = cluster(queue("a", cpu=2, preemption=RECLAIMS), queue("b", cpu=0))
    jobs = Jobs().add("b0", "b", 1).add("b1", "b", 1, at=1).many("a", 2, "a", 1, at=5)
    assert Happened(where, jobs, until=90).lines("preempt") == [
        "5 preempt b1 by a0: InCohortReclamation",
        "6 preempt b0 by a1: InCohortReclamation",
    ]
    happened = Happened(where, jobs, until=90, previewPreemptionRate="1/1m")
    assert happened.lines("preempt") == [
        "5 preempt b1 by a0: InCohortReclamation",
        "65 preempt b0 by a1: InCohortReclamation",
    ]
    (told,) = [
        row for row in happened.decisions.of("refuse") if row.job == "a1" and "rate" in str(row.detail)
    ]
    assert told.detail["message"].startswith("Preempting its targets would exceed the preemption rate limit")
    assert told.detail["waitsFor"] == {"b0": ""}


@pytest.mark.parametrize(("rate", "victims"), [("1/10s", 0), ("2/10s", 2), ("0/10s", 0), ("a=1/10s", 2)])
def test_a_head_whose_targets_exceed_the_limit_preempts_none_of_them(rate: str, victims: int) -> None:
    """It may wait for ever; others, and other queues, have limits of their own."""
    where = cluster(queue("a", cpu=2, preemption=RECLAIMS), queue("b", cpu=0))
    jobs = Jobs().many("b", 2, "b", 1).add("a0", "a", 2, at=5)
    assert len(Happened(where, jobs, until=90, previewPreemptionRate=rate).preemptions) == victims


# --- both -------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
@fuzz(12)
def test_off_they_change_nothing(seed: int) -> None:
    """No decision, and none of its figures."""
    this = world(seed, 2 + seed % 39)
    off = replayed(this, previewMinRunTime="0s", previewPreemptionRate="")
    assert [astuple(row) for row in off] == [astuple(row) for row in replayed(this)]


def test_random_worlds_are_not_the_same_with_previews() -> None:
    """Else the properties above would say nothing."""
    changed = 0
    for seed in range(60):
        this = previewed(world(seed, 2 + seed % 39), seed)
        previews = {name: value for name, value in this.options.items() if name.startswith("preview")}
        try:
            with_them = replayed(this, **previews)
            changed += [astuple(row) for row in with_them] != [astuple(row) for row in replayed(this)]
        except DecisionError:
            continue
        if changed > 10:
            return
    pytest.fail(f"only {changed} worlds are not the same")


def options(**given: Any) -> dict[str, Any]:
    """The options of `kueue-classic`, with these."""
    return resolve(load().policy("kueue-classic").options, given, owner="kueue-classic")


def test_a_run_says_which_previews_are_on() -> None:
    """In its head, in run.json and in reports, apart from what is assumed of Kueue."""
    told = list(assumptions(Cluster(), options(previewMinRunTime="1h", previewPreemptionRate="3/1h")))[:2]
    assert told == [
        "preview previewMinRunTime=1h: Kueue has no such rule, so results cannot be verified",
        "preview previewPreemptionRate=3/1h: Kueue has no such rule, so results cannot be verified",
    ]
    assert not any("preview" in each for each in assumptions(Cluster(), options(previewMinRunTime="0s")))


@pytest.mark.parametrize(
    ("option", "text", "why"),
    [
        ("previewMinRunTime", "soon", "soon"),
        ("previewMinRunTime", "1h,2h", "has two values without a name"),
        ("previewMinRunTime", "level:1=2h", "is neither a ClusterQueue nor a priority"),
        ("previewMinRunTime", "priority:high=2h", "is neither a ClusterQueue nor a priority"),
        ("previewPreemptionRate", "3", "is not a number per period, such as 3/1h"),
        ("previewPreemptionRate", "-1/1h", "is not a number per period, such as 3/1h"),
        ("previewPreemptionRate", "3/0s", "must be more than 0"),
        ("previewPreemptionRate", "3/1h,4/1h", "has two values without a name"),
    ],
)
def test_what_is_not_understood_is_refused(option: str, text: str, why: str) -> None:
    """With the option and what is wrong."""
    with pytest.raises(OptionError, match=why):
        options(**{option: text})


@pytest.mark.parametrize(("option", "text"), [("MinRunTime", "c=1h"), ("PreemptionRate", "c=3/1h")])
def test_a_queue_that_is_not_there_is_refused(option: str, text: str) -> None:
    """A misspelt name would guarantee nothing."""
    with pytest.raises(OptionError, match="there is no ClusterQueue 'c'"):
        Happened(cluster(queue("a", cpu=1)), Jobs().add("a", "a", 1), **{f"preview{option}": text})


def test_texts_are_read_as_the_page_writes_them() -> None:
    """Durations in microseconds."""
    found = parse_guarantees("30m, team-a=1h, priority:-5=2h")
    assert (found.everybody, dict(found.queues), dict(found.priorities)) == (
        1800 * SECOND,
        {"team-a": 3600 * SECOND},
        {-5: 7200 * SECOND},
    )
    assert parse_rate("3/1h,team-a=1/10m") == ((3, 3600 * SECOND), {"team-a": (1, 600 * SECOND)})

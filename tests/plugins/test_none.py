"""The plugin `none`: order, blocking and borrowing of the queue, and what it is on nodes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Cluster
from harness.base.errors import InputError, OptionError
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.model import ClusterQueue, FlavorQuotas, LocalQueue, ResourceGroup, ResourceQuota, frozen
from harness.plugins import load
from harness.testing import Decisions, Script, nodes, pool, queues, replayed
from harness_plugins.none import OPTIONS, without_preemption


def replay(jobs: Script, cluster: Cluster, **options: Any) -> Decisions:
    """A replay with `none`, unnamed options at their defaults."""
    return replayed(without_preemption, jobs, cluster, options=resolve(OPTIONS, options, owner="none"))


def three_jobs() -> Script:
    """A long job that leaves 1 cpu free, one that does not fit beside it, and a small important one."""
    return (
        Script()
        .job("long", cpu=3, seconds=10)
        .job("wide", at=1, cpu=2, seconds=5)
        .job("small", at=2, cpu=1, seconds=5, priority=5)
    )


def test_skip_starts_whatever_fits() -> None:
    """The small job passes the wide one that waits in front of it."""
    assert replay(three_jobs(), pool(cpu=4), order="fifo").starts() == {"long": 0, "wide": 10, "small": 2}


def test_strict_lets_the_first_job_hold_back_the_others() -> None:
    """First come, first served: the small job waits behind the wide one."""
    starts = replay(three_jobs(), pool(cpu=4), order="fifo", blocking="strict").starts()
    assert starts == {"long": 0, "wide": 10, "small": 10}


def test_priority_decides_who_is_first() -> None:
    """With strict blocking the important job goes first although it came last."""
    starts = replay(three_jobs(), pool(cpu=4), blocking="strict").starts()
    assert starts == {"long": 0, "wide": 10, "small": 2}


def test_a_queue_borrows_what_its_cohort_leaves_unused() -> None:
    """Two queues of 2 cpu in one cohort: one of them may run a job of 4, unless borrowing is off."""
    jobs = Script().job("large", queue="a", cpu=4, seconds=5).job("other", at=1, queue="b", cpu=1, seconds=1)
    cluster = queues(cohort="all", a={"cpu": 2}, b={"cpu": 2})
    assert replay(jobs, cluster).starts() == {"large": 0, "other": 5}
    alone = replay(jobs, cluster, borrow=False)
    assert alone.jobs["large"].state == "rejected"
    reason = "no flavor of ClusterQueue a can ever give it 4m of cpu: default gives at most 2m of cpu"
    assert alone.of("reject")[0].reason == reason
    assert alone.starts() == {"other": 1}


def test_queues_without_a_cohort_do_not_share() -> None:
    """What another queue leaves unused is none of its business."""
    jobs = Script().job("a1", queue="a", cpu=2, seconds=5).job("a2", queue="a", cpu=2, seconds=5)
    assert replay(jobs, queues(a={"cpu": 2}, b={"cpu": 2})).starts() == {"a1": 0, "a2": 5}


def test_the_first_flavor_with_room_is_taken() -> None:
    """Flavors are tried in the order of the manifest."""
    flavors = tuple(FlavorQuotas(name, frozen({"cpu": ResourceQuota(2)})) for name in ("spot", "reserved"))
    queue = ClusterQueue("default", resource_groups=(ResourceGroup(("cpu",), flavors),), weight=Fraction(1))
    jobs = Script().job("x", cpu=2, seconds=5).job("y", cpu=2, seconds=5)
    admitted = replay(jobs, Cluster(cluster_queues=frozen({"default": queue}))).of("admit")
    assert [row.flavors for row in admitted] == [{"main": {"cpu": "spot"}}, {"main": {"cpu": "reserved"}}]


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 4), st.integers(0, 2)),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from(["fifo", "priority"]),
    st.sampled_from(["strict", "skip"]),
)
def test_the_queue_decides_as_a_plain_one_does(
    asked: list[tuple[int, int, int, int]], order: str, blocking: str
) -> None:
    """Lanes are only a way to be fast: starts equal those of a list that is walked at every instant."""
    jobs, plain = Script(), []
    for number, (at, seconds, cpu, priority) in enumerate(sorted(asked)):
        jobs.job(f"j{number}", at=at, seconds=seconds, cpu=cpu, priority=priority)
        plain.append((at, seconds, cpu, priority, number))
    assert replay(jobs, pool(cpu=5), order=order, blocking=blocking).starts() == walked(
        plain, order, blocking
    )


def test_a_job_that_is_no_longer_first_hides_no_job_of_another_queue() -> None:
    """When the short job ends, the low one waits behind the high one although it fits; the other starts."""
    jobs = Script().job("short", cpu=2, seconds=10, queue="a").job("long", cpu=2, seconds=20, queue="a")
    jobs.job("low", at=1, cpu=1, seconds=1, queue="a").job("high", at=2, cpu=4, queue="a", priority=1)
    jobs.job("other", at=3, cpu=2, seconds=1, queue="b")
    starts = replay(jobs, queues(cohort="all", a={"cpu": 2}, b={"cpu": 2}), blocking="strict").starts()
    assert (starts["other"], starts["high"]) == (10, 20)


@pytest.mark.parametrize("order", ["fifo", "priority"])
@pytest.mark.parametrize("blocking", ["strict", "skip"])
def test_many_jobs_with_requests_of_their_own_start_as_in_a_plain_queue(order: str, blocking: str) -> None:
    """So many that the index of waiting requests has several levels and forgets those that are gone."""
    random, jobs, plain = Random(7), Script(), []
    for number in range(150):
        at, seconds, cpu, priority = number // 4, random.randint(1, 9), random.randint(9, 400), number % 3
        jobs.job(f"j{number}", at=at, seconds=seconds, cpu=cpu, priority=priority)
        plain.append((at, seconds, cpu, priority, number))
    expected = walked(plain, order, blocking, room=600)
    assert replay(jobs, pool(cpu=600), order=order, blocking=blocking).starts() == expected


def walked(
    jobs: list[tuple[int, int, int, int, int]], order: str, blocking: str, room: int = 5
) -> dict[str, float]:
    """Starts on 5 cpu or another number, computed the slow way."""
    starts: dict[str, float] = {}
    waiting: list[tuple[int, int, int, int, int]] = []
    running: list[tuple[int, int]] = []
    arrivals = list(jobs)
    while arrivals or running:
        now = min([each[0] for each in arrivals[:1]] + [end for end, _ in running])
        running = [(end, cpu) for end, cpu in running if end > now]
        while arrivals and arrivals[0][0] <= now:
            waiting.append(arrivals.pop(0))
        again = True
        while again:
            again = False
            for job in sorted(waiting, key=lambda job: (-job[3] if order == "priority" else 0, job[4])):
                if sum(cpu for _, cpu in running) + job[2] <= room:
                    waiting.remove(job)
                    starts[f"j{job[4]}"] = float(now)
                    running.append((now + job[1], job[2]))
                elif blocking == "strict":
                    break
            if any(end == now for end, _ in running):
                running = [(end, cpu) for end, cpu in running if end > now]
                again = True
    return starts


def test_on_nodes_it_is_kube_scheduler_without_preemption() -> None:
    """A job of higher priority waits for room; pods of a gang are bound one by one and wait idle."""
    jobs = Script().job("low", cpu=3, seconds=10).job("high", at=1, cpu=2, seconds=1, priority=9)
    happened = replay(jobs, nodes(n1={"cpu": 4, "memory": 2**33, "pods": 9}))
    assert happened.starts() == {"low": 0, "high": 10}
    assert happened.of("preempt", "admit") == []


@pytest.mark.parametrize(("option", "value"), [("order", "fifo"), ("blocking", "strict"), ("borrow", False)])
def test_options_of_the_queue_are_refused_on_nodes(option: str, value: object) -> None:
    """An option that could not do what it says is an error that names it."""
    with pytest.raises(OptionError, match=f"option {option} has no effect here: the cluster has nodes"):
        replay(Script().job("a", cpu=1), nodes(n1={"cpu": 1}), **{option: value})


def test_an_option_of_nodes_is_refused_without_nodes() -> None:
    """The same the other way round."""
    with pytest.raises(OptionError, match="percentageOfNodesToScore has no effect here"):
        replay(Script().job("a", cpu=1), pool(cpu=1), percentageOfNodesToScore=50)


def test_a_cluster_with_nothing_on_it_is_refused() -> None:
    """Without nodes and queues there is nothing that could run a job."""
    with pytest.raises(InputError, match="neither nodes nor ClusterQueues"):
        replay(Script().job("a", cpu=1), Cluster())


def test_a_job_that_waits_is_refused_once_with_what_its_queue_and_cohort_lack() -> None:
    """3 of the cohort's 4 cpu are taken, so 1 of 2 is missing, although the queue itself uses nothing."""
    jobs = Script().job("theirs", queue="b", cpu=3, seconds=9).job("mine", at=1, queue="a", cpu=2, seconds=1)
    jobs.job("more", at=2, queue="b", cpu=1, seconds=3)
    decisions = replay(jobs, queues(cohort="all", a={"cpu": 2}, b={"cpu": 2}))
    (row,) = decisions.of("refuse")
    assert (row.job, row.time, row.reason) == ("mine", SECOND, "NoQuota")
    assert row.detail == {
        "queue": "a",
        "request": {"default/cpu": 2},
        "short": {"default/cpu": 1},
        "usage": {"a": {"default/cpu": 0}},
        "quota": {"a": {"default/cpu": 2}},
        "pool": {"name": "all", "usage": {"default/cpu": 3}, "quota": {"default/cpu": 4}},
    }


def test_without_nodes_a_stopped_queue_is_named_and_admits_all_the_same() -> None:
    """Kueue would admit nothing there; this queue goes by quotas alone. On nodes there are none to stop."""
    queue = ClusterQueue("q", stop_policy="Hold")
    door = LocalQueue("d", "ns", "q", stop_policy="HoldAndDrain")
    stopped = Cluster(
        cluster_queues={"q": queue, "open": ClusterQueue("open")}, local_queues={("ns", "d"): door}
    )
    ignored_fields = load().policy("none").ignored_fields
    assert ignored_fields is not None
    options = resolve(OPTIONS, {}, owner="none")
    assert list(ignored_fields(stopped, options)) == [
        "ClusterQueue q: spec.stopPolicy Hold has no effect: quotas alone decide which jobs start",
        "LocalQueue ns/d: spec.stopPolicy HoldAndDrain has no effect: quotas alone decide which jobs start",
    ]
    on_nodes = replace(stopped, nodes=nodes(n={"cpu": 1}).nodes)
    assert list(ignored_fields(on_nodes, options)) == []

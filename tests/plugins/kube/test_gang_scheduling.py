"""kube-scheduler's own gangs, an approximation: the rules of upstream's pages on v1.35, one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness.base.errors import OptionError
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.kinds.pods import PodSpec
from harness.models.kube.gang_scheduling import PermitGangs
from harness.models.kube.pod import PodInfo, Templates
from harness.plugins import load
from harness.policy import PodSet
from harness.testing import Decisions, Script, nodes, replayed
from harness.testing.worlds import World, random_world
from harness_plugins.kube.policy import OPTIONS, ignored_fields
from harness_plugins.kube_scheduler import kube_scheduler

LONG = 1000
TIMEOUT = 300
TWO = nodes(n1={"cpu": 2}, n2={"cpu": 2})
FOUR = nodes(n1={"cpu": 4})


def replay(jobs: Script, cluster: Any = TWO, *, until: float | None = None, **given: Any) -> Decisions:
    """A replay with gangs of kube-scheduler's own."""
    options = resolve(OPTIONS, {"gangScheduling": True} | given, owner="default-preemption")
    return replayed(kube_scheduler, jobs, cluster, options=options, until=until)


def bound(happened: Decisions) -> list[tuple[float, str | None]]:
    """When which pod was bound."""
    return [(row.time / SECOND, row.pod) for row in happened.of("bind")]


def told(happened: Decisions) -> list[Any]:
    """What was said of gangs."""
    return [row for row in happened.of("refuse") if row.detail and "message" in row.detail]


def at_least(least: int, pods: int, **requests: int) -> tuple[PodSet, ...]:
    """Pods of which fewer are enough."""
    return (PodSet("main", pods, least, requests),)


def test_pods_are_bound_once_all_have_a_place() -> None:
    """The first of two pods waits on its node until the other one has a place, too."""
    jobs = Script().job("long", cpu=2, seconds=100).job("gang", at=1, cpu=2, pods=2, seconds=5)
    assert bound(replay(jobs)) == [(0, "long"), (100, "gang-0"), (100, "gang-1")]


def test_a_place_is_kept_from_others_while_its_pod_waits() -> None:
    """A later job that would fit on the other node waits too, unlike with gang=all-or-nothing."""
    jobs = Script().job("long", cpu=2, seconds=100).job("gang", at=1, cpu=2, pods=2, seconds=5)
    jobs.job("late", at=2, cpu=2, seconds=5)
    assert replay(jobs).starts() == {"long": 0, "gang": 100, "late": 105}
    together = replay(jobs, gangScheduling=False, gang="all-or-nothing")
    assert together.starts()["late"] == 2


def test_after_five_minutes_all_places_are_given_up() -> None:
    """Others get them in the meantime; the gang is tried again when something is gone."""
    jobs = Script().job("long", cpu=2, seconds=LONG).job("gang", at=1, cpu=2, pods=2, seconds=5)
    jobs.job("late", at=2, cpu=2, seconds=5)
    happened = replay(jobs)
    assert happened.starts() == {"long": 0, "gang": LONG, "late": 1 + TIMEOUT}
    of_its_pods = "1 of the 2 required pods"
    assert [(row.time / SECOND, row.detail["message"]) for row in told(happened)] == [
        (1, f"{of_its_pods} got a place; the gang waits for the others"),
        (1 + TIMEOUT, f"{of_its_pods} had a place for 5 minutes and gave it up"),
    ]
    nodes = told(happened)[0].detail["nodes"]
    assert nodes == {"Insufficient cpu": {"count": 2}}  # why the other one has none


def test_what_nodes_lack_is_said_as_they_are_once_the_others_have_their_places() -> None:
    """No node is counted twice: when the gang was tried, one was kept for `more`, which has it now."""
    jobs = Script().job("less", cpu=4, grace=1, seconds=LONG).job("held", cpu=4, priority=9, seconds=2)
    jobs.job("more", at=1, cpu=4, priority=9, seconds=LONG)
    jobs.job("gang", at=2, cpu=3, pods=2, priority=5, seconds=LONG)
    (row,) = told(replay(jobs, nodes(n1={"cpu": 4}, n2={"cpu": 4}), until=3, evictionLatency="0s"))
    assert row.detail["nodes"] == {"Insufficient cpu": {"count": 2}}
    assert row.detail["most_free"] == {"cpu": 1}


def test_gangs_that_lock_each_other_up_are_freed_by_the_timeout() -> None:
    """Each holds one of two nodes; the one that has waited for longer gives up, and the other one runs."""
    jobs = Script().job("early", cpu=2, seconds=10)
    jobs.job("left", cpu=2, pods=2, seconds=5)
    jobs.job("right", at=1, cpu=2, pods=2, seconds=5, priority=1, preempts=False)
    happened = replay(jobs)
    assert happened.starts() == {"early": 0, "right": TIMEOUT, "left": TIMEOUT + 5}
    assert happened.outcome is not None
    assert happened.outcome.half_bound == ()


def test_pods_beyond_min_count_do_not_count_and_are_bound_as_they_fit() -> None:
    """Of four pods three are enough: they are bound, and the last one when there is a place."""
    jobs = Script().job("long", cpu=1, seconds=50)
    jobs.job("gang", at=1, seconds=5, pod_sets=at_least(3, 4, cpu=1))
    assert bound(replay(jobs, FOUR)) == [
        (0, "long"), (1, "gang-0"), (1, "gang-1"), (1, "gang-2"), (50, "gang-3"),
    ]  # fmt: skip


def test_a_pod_that_comes_back_is_bound_at_once_while_enough_are_bound() -> None:
    """One of two pods is preempted, and its successor needs no other one to wait for."""
    jobs = Script().job("gang", cpu=2, pods=2, seconds=50).job("top", at=1, cpu=2, seconds=10, priority=1)
    happened = replay(jobs, evictionLatency=0)
    assert [row.pod for row in happened.of("preempt")] in (["gang-0"], ["gang-1"])
    assert bound(happened)[2:] == [(1, "top"), (11, f"{happened.of('preempt')[0].pod}-r1")]


def test_a_pod_that_waits_for_its_gang_gives_way_to_a_more_important_one() -> None:
    """It was never bound, so nothing is evicted, and it says why it has no place any more."""
    jobs = Script().job("long", cpu=2, seconds=100, priority=5).job("gang", at=1, cpu=2, pods=2, seconds=5)
    jobs.job("top", at=2, cpu=2, seconds=10, priority=5)
    happened = replay(jobs)
    assert happened.starts() == {"long": 0, "top": 2, "gang": 100}
    assert happened.of("preempt") == []
    message = "it waited for its gang, and its place went to a more important pod"
    said = [(row.time / SECOND, row.detail) for row in told(happened)]
    assert [(time, detail["message"]) for time, detail in said if "nodes" in detail] == [
        (time, "1 of the 2 required pods got a place; the gang waits for the others") for time in (1, 12)
    ]
    assert [each for each in said if "nodes" not in each[1]] == [(2, {"pod": "gang-0", "message": message})]


def test_gangs_too_large_for_the_cluster_do_not_keep_a_replay_going_for_ever() -> None:
    """Each of two has room for some of its pods, never for all; both give up, and the replay ends."""
    jobs = Script().job("a", cpu=1, pods=5).job("b", cpu=1, pods=5)
    happened = replay(jobs, FOUR)
    assert happened.starts() == {}
    gave_up = [row.time / SECOND for row in told(happened) if "gave it up" in row.detail["message"]]
    assert gave_up == [TIMEOUT, 2 * TIMEOUT]


def test_who_comes_after_such_gangs_still_gets_what_they_give_up() -> None:
    """The gang has given up before; it does so again for a job that arrived since."""
    jobs = Script().job("never", cpu=1, pods=5).job("first", at=TIMEOUT + 1, cpu=4, seconds=10)
    jobs.job("second", at=TIMEOUT + 12, cpu=4, seconds=10)
    happened = replay(jobs, FOUR)
    again = TIMEOUT + 11 + TIMEOUT
    assert happened.starts() == {"first": TIMEOUT + 1, "second": again}


def test_jobs_that_are_no_gangs_are_decided_alike() -> None:
    """Without gangs the option changes nothing, decision by decision."""
    jobs = Script()
    for number in range(25):
        pods = 1 + (number % 5 == 0)
        jobs.job(f"j{number}", at=number, cpu=1 + number % 2, seconds=3 + number, priority=number % 4,
                 pods=pods, gang=False)  # fmt: skip
    apart = replay(jobs, gangScheduling=False).rows
    assert [row for row in apart if row.action == "preempt"]
    assert apart == replay(jobs).rows


@pytest.mark.parametrize("seed", [2, 5, 8, 11, 15, 16])
def test_random_worlds_keep_all_rules_and_bind_gangs_at_one_instant(seed: int, tmp_path: Path) -> None:
    """Where all pods of a gang are needed, they are bound together at first; by default some are not."""
    world = random_world(seed)
    world = replace(world, options={"default-preemption": {"gangScheduling": "true"}})
    run = world.replay("default-preemption", tmp_path, plugins=load(block=["metrics"]))
    assert [str(fault) for fault in world.faults(run)] == []
    assert bound_apart(world, run.decisions) == 0
    alone = replace(world, options={"default-preemption": {}})
    run = alone.replay("default-preemption", tmp_path, plugins=load(block=["metrics"]))
    assert bound_apart(world, run.decisions) > 0


def bound_apart(world: World, decisions: pl.DataFrame) -> int:
    """How many gangs of which all pods are needed had their first pods bound at several instants."""
    whole = (pl.col("min_pods").fill_null(pl.col("pods")) == pl.col("pods")).all()
    of_gangs = pl.col("gang").first().fill_null(value=True) & whole
    jobs = world.trace.frame.group_by("job_id").agg(of_gangs.alias("needed"), pl.col("pods").sum())
    needed = set(jobs.filter(pl.col("needed") & (pl.col("pods") > 1))["job_id"])
    instants: dict[str, set[Any]] = {}
    for row in decisions.filter((pl.col("action") == "bind") & (pl.col("successor") == 0)).iter_rows(
        named=True
    ):
        instants.setdefault(row["job_id"], set()).add(row["time"])
    return sum(len(instants.get(name, ())) > 1 for name in needed)


def test_pods_of_a_gang_are_held_until_enough_of_them_exist() -> None:
    """Of four pods three are enough; when one is gone, its successor does not wait for others of those."""
    job = Script().job("gang", pod_sets=at_least(3, 4, cpu=1))["gang"]
    template = Templates({"cpu": 0}, lambda namespace, labels: ()).of("default", {}, PodSpec())
    gangs = PermitGangs({})
    pods = [PodInfo(f"p{n}", template, 0, preempts=True, job=job, pod=n) for n in range(4)]
    assert [list(gangs.arrive(pod)) for pod in pods] == [[], [], pods[:3], [pods[3]]]
    gangs.leave(pods[0])
    assert list(gangs.arrive(pods[0])) == [pods[0]]
    for pod in pods[1:]:
        gangs.leave(pod)
    assert list(gangs.arrive(pods[1])) == []


def test_two_ways_to_place_gangs_are_an_error() -> None:
    """The rules differ, so that one of the options has to go."""
    with pytest.raises(OptionError, match="both place gangs") as caught:
        replay(Script().job("a", cpu=1), gang="all-or-nothing")
    assert caught.value.hint == "set only one of them; gangScheduling=true is kube-scheduler's own way"


def test_the_option_and_every_run_call_it_an_approximation() -> None:
    """Nobody takes it for what recorded cases confirm."""
    (option,) = (each for each in OPTIONS if each.name == "gangScheduling")
    assert option.help.startswith("approximation: ")
    options = resolve(OPTIONS, {"gangScheduling": True}, owner="default-preemption")
    (said,) = ignored_fields(TWO, options)
    assert said.startswith("gangScheduling=true is an approximation: ")
    assert said.endswith(" and no recorded case confirms it")
    assert list(ignored_fields(TWO, resolve(OPTIONS, {}, owner="default-preemption"))) == []

"""Gangs under `none` and `default-preemption`: pod by pod as kube-scheduler does, or all or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from harness.base.errors import OptionError
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.derive import Demand, derive_cluster
from harness.policy import PolicyFactory
from harness.testing import Decisions, Script, nodes, replayed
from harness_plugins.kube.policy import OPTIONS as KUBE_OPTIONS
from harness_plugins.kube_scheduler import kube_scheduler
from harness_plugins.none import OPTIONS as NONE_OPTIONS
from harness_plugins.none import without_preemption

PLUGINS = {"none": (without_preemption, NONE_OPTIONS), "default-preemption": (kube_scheduler, KUBE_OPTIONS)}
LONG = 1000
NODES = nodes(n1={"cpu": 2}, n2={"cpu": 2})


def replay(plugin: str, jobs: Script, **options: Any) -> Decisions:
    """A replay with a plugin, unnamed options at their defaults."""
    factory: PolicyFactory
    factory, declared = PLUGINS[plugin]
    return replayed(factory, jobs, NODES, options=resolve(declared, options, owner=plugin))


def half_full() -> Script:
    """A job holds one of two nodes for ever; a gang needs both, and a later job the other one."""
    jobs = Script().job("long", cpu=2, seconds=LONG)
    return jobs.job("gang", at=1, cpu=2, pods=2, seconds=5).job("late", at=2, cpu=2, seconds=5)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_pod_by_pod_is_the_default_and_holds_nodes_in_vain(plugin: str) -> None:
    """Half of the gang takes the free node and keeps the late job out."""
    happened = replay(plugin, half_full())
    assert happened.starts() == {"long": 0, "gang": LONG, "late": LONG + 5}
    assert [row.pod for row in happened.of("bind") if row.time < LONG * SECOND] == ["long", "gang-0"]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_all_or_nothing_leaves_the_room_to_others(plugin: str) -> None:
    """The gang waits as a whole."""
    happened = replay(plugin, half_full(), gang="all-or-nothing")
    assert happened.starts() == {"long": 0, "gang": LONG, "late": 2}


def test_gangs_lock_each_other_up_pod_by_pod_and_are_named_with_what_they_held() -> None:
    """The more important gang gets the second node, for which the other one waits on the first."""
    jobs = Script().job("early", cpu=2, seconds=10)
    jobs.job("left", cpu=2, pods=2, seconds=5).job("right", at=1, cpu=2, pods=2, seconds=5, priority=1)
    locked, apart = replay("none", jobs).outcome, replay("none", jobs, gang="all-or-nothing")
    assert locked is not None
    assert locked.half_bound == (("left", 1, 2, {"cpu": 2}), ("right", 1, 2, {"cpu": 2}))
    assert apart.outcome is not None
    assert apart.outcome.half_bound == ()
    assert apart.starts() == {"early": 0, "right": 10, "left": 15}


def test_a_gang_preempts_for_all_of_its_pods_or_for_none() -> None:
    """One node runs what is more important: pod by pod the other victim dies in vain."""
    jobs = Script().job("top", cpu=2, seconds=100, priority=9).job("low", cpu=2, seconds=100)
    jobs.job("gang", at=1, cpu=2, pods=2, seconds=5, priority=5)
    assert [row.pod for row in replay("default-preemption", jobs).of("preempt")] == ["low"]
    together = replay("default-preemption", jobs, gang="all-or-nothing")
    assert together.of("preempt") == []
    (refused,) = together.of("refuse")
    assert refused.detail is not None
    assert refused.detail["preemption"] == "no node can be freed for it"


def test_all_or_nothing_without_preemption_preempts_nobody() -> None:
    """`none` stays `none`, however important the gang is."""
    jobs = Script().job("low", cpu=2, seconds=100)
    jobs.job("gang", at=1, cpu=2, pods=2, seconds=5, priority=5)
    happened = replay("none", jobs, gang="all-or-nothing")
    assert happened.of("preempt") == []
    assert happened.starts()["gang"] == 100


def test_jobs_that_are_no_gangs_are_decided_alike() -> None:
    """Without gangs the option changes nothing, decision by decision."""
    jobs = Script()
    for number in range(25):
        jobs.job(f"j{number}", at=number, cpu=1 + number % 2, seconds=3 + number, priority=number % 4)
    apart = replay("default-preemption", jobs).rows
    assert [row for row in apart if row.action == "preempt"]
    assert apart == replay("default-preemption", jobs, gang="all-or-nothing").rows


def test_without_nodes_the_option_means_nothing() -> None:
    """Whole jobs start there anyhow."""
    where = derive_cluster(["a"], {"cpu": Demand(largest=1, mean=1)}, source="jobs")
    options = resolve(NONE_OPTIONS, {"gang": "all-or-nothing"}, owner="none")
    with pytest.raises(OptionError, match="gang has no effect here"):
        replayed(without_preemption, Script().job("a", cpu=1), where, options=options)

"""Quotas that change, for the plugins that start whole jobs within quotas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness import Cluster
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.changes.edits import Edit, Instant
from harness.plugins import load
from harness.testing import Decisions, Script, queues, replayed

PLUGINS = [
    ("none", {}),
    ("none", {"blocking": "strict"}),
    ("backfill", {}),
    ("backfill", {"algorithm": "conservative"}),
    ("backfill", {"ties": "together"}),
]


def changing(cluster: Cluster, *then: tuple[int, Cluster]) -> Cluster:
    """A cluster that becomes others at some times."""
    instants, before = [], cluster
    for seconds, after in then:
        old, new = before.cluster_queues, after.cluster_queues
        edits = tuple(
            Edit("ClusterQueue", name, old.get(name), new.get(name))
            for name in {**old, **new}
            if old.get(name) != new.get(name)
        )
        instants.append(Instant(seconds * SECOND, edits))
        before = after
    return replace(cluster, changes=tuple(instants))


def happened(plugin: str, options: dict[str, Any], jobs: Script, where: Cluster) -> Decisions:
    """A replay with a plugin."""
    spec = load().policy(plugin)

    def make(where: Any, view: Any, given: Any) -> Any:
        return spec.factory(where, view, resolve(spec.options, options, owner=plugin))

    return replayed(make, jobs, where)


def starts(decisions: Decisions) -> dict[str, int]:
    """When each job was admitted, in seconds."""
    return {row.job: row.time // SECOND for row in decisions.of("admit")}


@pytest.mark.parametrize(("plugin", "options"), PLUGINS)
def test_a_quota_that_falls_takes_nothing_and_holds_back_until_enough_is_given_back(
    plugin: str, options: dict[str, Any]
) -> None:
    """From 4 to 1 at 5 s: the job of 1 that arrives then waits for the end at 20 s."""
    where = changing(queues(a={"cpu": 4}, b={"cpu": 1}), (5, queues(a={"cpu": 1}, b={"cpu": 1})))
    jobs = Script().job("first", queue="a", cpu=4, seconds=20).job("next", queue="a", at=6, cpu=1, seconds=5)
    jobs.job("other", queue="b", at=6, cpu=1, seconds=5)
    assert starts(happened(plugin, options, jobs, where)) == {"first": 0, "next": 20, "other": 6}


@pytest.mark.parametrize(("plugin", "options"), PLUGINS)
def test_a_quota_that_rises_starts_whoever_waits_for_it_at_once(plugin: str, options: dict[str, Any]) -> None:
    """Also who could never have started before; who never can is rejected when it arrives."""
    where = changing(queues(a={"cpu": 1}), (7, queues(a={"cpu": 3})))
    jobs = Script().job("small", queue="a", cpu=1, seconds=20).job("more", queue="a", at=1, cpu=1, seconds=30)
    jobs.job("large", queue="a", at=2, cpu=3, seconds=5).job("never", queue="a", at=3, cpu=4, seconds=5)
    found = happened(plugin, options, jobs, where)
    assert starts(found) == {"small": 0, "more": 7, "large": 37}
    assert [row.job for row in found.of("reject")] == ["never"]


@pytest.mark.parametrize(("plugin", "options"), PLUGINS)
def test_a_queue_that_is_new_or_goes_is_followed(plugin: str, options: dict[str, Any]) -> None:
    """Its jobs wait for it; once it is gone those that run go on, and give back what is no quota any more."""
    one, both = queues(a={"cpu": 1}), queues(a={"cpu": 1}, b={"gpu": 2})
    where = changing(one, (10, both), (20, one))
    jobs = Script().job("early", queue="b", gpu=2, seconds=30).job("mine", queue="a", at=21, cpu=1, seconds=5)
    jobs.job("late", queue="b", at=25, gpu=1, seconds=5)
    found = happened(plugin, options, jobs, where)
    assert starts(found) == {"early": 10, "mine": 21}
    assert [row.job for row in found.of("reject")] == ["late"]

"""Random worlds whose quotas and nodes change: shortcuts change nothing, and books are right."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st
from quota_worlds import Happened, Jobs, Manifest, cluster, flat, fuzz, grouped, varied
from test_lasting_refusals import crowd

from harness import Cluster
from harness.base.build import is_compiled
from harness.base.errors import ClusterError
from harness.base.units import SECOND
from harness.cluster.changes.over_time import unrolled
from harness.cluster.changes.timed import FROM, UNTIL
from harness.models.kube import _blocks as blocks
from harness.models.kube import queue
from harness.models.kube.queue import SchedulingQueue
from harness.policy import PolicyFactory
from harness.testing.worlds.chance import Chance
from harness.testing.worlds.events import events
from harness_plugins.elastic_quota import policy
from harness_plugins.elastic_quota.policy import auto, elastic_quota
from harness_plugins.elastic_quota.scheduler import QuotaScheduler

NEVER = 10**9
RESTS = 400
"""Seconds after which hardly anything happens in these worlds but retries."""


def of_koordinator(rng: random.Random) -> tuple[Cluster, Jobs]:
    """The jobs of `varied` on flat quotas of Koordinator, of which some do not lend."""
    where, jobs = varied(rng)
    others = [each for each in where.manifests if each["kind"] != "ElasticQuotaTree"]
    quotas = [
        flat(
            f"q{number}",
            rng.randint(0, 8),
            rng.choice((8, 12, 24)),
            allow_lent_resource=rng.choice(("true", "false")),
        )
        for number in range(4)
    ]
    return cluster(*others, *quotas), jobs


def changing(where: Cluster, seed: int) -> Cluster:
    """The same cluster, whose quotas change; and nodes that shrink, are cordoned or go for a while."""
    chance = Chance(seed, "changing")
    manifests: list[Manifest] = [dict(each) for each in where.manifests]
    patches = [*events(chance, manifests), *(events(chance, manifests) if chance.percent(50) else [])]
    for _ in range(chance.below(3)):
        begin = chance.between(1, 60)
        times = {FROM: f"{begin}s", UNTIL: f"{begin + chance.between(1, 60)}s"}
        name = f"n{chance.below(4)}"
        patch = chance.choice(
            ({"status": {"allocatable": {"cpu": 1}}}, {"spec": {"unschedulable": True}}, {"$patch": "delete"})
        )
        named = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": times}}
        patches.append({**named, **patch})
    return unrolled_or_not(cluster(*manifests, *patches))


def unrolled_or_not(where: Cluster) -> Cluster:
    """The cluster over time; another example is drawn where a patch is of what another one deletes."""
    try:
        return unrolled(where, None)
    except ClusterError:
        reject()


WORLDS: dict[str, tuple[Callable[[random.Random], tuple[Cluster, Jobs]], dict[str, Any]]] = {
    "crowd": (crowd, {"gang": "all-or-nothing"}),
    "ack": (varied, {}),
    "gangs": (grouped, {}),
    "capacity-scheduling": (varied, {"semantics": "capacity-scheduling"}),
    "tree of koordinator": (varied, {"semantics": "koordinator", "revokeAfter": "5s"}),
    "koordinator": (of_koordinator, {"revokeAfter": "5s"}),
    "koordinator without quirks": (of_koordinator, {"revokeAfter": "5s", "quirks": "off"}),
}
LIKE_ANOTHER = ("tree of koordinator", "koordinator without quirks")
every_kind = pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.nightly if each in LIKE_ANOTHER else ()) for each in WORLDS]
)


def played(where: Cluster, jobs: Jobs, plugin: PolicyFactory, options: dict[str, Any]) -> list[Any]:
    """All that happens."""
    happened = Happened(where, jobs, plugin=plugin, until=RESTS, **options)
    return [happened.decisions.rows, happened.decisions.stints, happened.decisions.outcome, happened.used]


@pytest.mark.skipif(is_compiled(), reason="compiled classes let no method be replaced")
@every_kind
@given(seed=st.integers(0, 10**9), plugin=st.sampled_from((elastic_quota, elastic_quota, auto)))
@example(seed=10223, plugin=auto)
@fuzz(29)
def test_nothing_changes_without_all_shortcuts(name: str, seed: int, plugin: PolicyFactory) -> None:
    """Every pod is tried by an attempt of its own, with dry runs in full, and decides the same."""
    make, options = WORLDS[name]
    where, jobs = make(random.Random(seed))
    where = changing(where, seed)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(blocks, "FEW", seed % 2 * blocks.FEW)
        kept = played(where, jobs, plugin, options)
    pop, versions = SchedulingQueue.pop, count(2)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(blocks, "OFTEN", NEVER)
        context.setattr(queue, "_fails_again", lambda pod, peers, version: False)
        if make is crowd:  # elsewhere refusals of one instant are recorded in another order
            context.setattr(SchedulingQueue, "pop", lambda self, version: pop(self, -next(versions)))
        context.setattr(policy, "QuotaScheduler", partial(QuotaScheduler, shortcuts=False))
        assert kept == played(where, jobs, plugin, options)


@every_kind
@given(seed=st.integers(0, 10**9))
@fuzz(6)
def test_when_all_pods_are_gone_nothing_is_used_whatever_has_changed(name: str, seed: int) -> None:
    """What a pod took of a quota it gives back, also where the quota has come or gone meanwhile."""
    make, options = WORLDS[name]
    where, jobs = make(random.Random(seed))
    happened = Happened(changing(where, seed), jobs, until=RESTS, **options)
    for quota in happened.scheduler.usage.tree.quotas.values():
        held: dict[str, int] = {}
        for info in happened.scheduler.cache.nodes:
            for pod in info.pods:
                leaf, amounts, _ = happened.scheduler.usage.of(pod)
                for resource, amount in amounts.items() if leaf is not None and quota in leaf.line else ():
                    held[resource] = held.get(resource, 0) + amount
        assert {name: used for name, used in quota.used.items() if used} == {
            name: amount for name, amount in held.items() if amount
        }


@every_kind
@given(seed=st.integers(0, 10**9))
@fuzz(4)
def test_what_changed_before_the_first_arrival_is_as_if_it_had_been_so_always(name: str, seed: int) -> None:
    """But for quirks of Koordinator, whose quotas remember what they were.

    Timers count from the first instant, so changes are whole rounds of them before the first arrival.
    """
    make, options = WORLDS[name]
    options = {"quirks": "off", **options}
    where, jobs = make(random.Random(seed))
    first = jobs.arrivals()[0][0].submit
    later = [
        (replace(job, submit=job.submit - first + 210 * SECOND), *rest) for job, *rest in jobs.arrivals()
    ]
    manifests: list[Manifest] = [dict(each) for each in where.manifests]
    always, timed = where, []
    for patch in events(Chance(seed, "before"), manifests):
        metadata = dict(patch["metadata"])
        times = dict(metadata.pop("annotations"))
        always = always.patched({**patch, "metadata": metadata})
        times.pop(UNTIL, None)
        timed.append({**patch, "metadata": {**metadata, "annotations": {FROM: f"{30 * len(timed) + 30}s"}}})
    where = unrolled_or_not(cluster(*manifests, *timed))
    changed, same = (Happened(each, Jobs().of(later), until=RESTS, **options) for each in (where, always))
    assert [replace(row, cycle=0) for row in changed.decisions.rows] == [
        replace(row, cycle=0) for row in same.decisions.rows
    ]

"""Refusals that stand, and blocks of waiting pods, change no decision and nothing that is recorded of one."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from quota_worlds import (
    LONG_ENOUGH,
    POD_GROUP,
    Happened,
    Jobs,
    cluster,
    fuzz,
    group,
    grouped,
    leaf,
    node,
    tree,
    varied,
    with_daemons,
)

from harness import PodSet
from harness.base.build import is_compiled
from harness.cluster.kinds.elastic import QUOTA_NAME_LABEL
from harness.cluster.model import Cluster, frozen
from harness.models.kube import _blocks as blocks
from harness.models.kube import _resting as resting
from harness.models.kube import _resting_tree as trees
from harness.models.kube import queue
from harness.models.kube.pod import PodInfo
from harness.models.kube.queue import SchedulingQueue
from harness.policy import PolicyFactory
from harness.testing import Decisions
from harness_plugins.elastic_quota.attempt import Attempts, Outcome
from harness_plugins.elastic_quota.policy import auto, elastic_quota, without_quotas
from harness_plugins.elastic_quota.shortcuts import verdicts

CAPACITY = 16
NEVER = 10**9
GPU = "nvidia.com/gpu"
PLUGINS = (elastic_quota, auto, without_quotas)


def crowd(rng: random.Random) -> tuple[Cluster, Jobs]:
    """Four nodes, three quotas, and far more jobs of a few kinds than there is room for."""
    least = [rng.randint(0, CAPACITY // 3) for _ in range(3)]
    quotas = [leaf(f"q{number}", each, rng.choice([each, CAPACITY])) for number, each in enumerate(least)]
    jobs, at = Jobs(), 0
    spread = {"maxSkew": 1, "topologyKey": "name", "whenUnsatisfiable": "DoNotSchedule"}
    specs = [None] * 6 + [
        {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]},
        {"topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {"app": "web"}}}]},
    ]
    for number in range(rng.randint(20, 60)):
        at += rng.choice((0, 0, 1, 4))
        gang = rng.random() < 0.4
        jobs.add(
            f"j{number}",
            rng.choice(("q0", "q1", "q2", "q2", "no-quota")),
            rng.choice((1, 2, 4)),
            at=at,
            seconds=rng.randint(1, 30),
            pods=2 if gang else 1,
            gang=gang,
            priority=rng.choice((0, 0, 0, 7)),
            grace=rng.choice((0, 0, 2)),
            labels={"app": "web"} if rng.random() < 0.2 else None,
            spec=rng.choice(specs),
        )
    nodes = [node(f"n{number}", 4, labels={"name": f"n{number}"}) for number in range(4)]
    return cluster(*nodes, tree(CAPACITY, *quotas)), jobs


def own_amounts(rng: random.Random) -> tuple[Cluster, Jobs]:
    """A few nodes, three quotas, and jobs that nearly all ask for different amounts of up to three resources.

    Quotas allow less than nodes hold, as much, or more. They lend and reclaim, and priorities may differ.
    """
    devices, nodes = rng.choice((2, 4)), rng.randint(2, 4)
    held = {"cpu": 8 * nodes, GPU: devices * nodes}
    bound = rng.choice((held, {each: 2 * amount for each, amount in held.items()}, {"cpu": 9, GPU: devices}))
    quotas = []
    for number in range(3):
        share = rng.choice((3, 5, 10))
        least = {each: amount // share for each, amount in bound.items()}
        own = {each: rng.randint(least[each], amount) for each, amount in bound.items()}
        most = rng.choice((bound, own))
        quotas.append({"name": f"q{number}", "min": least, "max": {**most, "memory": "1Ti"}})
    root = tree(1, *quotas)
    root["spec"]["root"] |= {"min": {**bound, "memory": "1Ti"}, "max": {**bound, "memory": "1Ti"}}
    priorities = rng.choice(((0,), (0, 0, 0, 7), (0, 3, 5)))
    jobs, at = Jobs(), 0
    for number in range(rng.randint(30, 60)):
        at += rng.choice((0, 0, 1, 2, 5))
        quota, several = rng.randrange(3), rng.random() < 0.1
        jobs.add(
            f"j{number}",
            f"q{quota}" if rng.random() < 0.97 else "no-quota",
            0,
            at=at,
            seconds=rng.randint(5, 120),
            pods=2 if several else 1,
            gang=several and rng.random() < 0.5,
            priority=priorities[quota] if len(priorities) == 3 else rng.choice(priorities),
            grace=rng.choice((0, 0, 2)),
            amounts={
                "cpu": rng.choice((rng.randint(200, 7000), 3000)),
                **rng.choice(({}, {GPU: rng.randint(0, devices)}, {GPU: rng.randint(1, devices)})),
                **rng.choice(({}, {"memory": rng.randint(1, 300) << 30})),
            },
        )
    amounts = {GPU: devices, "memory": "300Gi"}
    return cluster(*(node(f"n{number}", 8, amounts=amounts) for number in range(nodes)), root), jobs


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gang": "pods"},
        {"semantics": "capacity-scheduling"},
        {"disablePreemption": True},
        {"claims": "usage"},
    ],
    ids=str,
)
@fuzz(40)
@given(seed=st.integers(0, 10**9), plugin=st.sampled_from((elastic_quota, auto)))
def test_pods_with_amounts_of_their_own_fail_as_if_each_were_tried(
    options: dict[str, Any], seed: int, plugin: PolicyFactory
) -> None:
    """They rest in blocks, and the limit that refuses them changes with what is used."""
    rng = random.Random(seed)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(verdicts, "_SEVERAL", rng.choice((0, 3)))
        context.setattr(trees, "_FEW", rng.randint(1, 3))
        context.setattr(resting, "_NEW", rng.choice((0, 4)))
        context.setattr(blocks, "FEW", rng.choice((0, 0, 2)))
        _tried_alike(*own_amounts(rng), options, plugins=(plugin,), until=600)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gang": "pods"},
        {"semantics": "koordinator"},
        {"disablePreemption": True},
        {"claims": "usage"},
        {"claims": "usage", "gang": "pods"},
    ],
    ids=str,
)
@fuzz(20)
@given(seed=st.integers(0, 10**9), plugin=st.sampled_from(PLUGINS))
def test_nothing_changes_where_every_pod_is_tried_by_itself(
    options: dict[str, Any], seed: int, plugin: PolicyFactory
) -> None:
    """With blocks and without: the same decisions, refusals and figures."""
    _tried_alike(*crowd(random.Random(seed)), options, plugins=(plugin,))


@pytest.mark.parametrize(
    "plugin", [elastic_quota, pytest.param(auto, marks=pytest.mark.nightly), without_quotas]
)
@given(seed=st.integers(0, 10**9))
@example(seed=5124)
@example(seed=419)
@example(seed=1264)
@example(seed=1305)
@fuzz(4)
def test_nor_where_groups_budgets_and_nominations_come_in(plugin: PolicyFactory, seed: int) -> None:
    """In the world of seed 5124 a gang waits of which some pods are nominated, until an attempt fails.

    In that of 419 a gang that is beyond its quota fails at a pod that is not, and then at one that is. In
    that of 1264 a gang without a quota ends up with a lower priority than when one of its pods failed. In
    that of 1305 such a gang comes between two blocks that were tried one after the other.
    """
    _tried_alike(*varied(random.Random(seed)), {}, plugins=(plugin,))
    _tried_alike(*grouped(random.Random(seed)), {}, plugins=(plugin,))


@given(seed=st.integers(0, 10**9))
@fuzz(4)
def test_nor_where_quotas_claim_by_usage_and_daemon_sets_have_pods(seed: int) -> None:
    """The options of ACK's rules, in worlds as above."""
    options = {"claims": "usage", "cordonedNodes": "tried"}
    where, jobs = varied(random.Random(seed))
    jobs, _ = with_daemons(jobs, random.Random(seed))
    _tried_alike(where, jobs, options, plugins=(elastic_quota,))
    _tried_alike(*grouped(random.Random(seed)), options, plugins=(auto,))


def _tried_alike(
    where: Cluster,
    jobs: Jobs,
    options: dict[str, Any],
    plugins: Sequence[PolicyFactory],
    until: int = LONG_ENOUGH,
) -> None:
    for plugin in plugins:
        together = Happened(where, jobs, plugin=plugin, until=until, **options).decisions.rows
        with pytest.MonkeyPatch.context() as context:
            context.setattr(blocks, "OFTEN", NEVER)
            context.setattr(queue, "_fails_again", lambda pod, peers, version: False)
            singly = Happened(where, jobs, plugin=plugin, until=until, **options).decisions.rows
        assert together == singly


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"semantics": "koordinator"},
        {"semantics": "capacity-scheduling"},
        {"disablePreemption": True},
        {"claims": "usage"},
    ],
    ids=str,
)
@given(seed=st.integers(0, 10**9), plugin=st.sampled_from(PLUGINS))
@fuzz(15)
def test_equal_pods_and_gangs_are_refused_as_if_each_were_tried(
    options: dict[str, Any], seed: int, plugin: PolicyFactory
) -> None:
    """At once because an equal one has failed, or by an attempt: the same is recorded, at the same time."""

    def played() -> Decisions:
        where, jobs = crowd(random.Random(seed))
        return Happened(
            where, jobs, plugin=plugin, until=LONG_ENOUGH, gang="all-or-nothing", **options
        ).decisions

    together = played()
    pop, versions = SchedulingQueue.pop, count(2)  # of which no pod has ever failed at one
    with pytest.MonkeyPatch.context() as context:
        context.setattr(blocks, "OFTEN", NEVER)
        context.setattr(queue, "_fails_again", lambda pod, peers, version: False)
        context.setattr(SchedulingQueue, "pop", lambda self, version: pop(self, -next(versions)))
        singly = played()
    assert together.rows == singly.rows


@pytest.mark.parametrize("gang", [False, True])
def test_a_job_that_takes_nothing_from_itself_does_not_stand_for_others(gang: bool) -> None:
    """A pod of `both` borrows what is guaranteed to the other one, and only `claims` may take it back."""
    labels = {"lent": {QUOTA_NAME_LABEL: "b", POD_GROUP: "g"}, "own": {QUOTA_NAME_LABEL: "a"}}
    lent, own = (PodSet(name, 1, 1, frozen({"cpu": 4000}), labels=frozen(labels[name])) for name in labels)
    jobs = Jobs().job("both", pod_sets=(lent, own), seconds=100, gang=gang)
    jobs.job("claims", at=10, pod_sets=(own,), seconds=100, gang=gang)
    where = cluster(node("n", 4), tree(4, leaf("a", 4, 4), leaf("b", 0, 4)), group(1))
    happened = Happened(where, jobs, until=20)
    assert happened.lines("bind", "preempt", "refuse")[:3] == [
        "0 bind both-0 on n",
        "0 refuse both",
        "10 preempt both-0 by claims",
    ]


@pytest.mark.skipif(is_compiled(), reason="compiled classes let no method be replaced")
@pytest.mark.parametrize(
    ("short", "semantics", "tried"), [(1, "ack", 1), (2, "ack", 2), (1, "capacity-scheduling", 2)]
)
def test_a_gang_with_victims_is_tried_again_only_when_a_node_may_have_enough_without_them(
    monkeypatch: pytest.MonkeyPatch, short: int, semantics: str, tried: int
) -> None:
    """Without `low`, its node has 1 cpu, and after the end of `short`, 2 or 3. A pod of the gang needs 3.

    Capacity scheduling tries it again after each event, because its reasons name the pod.
    """
    attempts: list[str] = []
    try_gang, try_pod = Attempts.try_gang, Attempts.try_pod

    def gang_noted(self: Attempts, pods: Sequence[PodInfo], least: int) -> Outcome:
        attempts.append(pods[0].name)
        return try_gang(self, pods, least)

    def pod_noted(self: Attempts, pod: PodInfo) -> Outcome:
        attempts.append(pod.name)
        return try_pod(self, pod)

    monkeypatch.setattr(Attempts, "try_gang", gang_noted)
    monkeypatch.setattr(Attempts, "try_pod", pod_noted)
    jobs = Jobs().add("full", "b", 5, seconds=100).add("other", "b", 4 - short, seconds=100)
    jobs.add("low", "a", 1, seconds=100).add("short", "b", short, seconds=10)
    jobs.add("gang", "a", 3, at=1, pods=2, gang=True, priority=7)
    where = cluster(node("n0", 5), node("n1", 5), tree(10, leaf("a", 0, 10), leaf("b", 10, 10)))
    happened = Happened(where, jobs, until=20, semantics=semantics)
    assert happened.lines("refuse") == ["1 refuse gang"]
    assert attempts.count("gang-0") == tried


@pytest.mark.parametrize("plugin", [auto, elastic_quota])
def test_every_attempt_of_pods_that_name_their_node_moves_the_next_search(plugin: PolicyFactory) -> None:
    """Three equal pods wait for a node that is full: each of them has looked at it."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n050"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = json.dumps({"nodeAffinity": required})
    jobs = Jobs()
    for name, cpu, at in (("full", 4, 0), ("w1", 1, 1), ("w2", 1, 1), ("w3", 1, 1)):
        pod_set = PodSet("main", 1, 1, frozen({"cpu": 1000 * cpu}), affinity=affinity)
        jobs.job(name, queue="q", pod_sets=(pod_set,), at=at, seconds=100)
    jobs.add("next", "q", 1, at=2)
    where = cluster(*(node(f"n{number:03}", 4) for number in range(200)), tree(800, leaf("q", 800, 800)))
    happened = Happened(where, jobs, plugin=plugin, until=3, percentageOfNodesToScore=50)
    assert happened.lines("bind") == ["0 bind full on n050", "2 bind next on n004"]

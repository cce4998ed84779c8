"""Admission fair sharing in replays: past usage of LocalQueues decides who of a ClusterQueue goes first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kueue_worlds import Happened, Jobs, Manifest, cluster, configuration, flavor, local_queue, pod_set, queue

import harness
from harness import Cluster, PodSet
from harness.base.errors import ClusterError
from harness.cluster.model import frozen

BY_USAGE = {"admissionMode": "UsageBasedAdmissionFairSharing"}
SETTINGS = {"usageHalfLifeTime": "10m", "usageSamplingInterval": "5m"}
PLUGINS = ("kueue-classic", "fairsharing")


def world(
    *locals_: Manifest,
    cpu: int = 4,
    settings: dict[str, Any] | None = None,
    gates: dict[str, bool] | None = None,
    **spec: Any,
) -> Cluster:
    """A ClusterQueue `q` that orders by usage, and its LocalQueues, `a` and `b` unless told otherwise."""
    doors = locals_ or (local_queue("a", "q"), local_queue("b", "q"))
    sections = {"featureGates": gates} if gates else {}
    return cluster(
        queue("q", cohort="", cpu=cpu, **{"admissionScope": BY_USAGE, **spec}),
        *doors,
        configuration(admissionFairSharing=settings or SETTINGS, **sections),
    )


def flood() -> Jobs:
    """`a` comes with six jobs, and `b` with two a minute later; one job runs at a time, for 100 s."""
    return Jobs().many("a", 6, "a", 4, seconds=100).many("b", 2, "b", 4, at=60, seconds=100)


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("strategy", ["StrictFIFO", "BestEffortFIFO"])
def test_local_queue_that_used_less_goes_first(plugin: str, strategy: str) -> None:
    """`b` has used nothing when it comes, then more than `a`, whose time since its last job counts, too."""
    ran = Happened(world(queueingStrategy=strategy), flood(), plugin=plugin, until=None)
    assert ran.admitted == ["a0", "b0", "a1", "b1", "a2", "a3", "a4", "a5"]


@pytest.mark.parametrize(
    "where",
    [
        world(admissionScope={"admissionMode": "NoAdmissionFairSharing"}),
        world(gates={"AdmissionFairSharing": False}),
        world(settings={"usageHalfLifeTime": "0s"}),
        cluster(queue("q", cohort="", cpu=4), local_queue("a", "q"), local_queue("b", "q")),
    ],
    ids=["mode", "gate", "no half-life", "no settings"],
)
def test_without_it_the_older_job_goes_first(where: Cluster) -> None:
    """Mode, feature gate, half-life and Configuration each can turn it off."""
    ran = Happened(where, flood(), until=None)
    assert ran.admitted == [*(f"a{at}" for at in range(6)), "b0", "b1"]


def test_turned_off_every_decision_is_as_without_it() -> None:
    """With the gate off nothing is left of the admission scope."""
    plain = cluster(queue("q", cohort="", cpu=4), local_queue("a", "q"), local_queue("b", "q"))
    off = Happened(world(gates={"AdmissionFairSharing": False}), flood(), until=None)
    assert off.decisions.rows == Happened(plain, flood(), until=None).decisions.rows


def test_entry_penalty_divides_a_burst_between_local_queues() -> None:
    """All come at once, long before the first sample; without penalties `a` would take all."""
    jobs = Jobs().many("a", 8, "a", 1).many("b", 8, "b", 1)
    assert Happened(world(), jobs).admitted == ["a0", "b0", "a1", "b1"]


def test_large_entry_counts_for_as_many_small_ones() -> None:
    """One job of 3 cores of `a` is as much as three of 1 core of `b`, which are rounded down three times."""
    jobs = Jobs().add("big", "a", 3).many("a", 3, "a", 1).many("b", 6, "b", 1)
    assert Happened(world(cpu=8), jobs).admitted == ["big", "b0", "b1", "b2", "b3", "a0"]


def test_weight_lets_a_local_queue_use_as_many_times_more() -> None:
    """With weight 2 `a` has two jobs for each of `b`, and goes first where both are equal."""
    doors = local_queue("a", "q", fairSharing={"weight": "2"}), local_queue("b", "q")
    jobs = Jobs().many("a", 9, "a", 1).many("b", 9, "b", 1)
    assert Happened(world(*doors, cpu=6), jobs).admitted == ["a0", "b0", "a1", "a2", "b1", "a3"]


def test_local_queue_without_weight_goes_last() -> None:
    """Weight 0 is infinite usage, even before it used anything."""
    doors = local_queue("a", "q", fairSharing={"weight": "0"}), local_queue("b", "q")
    jobs = Jobs().many("a", 2, "a", 1).many("b", 3, "b", 1)
    ran = Happened(world(*doors), jobs)
    assert ran.admitted == ["b0", "b1", "b2", "a0"]
    assert ran.row("admit", "b0").detail["localQueues"] == {"default/b": 0.0, "default/a": "infinite"}


def test_resource_weights_say_how_much_a_resource_counts() -> None:
    """With a weight of 0 for cpu nobody has used anything."""
    jobs = Jobs().many("a", 4, "a", 1).many("b", 4, "b", 1)
    ran = Happened(world(settings={**SETTINGS, "resourceWeights": {"cpu": 0}}), jobs)
    assert ran.admitted == ["a0", "a1", "a2", "a3"]


def test_usage_comes_before_priority() -> None:
    """Priority decides within a LocalQueue, and between those of equal usage."""
    jobs = Jobs().add("a0", "a", 2).add("a1", "a", 2, priority=9).add("b0", "b", 2, priority=5)
    assert Happened(world(), jobs).admitted == ["a1", "b0"]


def test_usage_comes_before_the_preemptor_at_the_head_of_its_queue() -> None:
    """`b2` comes while the preemptor `a1` waits for its victim to go, and is tried first: `b` used less."""
    preemption = {"withinClusterQueue": "LowerPriority"}
    jobs = (
        Jobs()
        .add("a0", "a", 3, priority=0, grace=30)
        .add("a1", "a", 2, at=10, priority=5)
        .add("b2", "b", 1, at=20)
    )
    ran = Happened(world(preemption=preemption), jobs)
    assert ran.lines("admit", "preempt") == [
        "0 admit a0",
        "10 preempt a0 by a1: InClusterQueue",
        "20 admit b2",
        "41 admit a1",
    ]


def test_status_says_what_was_used_before_the_replay() -> None:
    """`a` has used 8 cores, so that `b` goes first although it came later."""
    doors = local_queue("a", "q", consumed={"cpu": "8"}), local_queue("b", "q")
    jobs = Jobs().many("a", 2, "a", 4, seconds=10).many("b", 2, "b", 4, seconds=10)
    assert Happened(world(*doors), jobs).admitted == ["b0", "b1", "a0", "a1"]


def test_sample_alone_can_let_another_job_go_first() -> None:
    """Nothing ends or arrives at 300 s: by then `a` counts 5, and `b`, which holds 3 cores, (8 + 3) / 2.

    The first head, of `b`, asks for more than is free; that of `a` fits.
    """
    doors = local_queue("a", "q", consumed={"cpu": "10"}), local_queue("b", "q", consumed={"cpu": "8"})
    where = world(*doors, settings={**SETTINGS, "usageHalfLifeTime": "5m"}, queueingStrategy="StrictFIFO")
    jobs = Jobs().add("b0", "b", 3).add("b1", "b", 4).add("a0", "a", 1)
    ran = Happened(where, jobs, until=600)
    assert ran.lines("admit") == ["0 admit b0", "300 admit a0"]
    usage = ran.row("admit", "a0").detail["localQueues"]
    assert usage["default/a"] == 5
    # b0's entry penalty is half of its 3 cores
    assert usage["default/b"] == pytest.approx((8 + 1.5 + 3) / 2)


def test_sample_counts_also_while_the_head_has_flavors_left_to_try() -> None:
    """Such a head is tried in every cycle, and still needs an instant to have one."""
    doors = local_queue("a", "q", consumed={"cpu": "11"}), local_queue("b", "q", consumed={"cpu": "8"})
    groups = [{"f": {"cpu": 4}, "g": {"cpu": 4}}, {"h": {"gpu": 1}}]
    where = cluster(
        *map(flavor, "gh"),
        queue("q", cohort="", groups=groups, admissionScope=BY_USAGE, queueingStrategy="StrictFIFO"),
        *doors,
        configuration(admissionFairSharing={"usageHalfLifeTime": "5m"}),
    )
    both = {
        name: PodSet(name, 1, 1, frozen({"cpu": cpu, "gpu": 1})) for name, cpu in (("x", 3000), ("y", 1000))
    }
    jobs = (
        Jobs().add("b0", "b", pod_sets=(both["x"],)).add("b1", "b", pod_sets=(both["y"],)).add("a0", "a", 1)
    )
    assert Happened(where, jobs, until=600).lines("admit") == ["0 admit b0", "300 admit a0"]


def test_usage_may_decay_for_ever_without_keeping_a_replay_alive() -> None:
    """A job that never fits blocks its queue; when nothing can change any more the replay ends."""
    doors = local_queue("a", "q", consumed={"cpu": "10"}), local_queue("b", "q", consumed={"cpu": "8"})
    where = world(*doors, settings={"usageHalfLifeTime": "5m"}, queueingStrategy="StrictFIFO")
    jobs = Jobs().add("b0", "b", 9, priority=1).add("a0", "a", 1, seconds=10)
    ran = Happened(where, jobs, until=None)
    assert ran.admitted == []


def test_local_queues_of_one_name_in_two_namespaces_are_two() -> None:
    """Also where jobs name the ClusterQueue itself: those of a namespace count together."""
    doors = local_queue("x", "q", namespace="one"), local_queue("x", "q", namespace="two")
    for name in ("x", "q"):
        jobs = Jobs().many("one", 4, name, 1, namespace="one").many("two", 4, name, 1, namespace="two")
        assert Happened(world(*doors), jobs).admitted == ["one0", "two0", "one1", "two1"]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_preemption_takes_from_the_local_queue_that_used_most(plugin: str) -> None:
    """Before priority: `b`'s job goes although `a`'s has the lower one."""
    doors = local_queue("a", "q"), local_queue("b", "q", consumed={"cpu": "8"}), local_queue("c", "q")
    where = world(*doors, preemption={"withinClusterQueue": "LowerPriority"})
    jobs = Jobs().add("a0", "a", 2, priority=1).add("b0", "b", 2, priority=5, grace=30)
    ran = Happened(where, jobs.add("c0", "c", 2, at=10, priority=9), plugin=plugin, until=20)
    assert ran.preemptions == ["b0 by c0: InClusterQueue"]
    usage = ran.row("preempt", "b0").detail["localQueues"]
    assert list(usage) == ["default/c", "default/b"]
    assert usage["default/b"] > 8


@pytest.mark.parametrize(("identity", "victim"), [("name", "two0"), ("namespace/name", "one0")])
def test_among_candidates_local_queues_of_one_name_count_as_one(identity: str, victim: str) -> None:
    """As in Kueue at this commit: priority decides between them, unless the option tells them apart.

    That of namespace `one` used most, then that of `two`, and `b` little, so that its job goes last.
    """
    doors = (
        local_queue("x", "q", namespace="one", consumed={"cpu": "80"}),
        local_queue("x", "q", namespace="two", consumed={"cpu": "60"}),
        local_queue("b", "q", consumed={"cpu": "10"}),
        local_queue("c", "q"),
    )
    where = world(*doors, cpu=6, preemption={"withinClusterQueue": "LowerPriority"})
    jobs = Jobs().add("one0", "x", 2, priority=5, grace=30, namespace="one")
    jobs.add("two0", "x", 2, priority=1, grace=30, namespace="two").add("b0", "b", 2, grace=30)
    jobs.add("c0", "c", 2, at=10, priority=9)
    assert Happened(where, jobs, until=20, localQueueIdentity=identity).victims == [victim]


def test_a_victim_that_is_head_again_before_its_preemptor_is_reported_as_ping_pong(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Its LocalQueue used less, and usage comes before the mark of a preemptor: rounds slow down."""
    doors = local_queue("a", "q"), local_queue("b", "q", fairSharing={"weight": "0"})
    where = world(*doors, preemption={"withinClusterQueue": "LowerPriority"})
    jobs = Jobs().add("low", "a", 4).add("high", "b", 4, at=5, priority=1)
    ran = Happened(where, jobs, until=200)
    rounds = [row.detail.get("round", 1) for row in ran.decisions.of("preempt")]
    assert rounds == list(range(1, 9))
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(where.manifests))
    job = {"duration": 1000, "grace_period": 0, "request.cpu": 4000}
    trace = write_trace(
        {**job, "queue": "a", "priority": 0}, {**job, "queue": "b", "submit_time": 5, "priority": 1}
    )
    run = harness.replay(
        trace, plugin="kueue-classic", cluster=path, output=tmp_path / "results", until="200s"
    )
    assert "7 times a job got resources and lost them again" in harness.compare([run]).table()


def test_preemption_still_spares_those_whom_the_policy_protects() -> None:
    """`b` used most, but its job has the same priority as the preemptor."""
    doors = local_queue("a", "q"), local_queue("b", "q", consumed={"cpu": "8"})
    where = world(*doors, preemption={"withinClusterQueue": "LowerPriority"})
    jobs = Jobs().add("a0", "a", 2, priority=1).add("b0", "b", 2, priority=9)
    assert Happened(where, jobs.add("a1", "a", 2, at=10, priority=9)).victims == ["a0"]


def test_entry_is_charged_again_for_every_admission() -> None:
    """A victim that comes back pays again, as each reservation of quota does."""
    where = world(preemption={"withinClusterQueue": "LowerPriority"})
    jobs = Jobs().add("a0", "a", 4, seconds=200).add("b0", "b", 4, at=10, priority=1, seconds=20)
    ran = Happened(where, jobs.add("a1", "a", 4, at=290, seconds=10), until=300)
    paid = 4 * (1 - 0.5**0.5)
    usage = ran.row("admit", "a1").detail["localQueues"]["default/a"]
    assert ran.admitted == ["a0", "b0", "a0", "a1"]
    assert 2 * paid * 0.5**0.5 < usage


def test_partial_admission_is_charged_for_all_pods() -> None:
    """Kueue prices what the workload asked for, not what it got."""
    jobs = Jobs().add("a0", "a", pod_sets=(pod_set("main", 8, 1, least=2),), seconds=10)
    ran = Happened(world(), jobs.add("a1", "a", 1, at=10))
    usage = ran.row("admit", "a1").detail["localQueues"]["default/a"]
    assert usage == pytest.approx(8 * (1 - 0.5**0.5), abs=0.01)


def test_the_number_of_pods_is_no_part_of_an_entry_penalty() -> None:
    """Where quotas count pods, pods that are held add to usage, but no admission is charged for them."""
    where = cluster(
        queue("q", cohort="", flavors={"f": {"cpu": 4, "pods": 9}}, admissionScope=BY_USAGE),
        local_queue("a", "q"),
        configuration(admissionFairSharing=SETTINGS),
    )
    ran = Happened(where, Jobs().add("a0", "a", 1, seconds=10).add("a1", "a", 1, at=10))
    usage = ran.row("admit", "a1").detail["localQueues"]["default/a"]
    assert usage == pytest.approx(1 - 0.5**0.5, abs=0.01)


def test_who_is_told_to_go_in_a_cycle_still_holds_quota_for_what_is_admitted_in_it() -> None:
    """An admission takes no time, an eviction is complete after its cycle: `x1` is charged beside `v`."""
    where = cluster(
        queue("q", cpu=2, cohort="all", admissionScope=BY_USAGE),
        queue("own", cpu=8, cohort="all", preemption={"reclaimWithinCohort": "Any"}),
        *(local_queue("x", "q"), local_queue("y", "own")),
        configuration(admissionFairSharing=SETTINGS),
    )
    jobs = Jobs().add("v", "x", 8, seconds=9000).add("p", "y", 8, at=700, seconds=9000)
    jobs.add("x1", "x", 1, at=700).add("x2", "x", 1, at=701)
    ran = Happened(where, jobs, until=720, evictionLatency=0)
    assert ran.admitted[:4] == ["v", "x1", "p", "x2"]
    part, penalty = 1 - 0.5 ** (100 / 600), 1 - 0.5**0.5
    sampled = 8 - (8 - 8 * penalty) * 0.5  # of `v`, which was charged at 0 s and has held 8 cores for 600 s
    charged = sampled * (1 - part) + 9 * part + penalty
    usage = ran.row("admit", "x2").detail["localQueues"]["default/x"]
    assert usage == pytest.approx(charged, rel=0.01)


def test_replays_are_the_same_every_time() -> None:
    """Down to the last digit of usage."""
    jobs = Jobs()
    for at in range(60):
        jobs.add(f"j{at}", "ab"[at % 3 % 2], 1 + at % 4, at=at * 7, seconds=30 + 13 * at % 400)
    first, second = (Happened(world(), jobs, until=None).decisions.rows for _ in range(2))
    assert first == second


def test_sampling_more_often_than_once_a_second_is_refused() -> None:
    """Kueue takes it; a replay would do nothing else."""
    with pytest.raises(ClusterError, match="usageSamplingInterval: must be 1s or more"):
        Happened(world(settings={**SETTINGS, "usageSamplingInterval": "10ms"}), flood())


def test_explanation_says_whose_usage_decided(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """Of the LocalQueue that went first, and of the one that came next."""
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(world().manifests))
    jobs = [{"job_id": f"a{at}", "queue": "a", "duration": 10, "request.cpu": 4000} for at in range(2)]
    newcomer = {"job_id": "b", "queue": "b", "submit_time": 5, "duration": 10, "request.cpu": 4000}
    trace = write_trace(*jobs, newcomer)
    run = harness.replay(trace, plugin="kueue-classic", cluster=path, output=tmp_path / "results")
    told = harness.explain(run, "b").text()
    assert "admitted on flavor f; usage of LocalQueue default/a 1.17157, default/b 0" in told

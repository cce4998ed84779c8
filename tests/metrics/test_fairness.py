"""Fairness worked by hand on tiny replays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from policies import scripted
from small_clusters import local_queue, queues

Measured = Callable[..., Callable[..., float | None]]
HALVES = {"a": {"cpu": "2"}, "b": {"cpu": "2"}}
LATECOMER = (
    {"queue": "a", "request.cpu": 4000, "duration": 10},
    {"queue": "b", "request.cpu": 2000, "duration": 5, "submit_time": 5},
)
"""Of 4 cores a holds all from 0 to 10 s; b asks for 2 from 5 s on and has them from 10 to 15 s."""


def test_shares_that_are_off(measured: Measured) -> None:
    """Half of what is apart, over all that should be.

    0-5 s:   a holds 1 and asks for 1; the ideal is (1, -).        |s - s*| = 0           sum s* = 1
    5-10 s:  b asks for 1/2 and holds 0; the ideal is (1/2, 1/2).  |s - s*| = 1/2 + 1/2   sum s* = 1
    10-15 s: b holds 1/2 and asks for 1/2; the ideal is (-, 1/2).  |s - s*| = 0           sum s* = 1/2
    share_deviation = (5 * 1/2 * 1) / (5 * 1 + 5 * 1 + 5 * 1/2) = 2.5 / 12.5.
    """
    value = measured(*LATECOMER, cluster=queues(HALVES))
    assert value("fairness.share_deviation") == pytest.approx(2.5 / 12.5, abs=1e-15)


def test_weights_divide_what_is_contended(measured: Measured) -> None:
    """With weights 3 and 1, b's ideal from 5 to 10 s is 1/4 and a's 3/4.

    share_deviation = (5 * 1/2 * (1/4 + 1/4)) / (5 * 1 + 5 * 1 + 5 * 1/2) = 1.25 / 12.5.
    jain_share: only from 5 to 10 s do two queues ask; x = (1 / (3/4), 0 / (1/4)) = (4/3, 0),
    and Jain's index of one that has and one that has not is 1/2.
    """
    value = measured(*LATECOMER, cluster=queues(HALVES, weights={"a": "3"}))
    assert value("fairness.share_deviation") == pytest.approx(1.25 / 12.5, abs=1e-15)
    assert value("fairness.jain_share") == pytest.approx(1 / 2, abs=1e-15)


def test_a_queue_without_weight_is_due_nothing(measured: Measured) -> None:
    """With weight 0 for b, a's ideal is all it asks for, and what b holds is too much.

    0-10 s: a holds 1, ideal 1; 10-15 s: b holds 1/2, ideal 0.
    share_deviation = (5 * 1/2 * 1/2) / (10 * 1) = 1.25 / 10; two queues never count, so jain_share is null.
    """
    value = measured(*LATECOMER, cluster=queues(HALVES, weights={"b": "0"}))
    assert value("fairness.share_deviation") == pytest.approx(1.25 / 10, abs=1e-15)
    assert value("fairness.jain_share") is None


def test_jain_of_shares_is_weighted_by_time(measured: Measured) -> None:
    """Times in which fewer than two queues ask do not count.

    0-1 s: a alone asks for 2 of 4 cores and has them.
    1-2 s: b asks for the other 2 and has them: x = (1, 1), index 1.
    2-4 s: c asks for all 4 and has none: the ideal is 1/3 each, x = (3/2, 3/2, 0), index 9 / (3 * 9/2) = 2/3.
    """
    jobs = (
        {"queue": "a", "request.cpu": 2000, "duration": 4},
        {"queue": "b", "request.cpu": 2000, "duration": 3, "submit_time": 1},
        {"queue": "c", "request.cpu": 4000, "duration": 100, "submit_time": 2},
    )
    value = measured(*jobs, cluster=queues({**HALVES, "c": {"cpu": "0"}}), until="4s")
    assert value("fairness.jain_share") == pytest.approx((1 * 1 + 2 * 2 / 3) / 3, abs=1e-15)


def test_dominant_shares_over_two_resources(measured: Measured) -> None:
    """The example of dominant resource fairness: 9 cores and 18 units of memory.

    a asks for <1 core, 4 memory> times 100, b for <3 cores, 1 memory> times 100, both much more than there
    is. Per unit of share a takes (1/9) / (4/18) = 1/2 of the cores and all of the memory, b all of the cores
    and (1/18) / (3/9) = 1/6 of the memory. Cores are full at x where 1/2 x + x = 1, x = 2/3; memory would be
    at x + 1/6 x = 1, x = 6/7. Both need cores, so both stop at 2/3 (3 jobs of a, 2 of b).
    a comes first and holds all memory that 4 jobs take, 16/18, and 4 cores; b holds 1 of its jobs, 1/3.
    share_deviation = 1/2 * (|8/9 - 2/3| + |1/3 - 2/3|) / (4/3) = (1/2 * 5/9) / (4/3) = 5/24.
    x = (8/9 / 2/3, 1/3 / 2/3) = (4/3, 1/2); jain = (11/6)^2 / (2 * (16/9 + 1/4)) = (121/36) / (146/36).
    """
    one = {"submit_time": 0, "duration": 10}
    jobs = [{**one, "queue": "a", "request.cpu": 1000, "request.memory": 4} for _ in range(100)]
    jobs += [{**one, "queue": "b", "request.cpu": 3000, "request.memory": 1} for _ in range(100)]
    quotas = {"a": {"cpu": "9", "memory": "18"}, "b": {"cpu": "0", "memory": "0"}}
    value = measured(*jobs, cluster=queues(quotas), until="10s")
    assert value("fairness.share_deviation") == pytest.approx(5 / 24, abs=1e-15)
    assert value("fairness.jain_share") == pytest.approx(121 / 146, abs=1e-15)


def test_a_full_resource_stops_only_who_needs_it(measured: Measured) -> None:
    """Queues a and b ask for all cores, c for all memory: the cores are full at 1/2, and c goes on to 1.

    All that a asks for comes first: held (1, 0, 1), ideal (1/2, 1/2, 1).
    share_deviation = 1/2 * (1/2 + 1/2) / 2 = 1/4; x = (2, 0, 1), jain = 9 / (3 * 5).
    """
    jobs = (
        {"queue": "a", "request.cpu": 4000, "request.memory": 0},
        {"queue": "b", "request.cpu": 4000, "request.memory": 0},
        {"queue": "c", "request.cpu": 0, "request.memory": 8},
    )
    each = {"cpu": "2", "memory": "4"}
    value = measured(
        *jobs, cluster=queues({"a": each, "b": each, "c": {"cpu": "0", "memory": "0"}}), until="10s"
    )
    assert value("fairness.share_deviation") == pytest.approx(1 / 4, abs=1e-15)
    assert value("fairness.jain_share") == pytest.approx(9 / 15, abs=1e-15)


def test_what_a_queue_was_owed(measured: Measured) -> None:
    """Queue b has 2 cores of its own and asks for 2 while it holds none: from 5 to 10 s, 10 core-seconds.

    a holds at least its 2 cores whenever it asks. A queue that nobody uses is owed nothing.
    """
    value = measured(*LATECOMER, cluster=queues({**HALVES, "idle": {"cpu": "0"}}))
    assert value("fairness.guarantee_deficit", "quota=b", "cpu") == 10 / 3600
    assert value("fairness.guarantee_deficit", "quota=a", "cpu") == 0
    assert value("fairness.guarantee_deficit", "quota=idle", "cpu") == 0
    assert value("fairness.guarantee_deficit", "all", "cpu") == 10 / 3600


def test_nothing_is_owed_beyond_the_nominal_quota(measured: Measured) -> None:
    """Its own quota is half a core, so of the 2 that it asks for 1/2 is owed: 5 s * 1/2 core.

    a's own quota is 3.5 cores and it holds 4.
    """
    quotas = {"a": {"cpu": "3500m"}, "b": {"cpu": "500m"}}
    value = measured(*LATECOMER, cluster=queues(quotas))
    assert value("fairness.guarantee_deficit", "quota=b", "cpu") == 2.5 / 3600
    assert value("fairness.guarantee_deficit", "quota=a", "cpu") == 0


def test_without_quotas_nothing_is_owed_or_known(measured: Measured) -> None:
    """On bare nodes a guarantee is null, and so is one of a resource that a queue has no quota of."""
    jobs = ({"queue": "a"}, {"queue": "b", "request.memory": 5})
    value = measured(*jobs, cluster=queues({}, nodes=1))
    assert value("fairness.guarantee_deficit", "queue=a", "cpu") is None
    assert value("fairness.guarantee_deficit", "all", "memory") is None
    assert value("fairness.share_deviation") is not None


def test_slowdowns_of_queues(measured: Measured) -> None:
    """Means 1 and 3: jain = (1 + 3)^2 / (2 * (1 + 9)) = 0.8, and the worst is 3 times the best.

    One core. a's job takes 20 s at once: 1. b's takes 10 s and waits 10: (30 - 10) / 10 = 2; b's second takes
    10 s and waits for both: (40 - 0) / 10 = 4.
    """
    jobs = (
        {"queue": "a", "duration": 20},
        {"queue": "b", "duration": 10},
        {"queue": "b", "duration": 10, "submit_time": 10},
    )
    value = measured(*jobs, cluster=queues({"a": {"cpu": "1"}, "b": {"cpu": "0"}}))
    assert value("fairness.jain_slowdown") == pytest.approx(0.8, abs=1e-15)
    assert value("fairness.max_min_slowdown") == 3


def test_a_queue_that_never_gets_anything_is_slowed_down(measured: Measured) -> None:
    """Means 1 and 5, which is the least that it can become: jain = (1 + 5)^2 / (2 * (1 + 25)).

    a's jobs take 10 s at once; b's of 10 s has waited for 40 s, and has all of them before it.
    """
    jobs = [{"job_id": f"a{place}", "queue": "a", "submit_time": place * 10} for place in range(4)]
    starts = scripted({**{10 * place: [("admit", f"a{place}")] for place in range(4)}, 40: []})
    both = queues({"a": {"cpu": "1"}, "b": {"cpu": "1"}})
    later = {"queue": "a", "submit_time": 60}
    value = measured({"job_id": "b", "queue": "b"}, *jobs, later, cluster=both, plugin=starts, until="40s")
    assert value("fairness.max_min_slowdown") == 5
    assert value("fairness.jain_slowdown") == pytest.approx(36 / 52, abs=1e-15)


def test_queues_are_told_apart_by_their_quota(measured: Measured) -> None:
    """One LocalQueue name in two namespaces is two queues, and two doors to one ClusterQueue are one.

    As `test_what_a_queue_was_owed`, with b's jobs in two queues of one core each.
    """
    jobs = [
        {"queue": "default", "namespace": "left", "request.cpu": 4000, "duration": 10},
        {"queue": "default", "namespace": "right", "request.cpu": 1000, "duration": 5, "submit_time": 5},
        {"queue": "other", "namespace": "right", "request.cpu": 1000, "duration": 5, "submit_time": 5},
    ]
    doors = [("left", "default", "a"), ("right", "default", "b"), ("right", "other", "b")]
    manifests = queues(HALVES) + "".join(local_queue(*door) for door in doors)
    value = measured(*jobs, cluster=manifests)
    assert value("fairness.share_deviation") == pytest.approx(2.5 / 12.5, abs=1e-15)
    assert value("fairness.guarantee_deficit", "quota=b", "cpu") == 10 / 3600
    assert value("fairness.guarantee_deficit", "quota=a", "cpu") == 0


def test_elastic_quotas_guarantee_their_min(measured: Measured) -> None:
    """What an ElasticQuota guarantees is its `min`; a job belongs to the quota of its namespace.

    One node of 4 cores; a job of `left` holds all for 10 s, one of `right` asks for 2 cores from 5 s on and
    has 1 to call its own: 5 core-seconds.
    """
    quota = """---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: %s, namespace: %s}
spec: {min: {cpu: %d}, max: {cpu: 4}}
"""
    jobs = (
        {"queue": "q", "namespace": "left", "request.cpu": 4000, "duration": 10},
        {"queue": "q", "namespace": "right", "request.cpu": 2000, "duration": 5, "submit_time": 5},
    )
    both = quota % ("eq", "left", 3) + quota % ("eq", "right", 1)
    value = measured(*jobs, cluster=queues({}, nodes=1) + both)
    assert value("fairness.guarantee_deficit", "quota=right", "cpu") == 5 / 3600
    assert value("fairness.guarantee_deficit", "quota=left", "cpu") == 0


def test_nobody_asks_for_anything(measured: Measured) -> None:
    """With nothing to share every quotient is null."""
    value = measured({"request.cpu": 0, "queue": "a"}, cluster=queues(HALVES))
    assert value("fairness.share_deviation") is None
    assert value("fairness.jain_share") is None
    assert value("fairness.jain_slowdown") == 1

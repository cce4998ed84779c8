"""The arithmetic of admission fair sharing: decay, samples, entry penalties and weights.

Figures are those of Kueue's own unit tests where there are such, else worked out by hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import kueue_worlds as worlds
import pytest

from harness import Cluster
from harness.base.units import HOUR, MINUTE, SECOND
from harness.cluster.kinds.kueue_configuration import AdmissionFairSharing
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.local_queue_usage import (
    LocalQueueUsage,
    LocalQueueUsages,
    alpha,
    billionths,
    decayed,
    factor,
    scaled,
    usage_of,
)

N = 10**9


class Books:
    """The usage of one ClusterQueue `q` with LocalQueues `a` and `b`, for figures in cores and GPUs."""

    def __init__(
        self,
        half_life: int = 5 * MINUTE,
        interval: int = 5 * MINUTE,
        *,
        consumed: Mapping[str, str] | None = None,
        weights: Mapping[str, float] | None = None,
        weight: str = "1",
        stop: str = "None",
    ) -> None:
        fields = {"consumed": consumed, "fairSharing": {"weight": weight}, "stopPolicy": stop}
        self.cluster = self._cluster(worlds.local_queue("a", "q", **fields))
        self.tree = Cache(self.cluster).tree
        settings = AdmissionFairSharing(half_life, interval, weights or {})
        self.usages = LocalQueueUsages(self.cluster, settings, self.tree, ["q"], by_namespace=False)
        self.usages.advance(0)
        self.local_queue = self.of("a")

    @staticmethod
    def _cluster(*doors: worlds.Manifest) -> Cluster:
        flavors = {name: {"cpu": 100, "gpu": 100} for name in ("f", "g")}
        scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
        shared = worlds.queue("q", flavors=flavors, admissionScope=scope)
        return worlds.cluster(worlds.flavor("g"), shared, *doors, worlds.local_queue("b", "q"))

    def follow(self, *, delete: bool = False, **spec: str) -> None:
        """LocalQueue `a` has this spec from now on, and its status if it never was sampled; or is gone."""
        status = {"cpu": "8"} if self.cluster.local_queues["default", "a"].consumed else None
        door = worlds.local_queue("a", "q", consumed=None if not spec else status, **spec)
        self.usages.follow(self._cluster(*([] if delete else [door])), self.tree, ["q"])

    def of(self, name: str, namespace: str = "default") -> LocalQueueUsage:
        job = worlds.Jobs().add("job", name, namespace=namespace)
        found = self.usages.of(job["job"], "q")
        assert found is not None
        return found

    def hold(self, **amounts: int) -> None:
        """So many cores or GPUs of flavor `f` are held."""
        unit = {"cpu": 1000, "gpu": 1}
        self.usages.hold(
            self.local_queue,
            tuple((self.cell("f", name), amount * unit[name]) for name, amount in amounts.items()),
        )

    def cell(self, flavor: str, resource: str) -> int:
        cell = self.tree.cell(flavor, resource)
        assert cell is not None
        return cell


def test_usage_halves_every_half_life_when_nothing_is_held() -> None:
    """8 cores count as 4 after one half-life."""
    books = Books(consumed={"cpu": "8"})
    books.usages.advance(5 * MINUTE)
    assert books.local_queue.consumed == {"cpu": 4 * N}


def test_usage_moves_halfway_to_what_is_held() -> None:
    """8 cores in the past and 4 now are 6 after one half-life; each resource by itself."""
    books = Books(consumed={"cpu": "8", "gpu": "16"})
    books.hold(cpu=4, gpu=4)
    books.usages.advance(5 * MINUTE)
    assert books.local_queue.consumed == {"cpu": 6 * N, "gpu": 10 * N}


def test_usage_of_all_flavors_of_a_resource_adds_up() -> None:
    """2 cores of each of two flavors are 4 cores."""
    books = Books(consumed={"cpu": "8"})
    books.usages.hold(books.local_queue, tuple((books.cell(name, "cpu"), 2000) for name in ("f", "g")))
    books.usages.advance(5 * MINUTE)
    assert books.local_queue.consumed == {"cpu": 6 * N}


@pytest.mark.parametrize(
    ("half_life", "held", "expected"), [(10 * MINUTE, 4, 6_828_427_124), (24 * HOUR, 0, 7_980_769_063)]
)
def test_each_part_is_rounded_down_to_billionths(half_life: int, held: int, expected: int) -> None:
    """8 x 0.5^(5m / half-life), and the rest of what is held."""
    books = Books(half_life, consumed={"cpu": "8"})
    books.hold(cpu=held)
    books.usages.advance(5 * MINUTE)
    assert books.local_queue.consumed["cpu"] == expected


def test_without_a_half_life_all_usage_counts_as_nothing() -> None:
    """Neither what the status says, nor what is held, nor entry penalties."""
    books = Books(0, consumed={"cpu": "8"})
    books.hold(cpu=4)
    books.usages.charge(books.local_queue, {"cpu": 4000})
    books.usages.advance(5 * MINUTE)
    assert books.local_queue.usage == 0


def test_nothing_is_sampled_before_the_interval_has_passed() -> None:
    """Usage stands still in between; the last sample was at the beginning."""
    books = Books(consumed={"cpu": "8"})
    books.usages.advance(5 * MINUTE - 1)
    assert books.local_queue.consumed == {"cpu": 8 * N}
    assert books.usages.next_sample("q") == 5 * MINUTE


def test_many_samples_at_once_are_the_same_as_one_after_another() -> None:
    """Nobody has to look at usage for it to be right."""
    often, late = Books(7 * MINUTE, consumed={"cpu": "8"}), Books(7 * MINUTE, consumed={"cpu": "8"})
    for books in (often, late):
        books.hold(cpu=3)
    for sample in range(1, 50):
        often.usages.advance(sample * 5 * MINUTE)
    late.usages.advance(49 * 5 * MINUTE + 1)
    assert (late.local_queue.consumed, late.local_queue.updated) == (
        often.local_queue.consumed,
        often.local_queue.updated,
    )


def test_entry_penalty_is_the_usage_of_one_interval_and_counts_at_once() -> None:
    """2 cores: 2 x (1 - 0.5^(5m / 10m)) = 2 x 0.2928932188134524 cores."""
    books = Books(10 * MINUTE)
    books.hold(cpu=2)
    books.usages.charge(books.local_queue, {"cpu": 2000})
    assert books.local_queue.consumed == {"cpu": 585_786_437}
    assert books.local_queue.usage == pytest.approx(0.585786437)


def test_entry_penalties_add_up_on_what_decayed_until_then() -> None:
    """After 2 of 5 minutes past usage has decayed so far, towards what is held with the newcomer."""
    books = Books(5 * MINUTE, consumed={"cpu": "8"})
    books.usages.advance(2 * MINUTE)
    books.hold(cpu=4)
    books.usages.charge(books.local_queue, {"cpu": 4000})
    keeps = 0.5 ** (2 / 5)
    assert books.local_queue.consumed["cpu"] == pytest.approx((8 * keeps + 4 * (1 - keeps) + 2) * N, abs=2)


def test_the_next_sample_is_an_interval_after_the_last_admission() -> None:
    """Admissions faster than samples put samples off; the history goes on."""
    books = Books(consumed={"cpu": "8"})
    books.usages.advance(2 * MINUTE)
    books.usages.charge(books.local_queue, {})
    books.usages.advance(6 * MINUTE)
    assert books.local_queue.updated == 2 * MINUTE
    books.usages.advance(7 * MINUTE)
    assert books.local_queue.updated == 7 * MINUTE


def test_given_back_quota_no_longer_adds_to_usage() -> None:
    """What was consumed stays and decays."""
    books = Books(consumed={"cpu": "8"})
    books.hold(cpu=4)
    books.usages.advance(5 * MINUTE)
    books.usages.give_back(books.local_queue, ((books.cell("f", "cpu"), 4000),))
    books.usages.advance(10 * MINUTE)
    assert books.local_queue.consumed == {"cpu": 3 * N}


def test_a_local_queue_that_is_stopped_from_the_beginning_has_no_usage_yet() -> None:
    """Kueue reads the status when it first samples a LocalQueue, and lets nothing decay until then."""
    books = Books(consumed={"cpu": "8"}, stop="Hold")
    books.hold(cpu=4)
    books.usages.advance(HOUR)
    assert (books.local_queue.consumed, books.local_queue.usage) == ({}, 0)
    books.follow(stopPolicy="None")
    assert books.local_queue.consumed == {"cpu": 8 * N}
    books.usages.advance(HOUR + 5 * MINUTE)
    assert books.local_queue.consumed == {"cpu": 6 * N}


def test_stopped_local_queue_is_not_sampled() -> None:
    """When it goes on, one sample replaces those that were due; a shorter stop changes no sample."""
    books = Books(consumed={"cpu": "8"})
    books.usages.advance(MINUTE)
    books.follow(stopPolicy="Hold")
    books.usages.advance(2 * MINUTE)
    books.follow(stopPolicy="None")
    assert (books.local_queue.consumed, books.local_queue.updated) == ({"cpu": 8 * N}, 0)
    books.usages.advance(5 * MINUTE)
    assert books.local_queue.consumed == {"cpu": 4 * N}
    books.follow(stopPolicy="Hold")
    books.usages.advance(20 * MINUTE)
    assert books.local_queue.consumed == {"cpu": 4 * N}
    books.follow(stopPolicy="None")
    assert books.local_queue.consumed == {"cpu": N // 2}


def test_a_deleted_local_queue_forgets_its_usage() -> None:
    """So does Kueue. One of the same name begins anew, with what its workloads hold from then on."""
    books = Books(consumed={"cpu": "8"})
    books.hold(cpu=4)
    books.usages.advance(MINUTE)
    books.follow(delete=True)
    books.usages.advance(HOUR)
    assert (books.local_queue.consumed, books.local_queue.usage) == ({}, 0)
    books.follow()
    assert books.local_queue.consumed == {}
    books.usages.advance(HOUR + 5 * MINUTE)
    assert books.local_queue.consumed == {"cpu": 2 * N}


def test_job_of_the_cluster_queue_itself_counts_for_its_namespace() -> None:
    """There is no LocalQueue to ask, so its weight is 1; names are told apart by namespace."""
    books = Books()
    books.usages.advance(HOUR + SECOND)
    mine, other = books.of("q", "mine"), books.of("q", "other")
    assert (mine.name, mine.weight, mine.updated) == ("mine/q", 1.0, HOUR)
    assert other is not mine
    assert books.of("a", "other") is not books.local_queue


@pytest.mark.parametrize(
    ("consumed", "weights", "weight", "usage"),
    [
        ({"gpu": 2}, {}, 1, 2),
        ({"gpu": 2}, {"gpu": 3.0}, 1, 6),
        ({"cpu": 4, "gpu": 2}, {"cpu": 1.0, "gpu": 5.0}, 1, 14),
        ({"gpu": 10}, {"gpu": 0.0}, 1, 0),
        ({"gpu": 3}, {"gpu": 4.0}, 2, 6),
        ({"cpu": 5, "gpu": 3}, {"cpu": 2.0, "gpu": 10.0}, 2, 20),
        ({}, {}, 0, math.inf),
        ({"cpu": 4}, {}, 0, math.inf),
    ],
)
def test_usage_is_the_weighted_sum_over_the_weight_of_the_local_queue(
    consumed: Mapping[str, int], weights: Mapping[str, float], weight: float, usage: float
) -> None:
    """A resource counts 1 unless it has a weight; a weight of 0 for the queue puts it last, used or not."""
    amounts = {name: amount * N for name, amount in consumed.items()}
    assert usage_of(amounts, weights, weight) == pytest.approx(usage)


def test_cores_and_bytes_count_in_their_units() -> None:
    """Millicores are thousandths of a core; 1 Gi of memory is 2^30."""
    assert billionths({"cpu": 1500, "memory": 2**30}) == {"cpu": 1_500_000_000, "memory": 2**30 * N}


def test_small_parts_of_a_long_half_life_are_not_lost() -> None:
    """5m of 168h are less than a thousandth of a core, and still come to half after a half-life."""
    part = alpha(5 * MINUTE, 168 * HOUR)
    assert part == pytest.approx(0.00034376390587387284)
    keeps, gains = factor(1 - part), factor(part)
    held = {"cpu": 2 * N, "memory": 64 * 2**40 * N}
    assert all(scaled(held, gains).values())
    consumed: Mapping[str, int] = {}
    for halves in (1, 2, 3):
        for _ in range(2016):
            consumed = decayed(consumed, held, keeps, gains)
        assert consumed["cpu"] == pytest.approx(2 * N * (1 - 0.5**halves), abs=N // 1000)
        assert consumed["cpu"] <= 2 * N


def test_factor_is_the_shortest_decimal_of_a_double() -> None:
    """0.1 is a tenth, not the double next to it."""
    assert factor(0.1) == (1, 10)
    assert factor(1.0) == (1, 1)
    assert factor(1e-7) == (1, 10**7)

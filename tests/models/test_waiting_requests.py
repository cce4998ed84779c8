"""The index of waiting requests finds the same as a search through all of them."""

from __future__ import annotations

import sys
from random import Random
from types import FrameType
from typing import Any

import pytest

from harness import Cluster, Job, PodSet
from harness.base.build import is_compiled
from harness.cluster.model import ClusterQueue, FlavorQuotas, ResourceGroup, ResourceQuota, frozen
from harness.models import waiting_requests
from harness.models.job_quotas import Quotas, Request
from harness.models.waiting_requests import WaitingRequests


def two_queues() -> Cluster:
    """One cohort with two flavors of cpu and memory, and licenses. Only queue b has the second flavor."""

    def flavor(name: str, **amounts: int) -> FlavorQuotas:
        return FlavorQuotas(name, frozen({each: ResourceQuota(amount) for each, amount in amounts.items()}))

    licenses = ResourceGroup(("licenses",), (flavor("any", licenses=30),))
    first, second = flavor("first", cpu=400, memory=500), flavor("second", cpu=300, memory=200)
    return Cluster(
        cluster_queues=frozen(
            {
                "a": ClusterQueue("a", "all", (ResourceGroup(("cpu", "memory"), (first,)), licenses)),
                "b": ClusterQueue("b", "all", (ResourceGroup(("cpu", "memory"), (first, second)), licenses)),
            }
        )
    )


@pytest.mark.parametrize("borrow", [True, False])
def test_the_first_with_room_is_that_of_a_search_through_all(borrow: bool) -> None:
    """While requests come, go, return with other keys, and quota is taken and released."""
    random, quotas = Random(3), Quotas(two_queues(), borrow=borrow)
    index: WaitingRequests[int] = WaitingRequests(quotas)
    known: dict[Request, tuple[int, int]] = {}
    taken, requests = [], []
    for number in range(600):
        if number < 200:
            names = ["cpu", "memory", "licenses"][: random.randint(1, 3)]
            amounts = frozen({name: random.randint(1, 300 if name != "licenses" else 30) for name in names})
            pod_sets = (PodSet("main", 1, 1, amounts),)
            job = Job(0, "j", 0, random.choice("ab"), "", "", 0, "", True, False, 0, "j", pod_sets, 1)
            requests.append((quotas.request(job), job))
        request, job = random.choice(requests)
        if random.random() < 0.6:
            known[request] = random.randint(-1, 1), number
            index.put(request, known[request], number)
        else:
            known.pop(request, None)
            index.remove(request)
        if (assignment := quotas.assign(request, job)) is not None and random.random() < 0.5:
            quotas.charge(assignment)
            taken.append(assignment)
        elif taken and random.random() < 0.7:
            quotas.refund(taken.pop(0))
        with_room = [key for each, key in known.items() if quotas.has_room(each)]
        assert index.first() == (min(with_room)[1] if with_room else None)
        roomy = quotas.roomy(known)
        assert roomy >= {each for each in known if quotas.has_room(each)}
        if borrow:  # exactly these, if there is only one flavor
            assert all(quotas.has_room(each) for each in roomy if each.queue == "a")


@pytest.mark.skipif(is_compiled(), reason="compiled code has no lines to count")
def test_requests_that_have_left_attract_no_search() -> None:
    """The small requests leave, and the large ones wait. Only the first search meets the small ones."""
    quotas = Quotas(two_queues(), borrow=True)
    index: WaitingRequests[int] = WaitingRequests(quotas)
    requests = []
    for number in range(400):
        amounts = frozen({"cpu": (100 if number % 2 else 500) + number // 2, "memory": number})
        pod_sets = (PodSet("main", 1, 1, amounts),)
        job = Job(0, "j", 0, "a", "", "", 0, "", True, False, 0, "j", pod_sets, 1)
        requests.append((quotas.request(job), job))
        index.put(requests[-1][0], (0, number), number)
    taken = quotas.assign(*requests[0])
    assert taken is not None
    quotas.charge(taken)  # 300 cpu remain
    for request, _ in requests[1::2]:
        index.remove(request)
    assert lines_of(index) > 400
    assert lines_of(index) < 100


def lines_of(index: WaitingRequests[int]) -> int:
    """How many lines of the index one search without a result executes."""
    lines = 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += frame.f_code.co_filename == waiting_requests.__file__
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        assert index.first() is None
    finally:
        sys.settrace(before)
    return lines

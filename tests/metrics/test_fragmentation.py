"""What is free on nodes and of no use to any pod that waits, worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from policies import scripted
from small_clusters import queues

from harness.analysis.metrics import fragmentation
from harness.analysis.metrics.fragmentation import _Parts

Measured = Callable[..., Callable[..., float | None]]
LATER = {"job_id": "later", "submit_time": 99}


def nodes(**sizes: dict[str, Any]) -> str:
    """Nodes by name."""
    return yaml.safe_dump_all(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": has}}
        for name, has in sizes.items()
    )


SMALL = {"cpu": "4", "memory": "8"}
TWO = nodes(n0=SMALL, n1=SMALL)


def job(name: str, cpu: int, memory: int = 0, **fields: Any) -> dict[str, Any]:
    """A job of cores and memory."""
    return {"job_id": name, "request.cpu": cpu, "request.memory": memory, "duration": 100, **fields}


@pytest.mark.parametrize("pairs", [1, 12, 1 << 22])
def test_what_is_free_where_nobody_who_waits_fits(
    measured: Measured, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes of 4 cores, of which x takes 3 of the first at once, and y 3 of the second at 20 s.

    From 10 s on a pod of 2 cores waits: 1 core is of no use to it, from 20 s on 2. From 30 s on, when one
    of one core waits too, none is. (10 * 1 + 10 * 2) / (8 * 40). However many decisions are read at once.
    """
    monkeypatch.setattr(fragmentation, "_ROWS", 1)
    monkeypatch.setattr(fragmentation, "_PAIRS", pairs)
    steps = {0: [("bind", "x", 0, "n0")], 20: [("bind", "y", 0, "n1")], 30: [], 40: []}
    jobs = (
        job("x", 3000),
        job("z", 2000, submit_time=10),
        job("y", 3000, submit_time=20),
        job("w", 1000, submit_time=30),
    )
    value = measured(*jobs, LATER, cluster=TWO, plugin=scripted(steps), until="40s")
    assert value("fragmentation", resource="cpu") == pytest.approx(30 / 320)


def test_a_pod_waits_for_all_that_it_asks_for(measured: Measured) -> None:
    """The cores that are free beside too little memory are of no use, and neither is that memory."""
    steps = {0: [("bind", "x", 0, "n0")], 10: []}
    one = nodes(n0=SMALL)
    value = measured(
        job("x", 1000, 6), job("y", 1000, 4), LATER, cluster=one, plugin=scripted(steps), until="10s"
    )
    assert value("fragmentation", resource="cpu") == 3 / 4
    assert value("fragmentation", resource="memory") == 2 / 8


def test_nodes_that_differ_are_told_apart(measured: Measured) -> None:
    """The large node is full until 10 s and empty then; a core of each small one is never of use."""
    cluster = nodes(n0={"cpu": "1"}, n1={"cpu": "1"}, large={"cpu": "8"})
    jobs = (job("x", 8000, duration=10), job("y", 2000), LATER)
    value = measured(
        *jobs, cluster=cluster, plugin=scripted({0: [("bind", "x", 0, "large")], 15: []}), until="20s"
    )
    assert value("fragmentation", resource="cpu") == 2 / 10


def test_while_nobody_waits_nothing_is_of_no_use(measured: Measured) -> None:
    """And without nodes nothing is known."""
    run = scripted({0: [("bind", "x", 0, "n0")]})
    assert measured(job("x", 1000), cluster=TWO, plugin=run)("fragmentation", resource="cpu") == 0
    value = measured({"queue": "a"}, cluster=queues({"a": {"cpu": "4"}}))
    assert value("fragmentation", resource="cpu") is None


def test_pods_of_one_job_ask_for_what_their_pod_sets_do(measured: Measured) -> None:
    """A worker of 3 cores and a launcher of one fill two nodes for 10 s; then another worker of 3 runs alone.

    While that one waits nothing is free, so that nothing is of no use.
    """
    cluster = nodes(n0={"cpu": "3"}, n1={"cpu": "1"})
    jobs = (
        job("m", 3000, pod_set="worker", duration=10),
        job("m", 1000, pod_set="launcher", duration=10),
        job("w", 3000, pod_set="worker", duration=10),
    )
    steps = {0: [("bind", "m", 0, "n0"), ("bind", "m", 1, "n1")], 10: [("bind", "w", 0, "n0")]}
    value = measured(*jobs, cluster=cluster, plugin=scripted(steps))
    assert value("fragmentation", resource="cpu") == 0


def test_the_smallest_pods_that_wait_may_be_some_of_a_job(measured: Measured) -> None:
    """The core beside another job is of use to a launcher of one core, not to the worker of 3 alone.

    The launcher is bound at 10 s, when nothing is free any more, and ends at 20 s: of 4 cores one for 10 s.
    """
    jobs = (
        job("x", 3000, pod_set="main"),
        job("m", 3000, pod_set="worker", duration=10, gang=False),
        job("m", 1000, pod_set="launcher", duration=10, gang=False),
        {**LATER, "pod_set": "main"},
    )
    steps = {0: [("bind", "x", 0, "n0")], 10: [("bind", "m", 1, "n0")], 30: []}
    value = measured(*jobs, cluster=nodes(n0={"cpu": "4"}), plugin=scripted(steps), until="30s")
    assert value("fragmentation", resource="cpu") == 10 / (4 * 30)


def test_pods_that_a_partial_admission_gave_up_do_not_wait(measured: Measured) -> None:
    """Of two pods of 3 cores one is admitted, and runs on the node of 4; nobody waits for the node of 2.

    The job is evicted at 10 s and gone at 30 s, from when on both of its pods wait, of no use to whom are
    the 2 cores. (10 * 2) / (6 * 40).
    """
    cluster = queues({"a": {"cpu": "3"}}) + "---\n" + nodes(n0=SMALL, n1={"cpu": "2"})
    steps = {0: [("admit", "x", {"main": 1}), ("bind", "x", 0, "n0")], 10: [("preempt", "x", None)], 40: []}
    jobs = (job("x", 3000, pods=2, min_pods=1, queue="a", grace_period=20), {**LATER, "queue": "a"})
    value = measured(*jobs, cluster=cluster, plugin=scripted(steps), until="40s")
    assert value("fragmentation", resource="cpu") == pytest.approx(20 / 240)


@given(st.data())
def test_spans_are_looked_at_for_all_that_is_needed_in_them(data: st.DataObject) -> None:
    """None is left out for a need that there is while it lasts; one within a single need is of that alone."""
    numbers = st.integers(0, 12)
    starts = sorted([0, *data.draw(st.lists(numbers, max_size=6))])
    needs = data.draw(st.lists(st.integers(-1, 2), min_size=len(starts), max_size=len(starts)))
    drawn = data.draw(st.lists(st.tuples(numbers, st.integers(1, 6)), max_size=8))
    time, until = (
        np.array(each, np.int64) for each in ([at for at, _ in drawn], [at + n for at, n in drawn])
    )
    parts = _Parts(time, until, starts, needs)
    ends = [*starts[1:], 99]
    for need in range(3):
        some = parts.of(need).tolist()
        assert len(some) == len(set(some))
        for place, (at, length) in enumerate(drawn):
            overlapped = [
                each
                for each, since, to in zip(needs, starts, ends, strict=True)
                if since < at + length and to > at and since < to
            ]
            if need in overlapped:
                assert place in some
            elif len(overlapped) == 1:
                assert place not in some

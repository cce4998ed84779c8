"""Slices of GPUs (MIG) in metrics, worked by hand: all profiles together, in compute slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

Measured = Callable[..., Callable[..., float | None]]
ONE, TWO, THREE = (f"nvidia.com/mig-{name}gb" for name in ("1g.5", "2g.10", "3g.20"))
ALL = "nvidia.com/mig"


def pool(nodes: int, **slices: int) -> str:
    """Nodes with slices, each of two A100 GPUs."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "2"}
    template = {"metadata": {"labels": labels}, "allocatable": {"cpu": 9, **slices}}
    spec = {"count": nodes, "template": template}
    return yaml.safe_dump(
        {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": "n"}, "spec": spec}
    )


def job(name: str, resource: str, **fields: Any) -> dict[str, Any]:
    """A pod of one core and one slice that runs for 10 s."""
    return {"job_id": name, "duration": 10, "request.cpu": 1000, f"request.{resource}": 1, **fields}


def test_slices_of_all_profiles_have_one_utilization_in_compute_slices(measured: Measured) -> None:
    """Slices with 1 and 3 compute slices of 4 + 6 + 2 are held for 10 s; nobody asks for the last two.

    A third job comes after 20 s.
    """
    cluster = pool(1, **{ONE: 4, THREE: 2, TWO: 1})
    jobs = (job("a", ONE), job("b", THREE), job("c", ONE, submit_time=30))
    value = measured(*jobs, cluster=cluster, plugin="none", until="20s")
    assert value("utilization.allocated", resource=ALL) == pytest.approx(10 * (1 + 3) / (20 * 12))
    assert value("utilization.useful", resource=ALL) == pytest.approx(10 * (1 + 3) / (20 * 12))
    assert value("utilization.allocated.hours", resource=ALL) == pytest.approx(10 * 4 / 3600)
    assert value("utilization.capacity.hours", resource=ALL) == pytest.approx(20 * 12 / 3600)
    assert value("goodput.of_allocated", resource=ALL) == 1
    assert value("utilization.allocated", resource=ONE) == pytest.approx(10 / (20 * 4))
    assert value("utilization.allocated", resource=THREE) == pytest.approx(10 / (20 * 2))


def test_slices_that_a_pod_does_not_ask_for_are_fragments_to_it(measured: Measured) -> None:
    """Free are 3 small slices and one of three compute slices, and one of two that nobody asks for."""
    cluster = pool(1, **{ONE: 4, THREE: 2, TWO: 1})
    value = measured(job("a", ONE), job("b", THREE), cluster=cluster, plugin="none", until="10s")
    lost = ((3 + 2) + (3 + 2)) / 2  # to a pod of a small slice the large ones, and the other way round
    assert value("fragmentation.fgd", resource=ALL) == pytest.approx(lost / 12)


def test_all_free_slices_of_a_node_are_fragments_to_pods_that_do_not_fit(measured: Measured) -> None:
    """Three large slices fit no node; and a node without processors takes no pod."""
    jobs = (job("a", THREE, duration=20), job("many", THREE, **{f"request.{THREE}": 3}, submit_time=1))
    value = measured(*jobs, cluster=pool(2, **{THREE: 2}), plugin="none", until="10s")
    assert value("fragmentation.fgd", resource=ALL) == pytest.approx((0 * 0.5 + 9 * 0.5) / 12)
    cluster = pool(2, **{THREE: 2}).replace("cpu: 9", "cpu: 1")
    value = measured(
        job("a", THREE), job("b", THREE), job("c", THREE), cluster=cluster, plugin="none", until="10s"
    )
    assert value("fragmentation.fgd", resource=ALL) == pytest.approx(6 / 12)


def test_a_node_with_slices_that_comes_later_counts_from_then_on(measured: Measured) -> None:
    """It brings a profile that nobody asks for, besides small slices."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "x", "annotations": {"harness/from": "10s"}},
        "status": {"allocatable": {"cpu": 9, ONE: 2, TWO: 3}},
    }
    cluster = pool(1, **{ONE: 2}) + "---\n" + yaml.safe_dump(node)
    value = measured(job("a", ONE, duration=20), cluster=cluster, plugin="none", until="20s")
    whole = 20 * 2 + 10 * (2 + 6)
    assert value("utilization.allocated", resource=ALL) == pytest.approx(20 / whole)
    assert value("fragmentation.fgd", resource=ALL) == pytest.approx(10 * 6 / whole)


def test_media_extensions_and_unreadable_names(measured: Measured) -> None:
    """A slice with media extensions counts by its compute slices; other names have no size."""
    media, other = f"{ONE}.me", "nvidia.com/mig-1c.3g.20gb"
    cluster = pool(1, **{media: 1, ONE: 1, other: 5})
    value = measured(job("a", media), job("b", other), cluster=cluster, plugin="none", until="10s")
    assert value("utilization.allocated", resource=ALL) == pytest.approx(1 / 2)
    value = measured(job("b", other), cluster=cluster, plugin="none", until="10s")
    with pytest.raises(KeyError):
        value("utilization.allocated", resource=ALL)

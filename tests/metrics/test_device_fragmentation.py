"""FGD's fragmentation over the time of a run, worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

Measured = Callable[..., Callable[..., float | None]]
MILLI = "nvidia.com/gpu-milli"


def pool(nodes: int, gpus: int, cpu: int = 9) -> str:
    """Equal nodes whose GPUs pods can share."""
    template = {"allocatable": {"cpu": cpu}, "devices": {"nvidia.com/gpu": gpus}}
    spec = {"count": nodes, "template": template}
    return yaml.safe_dump(
        {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": "n"}, "spec": spec}
    )


def job(name: str, share: int, **fields: Any) -> dict[str, Any]:
    """A pod of one core that runs for 10 s."""
    return {"job_id": name, "duration": 10, "request.cpu": 1000, f"request.{MILLI}": share, **fields}


def test_what_is_left_of_devices_too_full_for_the_usual_pods_is_lost(measured: Measured) -> None:
    """For 10 s two devices have 0.4 left, and all pods ask for 0.6; for 10 s more nothing runs.

    A node that no pod comes to loses nothing, while pods would fit it.
    """
    jobs = (job("a", 600), job("b", 600), job("late", 600, submit_time=30))
    value = measured(*jobs, cluster=pool(1, 2), plugin="none", until="20s")
    assert value("fragmentation.fgd", resource=MILLI) == pytest.approx(10 * 800 / (20 * 2000))
    value = measured(*jobs, cluster=pool(3, 2), plugin="none", options={"devices": "binpack"}, until="20s")
    assert value("fragmentation.fgd", resource=MILLI) == pytest.approx(10 * 800 / (20 * 6000))


def test_all_that_is_free_is_lost_to_pods_that_do_not_fit(measured: Measured) -> None:
    """Half of the pods ask for two whole devices, of which one is shared; and no core is left for any."""
    jobs = (job("a", 500), job("pair", 2000))
    value = measured(*jobs, cluster=pool(1, 2), plugin="none", until="10s")
    assert value("fragmentation.fgd", resource=MILLI) == pytest.approx((0 * 0.5 + 1500 * 0.5) / 2000)
    value = measured(*jobs, cluster=pool(1, 2, cpu=1), plugin="none", until="10s")
    assert value("fragmentation.fgd", resource=MILLI) == pytest.approx(1500 / 2000)


def test_a_node_that_comes_counts_from_then_on(measured: Measured) -> None:
    """Its GPUs are of no use to pods that ask for two."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "x",
            "labels": {"nvidia.com/gpu.count": "1"},
            "annotations": {"harness/from": "10s"},
        },
        "status": {"allocatable": {"cpu": 9, MILLI: 1000, "nvidia.com/gpu": 1}},
    }
    jobs = (job("pair", 2000, duration=20), job("last", 2000, submit_time=40))
    value = measured(*jobs, cluster=pool(1, 2) + "---\n" + yaml.safe_dump(node), plugin="none", until="20s")
    assert value("fragmentation.fgd", resource=MILLI) == pytest.approx(10 * 1000 / (20 * 2000 + 10 * 1000))


def test_runs_without_devices_have_no_such_figure(measured: Measured) -> None:
    """Their pods have sums of shares."""
    template = {"allocatable": {"cpu": 9, MILLI: 2000}}
    counted = {
        "apiVersion": "harness/v1",
        "kind": "NodePool",
        "metadata": {"name": "n"},
        "spec": {"count": 1, "template": template},
    }
    value = measured(job("a", 600), cluster=yaml.safe_dump(counted), plugin="none")
    with pytest.raises(KeyError):
        value("fragmentation.fgd", resource=MILLI)


def test_the_default_request_of_processors_is_no_need_where_no_job_asks_for_any(measured: Measured) -> None:
    """Runs keep what jobs ask for, so that such a run does not say what processors nodes have."""
    jobs = [{"job_id": name, "duration": 10, f"request.{MILLI}": 600} for name in ("a", "b")]
    value = measured(*jobs, cluster=pool(1, 2), plugin="none", until="10s")
    assert value("fragmentation.fgd", resource=MILLI) == pytest.approx(800 / 2000)

"""Which GPUs of nodes are devices that pods can share, and how much of a device requests mean."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cluster.model import Node, frozen

GPU = "nvidia.com/gpu"
MILLI_GPU = "nvidia.com/gpu-milli"
"""Thousandths of a GPU, a resource of our own: amounts are whole numbers."""

GPU_COUNT = "nvidia.com/gpu.count"
"""The node label with the number of its GPUs, as NVIDIA's feature discovery names it."""

WHOLE = 1000
"""One whole device, in thousandths."""

KOORDINATOR_CORE = "koordinator.sh/gpu-core"

ALIBABA_COUNT = "alibabacloud.com/gpu-count"
ALIBABA_MILLI = "alibabacloud.com/gpu-milli"

SHARES: Mapping[str, int] = {
    GPU: 1,
    MILLI_GPU: WHOLE,
    "koordinator.sh/gpu": 100,
    KOORDINATOR_CORE: 100,
    "koordinator.sh/gpu-memory-ratio": 100,
    ALIBABA_COUNT: 1,
    ALIBABA_MILLI: WHOLE,
}
"""Resource -> how much of it is one device.

Koordinator's: https://koordinator.sh/docs/user-manuals/fine-grained-device-scheduling/
Alibaba's: https://github.com/hkust-adsl/kubernetes-scheduler-simulator (open-gpu-share/utils/const.go)
"""


_MOST_DIGITS = 9


def gpu_count(node: Node) -> int | None:
    """The number of GPUs that a node has by its label; None without the label, or if it is no number."""
    said = node.labels.get(GPU_COUNT, "")
    return int(said) if said.isdecimal() and len(said) <= _MOST_DIGITS else None


def device_count(node: Node) -> int:
    """How many devices of a node pods can share; 0 where its GPUs are only counted."""
    has = node.allocatable
    if KOORDINATOR_CORE in has:
        return has[KOORDINATOR_CORE] // SHARES[KOORDINATOR_CORE]
    if ALIBABA_COUNT in has and ALIBABA_MILLI in has:
        return min(has[ALIBABA_COUNT], has[ALIBABA_MILLI] // WHOLE)
    said = gpu_count(node)
    if MILLI_GPU not in has or said is None:
        return 0
    return min(said, has[MILLI_GPU] // WHOLE)


def shared_amounts(count: int) -> dict[str, int]:
    """What a node offers that has so many GPUs which can be shared."""
    return {GPU: count, MILLI_GPU: WHOLE * count}


def of_all_devices(allocatable: Mapping[str, int]) -> Mapping[str, int]:
    """Returns what a node offers, with Alibaba's thousandths of all its GPUs if it names those of one GPU."""
    if allocatable.get(ALIBABA_MILLI) != WHOLE or ALIBABA_COUNT not in allocatable:
        return allocatable
    return frozen({**allocatable, ALIBABA_MILLI: WHOLE * allocatable[ALIBABA_COUNT]})


def thousandths(amounts: Mapping[str, int]) -> int:
    """What amounts of resources mean of devices together; the most where several resources say it."""
    return max((amounts[name] * WHOLE // one for name, one in SHARES.items() if name in amounts), default=0)

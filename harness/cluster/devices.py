"""Determines the GPUs that several pods can share on a node, and the part of a GPU that a pod requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.cluster.model import Node, frozen

GPU = "nvidia.com/gpu"
MILLI_GPU = "nvidia.com/gpu-milli"
"""A resource that harness defines. It is measured in thousandths of a GPU, because quantities are integers.
"""

GPU_COUNT = "nvidia.com/gpu.count"
"""The label with the number of GPUs in a node, as set by NVIDIA's feature discovery."""

WHOLE: Final = 1000
"""The number of thousandths in a whole device."""

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
"""Maps a resource to the quantity that represents one device.

Koordinator documents its resources at
https://koordinator.sh/docs/user-manuals/fine-grained-device-scheduling/, and Alibaba's simulator defines
its own in https://github.com/hkust-adsl/kubernetes-scheduler-simulator (open-gpu-share/utils/const.go).
"""


_MOST_DIGITS = 9


def gpu_count(node: Node) -> int | None:
    """Returns the number of GPUs that the label `GPU_COUNT` of a node states.

    The result is None if the node has no such label, or if the label is not a number.
    """
    said = node.labels.get(GPU_COUNT, "")
    return int(said) if said.isdecimal() and len(said) <= _MOST_DIGITS else None


def device_count(node: Node) -> int:
    """Returns the number of shareable devices of a node, or 0 if a pod can only request whole GPUs."""
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
    """Returns the allocatable quantities for `count` shareable GPUs, in whole GPUs and in thousandths."""
    return {GPU: count, MILLI_GPU: WHOLE * count}


def of_all_devices(allocatable: Mapping[str, int]) -> Mapping[str, int]:
    """Returns the allocatable quantities of a node, with Alibaba's `gpu-milli` for all GPUs together.

    If a node has 1000 `gpu-milli`, this is the size of each of its GPUs. It is multiplied by their number.
    """
    if allocatable.get(ALIBABA_MILLI) != WHOLE or ALIBABA_COUNT not in allocatable:
        return allocatable
    return frozen({**allocatable, ALIBABA_MILLI: WHOLE * allocatable[ALIBABA_COUNT]})


def thousandths(amounts: Mapping[str, int]) -> int:
    """Returns the number of GPUs that the quantities represent, in thousandths of a GPU.

    If several resources represent GPUs, the largest number counts.
    """
    return max((amounts[name] * WHOLE // one for name, one in SHARES.items() if name in amounts), default=0)

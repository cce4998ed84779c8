"""GPUs as devices: a pod's share is a share of one device, and a whole device is one that nobody shares.

Nodes say by a label how many devices they have, as NVIDIA's feature discovery does, and offer shares as a
resource; Koordinator's nodes offer a hundred of `koordinator.sh/gpu-core` a device. A pod asks for a share of
one device, or for whole ones: Koordinator refuses every other amount above one whole, and so does this model.

Two amounts of a node say whether a pod fits: the largest share that one device has left, and how many devices
are wholly free. They are resources like others to filters and dry runs, and exist only where some node has
devices. Which devices a pod has is for `NodeInfo.add` alone to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.cluster.devices import WHOLE as WHOLE
from harness.cluster.devices import device_count as device_count
from harness.cluster.devices import thousandths
from harness.cluster.model import Cluster, Node

LARGEST = "share of one GPU"
"""The most that one device of a node has left, in thousandths."""

IDLE = "whole GPU"
"""How many devices of a node are wholly free."""


class Ask(NamedTuple):
    """What a pod wants of devices: so many of them, and of each so many thousandths."""

    number: int
    share: int

    @property
    def is_share(self) -> bool:
        """Whether it is less than one device; an amount that is no number of whole ones fits none."""
        return self.share != WHOLE

    @property
    def resource(self) -> str:
        """The amount of a node that decides whether it fits."""
        return LARGEST if self.is_share else IDLE

    @property
    def amount(self) -> int:
        """How much of that it takes."""
        return self.share if self.is_share else self.number


def ask_of(requests: Mapping[str, int]) -> Ask | None:
    """What requests say of devices; None where they say nothing."""
    amount = thousandths(requests)
    if not amount:
        return None
    return Ask(1, amount) if amount % WHOLE else Ask(amount // WHOLE, WHOLE)


def have_devices(cluster: Cluster) -> bool:
    """Whether any node has devices, now or once it has changed."""
    edits = (edit for instant in cluster.changes for edit in instant.edits)
    later = (edit.after for edit in edits if isinstance(edit.after, Node))
    return any(device_count(node) for node in (*cluster.nodes.values(), *later))


def amounts_of(node: Node, resources: Mapping[str, int]) -> list[int]:
    """How much a node has of each resource, by index.

    One that does not say that it has devices takes no share where others do, but whole GPUs.
    """
    found = [node.allocatable.get(name, 0) for name in resources]
    if LARGEST in resources:
        count = device_count(node)
        found[resources[LARGEST]] = WHOLE if count else 0
        found[resources[IDLE]] = count or thousandths(node.allocatable) // WHOLE
    return found


def tightest(free: Sequence[int], ask: Ask) -> tuple[int, ...]:
    """The devices with the least left that is enough, the first of equals; whole ones in order.

    Where there are too few, as after a node has lost a device, those with the most left.
    """
    fit = sorted((left, device) for device, left in enumerate(free) if left >= ask.share)
    if len(fit) < ask.number:
        fit = sorted((-left, device) for device, left in enumerate(free))
    return tuple(device for _, device in fit[: ask.number])


def places(free: Sequence[int], ask: Ask) -> int:
    """For how many equal pods, one after the other, devices have room."""
    if ask.is_share:
        return sum(max(0, left) // ask.share for left in free)
    return free.count(WHOLE) // ask.number

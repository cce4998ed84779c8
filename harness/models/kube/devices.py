"""Models GPUs as devices. A pod gets either a share of one device, or whole devices of its own.

A node label contains the number of devices, as in NVIDIA's feature discovery. The node offers shares as a
resource. For example, Koordinator's nodes offer 100 of `koordinator.sh/gpu-core` for each device. A pod
requests a share of one device, or whole devices. Koordinator and this model reject all other quantities above
one device.

Two quantities of a node determine whether a pod fits: the largest free share of one device and the
number of free devices. Filters and dry runs treat these quantities as resources. The resources exist only if
some node has devices. Only `NodeInfo.add` assigns devices to a pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from harness.cluster.devices import WHOLE as WHOLE
from harness.cluster.devices import device_count as device_count
from harness.cluster.devices import thousandths
from harness.cluster.model import Cluster, Node

LARGEST: Final = "share of one GPU"
"""The largest free share of one device on a node, in thousandths."""

IDLE: Final = "whole GPU"
"""The number of devices without pods on a node."""


class Ask(NamedTuple):
    """A pod's request for devices.

    Attributes:
        number: the number of devices.
        share: the requested share of each device, in thousandths.
    """

    number: int
    share: int

    @property
    def is_share(self) -> bool:
        """True if the request is for a share of one device.

        A request for 1.5 devices, for example, also counts as a share of one device. It fits on no node,
        because no device has more than one whole share.
        """
        return self.share != WHOLE

    @property
    def resource(self) -> str:
        """The resource of a node that determines whether the request fits."""
        return LARGEST if self.is_share else IDLE

    @property
    def amount(self) -> int:
        """The quantity of `resource` that the request uses."""
        return self.share if self.is_share else self.number


def ask_of(requests: Mapping[str, int]) -> Ask | None:
    """Returns the request for devices among the requests of a pod, or None if there is none."""
    amount = thousandths(requests)
    if not amount:
        return None
    return Ask(1, amount) if amount % WHOLE else Ask(amount // WHOLE, WHOLE)


def have_devices(cluster: Cluster) -> bool:
    """Returns True if any node has devices, now or after a change."""
    edits = (edit for instant in cluster.changes for edit in instant.edits)
    later = (edit.after for edit in edits if isinstance(edit.after, Node))
    return any(device_count(node) for node in (*cluster.nodes.values(), *later))


def amounts_of(node: Node, resources: Mapping[str, int]) -> list[int]:
    """Returns a node's quantity of each resource, by index.

    In a cluster with devices, a node without the label accepts only requests for whole GPUs.
    """
    found = [node.allocatable.get(name, 0) for name in resources]
    if LARGEST in resources:
        count = device_count(node)
        found[resources[LARGEST]] = WHOLE if count else 0
        found[resources[IDLE]] = count or thousandths(node.allocatable) // WHOLE
    return found


def tightest(free: Sequence[int], ask: Ask) -> tuple[int, ...]:
    """Returns the devices with the smallest sufficient free shares. If these are equal, lower indices win.

    If the node has too few devices, for example because it lost one, the result contains the devices with
    the largest free shares.
    """
    fit = sorted((left, device) for device, left in enumerate(free) if left >= ask.share)
    if len(fit) < ask.number:
        fit = sorted((-left, device) for device, left in enumerate(free))
    return tuple(device for _, device in fit[: ask.number])

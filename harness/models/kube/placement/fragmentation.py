"""Computes FGD's measure of fragmentation, which is the free part of GPUs that typical pods cannot use.

The measure is described in Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
Fragmentation Gradient Descent, USENIX ATC 2023.

If a pod does not fit on a node or requests no GPU, all free parts of the node's GPUs are fragments. If a pod
fits, devices with a smaller free share than requested are fragments. The measure is the mean over the typical
mix of pods. As in the authors' experiments, kinds of pods are distinguished by processors, GPUs and models.
The rarest kinds are left out, but at least 95 % of all pods remain.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from harness.cluster.kinds.pods import PodSpec
from harness.cluster.model import Node
from harness.models.kube.devices import WHOLE, Ask
from harness.models.kube.placement.filters import ruled_out

_KEPT_PERCENT = 95
_MOST_KEPT = 200_000  # the maximum number of node states to cache

_NO_DEVICE = Ask(0, 0)


class Usual(NamedTuple):
    """Pods with equal requests and node rules.

    Attributes:
        pods: the number of these pods.
        cpu: the processors that each pod requests.
        ask: the devices that each pod requests, or None.
        spec: the specification of the pods, which contains the rules about nodes.
    """

    pods: int
    cpu: int
    ask: Ask | None
    spec: PodSpec


class _Weights(NamedTuple):
    """The number of typical pods for each request, on nodes with a certain number of free processors."""

    nothing: int
    shares: Sequence[tuple[int, int]]
    wholes: Sequence[tuple[int, int]]


@final
class Fragmentation:
    """The measure for typical pods.

    Args:
        pods: all known pods, by kind.

    Attributes:
        total: the number of typical pods. `of` returns sums over all of these pods.
    """

    def __init__(self, pods: Iterable[Usual]) -> None:
        self._pods = most_frequent(pods)
        self.total = sum(each.pods for each in self._pods) or 1
        self._cpus = sorted({each.cpu for each in self._pods})
        self._kinds: dict[str, tuple[Node, int]] = {}
        self._numbers: dict[tuple[bool, ...], int] = {}
        self._may_run: list[tuple[bool, ...]] = []
        self._weights: dict[tuple[int, int], _Weights] = {}
        self._known: dict[tuple[int, int, tuple[int, ...]], int] = {}

    def of(self, node: Node, cpu: int, devices: Sequence[int]) -> int:
        """Returns the fragments of a node, in thousandths of a device, summed over all typical pods.

        Args:
            node: the node.
            cpu: the free processors of the node.
            devices: the free share of each device.
        """
        key = self._kind(node), bisect_right(self._cpus, cpu), tuple(sorted(devices))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            found = self._known[key] = self._fragments(*key)
        return found

    def _fragments(self, kind: int, richness: int, devices: Sequence[int]) -> int:
        total = sum(devices)
        weights = self._weights.get((kind, richness))
        if weights is None:
            weights = self._weights[kind, richness] = self._weigh(kind, richness)
        found = weights.nothing * total
        for share, count in weights.shares:
            fits = bool(devices) and devices[-1] >= share
            small = sum(left for left in devices if left < share) if fits else total
            found += count * small
        whole = devices.count(WHOLE)
        for number, count in weights.wholes:
            found += count * (total if whole < number else total - whole * WHOLE)
        return found

    def _kind(self, node: Node) -> int:
        """Returns a number that is the same for nodes on which the same pods can run."""
        known = self._kinds.get(node.name)
        if known is None or known[0] is not node:
            may_run = tuple([ruled_out(each.spec, node) is None for each in self._pods])
            number = self._numbers.setdefault(may_run, len(self._numbers))
            if number == len(self._may_run):
                self._may_run.append(may_run)
            known = self._kinds[node.name] = node, number
        return known[1]

    def _weigh(self, kind: int, richness: int) -> _Weights:
        counts: dict[Ask, int] = {}
        for each, may_run in zip(self._pods, self._may_run[kind], strict=True):
            runs = may_run and bisect_right(self._cpus, each.cpu) <= richness
            ask = each.ask if runs and each.ask is not None else _NO_DEVICE
            counts[ask] = counts.get(ask, 0) + each.pods
        nothing = counts.pop(_NO_DEVICE, 0)
        shares = [(ask.share, count) for ask, count in counts.items() if ask.is_share]
        wholes = [(ask.number, count) for ask, count in counts.items() if not ask.is_share]
        return _Weights(nothing, shares, wholes)


def most_frequent(pods: Iterable[Usual]) -> list[Usual]:
    """Returns the most frequent kinds of pods, which together make up at least 95 % of all pods.

    Among equally frequent kinds, kinds with larger requests come first.
    """
    kinds = sorted(pods, key=_rarity)
    total, counted, found = sum(each.pods for each in kinds), 0, []
    for each in kinds:
        if 100 * counted >= _KEPT_PERCENT * total:
            break
        counted += each.pods
        found.append(each)
    return found


def _rarity(pods: Usual) -> tuple[int, ...]:
    ask = pods.ask or _NO_DEVICE
    return -pods.pods, -pods.cpu, -ask.share, -ask.number

"""Implements policies that choose nodes and devices for pods in clusters with shared GPUs.

`binpack` and `spread` leave the choice of a node to kube-scheduler's scores. The other policies replace the
scores of NodeResourcesFit and NodeResourcesBalancedAllocation. They come from the FGD experiments (Weng et
al., USENIX ATC 2023), with the same integers. The experiments normalize by 128 processors and 8 GPUs, whereas
this module normalizes by the largest quantities on any node. In both cases, a seed determines the order of
equal nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Protocol, final

from harness.cluster.kinds.scheduler_configuration import DevicePlacement
from harness.models.kube.devices import WHOLE, Ask, tightest
from harness.models.kube.node import CPU, NodeInfo
from harness.models.kube.placement.fragmentation import Fragmentation, Usual
from harness.models.kube.placement.shape_nodes import NO_KEY
from harness.models.kube.pod import Shape, Templates

_WORD = (1 << 64) - 1


def mixed(seed: int, number: int) -> int:
    """Mixes a seed and a number into a 64-bit pseudo-random number, with SplitMix64."""
    word = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


class DevicePolicy(Protocol):
    """A policy that scores nodes and chooses devices.

    Attributes:
        scores: whether the scores of this policy replace those of kube-scheduler.
        draws: whether this policy picks a random feasible node, regardless of scores.
    """

    scores: bool
    draws: bool

    def draw(self, keys: Sequence[int], number: int) -> int:
        """Returns one of the keys of feasible nodes. The choice depends on the given number."""

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """Returns how well a feasible node suits pods of a shape, from 0 to 100."""

    def choose(self, node: NodeInfo, shape: Shape, ask: Ask) -> tuple[int, ...]:
        """Returns the devices for a pod whose other requests are already subtracted from the node."""

    def follow(self, nodes: Sequence[NodeInfo]) -> None:
        """Replaces the nodes."""

    def learn(self) -> bool:
        """Updates the statistics of all pods so far, and returns whether scores have changed."""


def device_policy(placement: DevicePlacement, templates: Templates) -> DevicePolicy | None:
    """Returns the selected policy, or None for the default.

    Args:
        placement: the name of the policy, and its seed.
        templates: the templates, which count the pods of each kind that have existed.
    """
    match placement.policy:
        case "spread":
            return Spread()
        case "best-fit":
            return BestFit()
        case "dot-product":
            return DotProduct()
        case "packing":
            return Packing()
        case "clustering":
            return Clustering()
        case "fgd":
            return GradientDescent(templates)
        case "random":
            return AnyNode(placement.seed or 0)
    return None


class _Tightest:
    """Chooses the device with the smallest sufficient free share."""

    scores = True
    draws = False

    def draw(self, keys: Sequence[int], number: int) -> int:
        """See `DevicePolicy`. It is never called, because `draws` is False."""
        raise AssertionError

    def choose(self, node: NodeInfo, shape: Shape, ask: Ask) -> tuple[int, ...]:
        return tightest(node.devices, ask)

    def follow(self, nodes: Sequence[NodeInfo]) -> None:
        """See `DevicePolicy`."""

    def learn(self) -> bool:
        return False


@final
class Spread(_Tightest):
    """Chooses the device with the largest free share."""

    scores = False

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """See `DevicePolicy`. This method is never called, because `scores` is False."""
        raise AssertionError

    def choose(self, node: NodeInfo, shape: Shape, ask: Ask) -> tuple[int, ...]:
        """See `DevicePolicy`."""
        most = sorted((-left, device) for device, left in enumerate(node.devices))
        return tuple(device for _, device in most[: ask.number])


@final
class AnyNode(_Tightest):
    """Chooses a random feasible node. A pod that requests a share of a GPU gets a random sufficient GPU."""

    draws = True

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def draw(self, keys: Sequence[int], number: int) -> int:
        """See `DevicePolicy`."""
        fit = sorted(key for key in keys if key < NO_KEY)
        return fit[mixed(self._seed, number) % len(fit)]

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """See `DevicePolicy`."""
        return 0

    def choose(self, node: NodeInfo, shape: Shape, ask: Ask) -> tuple[int, ...]:
        """See `DevicePolicy`."""
        fit = [device for device, left in enumerate(node.devices) if left >= ask.share]
        if not ask.is_share or not fit:
            return tightest(node.devices, ask)
        return (fit[mixed(self._seed ^ node.rank, node.generation) % len(fit)],)


class _Largest(_Tightest):
    """Tracks the largest numbers of processors and GPUs on any node."""

    def __init__(self) -> None:
        self.cpu = self.gpu = 1

    def follow(self, nodes: Sequence[NodeInfo]) -> None:
        self.cpu = max((node.allocatable[CPU] for node in nodes), default=0) or 1
        self.gpu = WHOLE * max((len(node.devices) for node in nodes), default=0) or 1


@final
class BestFit(_Largest):
    """Prefers nodes with the fewest remaining processors and GPUs, where both have a weight of 1/2."""

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """See `DevicePolicy`."""
        cpu = max(0, node.free[CPU] - shape.scored_cpu) / self.cpu * 0.5
        gpu = max(0, sum(node.devices) - _asked(shape)) / self.gpu * 0.5
        return int((1.0 - (0.0 + cpu + gpu)) * 100.0)


@final
class DotProduct(_Largest):
    """Prefers the node with the smallest dot product of the pod's requests and the node's free resources.

    The rule is based on Tetris (Grandl et al., Multi-resource Packing for Cluster Schedulers, SIGCOMM 2014).
    """

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """See `DevicePolicy`."""
        cpu = (node.free[CPU] / self.cpu) * (shape.scored_cpu / self.cpu)
        gpu = (sum(node.devices) / self.gpu) * (_asked(shape) / self.gpu)
        return int(100.0 * (1 - (cpu + gpu) / 2.0))


@final
class Packing(_Tightest):
    """Prefers shared GPUs, then idle GPUs on nodes with pods, and then GPUs on idle nodes."""

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """See `DevicePolicy`."""
        ask, devices = shape.device, node.devices
        if ask is None or not devices:
            return 0
        idle = devices.count(WHOLE)
        if idle == len(devices):
            return max(33 - idle, idle)
        taken = [devices[device] for device in tightest(devices, ask)]
        opened = taken.count(WHOLE)
        if opened:
            return max(50 - opened, 33)
        return max(100 - sum(left * 100 // WHOLE for left in taken) // 10, 50)


@final
class Clustering(_Largest):
    """Prefers nodes whose pods request the same number of GPUs as this pod.

    Best are nodes where all pods request this number. Next are nodes where some pods request it, then nodes
    without GPU pods, and then all other nodes. Every request for a share of a GPU counts as the same number.
    Among equal nodes, the policy prefers those with less free GPU capacity.
    """

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """See `DevicePolicy`."""
        if shape.device is None:
            return 0
        there = {_kind(ask) for pod in node.pods if (ask := pod.template.shape.device) is not None}
        level = 0 if there else 25
        if _kind(shape.device) in there:
            level = 75 if len(there) == 1 else 50
        return level + 25 * (self.gpu - sum(node.devices)) // self.gpu


@final
class GradientDescent(_Tightest):
    """FGD, which prefers the node and device whose fragmentation grows least (see `fragmentation.py`).

    The typical pods of the measure are all pods so far. The policy counts them again whenever their number
    has doubled.

    Args:
        templates: the templates, which count the pods of each kind that have existed.
    """

    def __init__(self, templates: Templates) -> None:
        self._templates = templates
        self._learned = 0
        self._measure = Fragmentation(())

    def learn(self) -> bool:
        """See `DevicePolicy`."""
        made = self._templates.made
        if made < max(1, 2 * self._learned):
            return False
        self._learned = made
        counts: dict[object, Usual] = {}
        for template in self._templates.all:
            shape, spec = template.shape, template.spec
            selector = tuple(sorted(spec.node_selector.items()))
            key = shape.scored_cpu, shape.device, selector, spec.required_nodes, spec.tolerations
            before = counts.get(key)
            count = template.made + (0 if before is None else before.pods)
            counts[key] = Usual(count, shape.scored_cpu, shape.device, spec)
        self._measure = Fragmentation(counts.values())
        return True

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """See `DevicePolicy`."""
        return self._best(shape, node, node.free[CPU])[0] if node.devices else 50

    def choose(self, node: NodeInfo, shape: Shape, ask: Ask) -> tuple[int, ...]:
        """See `DevicePolicy`."""
        granted = sum(amount for resource, amount in shape.amounts if resource == CPU)
        return self._best(shape, node, node.free[CPU] + granted)[1] or tightest(node.devices, ask)

    def _best(self, shape: Shape, node: NodeInfo, cpu: int) -> tuple[int, tuple[int, ...]]:
        """Returns the best score and its devices, which are () without a request or a sufficient device."""
        ask, devices, left = shape.device, node.devices, cpu - shape.scored_cpu
        before = self._measure.of(node.manifest, cpu, devices)
        if ask is None or not ask.is_share:
            taken = () if ask is None else tightest(devices, ask)
            return self._gain(before, node, left, _without(devices, taken, WHOLE)), taken
        best, tried = -1, set[int]()
        chosen: tuple[int, ...] = ()
        for device, has in enumerate(devices):
            if has < ask.share or has in tried:  # the first of equal devices is used
                continue
            tried.add(has)
            gain = self._gain(before, node, left, _without(devices, (device,), ask.share))
            if gain > best:
                best, chosen = gain, (device,)
        return best, chosen

    def _gain(self, before: int, node: NodeInfo, cpu: int, devices: Sequence[int]) -> int:
        """Returns a score from 0 to 100, which is below 50 if fragments grow."""
        fall = (before - self._measure.of(node.manifest, cpu, devices)) / self._measure.total
        return int(100.0 / (1.0 + exp(-fall / WHOLE)))


def _without(devices: Sequence[int], taken: Sequence[int], share: int) -> list[int]:
    left = list(devices)
    for device in taken:
        left[device] -= share
    return left


def _asked(shape: Shape) -> int:
    return 0 if shape.device is None else shape.device.number * shape.device.share


def _kind(ask: Ask) -> int:
    return 0 if ask.is_share else ask.number

"""Which node and which of its devices a pod gets, by the policies that clusters with shared GPUs use.

`binpack` and `spread` leave the choice of a node to kube-scheduler's scores. The others replace the scores of
NodeResourcesFit and NodeResourcesBalancedAllocation. They are those of the experiments with FGD (Weng et al.,
USENIX ATC 2023), with the same integers. What those normalise by 128 processors and 8 GPUs is here normalised
by the largest amounts that any node has. As there a seed draws the order in which equal nodes are taken.
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
    """A number of 64 bits that looks random, by SplitMix64; the same for the same seed and number."""
    word = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


class DevicePolicy(Protocol):
    """Scores nodes, and chooses devices.

    Attributes:
        scores: whether its scores replace kube-scheduler's.
        draws: whether it takes any node with room, whatever the scores.
    """

    scores: bool
    draws: bool

    def draw(self, keys: Sequence[int], number: int) -> int:
        """Any key of a node with room, the same for the same number."""

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """How well a node with room suits pods of a shape, from 0 to 100."""

    def choose(self, node: NodeInfo, shape: Shape, ask: Ask) -> tuple[int, ...]:
        """The devices that a pod gets, whose other requests the node has granted already."""

    def follow(self, nodes: Sequence[NodeInfo]) -> None:
        """Nodes are these from now on."""

    def learn(self) -> bool:
        """Take in which pods there have been; answers whether scores are others than before."""


def device_policy(placement: DevicePlacement, templates: Templates) -> DevicePolicy | None:
    """The policy that is asked for; None for what happens with nothing said.

    Args:
        placement: which one, and its seed.
        templates: know how many pods of each kind there have been.
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
    """Takes the device that is fullest among those with room."""

    scores = True
    draws = False

    def draw(self, keys: Sequence[int], number: int) -> int:
        """Not asked where nothing is drawn."""
        raise AssertionError

    def choose(self, node: NodeInfo, shape: Shape, ask: Ask) -> tuple[int, ...]:
        """See `DevicePolicy`."""
        return tightest(node.devices, ask)

    def follow(self, nodes: Sequence[NodeInfo]) -> None:
        """See `DevicePolicy`."""

    def learn(self) -> bool:
        """See `DevicePolicy`."""
        return False


@final
class Spread(_Tightest):
    """Takes the device with the most left."""

    scores = False

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """Not asked."""
        raise AssertionError

    def choose(self, node: NodeInfo, shape: Shape, ask: Ask) -> tuple[int, ...]:
        """See `DevicePolicy`."""
        most = sorted((-left, device) for device, left in enumerate(node.devices))
        return tuple(device for _, device in most[: ask.number])


@final
class AnyNode(_Tightest):
    """Takes any node with room, and any device with room for a share."""

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
    """Knows the most processors and GPUs that any node has."""

    def __init__(self) -> None:
        self.cpu = self.gpu = 1

    def follow(self, nodes: Sequence[NodeInfo]) -> None:
        """See `DevicePolicy`."""
        self.cpu = max((node.allocatable[CPU] for node in nodes), default=0) or 1
        self.gpu = WHOLE * max((len(node.devices) for node in nodes), default=0) or 1


@final
class BestFit(_Largest):
    """Prefers nodes that would have least left of processors and GPUs, each weighed by a half."""

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """See `DevicePolicy`."""
        cpu = max(0, node.free[CPU] - shape.scored_cpu) / self.cpu * 0.5
        gpu = max(0, sum(node.devices) - _asked(shape)) / self.gpu * 0.5
        return int((1.0 - (0.0 + cpu + gpu)) * 100.0)


@final
class DotProduct(_Largest):
    """Prefers nodes with little left of what the pod asks for: Tetris' product, the least first.

    Grandl et al., Multi-resource Packing for Cluster Schedulers, SIGCOMM 2014.
    """

    def score(self, shape: Shape, node: NodeInfo) -> int:
        """See `DevicePolicy`."""
        cpu = (node.free[CPU] / self.cpu) * (shape.scored_cpu / self.cpu)
        gpu = (sum(node.devices) / self.gpu) * (_asked(shape) / self.gpu)
        return int(100.0 * (1 - (cpu + gpu) / 2.0))


@final
class Packing(_Tightest):
    """Prefers GPUs that are shared already, then idle ones of nodes with pods, then those of idle nodes."""

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
    """Prefers nodes whose pods all ask for as many GPUs as the pod, then those where some do, then idle ones.

    All shares are one kind of pods. Of equals the fuller one is better.
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
    """FGD: prefers the node and the device whose fragmentation grows least, see `fragmentation.py`.

    The usual pods are those that there have been so far. They are counted anew whenever they have doubled.

    Args:
        templates: know how many pods of each kind there have been.
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
        """The score of the best devices, and which these are; none where there is nothing to choose."""
        ask, devices, left = shape.device, node.devices, cpu - shape.scored_cpu
        before = self._measure.of(node.manifest, cpu, devices)
        if ask is None or not ask.is_share:
            taken = () if ask is None else tightest(devices, ask)
            return self._gain(before, node, left, _without(devices, taken, WHOLE)), taken
        best, tried = -1, set[int]()
        chosen: tuple[int, ...] = ()
        for device, has in enumerate(devices):
            if has < ask.share or has in tried:  # equal devices are equally good, and the first is taken
                continue
            tried.add(has)
            gain = self._gain(before, node, left, _without(devices, (device,), ask.share))
            if gain > best:
                best, chosen = gain, (device,)
        return best, chosen

    def _gain(self, before: int, node: NodeInfo, cpu: int, devices: Sequence[int]) -> int:
        """Less than 50 where the fragments grow, and more where they shrink: a sigmoid of whole GPUs."""
        fall = (before - self._measure.of(node.manifest, cpu, devices)) / self._measure.total
        return int(100.0 / (1.0 + exp(-fall / WHOLE)))


def _without(devices: Sequence[int], taken: Sequence[int], share: int) -> list[int]:
    left = list(devices)
    for device in taken:
        left[device] -= share
    return left


def _asked(shape: Shape) -> int:
    """What pods of a shape ask of all devices together."""
    return 0 if shape.device is None else shape.device.number * shape.device.share


def _kind(ask: Ask) -> int:
    """How many whole devices are asked for; 0 for a share."""
    return 0 if ask.is_share else ask.number

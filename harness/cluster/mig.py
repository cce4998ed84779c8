"""Models MIG, which divides GPUs into slices of fixed sizes. Nodes offer these slices as resources.

NVIDIA's device plugin names a slice after its profile, `nvidia.com/mig-<n>g.<m>gb`. Here, n is the number of
compute slices and m is the memory in GB. A slice with the suffix `.me` has the media extensions, which exist
once per GPU. Pods get whole slices, so kube-scheduler only counts the resource. This module computes how
large a slice is, and whether the GPUs of a node can have the slices that the node offers.

NVIDIA lists the profiles and their places at
https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from harness.cluster.devices import GPU_COUNT, WHOLE, gpu_count, thousandths
from harness.cluster.model import Node

SLICES = "nvidia.com/mig"
"""The resource that metrics use for all slices together, measured in compute slices. No node offers it."""

PREFIX = "nvidia.com/mig-"
"""The prefix of the resource names, which is followed by the name of the profile."""

PRODUCT = "nvidia.com/gpu.product"
"""The label with the model of a node's GPUs, as set by NVIDIA's feature discovery."""

_NAME = re.compile(r"([1-9])g\.([1-9][0-9]{0,2})gb([.+]me)?")
_SIZES: tuple[tuple[int, int], ...] = ((1, 1), (1, 2), (2, 2), (3, 4), (4, 4), (7, 8))
_SIZES_OF_A30: tuple[tuple[int, int], ...] = ((1, 1), (2, 2), (4, 4))
"""The compute slices and the units of memory of each profile, in ascending order."""
_A30 = 4
"""The number of compute slices of an A30. All other models have seven."""
_SINGLE = re.compile(r"-MIG-(.+)$")
_REPLICAS = re.compile(r"nvidia\.com/(gpu|mig-.+)\.replicas")


class Profile(NamedTuple):
    """The size of a slice.

    Attributes:
        memory: the memory in GB.
        media: whether the slice has the media extensions of its GPU.
    """

    compute: int
    memory: int
    media: bool = False

    def __str__(self) -> str:
        return f"{self.compute}g.{self.memory}gb{'.me' if self.media else ''}"


class Model(NamedTuple):
    """A model of GPU.

    Attributes:
        compute: the number of compute slices of one GPU.
        unit: the memory of the smallest slice, in GB.
    """

    name: str
    compute: int
    unit: int

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The profiles of all slices that a GPU can have, except for those with media extensions."""
        sizes = _SIZES_OF_A30 if self.compute == _A30 else _SIZES
        return tuple(Profile(compute, units * self.unit) for compute, units in sizes)

    def has(self, profile: Profile) -> bool:
        """Returns True if a GPU can have a slice of this profile."""
        most = 2 if self.compute == _A30 else 1
        plain = profile._replace(media=False)
        return plain in self.profiles and not (
            profile.media and (profile.compute > most or profile.memory > most * self.unit)
        )

    def holds(self, slices: Mapping[Profile, int], gpus: int) -> bool:
        """Returns True if the given number of GPUs can be divided into these slices.

        The memory of a GPU has eight equal parts, numbered from 0 to 7. A slice can begin only at some of
        them:

        - A slice of two parts begins at 0, 2 or 4. If it has one compute slice, it can also begin at 6.
        - A slice of four parts begins at 0. If it has three compute slices, it can also begin at 4.
        - A slice of one part can't use part 7.

        The method therefore divides a GPU into a first half of two pairs (0-1 and 2-3), a third pair (4-5),
        and a remainder (6-7). The remainder can hold only one slice, of one or two parts. The method assumes
        the best placement: large slices come first, and slices with three compute slices are in second
        halves. An A30 has only a first half.
        """
        unit, tails = self.unit, self.compute != _A30
        count = dict.fromkeys(_SIZES, 0)
        for profile, number in slices.items():
            count[profile.compute, profile.memory // unit] += number
        gpus -= count[7, 8]
        lefts, rights = gpus - count[4, 4], gpus if tails else 0
        in_right = min(rights, count[3, 4])
        rights -= in_right
        lefts -= count[3, 4] - in_right
        pairs = 2 * lefts + rights - count[2, 2]
        rests = min(rights, count[1, 2])
        pairs -= count[1, 2] - rests
        media = sum(number for profile, number in slices.items() if profile.media)
        fits = min(gpus, lefts, pairs) >= 0 and count[1, 1] <= 2 * pairs + rights - rests
        return fits and media <= min(gpus, lefts + rights)

    def fewest(self, slices: Mapping[Profile, int]) -> int:
        """Returns the smallest number of GPUs that can be divided into these slices."""
        enough = sum(slices.values())
        least = 0
        while least < enough:
            middle = (least + enough) // 2
            least, enough = (least, middle) if self.holds(slices, middle) else (middle + 1, enough)
        return least


_A100_40, _A100_80, _H100_80 = Model("A100-40GB", 7, 5), Model("A100-80GB", 7, 10), Model("H100-80GB", 7, 10)
_MODELS: tuple[tuple[frozenset[str], Model], ...] = (
    (frozenset({"A100", "40GB"}), _A100_40),
    (frozenset({"A100", "80GB"}), _A100_80),
    (frozenset({"H100", "80GB"}), _H100_80),
    (frozenset({"H100", "PCIE"}), _H100_80),
    (frozenset({"A30"}), Model("A30", _A30, 6)),
)
"""Maps the words in a product name to a model."""

MODELS = tuple(dict.fromkeys(model for _, model in _MODELS))


class Partition(NamedTuple):
    """The MIG slices of a node, and the GPUs that are divided into them.

    Attributes:
        slices: the number of offered slices of each resource.
        model: the model of the node's GPUs, or None if unknown.
        gpus: how many GPUs are divided into slices, or None if unknown.
        unknown: why the GPUs are unknown, or "" if they are known.
    """

    slices: Mapping[str, int]
    model: Model | None = None
    gpus: int | None = None
    unknown: str = ""

    @property
    def needs(self) -> int:
        """The minimum number of GPUs for these slices, or 0 if their model is unknown."""
        if self.model is None:
            return 0
        sizes = {profile: number for name, number in self.slices.items() if (profile := profile_of(name))}
        return self.model.fewest(sizes)

    @property
    def fault(self) -> str:
        """A sentence that says why the node's GPUs can't have these slices, or "" if they can."""
        if self.model is None or self.gpus is None or self.needs <= self.gpus:
            return ""
        slices = ", ".join(f"{number} of {name}" for name, number in sorted(self.slices.items()))
        return (
            f"{slices}: these slices need {self.needs} {self.model.name} GPUs, but the node has {self.gpus} "
            f"for slices (label {GPU_COUNT}, minus GPUs that pods use as a whole); correct the numbers "
            "or the label"
        )


def profile_of(resource: str) -> Profile | None:
    """Returns the profile in a resource name, or None if there is none or the name has another format."""
    return _profile(resource.removeprefix(PREFIX)) if resource.startswith(PREFIX) else None


def _profile(name: str) -> Profile | None:
    found = _NAME.fullmatch(name)
    return Profile(int(found[1]), int(found[2]), bool(found[3])) if found else None


def single_profile(node: Node) -> Profile | None:
    """Returns the profile of the slices that a node offers as `nvidia.com/gpu` (strategy `single`).

    If the node offers no such slices, the function returns None.
    """
    found = _SINGLE.search(node.labels.get(PRODUCT, ""))
    return _profile(found[1]) if found else None


def partition_of(node: Node) -> Partition | None:
    """Returns the slices of a node and what is known about its GPUs, or None if it offers no slices."""
    slices = {name: number for name, number in node.allocatable.items() if number and name.startswith(PREFIX)}
    if not slices:
        return None
    product = node.labels.get(PRODUCT)
    if product is None:
        return Partition(slices, unknown=f"the label {PRODUCT} is missing")
    if single_profile(node):
        return Partition(slices, unknown=f"{GPU_COUNT} counts slices of {product}, not GPUs")
    words = frozenset(product.upper().split("-"))
    model = next((model for each, model in _MODELS if each <= words), None)
    if model is None:
        known = ", ".join(model.name for model in MODELS)
        return Partition(slices, unknown=f"harness knows the profiles of {known}, but not of {product}")
    for name in sorted(slices):
        profile = profile_of(name)
        if profile is None or not model.has(profile):
            return Partition(slices, unknown=f"{name} is not a known profile of {model.name}")
    if any(_REPLICAS.fullmatch(name) and said not in ("0", "1") for name, said in node.labels.items()):
        return Partition(slices, unknown="a label says that pods share slices or GPUs by time-slicing")
    count = gpu_count(node)
    if count is None:
        return Partition(slices, model, unknown=f"the label {GPU_COUNT} is missing or not a number")
    return Partition(slices, model, max(0, count - thousandths(node.allocatable) // WHOLE))

"""The meaning of a pod set's topology request in a topology."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from harness.models.cluster import TopologyRequest


class Wanted(NamedTuple):
    """The kind of place to search for.

    A *slice* is a group of pods that must be in one domain of the slice level; without slices it is one pod
    at the finest level.

    Attributes:
        level: the level at which the search begins; levels are numbers, 0 is the coarsest.
        slice_level: the level at which one domain takes all pods of a slice.
        size: how many pods a slice has.
        inner: level below the slice level -> how many pods stay together at this level.
        required: whether one domain of `level` must take all pods.
        unconstrained: whether any set of domains may serve.
        least_free: True to try the domain with the least free capacity first, False for the best fit.
    """

    level: int
    slice_level: int
    size: int
    inner: Mapping[int, int]
    required: bool
    unconstrained: bool
    least_free: bool


def wanted_of(request: TopologyRequest, levels: tuple[str, ...], *, mixed: bool) -> Wanted | None:
    """Returns the kind of place for a request; None if a level is missing or its layers do not nest.

    Args:
        request: the request of the pod set; an empty request counts as unconstrained.
        levels: the levels of the topology, from the coarsest to the finest.
        mixed: whether unconstrained pods fill up nearly full domains (gate `TASProfileMixed`).
    """
    slices, finest = request.slices, len(levels) - 1
    slice_level = finest
    inner: dict[int, int] = {}
    if slices:
        number = {label: at for at, label in enumerate(levels)}
        if any(layer.level not in number for layer in slices):
            return None
        slice_level = number[slices[0].level]
        for outer, layer in pairwise(slices):
            if number[layer.level] <= number[outer.level] or outer.size % layer.size:
                return None
            inner |= dict.fromkeys(range(number[outer.level] + 1, number[layer.level] + 1), layer.size)
    slice_only = bool(slices) and not (request.required or request.preferred)
    named = request.required or request.preferred
    if named and named not in levels:
        return None
    level = levels.index(named) if named else 0 if slice_only else finest
    if level > slice_level:
        return None
    unconstrained = request.unconstrained or slice_only or not request.explicit
    return Wanted(
        level,
        slice_level,
        slices[0].size if slices else 1,
        inner,
        bool(request.required),
        unconstrained,
        unconstrained and mixed,
    )

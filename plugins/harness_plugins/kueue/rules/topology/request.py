"""Interprets the topology request of a pod set for a given topology."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from harness.models.cluster import TopologyRequest


class Wanted(NamedTuple):
    """The kind of place to search for.

    A *slice* is a group of pods that must be in one domain of the slice level. Without slices, each pod
    counts as a slice at the finest level.

    Attributes:
        level: the level at which the search starts. Levels are numbers, and 0 is the coarsest level.
        slice_level: the level at which all pods of a slice must be in one domain.
        size: the number of pods in a slice.
        inner: for each level below the slice level, how many pods must be in one domain of this lower level.
        required: whether all pods must be in one domain of `level`.
        unconstrained: whether any set of domains can be used.
        least_free: True to try the domain with the least free capacity first, False to find the best fit.
    """

    level: int
    slice_level: int
    size: int
    inner: Mapping[int, int]
    required: bool
    unconstrained: bool
    least_free: bool


def wanted_of(request: TopologyRequest, levels: tuple[str, ...], *, mixed: bool) -> Wanted | None:
    """Returns the kind of place to search for, or None if the request does not suit the topology.

    A request does not suit the topology if one of its levels is missing. Its slice layers must also go from
    coarse to fine, and the size of each layer must be a multiple of the next size.

    Args:
        request: the topology request of the pod set. An empty request counts as unconstrained.
        levels: the levels of the topology, from coarsest to finest.
        mixed: whether unconstrained pods fill up nearly full domains (the `TASProfileMixed` gate).
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

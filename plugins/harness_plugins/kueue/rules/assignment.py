"""The assignment of a workload: its flavors, quota usage, places and preemption targets.

Upstream: `Assignment` and `RepresentativeMode` in pkg/scheduler/flavorassigner/flavorassigner.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness_plugins.kueue.rules.flavor_offers import PodSetOffer
from harness_plugins.kueue.rules.fungibility import FITS, Quality
from harness_plugins.kueue.rules.preemption import Target
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import START_OVER, Chosen, Tried

NO_FIT, PREEMPT, FIT, DEFERRED_FIT = range(4)
"""The modes of an assignment. A deferred fit must wait until the victims of other entries are gone."""


class Assignment(NamedTuple):
    """The flavors that a workload would get, with the quota, places and preemptions that they require.

    Attributes:
        mode: `NO_FIT`, `PREEMPT`, `FIT` or `DEFERRED_FIT`.
        borrowing: the height of the cohort that the quota comes from, or 0 if the queue's own quota is
            enough.
        usage: the quota that the assignment uses. For a failed assignment, this is the quota counted before
            the failure.
        uses: a bit mask of the flavor-resources that the assignment uses, including those with an amount of
            zero.
        need: the flavor-resources that only preemption can free.
        counts: the number of pods in each pod set.
        chosen: the flavors that were chosen.
        tried: the flavors that were considered.
        untried: whether any resource group has a flavor that was not considered.
        placed: the places of the pods in the topologies of the flavors.
        lacks_place: whether there is enough quota, but not enough free capacity in a topology.
        targets: the workloads to preempt.
    """

    mode: int
    borrowing: int
    usage: Amounts
    uses: int
    need: tuple[int, ...]
    counts: tuple[int, ...]
    chosen: Chosen
    tried: Tried
    untried: bool
    placed: tuple[Placed, ...]
    lacks_place: bool
    targets: Sequence[Target]


class Choice(NamedTuple):
    """A chosen flavor, its overall quality, its quality for each resource, and the last flavor considered."""

    flavor: int
    tried: int
    quality: Quality
    each: tuple[Quality, ...]


def take(pod_set: PodSetOffer, choices: tuple[Choice, ...], count: int, total: dict[int, int]) -> None:
    """Adds the usage of a pod set's pods in the chosen flavors to `total`."""
    for group, choice in zip(pod_set.groups, choices, strict=True):
        for cell, amount in zip(group.cells[choice.flavor] or (), group.amounts, strict=True):
            total[cell] = total.get(cell, 0) + amount * count


def assembled(
    offers: tuple[PodSetOffer, ...], counts: tuple[int, ...], choices: tuple[tuple[Choice, ...], ...]
) -> Assignment:
    """Makes an assignment without targets from the flavors chosen for each pod set.

    If there are fewer choices than pod sets, no flavor was found for the first pod set that has no choice.
    """
    mode = FIT if len(choices) == len(offers) else NO_FIT
    usage: dict[int, int] = {}
    uses = borrowing = 0
    need: set[int] = set()
    untried = False
    for pod_set, chosen, count in zip(offers, choices, counts, strict=False):
        take(pod_set, chosen, count, usage)
        for group, (flavor, tried, quality, each) in zip(pod_set.groups, chosen, strict=True):
            # As in Kueue, the quality of the flavor as a whole decides, even if one of its resources does not
            # fit.
            if quality[0] != FITS and mode == FIT:
                mode = PREEMPT
            untried = untried or tried != START_OVER
            for cell, (stands, height) in zip(group.cells[flavor] or (), each, strict=True):
                if height > borrowing:
                    borrowing = height
                if stands != FITS:
                    need.add(cell)
    for cell in usage:
        uses |= 1 << cell
    return Assignment(
        mode,
        borrowing,
        tuple(sorted([each for each in usage.items() if each[1]])),
        uses,
        tuple(sorted(need)),
        counts,
        tuple([tuple([choice[0] for choice in chosen]) for chosen in choices]),
        tuple([tuple([choice[1] for choice in chosen]) for chosen in choices]),
        untried,
        placed=(),
        lacks_place=False,
        targets=(),
    )

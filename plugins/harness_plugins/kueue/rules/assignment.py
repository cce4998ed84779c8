"""The assignment of a workload: flavors, their cost in quota, its places, and its targets.

Upstream: `Assignment` and `RepresentativeMode` in pkg/scheduler/flavorassigner/flavorassigner.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from harness_plugins.kueue.rules.flavor_offers import PodSetOffer
from harness_plugins.kueue.rules.fungibility import FITS, Quality
from harness_plugins.kueue.rules.preemption import Target
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.last_assignment import START_OVER, Chosen, Tried
from harness_plugins.kueue.state.topology.flavors import Placed

NO_FIT, PREEMPT, FIT, DEFERRED_FIT = range(4)
"""The modes of a whole assignment; a deferred fit must wait until others' victims are gone."""


class Assignment(NamedTuple):
    """Flavors for a workload.

    Attributes:
        mode: `NO_FIT`, `PREEMPT`, `FIT` or `DEFERRED_FIT`.
        borrowing: how high up the cohorts the quota comes from; 0 within the queue's own.
        usage: the amounts that it takes; if it fails, those collected before the failure.
        uses: the flavor-resources that it takes, including amounts of zero, as a bit mask.
        need: the flavor-resources that only preemption can give.
        counts: pods of each pod set.
        chosen: the flavors.
        tried: the flavors that were considered.
        untried: whether some group still has a flavor that was not considered.
        placed: the places of its pods in the topologies of its flavors.
        lacks_place: whether it has quota but no place in a topology, besides the present pods.
        targets: the workloads to preempt for it.
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

    def with_targets(self, targets: Sequence[Target]) -> Assignment:
        """The same assignment with these targets."""
        return Assignment(*self[:-1], targets)


class Choice(NamedTuple):
    """A flavor for a group: its number, the last one considered, its quality, and each resource alone."""

    flavor: int
    tried: int
    quality: Quality
    each: tuple[Quality, ...]


Assemble: TypeAlias = Callable[
    [tuple[PodSetOffer, ...], tuple[int, ...], tuple[tuple[Choice, ...], ...]], Assignment
]
"""Makes an assignment of offers, counts and choices, see `assembled`."""


def take(pod_set: PodSetOffer, choices: tuple[Choice, ...], count: int, total: dict[int, int]) -> None:
    """Adds the amounts that the pods of a pod set take of the chosen flavors."""
    for group, choice in zip(pod_set.groups, choices, strict=True):
        for cell, amount in zip(group.cells[choice.flavor] or (), group.amounts, strict=True):
            total[cell] = total.get(cell, 0) + amount * count


def assembled(
    offers: tuple[PodSetOffer, ...], counts: tuple[int, ...], choices: tuple[tuple[Choice, ...], ...]
) -> Assignment:
    """The assignment from the chosen flavors, pod set by pod set, without its targets.

    If there are fewer choices than pod sets, the next pod set has none.
    """
    mode = FIT if len(choices) == len(offers) else NO_FIT
    usage: dict[int, int] = {}
    borrowing = 0
    need: set[int] = set()
    for pod_set, chosen, count in zip(offers, choices, counts, strict=False):
        take(pod_set, chosen, count, usage)
        for group, choice in zip(pod_set.groups, chosen, strict=True):
            # The flavor as a whole counts: where it fits, a resource of it may still not, as in Kueue.
            if choice.quality[0] != FITS and mode == FIT:
                mode = PREEMPT
            for cell, (stands, height) in zip(group.cells[choice.flavor] or (), choice.each, strict=True):
                borrowing = max(borrowing, height)
                if stands != FITS:
                    need.add(cell)
    tried = tuple(tuple(choice.tried for choice in chosen) for chosen in choices)
    return Assignment(
        mode=mode,
        borrowing=borrowing,
        usage=tuple(sorted((cell, amount) for cell, amount in usage.items() if amount)),
        uses=sum(1 << cell for cell in usage),
        need=tuple(sorted(need)),
        counts=counts,
        chosen=tuple(tuple(choice.flavor for choice in chosen) for chosen in choices),
        tried=tried,
        untried=any(flavor != START_OVER for chosen in tried for flavor in chosen),
        placed=(),
        lacks_place=False,
        targets=(),
    )

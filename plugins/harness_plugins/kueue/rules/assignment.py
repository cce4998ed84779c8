"""The assignment of a workload: flavors, their usage of quota, places, and targets.

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
"""The modes of a whole assignment; a deferred fit must wait until other entries' victims are gone."""


class Assignment(NamedTuple):
    """Flavors for a workload.

    Attributes:
        mode: `NO_FIT`, `PREEMPT`, `FIT` or `DEFERRED_FIT`.
        borrowing: how many levels up the cohorts the quota comes from; 0 within the queue's own quota.
        usage: the amounts that it uses; for a failed assignment, the amounts collected before the failure.
        uses: the flavor-resources that it uses, including amounts of zero, as a bit mask.
        need: the flavor-resources that only preemption can free.
        counts: the pods of each pod set.
        chosen: the flavors.
        tried: the flavors that were considered.
        untried: whether some group still has a flavor that was not considered.
        placed: the places of the pods in the topologies of the flavors.
        lacks_place: whether the workload has quota but no place in a topology beside the present pods.
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

    def with_targets(self, targets: Sequence[Target]) -> Assignment:
        """Returns the same assignment with these targets."""
        return Assignment(*self[:-1], targets)


class Choice(NamedTuple):
    """A chosen flavor: its number, the last considered number, its quality in all and for each resource."""

    flavor: int
    tried: int
    quality: Quality
    each: tuple[Quality, ...]


Assemble: TypeAlias = Callable[
    [tuple[PodSetOffer, ...], tuple[int, ...], tuple[tuple[Choice, ...], ...]], Assignment
]
"""Makes an assignment from offers, counts and choices, see `assembled`."""


def take(pod_set: PodSetOffer, choices: tuple[Choice, ...], count: int, total: dict[int, int]) -> None:
    """Adds the amounts that the pods of a pod set use of the chosen flavors to `total`."""
    for group, choice in zip(pod_set.groups, choices, strict=True):
        for cell, amount in zip(group.cells[choice.flavor] or (), group.amounts, strict=True):
            total[cell] = total.get(cell, 0) + amount * count


def assembled(
    offers: tuple[PodSetOffer, ...], counts: tuple[int, ...], choices: tuple[tuple[Choice, ...], ...]
) -> Assignment:
    """Makes the assignment from the chosen flavors, pod set by pod set, without its targets.

    With fewer choices than pod sets, the first pod set without a choice found no flavor.
    """
    mode = FIT if len(choices) == len(offers) else NO_FIT
    usage: dict[int, int] = {}
    borrowing = 0
    need: set[int] = set()
    for pod_set, chosen, count in zip(offers, choices, counts, strict=False):
        take(pod_set, chosen, count, usage)
        for group, choice in zip(pod_set.groups, chosen, strict=True):
            # As in Kueue, the quality of the whole flavor decides, even if one of its resources does not fit.
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

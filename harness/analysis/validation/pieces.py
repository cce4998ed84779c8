"""Decides from sums of free capacity alone whether some node must have capacity for a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from harness.analysis.validation.load import Amounts

IN_PIECES = 0.25
"""Up to this fraction of a capacity may be free in pieces that are too small for any pod."""


@dataclass(frozen=True)
class Pieces:
    """Nodes whose free amounts are known only as a sum.

    Attributes:
        nodes: the amounts of each node, in the order of the resources.
        unit: the greatest amount of each resource that divides all requests.
    """

    nodes: tuple[Amounts, ...]
    unit: Amounts

    @classmethod
    def of(
        cls, nodes: Mapping[str, Mapping[str, int]], resources: tuple[str, ...], unit: Amounts
    ) -> Pieces | None:
        """Returns the nodes of an object, or None for quotas, which are not divided among nodes."""
        amounts = tuple(tuple(has.get(name, 0) for name in resources) for has in nodes.values())
        return cls(amounts, unit) if amounts else None

    @cached_property
    def _largest(self) -> Amounts:
        return tuple(max(amounts) for amounts in zip(*self.nodes, strict=True))

    @cached_property
    def _step(self) -> Amounts:
        """Returns, for each resource, an amount that divides the free amount of every node."""
        return tuple(
            gcd(unit, *amounts)
            for unit, amounts in zip(self.unit, zip(*self.nodes, strict=True), strict=True)
        )

    @cached_property
    def _sum(self) -> Amounts:
        return tuple(sum(amounts) for amounts in zip(*self.nodes, strict=True))

    def have_room(self, asked: Amounts, held: Amounts) -> bool:
        """Returns True if some node must have capacity for the whole job, given what jobs hold in total.

        A node on which the job does not fit has less than the requested amount free, by at least one unit.
        The sum of the free amounts therefore limits how many such nodes can exist. If the object has more
        nodes than that number, the job fits on one of them.
        """
        lacking = 0
        for amount, used, total, most, step in zip(
            asked, held, self._sum, self._largest, self._step, strict=True
        ):
            if not amount:
                continue
            piece = amount - step
            spare = total - used - len(self.nodes) * piece
            if amount > most or spare <= 0:
                return False
            lacking += len(self.nodes) + spare // (
                piece - most
            )  # minus the nodes that must fit it, rounded up
        return lacking < len(self.nodes)

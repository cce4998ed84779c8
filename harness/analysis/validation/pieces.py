"""Room on nodes comes in pieces: whether some node has room for a job although only sums are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from harness.analysis.validation.load import Amounts

IN_PIECES = 0.25
"""So large a part of a capacity may be free in pieces that no pod fits into."""


@dataclass(frozen=True)
class Pieces:
    """Nodes, if only the sum of what is free on all of them is known.

    Attributes:
        nodes: what each node has, in the order of the resources.
        unit: the greatest amount of each resource that divides all requests.
    """

    nodes: tuple[Amounts, ...]
    unit: Amounts

    @classmethod
    def of(
        cls, nodes: Mapping[str, Mapping[str, int]], resources: tuple[str, ...], unit: Amounts
    ) -> Pieces | None:
        """The nodes of an object; None for quotas, which are never in pieces."""
        amounts = tuple(tuple(has.get(name, 0) for name in resources) for has in nodes.values())
        return cls(amounts, unit) if amounts else None

    @cached_property
    def _largest(self) -> Amounts:
        return tuple(max(amounts) for amounts in zip(*self.nodes, strict=True))

    @cached_property
    def _step(self) -> Amounts:
        """What is free of a node is a multiple of this."""
        return tuple(
            gcd(unit, *amounts)
            for unit, amounts in zip(self.unit, zip(*self.nodes, strict=True), strict=True)
        )

    @cached_property
    def _sum(self) -> Amounts:
        return tuple(sum(amounts) for amounts in zip(*self.nodes, strict=True))

    def have_room(self, asked: Amounts, held: Amounts) -> bool:
        """Whether some node must have room for all of a job while so much is held of all nodes.

        If fewer nodes lack room for it than there are, one has it. A node that lacks room for an amount has
        at most one step less of it free. So the sum that is free bounds how many such nodes there are.
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
            )  # less the nodes that must have room, rounded up
        return lacking < len(self.nodes)

"""Computes the usage of quotas beyond their guarantees, which other quotas can reclaim."""

from __future__ import annotations

from typing import TypeAlias, final

from harness.models.elastic.quota import Amounts, Quota

_Places: TypeAlias = list[tuple[int, str]]
"""Resources in a list of quantities, each with its index in the list and its name."""


@final
class Lent:
    """The usage of quotas beyond their guarantees, while another quota (the claimant) takes their pods.

    Quotas must not change in the meantime. `restore` reverts all calls of `take`.

    Args:
        claimant: the quota that reclaims its guarantee from the other quotas.
    """

    __slots__ = ("_borrowed", "_claimant", "_left", "_places", "_places_of")

    def __init__(self, claimant: Quota) -> None:
        self._claimant = claimant.line
        self._borrowed: list[int] = []
        self._left: list[int] = []
        self._places: dict[Quota, _Places] = {}
        self._places_of: dict[Quota, list[_Places]] = {}

    def may_lose(self, leaf: Quota) -> bool:
        """Returns True if a quota uses more than its guarantee, so that the claimant can take its pods.

        Every ancestor of the quota that does not contain the claimant must also use more than its guarantee.
        Idle guarantees within a group of quotas belong to that group, so other groups can't take anything
        from a group that uses no more than its guarantee.
        """
        left = self._left
        for places in self._places_of.get(leaf) or self._apart(leaf):
            for place, _ in places:
                if left[place] > 0:
                    break
            else:
                return False
        return True

    def take(self, leaf: Quota, amounts: Amounts) -> None:
        """Takes a pod with these requests from a quota that can lose the pod."""
        left = self._left
        for places in self._places_of[leaf]:
            for place, resource in places:
                left[place] -= amounts.get(resource, 0)

    def restore(self) -> None:
        """Reverts all calls of `take`."""
        self._left = self._borrowed.copy()

    def _apart(self, leaf: Quota) -> list[_Places]:
        """Returns the positions in `_left` for each quota from the leaf up to the claimant's path."""
        found = self._places_of[leaf] = []
        for quota in leaf.line:
            if quota in self._claimant:
                break
            places = self._places.get(quota)
            if places is None:
                borrowed, first = quota.borrowed(), len(self._left)
                places = self._places[quota] = [(first + at, name) for at, name in enumerate(borrowed)]
                self._borrowed += borrowed.values()
                self._left += borrowed.values()
            found.append(places)
        return found

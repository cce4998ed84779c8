"""Computes the usage of quotas beyond their guarantees, which other quotas can reclaim."""

from __future__ import annotations

from typing import TypeAlias, final

from harness.models.elastic.quota import Amounts, Quota

_Places: TypeAlias = list[tuple[int, str]]
"""Resources in a list of quantities, each with its index in the list and its name."""


@final
class Lent:
    """Tracks what quotas use beyond their guarantees, while pods are tentatively taken from them.

    The pods are taken on behalf of another quota, the claimant. Quotas must not change while this object is
    in use. `restore` reverts all calls of `take`.

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
        """Returns True if the claimant can take a pod from a quota.

        The quota must use more than its guarantee. So must every ancestor of the quota that is not also an
        ancestor of the claimant. Unused guarantees within a group of quotas belong to that group. Therefore,
        other groups can't take anything from a group that uses no more than its guarantee.
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
        """Subtracts a pod's requests from the excess usage of its quota, for which `may_lose` was True."""
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

"""What quotas use beyond what they are guaranteed, and lose to whoever takes its own guarantee back."""

from __future__ import annotations

from typing import TypeAlias, final

from harness.models.elastic.quota import Amounts, Quota

_Places: TypeAlias = list[tuple[int, str]]
"""Where something is noted of each resource."""


@final
class Lent:
    """What quotas use beyond what they are guaranteed, while pods are taken from them for a claimant.

    Quotas must not change meanwhile. What is taken is taken back by `restore`.

    Args:
        claimant: the claimant's quota.
    """

    __slots__ = ("_borrowed", "_claimant", "_left", "_places", "_places_of")

    def __init__(self, claimant: Quota) -> None:
        self._claimant = claimant.line
        self._borrowed: list[int] = []
        self._left: list[int] = []
        self._places: dict[Quota, _Places] = {}
        self._places_of: dict[Quota, list[_Places]] = {}

    def may_lose(self, leaf: Quota) -> bool:
        """Whether a quota uses more than it is guaranteed, seen from a claimant elsewhere in the tree.

        Every quota in its line that the claimant is not in must do so. What is idle within a group of quotas
        is the group's own. A group that keeps to its guarantee loses nothing to others.
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
        """A pod is taken from a quota that may lose it."""
        left = self._left
        for places in self._places_of[leaf]:
            for place, resource in places:
                left[place] -= amounts.get(resource, 0)

    def restore(self) -> None:
        """All that was taken is as if it had not been."""
        self._left = self._borrowed.copy()

    def _apart(self, leaf: Quota) -> list[_Places]:
        """Where what is left is noted of each quota in a line that the claimant is not in."""
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

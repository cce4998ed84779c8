"""Bounds within which failed assignments of a queue hold, so that one look takes the place of many."""

from __future__ import annotations

from typing import final

from harness_plugins.kueue.rules.dominant_resource_share import Share


@final
class Bounds:
    """What may be free for a queue, and the shares that others may have.

    Attributes:
        enough: flavor-resource -> at least as much is free.
        lacking: flavor-resource -> less is free.
        share: all others have less; None where their shares do not matter.
    """

    __slots__ = ("enough", "lacking", "share")

    def __init__(self) -> None:
        self.enough: dict[int, int] = {}
        self.lacking: dict[int, int] = {}
        self.share: Share | None = None

    def be_free(self, cell: int, amount: int) -> None:
        """An amount of a flavor-resource is free."""
        self.enough[cell] = max(amount, self.enough.get(cell, amount))

    def lack(self, cell: int, amount: int) -> None:
        """An amount of a flavor-resource is not free."""
        self.lacking[cell] = min(amount, self.lacking.get(cell, amount))

    def have_less(self, share: Share) -> None:
        """All others have less than a share."""
        self.share = share if self.share is None else min(share, self.share)

"""Flavor fungibility: which of several flavors is preferred, and when the scan for one ends.

Upstream: `isPreferred` and `shouldTryNextFlavor` in pkg/scheduler/flavorassigner/flavorassigner.go (KEP 582).
"""

from __future__ import annotations

from harness.models.cluster import FlavorFungibility

NOTHING_FITS, NO_CANDIDATES, PREEMPTS, RECLAIMS, FITS = range(5)
"""How one flavor-resource stands, from worst to best (upstream's granular modes)."""

Quality = tuple[int, int]
"""How a flavor-resource or a flavor stands, and how high up the cohorts the quota comes from."""


def prefers_preemption(fungibility: FlavorFungibility, *, implicit: bool) -> bool:
    """Whether a ClusterQueue would rather preempt than borrow.

    Args:
        fungibility: what it says.
        implicit: whether it is taken from `whenCanBorrow` where it says nothing (the gate
            FlavorFungibilityImplicitPreferenceDefault).
    """
    if implicit and not fungibility.preference:
        return fungibility.when_can_borrow == "TryNextFlavor"
    return fungibility.preference == "PreemptionOverBorrowing"


def is_preferred(left: Quality, right: Quality, *, rather_preempt: bool) -> bool:
    """Whether a flavor is strictly preferred to another."""
    (mode, borrowing), (other_mode, other_borrowing) = left, right
    if mode != other_mode and min(mode, other_mode) <= NO_CANDIDATES:
        return mode > other_mode
    if rather_preempt and borrowing != other_borrowing:
        return borrowing < other_borrowing
    if mode != other_mode:
        return mode > other_mode
    return borrowing < other_borrowing


def good_enough(quality: Quality, fungibility: FlavorFungibility) -> bool:
    """Whether a scan stops at a flavor."""
    mode, borrowing = quality
    if mode <= NO_CANDIDATES:
        return False
    if mode != FITS and fungibility.when_can_preempt == "TryNextFlavor":
        return False
    return not (borrowing and fungibility.when_can_borrow == "TryNextFlavor")

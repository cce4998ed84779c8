"""Flavor fungibility, which determines the preferred flavor and the end of a scan.

Upstream: `isPreferred` and `shouldTryNextFlavor` in pkg/scheduler/flavorassigner/flavorassigner.go (KEP 582).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from harness.models.cluster import FlavorFungibility
from harness_plugins.kueue.rules.feature_gates import Gates

NOTHING_FITS: Final = 0
NO_CANDIDATES: Final = 1
PREEMPTS: Final = 2
RECLAIMS: Final = 3
FITS: Final = 4
"""The modes of one flavor-resource, from worst to best. Upstream calls them granular modes."""

Quality = tuple[int, int]
"""The mode of a flavor or flavor-resource, and how many levels above the queue its quota comes from."""


Preference: TypeAlias = Callable[[Quality], tuple[int, ...]]
"""Returns a key by which flavors are compared. A flavor with a larger key is preferred."""


class Scan(NamedTuple):
    """The rules by which a ClusterQueue scans the flavors of a resource group.

    Attributes:
        of_resources: the preference used to find the worst resource of a flavor.
        of_flavors: the preference used to find the best flavor.
        is_enough: returns whether the scan stops at a flavor.
        goes_on: True if the next scan starts after the flavors that were considered, False if it starts over.
    """

    of_resources: Preference
    of_flavors: Preference
    is_enough: Callable[[Quality], bool]
    goes_on: bool


def scan_of(fungibility: FlavorFungibility, gates: Gates) -> Scan:
    """Returns the rules by which a ClusterQueue scans flavors.

    Without the FlavorFungibility feature gate, the scan takes the first flavor that fits. If no flavor fits,
    it takes the first one with the best mode.
    """
    preferred = preference_of(fungibility, gates)
    if not gates.flavor_fungibility:
        return Scan(preferred, lambda quality: quality[:1], lambda quality: quality[0] == FITS, goes_on=False)
    return Scan(preferred, preferred, partial(good_enough, fungibility), goes_on=True)


def preference_of(fungibility: FlavorFungibility, gates: Gates) -> Preference:
    """Returns the key by which a ClusterQueue compares flavors.

    The meaning of `preference` depends on the release. A value means what its name says, or it means the
    other value, or it is ignored. If `preference` is ignored or absent, `whenCanBorrow` determines the
    preference. This requires the FlavorFungibilityImplicitPreferenceDefault gate.
    """
    rules = gates.rules
    preference = fungibility.preference if rules.preference_is_read else ""
    if preference:
        borrows_less = (preference == "PreemptionOverBorrowing") is rules.preference_is_named
    else:
        implicit = gates.flavor_fungibility_implicit_preference_default
        borrows_less = implicit and fungibility.when_can_borrow == "TryNextFlavor"
    if not borrows_less:
        return mode_first
    return borrowing_first if rules.no_candidates_last else borrowing_first_of_all


def mode_first(quality: Quality) -> tuple[int, ...]:
    """Implements BorrowingOverPreemption: prefers a fit to preemption, then fewer levels of borrowing."""
    mode, borrowing = quality
    return mode, -borrowing


def borrowing_first(quality: Quality, unusable: int = NO_CANDIDATES) -> tuple[int, ...]:
    """Implements PreemptionOverBorrowing: prefers fewer borrowing levels among usable flavors."""
    mode, borrowing = quality
    return (0, mode, -borrowing) if mode <= unusable else (1, -borrowing, mode)


def borrowing_first_of_all(quality: Quality) -> tuple[int, ...]:
    """Implements PreemptionOverBorrowing before PR 13616.

    In these releases, a flavor without preemption candidates can also be preferred because it borrows less.
    """
    return borrowing_first(quality, NOTHING_FITS)


def good_enough(fungibility: FlavorFungibility, quality: Quality) -> bool:
    """Returns True if a scan stops at a flavor."""
    mode, borrowing = quality
    if mode <= NO_CANDIDATES:
        return False
    if mode != FITS and fungibility.when_can_preempt == "TryNextFlavor":
        return False
    return not (borrowing and fungibility.when_can_borrow == "TryNextFlavor")

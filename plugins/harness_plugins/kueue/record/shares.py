"""Converts shares to the numbers that the record shows."""

from __future__ import annotations

import math

from harness.base.units import INT64_MAX
from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares


def published(share: Share) -> int:
    """Returns `weightedShare` as in Kueue's status: rounded up, or the largest integer if it is infinite."""
    infinite, value = share
    return INT64_MAX if infinite else math.ceil(value)


def number(share: Share) -> float | str:
    """Returns a share as a number, or "infinite"."""
    infinite, value = share
    return "infinite" if infinite else value


def ratio(shares: Shares, node: int) -> float:
    """Returns the share of a ClusterQueue or Cohort before weighting, in 1/1000 of the lendable quota."""
    return max(0.0, max(shares.parts(node), default=0.0))

"""Names the preemption rules of each semantics of elastic quotas. All other code is shared."""

from __future__ import annotations

from typing import TypeAlias

from harness_plugins.elastic_quota.ack import AckClaim, AckRules
from harness_plugins.elastic_quota.capacity import CapacityClaim, CapacityRules
from harness_plugins.elastic_quota.koordinator import KoordinatorClaim, KoordinatorRules

Rules: TypeAlias = AckRules | CapacityRules | KoordinatorRules
"""The rules of one semantics. See `AckRules` for the attributes and methods."""

Claim: TypeAlias = AckClaim | CapacityClaim | KoordinatorClaim
"""The potential victims of a pod in one search. The state does not change during the search."""

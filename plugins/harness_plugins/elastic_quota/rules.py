"""Names the preemption rules of each semantics of elastic quotas. All other code is shared."""

from __future__ import annotations

from typing import TypeAlias

from harness_plugins.elastic_quota.ack import AckRules
from harness_plugins.elastic_quota.capacity import CapacityRules
from harness_plugins.elastic_quota.koordinator import KoordinatorRules

Rules: TypeAlias = AckRules | CapacityRules | KoordinatorRules
"""The rules of one semantics. See `AckRules` for the attributes and methods."""

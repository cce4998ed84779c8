"""Combines the shortcuts with the rules that they speed up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from harness.models.kube.cache import Cache
from harness.models.kube.gangs import Gang
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.told import Told
from harness_plugins.elastic_quota.ack import AckRules
from harness_plugins.elastic_quota.plain import LastingRefusals, Plain
from harness_plugins.elastic_quota.quota_request import Nominated
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.search import DryRuns, on_each
from harness_plugins.elastic_quota.shortcuts.kept_dry_runs import KeptDryRuns
from harness_plugins.elastic_quota.shortcuts.lasting_refusal import KeptRefusals


@final
class Shortcuts(Plain):
    """The shortcuts of one scheduler. Without them, all decisions are the same."""

    def dry_runs(self, rules: Rules, usage: QuotaUsage, cache: Cache) -> DryRuns:
        """See `Plain`. Only the dry runs of ACK's rules have inputs that can be compared."""
        return KeptDryRuns(usage, cache) if isinstance(rules, AckRules) else on_each

    def lasting(
        self,
        rules: Rules,
        usage: QuotaUsage,
        nominated: Nominated,
        scheduling: Scheduling,
        said: Mapping[Gang, Told],
    ) -> LastingRefusals:
        """See `Plain`."""
        return KeptRefusals(rules, usage, nominated, scheduling, said)

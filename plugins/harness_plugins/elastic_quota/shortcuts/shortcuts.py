"""Combines the shortcuts with the rules that they speed up."""

from __future__ import annotations

from typing import final

from harness_plugins.elastic_quota.ack import AckRules
from harness_plugins.elastic_quota.plain import LastingRefusals, Plain, World
from harness_plugins.elastic_quota.search import DryRuns, on_each
from harness_plugins.elastic_quota.shortcuts.kept_dry_runs import KeptDryRuns
from harness_plugins.elastic_quota.shortcuts.lasting_refusal import KeptRefusals


@final
class Shortcuts(Plain):
    """The shortcuts of one scheduler. Without them, all decisions are the same."""

    def dry_runs(self, world: World) -> DryRuns:
        """See `Plain`. Only the dry runs of ACK's rules have inputs that can be compared."""
        if not isinstance(world.rules, AckRules):
            return on_each
        return KeptDryRuns(world.usage, world.scheduling.cache)

    def lasting(self, world: World) -> LastingRefusals:
        """See `Plain`."""
        return KeptRefusals(world)

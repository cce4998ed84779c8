"""Works everything out at each attempt. `shortcuts.shortcuts.Shortcuts` avoids repeated work instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, final

from harness.models.kube.gangs import Gang
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.pod import LastingRefusal, PodInfo
from harness.models.told import Told
from harness_plugins.elastic_quota.failure import QuotaRefusal
from harness_plugins.elastic_quota.quota_request import Nominated
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.search import DryRuns, on_each


class LastingRefusals(Protocol):
    """Finds out which refusals remain valid although something has changed."""

    def of(self, refusal: QuotaRefusal, pods: Sequence[PodInfo]) -> LastingRefusal | None:
        """Returns the reason why a pod, or all pods of a gang, would fail again; None if it is not known."""

    def spared(self, lasting: LastingRefusal | None) -> PodInfo | None:
        """Returns the last pod whose attempt was skipped since the previous call, or None."""

    def renew(self) -> None:
        """Drops all results that depend on nodes, their order or quotas, because these have changed."""


@final
class NothingLasts:
    """Knows no lasting refusals."""

    def of(self, refusal: QuotaRefusal, pods: Sequence[PodInfo]) -> LastingRefusal | None:
        """See `LastingRefusals`."""
        return None

    def spared(self, lasting: LastingRefusal | None) -> PodInfo | None:
        """See `LastingRefusals`."""
        return None

    def renew(self) -> None:
        """See `LastingRefusals`."""


class World(NamedTuple):
    """The environment of a scheduler.

    Attributes:
        rules: the rules of the semantics.
        usage: the quotas.
        nominated: the nominated pods.
        scheduling: the results of pods on nodes.
        said: the recorded reason for each gang.
    """

    rules: Rules
    usage: QuotaUsage
    nominated: Nominated
    scheduling: Scheduling
    said: Mapping[Gang, Told]


class Plain:
    """Creates the parts of a scheduler that shortcuts replace."""

    def dry_runs(self, world: World) -> DryRuns:
        """Returns the function that performs the dry runs of a search."""
        return on_each

    def lasting(self, world: World) -> LastingRefusals:
        """Returns the object that finds lasting refusals."""
        return NothingLasts()

"""Admission checks: what must be ready, besides quota, before a workload is admitted.

Kueue admits in two phases (https://kueue.sigs.k8s.io/docs/concepts/admission): a workload first reserves
quota. Then all of its checks run at the same time. When all are ready, it is admitted and its pods are
created (https://kueue.sigs.k8s.io/docs/concepts/admission_check). Controllers of their own carry the checks
out. Here a check is ready a given time after each reservation; none is retried or rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.models.cluster import Cluster, ClusterQueue

Flavors = Mapping[str, Mapping[str, str]]
"""Pod set -> resource -> flavor."""


@final
class AdmissionChecks:
    """The checks of each ClusterQueue that take time.

    Args:
        cluster: the ClusterQueues.
        delays: check -> how long it takes, in microseconds, 0 for those that are left out; or one time for
            each.

    Raises:
        OptionError: a delay for a check that no ClusterQueue has.
    """

    def __init__(self, cluster: Cluster, delays: Mapping[str, int] | int) -> None:
        known = {check.name for queue in _ever(cluster) for check in queue.checks}
        if isinstance(delays, int):
            delays = dict.fromkeys(known, delays)
        for name in delays:
            if name not in known:
                hint = did_you_mean(name, known) if known else "no ClusterQueue has any"
                raise OptionError(f"option admissionCheckDelay: there is no check {name!r}", hint=hint)
        self._delays = delays
        self.follow(cluster)

    def follow(self, cluster: Cluster) -> None:
        """Takes over the ClusterQueues of another cluster."""
        delays = self._delays
        self._of = {
            queue.name: tuple(
                (check.name, frozenset(check.on_flavors), delays[check.name])
                for check in queue.checks
                if delays.get(check.name)
            )
            for queue in cluster.cluster_queues.values()
        }

    def of(self, queue: str, flavors: Flavors) -> dict[str, int]:
        """Check -> its time in microseconds, for checks that a workload with these flavors waits for."""
        checks = self._of[queue]
        if not checks:
            return {}
        used = {flavor for each in flavors.values() for flavor in each.values()}
        return {name: delay for name, on, delay in checks if not on or on & used}


def _ever(cluster: Cluster) -> Iterator[ClusterQueue]:
    """All present and future ClusterQueues."""
    yield from cluster.cluster_queues.values()
    for instant in cluster.changes:
        yield from (edit.after for edit in instant.edits if edit.kind == "ClusterQueue" and edit.after)

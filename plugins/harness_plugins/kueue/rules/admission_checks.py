"""Admission checks, which must be ready before Kueue admits a workload that has reserved quota.

Kueue admits a workload in two phases (https://kueue.sigs.k8s.io/docs/concepts/admission). The workload first
reserves quota. Then all of its checks run at the same time. When every check is ready, Kueue admits the
workload and its pods are created (https://kueue.sigs.k8s.io/docs/concepts/admission_check).

In Kueue, separate controllers run the checks. In this model, each check becomes ready a fixed time after the
quota is reserved. Checks are never retried or rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.models.cluster import Cluster
from harness_plugins.kueue.rules.changes import queues_ever

Flavors = Mapping[str, Mapping[str, str]]
"""Maps each pod set to its resources, and each resource to the assigned flavor."""


@final
class AdmissionChecks:
    """The admission checks that take time, for each ClusterQueue.

    Args:
        delays: the delay of each named check in microseconds. Checks that are not named have no delay. A
            single number is the delay of all checks.

    Raises:
        OptionError: an option sets a delay for a check that no ClusterQueue has.
    """

    def __init__(self, cluster: Cluster, delays: Mapping[str, int] | int) -> None:
        known = {check.name for queue in queues_ever(cluster) for check in queue.checks}
        if isinstance(delays, int):
            delays = dict.fromkeys(known, delays)
        for name in delays:
            if name not in known:
                hint = did_you_mean(name, known) if known else "no ClusterQueue has any"
                raise OptionError(f"option admissionCheckDelay: there is no check {name!r}", hint=hint)
        self._delays = delays
        self.follow(cluster)

    def follow(self, cluster: Cluster) -> None:
        """Switches to the ClusterQueues of another cluster."""
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
        """Returns the delay in microseconds of each check that applies to a workload with these flavors.

        In Kueue, a check without `onFlavors` applies to all flavors of the queue. A workload without flavors
        therefore has no checks (`admissionChecksForAdmission`).
        """
        checks = self._of[queue]
        if not checks:
            return {}
        used = {flavor for each in flavors.values() for flavor in each.values()}
        return {name: delay for name, on, delay in checks if (used if not on else on & used)}

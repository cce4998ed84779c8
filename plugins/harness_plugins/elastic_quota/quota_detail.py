"""Collects the usage, guarantees and limits of the quotas in a preemption, for the record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.models.cluster import UNLIMITED
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.runtime_quotas import add_to
from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.quota_usage import QuotaUsage


def quota_detail(pod: PodInfo, victims: Iterable[PodInfo], usage: QuotaUsage) -> dict[str, Any]:
    """Returns the usage, guarantees and limits of the preemptor's and victims' quotas before any eviction.

    See `states`. `queue` is the preemptor's quota, and `request` is the pod's request. `taken` has the
    quantities that each quota loses.
    """
    quota, asked, _ = usage.of(pod)
    if quota is None:
        return {}
    taken: dict[Quota, dict[str, int]] = {}
    for victim in victims:
        theirs = usage.quota_of(victim)
        if theirs is not None:
            add_to(taken.setdefault(theirs, {}), usage.of(victim).amounts)
    return {
        "queue": quota.name,
        "request": dict(asked),
        "taken": {theirs.name: amounts for theirs, amounts in taken.items()},
        **states(dict.fromkeys((quota, *taken))),
    }


def states(quotas: Iterable[Quota]) -> dict[str, dict[str, Amounts]]:
    """Returns the usage, guarantee (`quota`) and limit (`max`) of quotas. Unlimited resources are left out.

    Koordinator's quotas also have their most recently computed runtime (`runtime`).
    """
    said: dict[str, dict[str, Amounts]] = {"usage": {}, "quota": {}, "max": {}}
    for quota in quotas:
        said["usage"][quota.name] = {resource: amount for resource, amount in quota.used.items() if amount}
        said["quota"][quota.name] = dict(quota.min)
        said["max"][quota.name] = {
            resource: bound
            for resource, bound in quota.max.items()
            if bound < UNLIMITED and (bound or quota.used.get(resource))
        }
        if quota.runtime is not None:
            said.setdefault("runtime", {})[quota.name] = quota.runtime
    return said

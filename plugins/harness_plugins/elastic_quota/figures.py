"""The figures behind a preemption: what the quotas of both sides use, are guaranteed and may use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.cluster.model import UNLIMITED
from harness_plugins.elastic_quota.accounts import Accounts
from harness_plugins.elastic_quota.tree import Amounts, Quota
from harness_plugins.kube.pod import PodInfo


def quota_figures(pod: PodInfo, victims: Iterable[PodInfo], accounts: Accounts) -> dict[str, Any]:
    """The preemptor's quota and the victims', as they are before anybody is evicted.

    Args:
        pod: the preemptor.
        victims: whom it preempts.
        accounts: the quotas.
    """
    quota = accounts.quota_of(pod)
    if quota is None:
        return {}
    taken: dict[Quota, dict[str, int]] = {}
    for victim in victims:
        theirs = accounts.quota_of(victim)
        if theirs is not None:
            total = taken.setdefault(theirs, {})
            for resource, amount in accounts.amounts(victim).items():
                total[resource] = total.get(resource, 0) + amount
    return {
        "quota": {"name": quota.name, "request": dict(accounts.amounts(pod)), **state_of(quota)},
        "victim_quotas": [
            {"name": theirs.name, "taken": amounts, **state_of(theirs)} for theirs, amounts in taken.items()
        ],
    }


def state_of(quota: Quota) -> dict[str, Amounts]:
    """What a quota uses, is guaranteed and may use; what has no bound is left out."""
    most = {
        resource: bound
        for resource, bound in quota.max.items()
        if bound < UNLIMITED and (bound or quota.used.get(resource))
    }
    used = {resource: amount for resource, amount in quota.used.items() if amount}
    return {"used": used, "min": dict(quota.min), "max": most}

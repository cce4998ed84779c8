"""Provides kube-scheduler for `none` and `default-preemption`.

The option `gang` selects whether pods are placed one by one or as gangs. With `gang=all-or-nothing`, the code
for elastic quotas places gangs, without any quota. You can therefore separate the effect of gangs from the
effect of quotas. kube-scheduler's own gangs are off by default. `gangScheduling=true` approximates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness import Cluster, Policy, View
from harness.base.errors import OptionError
from harness.models.evictions import LATENCY
from harness_plugins.kube.policy import GANG, GANG_SCHEDULING, TOGETHER, default_preemption


def kube_scheduler(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Returns the scheduler that the options select.

    Raises:
        InputError: the cluster has no nodes.
        OptionError: two options place gangs by different rules.
    """
    own = GANG_SCHEDULING.name
    if options[GANG.name] != TOGETHER:
        return default_preemption(cluster, view, options, latency=options.get(LATENCY.name))
    if options.get(own):
        raise OptionError(
            f"options {GANG.name}={TOGETHER} and {own}=true both place gangs, by different rules",
            hint=f"set only one of them; {own}=true is kube-scheduler's own way",
        )
    # This module is imported late, because only gangs need the code for elastic quotas.
    from harness_plugins.elastic_quota.policy import without_quotas

    others = {name: value for name, value in options.items() if name != own}
    return without_quotas(cluster, view, others)

"""The plugin `auto`, which preempts by quota for pods with a quota and by priority for others, like ACK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness import Cluster, Policy, PolicySpec, Possible, Register, View, hookimpl
from harness.models.kube.running import running_jobs
from harness_plugins.elastic_quota.options import OPTIONS_OF_AUTO, ignored_fields


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `auto`."""
    register(
        PolicySpec(
            "auto",
            _make,
            help="elasticquota for pods with a quota and default-preemption for others, or one for all pods",
            options=OPTIONS_OF_AUTO,
            running=running_jobs,
            ignored_fields=ignored_fields,
            never=_never,
            by_elastic_quotas=_by_elastic_quotas,
        )
    )


def _make(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    # This module is imported late, because the list of plugins does not need the scheduler.
    from harness_plugins.elastic_quota.policy import auto

    return auto(cluster, view, options)


def _by_elastic_quotas(cluster: Cluster) -> bool:
    from harness_plugins.elastic_quota.policy import by_quotas

    return by_quotas(cluster)


def _never(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    from harness_plugins.elastic_quota.policy import impossible_for_auto

    return impossible_for_auto(cluster, options)

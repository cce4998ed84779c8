"""The plugin `auto`, which preempts by quota for pods with a quota and by priority for other pods."""

from __future__ import annotations

from harness import PolicySpec, Register, hookimpl
from harness.models.kube.running import running_jobs
from harness.plugins.hookspecs import late
from harness_plugins.elastic_quota.options import OPTIONS_OF_AUTO, ignored_fields

_POLICY = "harness_plugins.elastic_quota.policy"


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `auto`."""
    register(
        PolicySpec(
            "auto",
            late(f"{_POLICY}:auto"),
            help="elasticquota for pods with a quota, and default-preemption for pods without one; option "
            "autoBy: one of them for all pods",
            options=OPTIONS_OF_AUTO,
            running=running_jobs,
            ignored_fields=ignored_fields,
            never=late(f"{_POLICY}:impossible_for_auto"),
            by_elastic_quotas=late(f"{_POLICY}:by_quotas"),
        )
    )

"""Models elastic quotas, whose pods and gangs preempt other pods to reclaim the guarantee of their quota."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import PolicySpec, Register, hookimpl
from harness.models.kube.running import running_jobs
from harness.plugins.hookspecs import late
from harness_plugins.elastic_quota.options import OPTIONS, ignored_fields

if TYPE_CHECKING:
    from harness.models.manifests import KindSpec
    from harness.plugins.conformance import ConformanceSpec

_HERE = "harness_plugins.elastic_quota"


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `elasticquota`."""
    register(
        PolicySpec(
            "elasticquota",
            late(f"{_HERE}.policy:elastic_quota"),
            help="quotas with a guarantee and a limit, which reclaim their guarantee from quotas that borrow",
            options=OPTIONS,
            running=running_jobs,
            ignored_fields=ignored_fields,
            never=late(f"{_HERE}.policy:impossible"),
            by_elastic_quotas=lambda cluster: True,
        )
    )


@hookimpl
def harness_register_kinds(register: Register[KindSpec]) -> None:
    """Register ElasticQuotaTree, and ElasticQuota in both API groups."""
    from harness.models.manifests import Kind, KindSpec
    from harness_plugins.elastic_quota.manifests.coverage import ELASTIC_QUOTA, ELASTIC_QUOTA_TREE
    from harness_plugins.elastic_quota.manifests.reading import read_elastic_quota, read_elastic_quota_tree
    from harness_plugins.elastic_quota.manifests.rules import check_elastic

    tree = Kind(("v1beta1",), read_elastic_quota_tree, ELASTIC_QUOTA_TREE, check_elastic)
    register(KindSpec("ElasticQuotaTree.scheduling.sigs.k8s.io", tree))
    quota = Kind(("v1alpha1",), read_elastic_quota, ELASTIC_QUOTA, check_elastic)
    for group in ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io"):
        register(KindSpec(f"ElasticQuota.{group}", quota))


@hookimpl
def harness_register_conformance(register: Register[ConformanceSpec]) -> None:
    """Register the recorded cases of capacity scheduling and Koordinator."""
    from harness.plugins.conformance import ConformanceSpec

    register(
        ConformanceSpec(
            "elasticquota/preempt",
            late(f"{_HERE}.conformance:answer"),
            help="quota admission, and victims across and within quotas",
            fields=("given.pod", "given.note"),
            explain=late(f"{_HERE}.conformance:explain"),
        )
    )
    register(
        ConformanceSpec(
            "koordinator/runtime",
            late(f"{_HERE}.conformance:runtime"),
            help="request, usage and runtime of each quota of a tree",
            fields=("given.refresh", "config.enableMinQuotaScale"),
        )
    )
    register(
        ConformanceSpec(
            "koordinator/preempt",
            late(f"{_HERE}.conformance:attempt"),
            help="admission within the runtime of a quota, and victims of the same quota",
            informative=("error",),
            fields=("given.pod", "config.enableMinQuotaScale", "config.disableDefaultQuotaPreemption"),
            explain=late(f"{_HERE}.conformance:explain"),
        )
    )

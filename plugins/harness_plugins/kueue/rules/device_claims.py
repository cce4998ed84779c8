"""Converts claimed devices to resource quantities, and finds claims that Kueue refuses.

Upstream: `handleDRA` in pkg/controller/core/workload_controller.go, and `countDevicesPerClass` and
`GetResourceRequestsForResourceClaimTemplates` in pkg/dra/claims.go (KEP 2941). The model assumes that enough
devices match the selectors of each request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

from harness.base.units import INT64_MAX
from harness.models.cluster import (
    ALL_DEVICES,
    ClaimTemplate,
    Cluster,
    DeviceRequest,
    frozen,
    limits_by_namespace,
)
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.state.asks import Asking, Claimed

Claims: TypeAlias = Sequence[Mapping[str, Any]]
"""The `resourceClaims` field of a pod."""


class _RefusedError(Exception):
    """Kueue does not admit a workload with this claim."""


@final
class DeviceClaims:
    """Counts the devices that pods claim, by DeviceClass."""

    def __init__(self, cluster: Cluster, gates: Gates) -> None:
        self._templates = cluster.claim_templates
        self._counting = cluster.counting
        self._rules = gates.rules
        self._counts = gates.kueue_dra_integration or gates.dynamic_resource_allocation
        self._rejects = gates.kueue_dra_reject_workloads_when_dra_disabled
        self._gate = "KueueDRAIntegration" if gates.kueue_dra_integration else "DynamicResourceAllocation"

    def __call__(self, claims: Sequence[tuple[str, Claims]], namespace: str) -> Claimed:
        """Returns the resource quantities that a job's claims are converted to.

        Args:
            claims: the name of each pod set, and the claims of one of its pods.
            namespace: the namespace of the templates.
        """
        nothing: tuple[Mapping[str, int], ...] = tuple(frozen() for _ in claims)
        named = [each for _, several in claims for each in several]
        if not self._counts:
            off = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
            return Claimed(nothing, off if self._rejects and any(map(_names_any, named)) else "")
        if any(each.get("resourceClaimName") is not None for each in named):
            return Claimed(nothing, f"{self._gate} feature does not support use of resource claims")
        try:
            return Claimed(tuple(self._of_pod(*each, namespace) for each in claims), "")
        except _RefusedError as why:
            return Claimed(nothing, str(why))

    def _of_pod(self, pod_set: str, claims: Claims, namespace: str) -> Mapping[str, int]:
        total: dict[str, int] = {}
        for name in (each.get("resourceClaimTemplateName") for each in claims):
            if name is None:
                continue
            template = self._templates.get((namespace, str(name)))
            where = f"pod set {pod_set}, ResourceClaimTemplate {namespace}/{name}"
            if template is None:
                raise _RefusedError(f"{where}: the manifests have no such template")
            for device_class, count in self._per_class(template, where).items():
                resource = self._counting.devices.get(device_class)
                if resource is None:
                    raise _RefusedError(
                        f"{where}: DeviceClass {device_class} is not mapped in DRA configuration "
                        "(resources.deviceClassMappings)"
                    )
                if device_class not in self._counting.measured:
                    total[resource] = min(total.get(resource, 0) + count, INT64_MAX)
        return frozen(total)

    def _per_class(self, template: ClaimTemplate, where: str) -> Mapping[str, int]:
        rules = self._rules
        if rules.checks_device_claims and not rules.takes_device_constraints:
            if template.constrained:
                raise _RefusedError(f"{where}: device constraints (MatchAttribute) are not supported")
            if template.configured:
                raise _RefusedError(f"{where}: device config is not supported")
        found: dict[str, int] = {}
        for request in template.requests:
            why = self._why_refused(request) if rules.checks_device_claims else ""
            if why:
                raise _RefusedError(f"{where}: {why}")
            if request.alternatives or (request.admin and rules.skips_admin_access):
                continue
            count = 0 if request.mode == ALL_DEVICES else request.count
            found[request.device_class] = found.get(request.device_class, 0) + count
        return found

    def _why_refused(self, request: DeviceRequest) -> str:
        """Returns why releases since 0.15 refuse a request, or "" if they accept it."""
        if request.alternatives:
            return "FirstAvailable device selection is not supported"
        if request.selects and not self._rules.takes_device_selectors:
            return "CEL selectors are not supported"
        if request.admin:
            return "" if self._rules.skips_admin_access else "AdminAccess is not supported"
        return "AllocationMode 'All' is not supported" if request.mode == ALL_DEVICES else ""


def asking_of(cluster: Cluster, gates: Gates) -> Asking:
    """Returns an object that finds the requests of jobs, including the devices that they claim."""
    limits = limits_by_namespace(cluster.limit_ranges)
    return Asking(reclaims=gates.reclaimable_pods, claims=DeviceClaims(cluster, gates), limits=limits)


def _names_any(claim: Mapping[str, Any]) -> bool:
    return any(claim.get(name) is not None for name in ("resourceClaimName", "resourceClaimTemplateName"))

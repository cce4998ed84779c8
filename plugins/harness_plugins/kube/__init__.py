"""Models kube-scheduler, which places pods on nodes one by one, with default preemption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness import Cluster, Policy, PolicySpec, Register, View, hookimpl
from harness.models.kube.running import running_jobs
from harness_plugins.kube.policy import OPTIONS, fits_no_node, ignored_fields

if TYPE_CHECKING:
    from harness.plugins.conformance import ConformanceSpec


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `default-preemption`."""
    register(
        PolicySpec(
            "default-preemption",
            _make,
            help="kube-scheduler's default profile: pods one by one, with preemption by priority; "
            "needs nodes",
            options=OPTIONS,
            running=running_jobs,
            ignored_fields=ignored_fields,
            never=fits_no_node,
        )
    )


@hookimpl
def harness_register_conformance(register: Register[ConformanceSpec]) -> None:
    """Register the recorded cases of kube-scheduler."""
    from harness.plugins.conformance import ConformanceSpec

    register(
        ConformanceSpec(
            "kube-scheduler/preempt",
            _preempt,
            help="node and victims of one default preemption",
            fields=("given.pod", "given.note"),
            explain=_explain_preempt,
        )
    )
    register(
        ConformanceSpec(
            "kube-scheduler/cycles",
            _cycles,
            help="whole replays over virtual time",
            informative=("attempts", "endTime"),
            fields=(
                "given.start",
                "given.horizon",
                "given.pods[].pod",
                "given.pods[].duration",
                "given.events[].at",
                "given.events[].object",
                "given.events[].delete",
                "config.featureGates.OpportunisticBatching",
            ),
            explain=_explain_cycles,
        )
    )


# These modules are imported late, because the list of plugins needs neither the engine nor the readers.


def _make(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    from harness_plugins.kube_scheduler import kube_scheduler

    return kube_scheduler(cluster, view, options)


def _preempt(case: Mapping[str, Any]) -> Mapping[str, Any]:
    from harness_plugins.kube.conformance import preempt

    return preempt(case)


def _explain_preempt(case: Mapping[str, Any]) -> str:
    from harness_plugins.kube.conformance import explain_preempt

    return explain_preempt(case)


def _cycles(case: Mapping[str, Any]) -> Mapping[str, Any]:
    from harness_plugins.kube.conformance_cycles import cycles

    return cycles(case)


def _explain_cycles(case: Mapping[str, Any]) -> str:
    from harness_plugins.kube.conformance_cycles import explain_cycles

    return explain_cycles(case)

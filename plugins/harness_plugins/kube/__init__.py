"""Models kube-scheduler, which places pods on nodes one by one, with default preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import PolicySpec, Register, hookimpl
from harness.models.kube.running import running_jobs
from harness.plugins.hookspecs import late
from harness_plugins.kube.policy import OPTIONS, fits_no_node, ignored_fields

if TYPE_CHECKING:
    from harness.plugins.conformance import ConformanceSpec

_CASES = "harness_plugins.kube.conformance"


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `default-preemption`."""
    register(
        PolicySpec(
            "default-preemption",
            late("harness_plugins.kube_scheduler:kube_scheduler"),
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
            late(f"{_CASES}:preempt"),
            help="the node and the victims of a default preemption",
            fields=("given.pod", "given.note"),
            explain=late(f"{_CASES}:explain_preempt"),
        )
    )
    register(
        ConformanceSpec(
            "kube-scheduler/cycles",
            late(f"{_CASES}_cycles:cycles"),
            help="whole replays of kube-scheduler over virtual time",
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
            explain=late(f"{_CASES}_cycles:explain_cycles"),
        )
    )

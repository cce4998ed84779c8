"""kube-scheduler: pods one by one onto nodes, with default preemption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness import hookimpl

if TYPE_CHECKING:
    from harness.conformance import RegisterConformance


@hookimpl
def harness_register_conformance(register: RegisterConformance) -> None:
    """Register the recorded questions to kube-scheduler."""
    register("kube-scheduler/preempt", _preempt, help="node and victims of one default preemption")


def _preempt(case: Mapping[str, Any]) -> Mapping[str, Any]:
    from harness_plugins.kube.conformance import preempt

    return preempt(case)

"""Elastic quotas: preemption by guarantees, for pods and for gangs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness import hookimpl

if TYPE_CHECKING:
    from harness.conformance import RegisterConformance


@hookimpl
def harness_register_conformance(register: RegisterConformance) -> None:
    """Register the recorded questions to capacity scheduling."""
    register(
        "elasticquota/preempt",
        _answer,
        help="quota admission, and victims across and within quotas",
        explain=_explain,
    )


# The readers of manifests are not needed to list plugins.


def _answer(case: Mapping[str, Any]) -> Mapping[str, Any]:
    from harness_plugins.elastic_quota.conformance import answer

    return answer(case)


def _explain(case: Mapping[str, Any]) -> str:
    from harness_plugins.elastic_quota.conformance import explain

    return explain(case)

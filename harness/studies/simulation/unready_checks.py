"""Describes the admission checks for which a job waits although it holds quota."""

from __future__ import annotations

from collections.abc import Iterable

from harness.cluster.kinds.workloads import REJECTED, RETRY, CheckState

EVICTIONS = ("AdmissionCheck", "DeactivatedDueToAdmissionCheck")
"""The reasons with which Kueue evicts a job because of its checks."""


def is_final(checks: Iterable[CheckState]) -> bool:
    """Returns True if one of the checks rejects the job for good."""
    return any(each.state == REJECTED for each in checks)


def unready(checks: Iterable[CheckState]) -> str:
    """Returns a sentence that names the checks that are not ready, and says how Kueue reacts to them.

    Kueue evicts a job if a check is in state `Retry`, and also deactivates the job if a check is in state
    `Rejected` (upstream's reconcileCheckBasedEviction).
    """
    checks = list(checks)
    told = [f"admission check {each.name} is {each.state}{_message(each)}" for each in checks]
    after = ""
    if is_final(checks):
        after = "; Kueue evicts and deactivates it"
    elif any(each.state == RETRY for each in checks):
        after = "; Kueue evicts it, and queues it again when it has released its quota"
    return f"it has reserved quota, but {', '.join(told)}{after}"


def _message(check: CheckState) -> str:
    return f" ({check.message})" if check.message else ""

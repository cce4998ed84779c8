"""Finds the Workloads that Kueue evicts or deactivates because of admission checks when a replay starts.

Upstream: `reconcileCheckBasedEviction` in pkg/controller/core/workload_controller.go. It evicts a Workload
whether or not the Workload is admitted.
"""

from __future__ import annotations

from harness.models.cluster import REJECTED, RETRY, Workload

BY_CHECK = "AdmissionCheck"
REJECTED_BY_CHECK = "DeactivatedDueToAdmissionCheck"


def evicted_by_checks(manifest: Workload) -> str:
    """Returns the reason with which checks evict a Workload, or "" if no check evicts it."""
    if not manifest.holds_quota or manifest.is_true("Evicted"):
        return ""
    states = {each.state for each in manifest.unready}
    if REJECTED in states:
        return REJECTED_BY_CHECK
    return BY_CHECK if RETRY in states else ""


def why_deactivated(manifest: Workload) -> str:
    """Returns the reason why a Workload is deactivated, or "" if Kueue queues it again."""
    if not manifest.active:
        return "it was deactivated before"
    if evicted_by_checks(manifest) != REJECTED_BY_CHECK:
        return ""
    names = [each.name for each in manifest.unready if each.state == REJECTED]
    return f"admission check {', '.join(names)} rejected it"


def requeue_at(manifest: Workload) -> int | None:
    """Returns the end of a Workload's backoff in microseconds since 1970, or None if there is no backoff.

    The backoffs of checks in the state `Retry` count as well, even if the Workload holds no quota (upstream's
    GetMaxRetryTime).
    """
    times = [manifest.requeue_at, *(each.retry_at for each in manifest.unready if each.state == RETRY)]
    return max((time for time in times if time is not None), default=None)

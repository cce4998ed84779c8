"""Describes timeouts of `waitForPodsReady`."""

from __future__ import annotations

from harness.base.units import SECOND, format_duration
from harness.models.cluster import WaitForPodsReady
from harness_plugins.kueue.rules.wait_for_pods_ready import FOR_START, TimedOut, backoff


def detail_of(timed_out: TimedOut, settings: WaitForPodsReady) -> dict[str, str | int]:
    """Returns the figures of a timeout and a message. The time `requeueAt` is in seconds."""
    cause, times, requeue_at = timed_out
    late = f"time-out {times:,}: not all pods were ready"
    if cause == FOR_START:
        late += f" {format_duration(settings.timeout)} after the admission"
    else:
        late += f" again {format_duration(settings.recovery_timeout or 0)} after some pods were lost"
    if requeue_at is None:
        gives_up = f"the limit is {settings.limit:,} time-outs, so Kueue deactivates the workload"
        return {"cause": cause, "count": times, "message": f"{late}; {gives_up}"}
    away = f"it stays out of its queue for {format_duration(backoff(settings, times))}"
    requeued = requeue_at // SECOND
    return {"cause": cause, "count": times, "requeueAt": requeued, "message": f"{late}; {away}"}

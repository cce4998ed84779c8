"""Reads `waitForPodsReady` of Kueue's Configuration: how long pods may take to be ready, and what then."""

from __future__ import annotations

from typing import final

from harness.base.errors import InputError
from harness.base.units import MINUTE, SECOND, parse_duration
from harness.base.values import Value, fixed
from harness.cluster.yaml.fields import Fields

_TIMEOUT, _OLDER_TIMEOUT = 30 * MINUTE, 5 * MINUTE
_BASE, _MOST = 60, 3600
"""Kueue's defaults; v1beta1 has a shorter time-out."""

_LONGEST = 10**9
"""Seconds; more than thirty years are no backoff."""


@final
@fixed()
class WaitForPodsReady(Value):
    """What becomes of workloads whose pods are not ready in time.

    Attributes:
        timeout: how long pods may take from the admission on until they are ready, microseconds.
        recovery_timeout: how long they may take to be ready again once they were lost, microseconds; None
            where nobody looks.
        block_admission: whether nothing is admitted while some admitted workload is not ready.
        limit: how often a workload is queued again; None without end.
        backoff_base: how long it stays away from its queue for the first time, microseconds.
        backoff_max: how long it stays away at most from the second time on, microseconds.
    """

    timeout: int = _TIMEOUT
    recovery_timeout: int | None = _TIMEOUT
    block_admission: bool = False
    limit: int | None = None
    backoff_base: int = _BASE * SECOND
    backoff_max: int = _MOST * SECOND


def read_wait_for_pods_ready(fields: Fields, *, older: bool) -> tuple[WaitForPodsReady | None, bool]:
    """What a Configuration says of pods, None where nobody looks; and whether a time-out moves a workload.

    Since 0.19 Kueue fills in the section where it is absent, or null. In v1beta1 a switch in it turns it on,
    and where that is off nothing else of it counts.

    Args:
        fields: the Configuration.
        older: whether it is of v1beta1.
    """
    fields = fields.child("waitForPodsReady")
    on = not older or fields.boolean("enable")
    strategy = fields.child("requeuingStrategy")
    by_eviction = strategy.choice("timestamp", ("Eviction", "Creation"), "Eviction") == "Eviction"
    timeout = read_duration(fields, "timeout")
    if timeout is None or (timeout == 0 and not older):
        timeout = _OLDER_TIMEOUT if older else _TIMEOUT
    elif timeout < SECOND:
        fields.fault("timeout", "must be 1s or more: Kueue knows times in whole seconds")
    recovery = read_duration(fields, "recoveryTimeout")
    if recovery is not None and 0 < recovery < SECOND:
        fields.fault("recoveryTimeout", "must be 0s or at least 1s: Kueue knows times in whole seconds")
    found = WaitForPodsReady(
        timeout,
        timeout if recovery is None else recovery or None,
        fields.boolean("blockAdmission", older),
        strategy.integer("backoffLimitCount", least=0) if "backoffLimitCount" in strategy else None,
        _seconds(strategy, "backoffBaseSeconds", _BASE),
        _seconds(strategy, "backoffMaxSeconds", _MOST),
    )
    return (found, by_eviction) if on else (None, True)


def read_duration(fields: Fields, name: str) -> int | None:
    """A duration in the units of Go, which has neither days nor weeks; None when absent or faulty."""
    text = fields.string(name)
    if not text:
        return None
    try:
        if not set("dw") & set(text):
            return parse_duration(text)
    except InputError:
        pass
    fields.fault(name, f"{text!r} is not a duration of Kubernetes, such as 168h, 5m or 90s")
    return None


def _seconds(fields: Fields, name: str, default: int) -> int:
    return fields.integer(name, default, least=0, most=_LONGEST) * SECOND

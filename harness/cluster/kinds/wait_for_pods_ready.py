"""Reads `waitForPodsReady` from Kueue's Configuration, which limits how long pods take to become ready."""

from __future__ import annotations

from dataclasses import field
from typing import final

from harness.base.errors import InputError
from harness.base.units import MINUTE, SECOND, parse_duration
from harness.base.values import Value, fixed
from harness.cluster.model import NEWER
from harness.cluster.yaml.fields import Fields

_TIMEOUT, _OLDER_TIMEOUT = 30 * MINUTE, 5 * MINUTE
_BASE, _MOST = 60, 3600
"""Kueue's defaults in seconds. The timeout of v1beta1 is shorter."""

_LONGEST = 10**9  # the longest backoff in seconds, which is more than thirty years


@final
@fixed()
class WaitForPodsReady(Value):
    """Settings for workloads whose pods are not ready in time.

    Attributes:
        timeout: how long pods can take to become ready after admission, in microseconds.
        recovery_timeout: how long lost pods can take to become ready again, in microseconds, or None if there
            is no limit.
        block_admission: whether Kueue admits no workload while an admitted workload is not ready.
        limit: how often a workload can be requeued, or None if there is no limit.
        backoff_base: the first backoff before a workload is requeued, in microseconds.
        backoff_max: the longest backoff after the first one, in microseconds.
        recovery_given: whether the Configuration mentions `recoveryTimeout`. If not, it is the timeout, but
            there is no limit in releases before 0.16. In these releases, 0s is a limit.
    """

    timeout: int = _TIMEOUT
    recovery_timeout: int | None = _TIMEOUT
    block_admission: bool = False
    limit: int | None = None
    backoff_base: int = _BASE * SECOND
    backoff_max: int = _MOST * SECOND
    recovery_given: bool = field(default=False, metadata=NEWER)


def read_wait_for_pods_ready(fields: Fields, *, older: bool) -> tuple[WaitForPodsReady | None, bool]:
    """Returns two values. The first is the settings for workloads with unready pods, or None if they are off.

    The second value is True if a workload that was evicted after a timeout is ordered by its eviction time.

    Since 0.19, Kueue fills in the section if it is absent or null. In v1beta1, the section can be disabled.
    Kueue then ignores its other fields. `older` says whether the Configuration has version v1beta1.
    """
    fields = fields.child("waitForPodsReady")
    on = not older or fields.boolean("enable")
    strategy = fields.child("requeuingStrategy")
    by_eviction = strategy.choice("timestamp", ("Eviction", "Creation"), "Eviction") == "Eviction"
    timeout = read_duration(fields, "timeout")
    if timeout is None or (timeout == 0 and not older):
        timeout = _OLDER_TIMEOUT if older else _TIMEOUT
    elif timeout < SECOND:
        fields.fault("timeout", "must be at least 1s, because Kueue uses whole seconds")
    recovery = read_duration(fields, "recoveryTimeout")
    if recovery is not None and 0 < recovery < SECOND:
        fields.fault("recoveryTimeout", "must be 0s or at least 1s, because Kueue uses whole seconds")
    found = WaitForPodsReady(
        timeout,
        timeout if recovery is None else recovery or None,
        fields.boolean("blockAdmission", older),
        strategy.integer("backoffLimitCount", least=0) if "backoffLimitCount" in strategy else None,
        _seconds(strategy, "backoffBaseSeconds", _BASE),
        _seconds(strategy, "backoffMaxSeconds", _MOST),
        recovery is not None,
    )
    return (found, by_eviction) if on else (None, True)


def read_duration(fields: Fields, name: str) -> int | None:
    """Read a duration in Go's units, which don't include days or weeks.

    Absent or faulty durations give None.
    """
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

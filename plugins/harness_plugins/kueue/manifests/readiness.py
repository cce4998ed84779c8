"""Imports timeouts and the readiness of pods from Workload manifests."""

from __future__ import annotations

from collections.abc import Callable

from harness.base.units import date_text
from harness.models.cluster import Workload as Manifest
from harness_plugins.kueue.manifests.check_states import requeue_at
from harness_plugins.kueue.rules.wait_for_pods_ready import FOR_RECOVERY, FOR_START, PodsReady
from harness_plugins.kueue.state.workload import Workload

_READY = "PodsReady"
_FOR_START = (FOR_START, _READY)
"""The reasons for waiting until pods are ready for the first time. Older releases use the second reason."""


def why_away(manifest: Manifest) -> str:
    """Returns a message with the reason why a workload is in a backoff, and the time at which it ends."""
    evicted, until = manifest.conditions.get("Evicted"), requeue_at(manifest)
    assert until is not None
    says = "its status.requeueState.requeueAt says"
    if until != manifest.requeue_at:
        says = "requeueAfterSeconds of its admission check says"
    after = f" after its eviction ({evicted.reason})" if evicted is not None and evicted.reason else ""
    return f"it is in a backoff{after}, and Kueue queues it again at {date_text(until)}, as {says}"


def take_over_readiness(
    pods_ready: PodsReady, workload: Workload, manifest: Manifest, moment: Callable[[int], int]
) -> None:
    """Imports the time at which Kueue began to wait for a workload's pods, if a condition shows it.

    Kueue waits for pods to become ready after the admission, or to recover after they were lost (upstream's
    admittedNotReadyWorkload). It writes the condition only if it checks the readiness of pods.
    """
    found, admitted = manifest.conditions.get(_READY), manifest.conditions.get("Admitted")
    if found is None:
        return
    if found.reason in _FOR_START and admitted is not None and admitted.status and admitted.since:
        pods_ready.resumed(workload, FOR_START, moment(admitted.since))
    elif found.reason == FOR_RECOVERY and found.since:
        pods_ready.resumed(workload, FOR_RECOVERY, moment(found.since))

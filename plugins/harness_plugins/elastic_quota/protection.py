"""Determines the pods that ACK's rules never evict: system pods, DaemonSet pods, and labeled pods."""

from __future__ import annotations

from typing import final

from harness import PodSet
from harness.models.cluster import SYSTEM_PRIORITY_CLASSES
from harness.models.kube.pod import PodInfo
from harness.models.manifests import manifest_of

_SYSTEM = min(known.value for known in SYSTEM_PRIORITY_CLASSES.values())


@final
class Protection:
    """Determines which pods are protected.

    Args:
        label: the key and value of a label that protects pods, or None if there is no such label. The value
            None means any value.
        daemons: whether pods of DaemonSets are protected.
    """

    def __init__(self, label: tuple[str, str | None] | None = None, *, daemons: bool = True) -> None:
        self._label = label
        self._daemons = daemons
        self._of_daemon_sets: dict[str, bool] = {}  # keyed by the manifest

    def covers(self, pod: PodInfo) -> bool:
        """Returns True if a pod is never a victim."""
        job = pod.job
        if pod.priority >= _SYSTEM:
            return True
        if job is not None:
            if job.priority_class.startswith("system-"):
                return True
            if self._daemons and self._is_of_daemon_set(job.pod_set_of(pod.pod)):
                return True
        if self._label is None:
            return False
        key, value = self._label
        labels = pod.template.labels
        return key in labels and value in (None, labels[key])

    def _is_of_daemon_set(self, pod_set: PodSet) -> bool:
        text = pod_set.pod_template
        if not text:
            return False
        known = self._of_daemon_sets.get(text)
        if known is None:
            manifest = manifest_of(pod_set)
            known = self._of_daemon_sets[text] = manifest is not None and manifest.of_daemon_set
        return known

"""Kinds of which no object is read although they would change decisions, and what is assumed instead.

kube-scheduler's own groups: https://kubernetes.io/docs/concepts/scheduling-eviction/gang-scheduling/
"""

from __future__ import annotations

from harness.cluster.coverage.kueue import CHECKS

_NO_GROUPS = "pods are in no group of kube-scheduler's own"

NOT_READ = {
    ("kueue.x-k8s.io", "AdmissionCheck"): CHECKS,
    ("scheduling.k8s.io", "PodGroup"): _NO_GROUPS,
    ("scheduling.k8s.io", "Workload"): _NO_GROUPS,
}
"""API group and kind -> what is assumed."""

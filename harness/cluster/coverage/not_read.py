"""Kinds of which no object is read although they would change decisions, and what is assumed instead.

kube-scheduler's groups of groups: https://kubernetes.io/docs/concepts/workloads/compositepodgroup-api/
"""

from __future__ import annotations

from harness.cluster.coverage.kueue import CHECKS

NOT_READ = {
    (
        "batch",
        "Job",
    ): "whose they are, and since when they run, counts for Workloads",
    ("kueue.x-k8s.io", "AdmissionCheck"): CHECKS,
    ("scheduling.k8s.io", "CompositePodGroup"): "every pod group is one by itself",
}
"""API group and kind -> what is assumed."""

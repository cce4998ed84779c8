"""Kinds that are not read although they would change decisions, and what is assumed instead.

Kueue and Scheduler are those of OpenShift's operators, which make the components' own configuration of them.

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
    (
        "config.openshift.io",
        "Scheduler",
    ): "kube-scheduler's default profile decides, whatever profile it names",
    ("kueue.openshift.io", "Kueue"): (
        "preemption, fair sharing and waiting for gangs are as Kueue's Configuration says; give the "
        "ConfigMap kueue-manager-config that the operator makes of it"
    ),
    ("scheduling.k8s.io", "CompositePodGroup"): "every pod group is one by itself",
}
"""API group and kind -> what is assumed."""

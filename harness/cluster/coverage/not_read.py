"""Kinds that harness does not read although they would change decisions, and the assumptions made instead.

`Kueue` and `Scheduler` are kinds of OpenShift's operators, which derive the components' configuration from
objects of these kinds.

kube-scheduler's groups of groups: https://kubernetes.io/docs/concepts/workloads/compositepodgroup-api/
"""

from __future__ import annotations

from harness.cluster.coverage.kueue import CHECKS

NOT_READ = {
    (
        "batch",
        "Job",
    ): "their owner and their start count for Workloads",
    ("kueue.x-k8s.io", "AdmissionCheck"): CHECKS,
    (
        "config.openshift.io",
        "Scheduler",
    ): "kube-scheduler's default profile decides, whatever profile it names",
    ("kueue.openshift.io", "Kueue"): (
        "preemption, fair sharing and waiting for gangs are as Kueue's Configuration says; give the "
        "ConfigMap kueue-manager-config that the operator makes of it"
    ),
    ("scheduling.k8s.io", "CompositePodGroup"): "every pod group stands alone",
    **{
        ("trainer.kubeflow.org", kind): "only a submitted TrainJob reads the one that it names"
        for kind in ("ClusterTrainingRuntime", "TrainingRuntime")
    },
}
"""API group and kind -> the assumption made instead."""

"""Lists kinds that harness doesn't read although they would change decisions, and what it assumes.

`Kueue` and `Scheduler` are kinds of OpenShift's operators. The operators derive the configuration of the
components from objects of these kinds.

For kube-scheduler's groups of groups, see
https://kubernetes.io/docs/concepts/workloads/compositepodgroup-api/.
"""

from __future__ import annotations

from harness.cluster.coverage.kueue import CHECKS
from harness.cluster.coverage.scheduling import ON_ITS_OWN

NOT_READ = {
    (
        "batch",
        "Job",
    ): "harness reads only the owner and the start of a Job, and uses them for the Workload of the Job",
    ("kueue.x-k8s.io", "AdmissionCheck"): CHECKS,
    (
        "config.openshift.io",
        "Scheduler",
    ): "kube-scheduler's default profile decides, even if this object names another profile",
    ("kueue.openshift.io", "Kueue"): (
        "harness reads preemption, fair sharing and waiting for gangs from Kueue's Configuration only; "
        "add the ConfigMap kueue-manager-config, which the operator derives from this object"
    ),
    ("scheduling.k8s.io", "CompositePodGroup"): ON_ITS_OWN,
    **{
        (
            "trainer.kubeflow.org",
            kind,
        ): "harness reads a training runtime only if a TrainJob that you submit names it"
        for kind in ("ClusterTrainingRuntime", "TrainingRuntime")
    },
}
"""Maps an API group and a kind to the assumption that harness makes because it doesn't read the kind."""

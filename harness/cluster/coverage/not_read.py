"""Lists kinds that harness doesn't read although they can change decisions.

For each of them, it states the assumption that harness makes instead.

`Kueue` and `Scheduler` are kinds of OpenShift's operators. The operators derive the configuration of the
components from objects of these kinds.

For kube-scheduler's groups of groups, see
https://kubernetes.io/docs/concepts/workloads/compositepodgroup-api/.
"""

from harness.cluster.coverage.kueue import CHECKS
from harness.cluster.coverage.scheduling import ON_ITS_OWN

_JOBS = "harness reads only the owner, start and end of a Job, and uses them for the Workload of the Job"
_PROFILES = "kube-scheduler's default profile decides, even if this object names another profile"
_RUNTIMES = "harness reads a training runtime only if a TrainJob that you submit names it"

NOT_READ = {
    ("", "ResourceQuota"): "every pod of a job is created, even if it exceeds the quota of its namespace",
    ("batch", "Job"): _JOBS,
    ("kueue.x-k8s.io", "AdmissionCheck"): f"{CHECKS}; of the object, harness reads whether it is active",
    ("config.openshift.io", "Scheduler"): _PROFILES,
    ("kueue.openshift.io", "Kueue"): (
        "harness reads preemption, fair sharing and waiting for gangs from Kueue's Configuration only; "
        "add the ConfigMap kueue-manager-config, which the operator derives from this object"
    ),
    ("scheduling.k8s.io", "CompositePodGroup"): ON_ITS_OWN,
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): _RUNTIMES,
    ("trainer.kubeflow.org", "TrainingRuntime"): _RUNTIMES,
}
"""Maps an API group and a kind to the assumption that harness makes because it doesn't read the kind."""

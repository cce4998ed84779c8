"""Converts the workloads of recorded cases to jobs of a replay."""

from __future__ import annotations

from harness.models.cluster import Workload
from harness.policy import Job
from harness_plugins.kueue.manifests.imported import pod_sets_left, workload_of
from harness_plugins.kueue.rules.feature_gates import Gates


def job_of(manifest: Workload, submit: int, gates: Gates) -> Job:
    """Converts a Workload manifest into a job that is submitted at `submit`."""
    pod_sets = pod_sets_left(manifest)
    return Job(
        index=-1,
        id=manifest.name,
        submit=submit,
        queue=manifest.queue,
        namespace=manifest.namespace,
        user="",
        priority=workload_of(manifest, gates).priority,
        priority_class="",
        preempts=True,
        gang=True,
        grace_period=0,
        uid=manifest.uid,
        pod_sets=pod_sets,
        pods=sum(pod_set.count for pod_set in pod_sets),
    )

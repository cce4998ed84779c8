"""Groups equal pods and equal gangs. If one member of a group fails, the others would fail, too."""

from __future__ import annotations

from typing import final

from harness import Job
from harness.models.kube.gangs import Gang
from harness.models.kube.pod import Peers, PodInfo
from harness_plugins.elastic_quota.quota_usage import QuotaUsage


@final
class Equals:
    """Finds the peers of each pod and gang."""

    def __init__(self, usage: QuotaUsage) -> None:
        self._usage = usage
        self._peers: dict[object, Peers] = {}

    def renew(self) -> None:
        """Assigns new peers to all pods, because equal pods can become different when quotas change."""
        self._peers.clear()

    def of_pod(self, pod: PodInfo) -> Peers:
        """Returns the pods with the same template, quota and priority."""
        quota, apart = self._usage.quota_of(pod), self._apart(job_of(pod))
        return self._peers.setdefault((pod.template, quota, pod.priority, pod.preempts, apart), Peers())

    def of_gang(self, gang: Gang) -> Peers:
        """Returns the peers of a gang, which are equal gangs. A gang with a bound pod has no peers.

        The result is marked as `loose` if the gang is a pod group, because pods can join the group later.
        """
        pods = gang.in_order()
        if not gang.is_whole:
            return Peers(loose=True)
        of_pods = tuple((pod.template, self._usage.quota_of(pod)) for pod in pods)
        apart = tuple(self._apart(job) for job in dict.fromkeys(job_of(pod) for pod in pods))
        key = (of_pods, gang.least, gang.missing, gang.priority, pods[0].preempts, apart)
        return self._peers.setdefault(key, Peers(loose=gang.least is not None))

    def _apart(self, job: Job) -> int | None:
        """Returns the index of a job if its pods can be victims of equal jobs but not of the job itself.

        Pods of one job and quota are equally important, so this is possible only if the job's pods belong to
        several quotas. For all other jobs, the result is None.
        """
        if len(job.pod_sets) == 1:
            return None
        leaf_of = self._usage.leaf_of
        quotas = {leaf_of(job.namespace, each.labels, job.queue) for each in job.pod_sets}
        return job.index if len(quotas) > 1 else None


def job_of(pod: PodInfo) -> Job:
    """Returns the job of a pod in a replay."""
    assert pod.job is not None, "a pod of a replay belongs to a job"
    return pod.job

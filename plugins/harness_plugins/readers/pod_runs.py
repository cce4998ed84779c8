"""Determines when the pods of Workloads and Jobs ran, from the data that a cluster still has.

Quota is reserved or a Job is created before the pods run. In between, the pods wait for a node, pull images
and start. The start of a run is therefore the best time that is known. In order of preference, this is the
time when the pods were ready, when the pods started, when the Job started, or when the Workload was admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness_plugins.readers.kubernetes_objects import Recorded

READY, PODS, JOB, ADMISSION = "its pods were ready", "its pods started", "its Job started", "it was admitted"
"""The possible sources of the start of a run. The best source is first."""

BEST_FIRST = (READY, PODS, JOB, ADMISSION)


class Listed(NamedTuple):
    """A Job or Pod of the list.

    Attributes:
        failed: True if the object is a Pod that failed.
        start, end: times in microseconds since 1970, or None if unknown.
    """

    uid: str
    owners: Sequence[str]
    pod: bool
    failed: bool
    start: int | None
    end: int | None


class PodRuns:
    """The run times of pods by owner, from the Jobs and Pods of a list."""

    def __init__(self, listed: Iterable[Listed]) -> None:
        every = list(listed)
        self._jobs = {each.uid: each for each in every if not each.pod and each.uid}
        self._pods: dict[str, list[Listed]] = {}
        for each in every:
            if each.pod:
                for uid in dict.fromkeys(_above(each, self._jobs)):
                    self._pods.setdefault(uid, []).append(each)

    def began(self, job: Recorded, owners: Iterable[str], since: int | None = None) -> tuple[Recorded, str]:
        """Returns a copy of a job with the start of its run, and the name of the source of this time.

        Args:
            job: the job as its Workload or Job describes it.
            owners: the UIDs of the owners of the Workload, or the UID of the Job.
            since: the time when this run was admitted. The default is the job's last admission.
        """
        since = job.admitted if since is None else since
        uids = list(owners)
        pods = [pod for uid in uids for pod in self._pods.get(uid, ()) if _within(pod, since, job.end)]
        if job.ready is None and not job.gang and not job.rounds and pods:
            alone = _each_by_itself(job, pods)
            if alone is not None:
                return alone, PODS
        starts = [self._jobs[uid].start for uid in uids if uid in self._jobs]
        found = {
            READY: job.ready,
            PODS: _together(pods, sum(pod_set.count for pod_set in job.pod_sets)),
            JOB: max((start for start in starts if start is not None), default=None),
        }
        for how, start in found.items():
            if start is not None and _fits(job, start):
                return replace(job, start=start), how
        return job, JOB if job.admitted is None else ADMISSION


def _within(pod: Listed, since: int | None, end: int | None) -> bool:
    if pod.start is None:
        return True
    return (since is None or pod.start >= since) and (end is None or pod.start <= end)


def _above(pod: Listed, jobs: Mapping[str, Listed]) -> Iterator[str]:
    """Yields the UIDs of a pod, its owners, and the owners of listed Jobs (as for a JobSet)."""
    level, known = [pod.uid, *pod.owners], {""}
    while level:
        new = [uid for uid in level if uid not in known]
        yield from new
        known.update(new)
        level = [owner for uid in new if uid in jobs for owner in jobs[uid].owners]


def _together(pods: Sequence[Listed], count: int) -> int | None:
    """Returns when the number of started pods reached the number that run simultaneously.

    Failed pods are used only if all known pods failed.
    """
    good = [pod for pod in pods if not pod.failed] or pods
    starts = sorted(pod.start for pod in good if pod.start is not None)
    return starts[min(count, len(starts)) - 1] if starts else None


def _each_by_itself(job: Recorded, pods: Sequence[Listed]) -> Recorded | None:
    """Returns a job of independent pods, which starts with its first pod and runs as long as its longest pod.

    If these times are not known for all pods, the result is None.
    """
    good = [pod for pod in pods if not pod.failed] or pods
    spans = [(pod.start, pod.end) for pod in good if pod.start is not None and pod.end is not None]
    if len(spans) < len(good) or any(end < start for start, end in spans):
        return None
    return replace(job, start=min(start for start, _ in spans), run=max(end - start for start, end in spans))


def _fits(job: Recorded, start: int) -> bool:
    return (job.admitted is None or start >= job.admitted) and (job.end is None or start <= job.end)

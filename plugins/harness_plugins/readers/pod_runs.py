"""When the pods of Workloads and Jobs ran, by what a cluster still knows of them.

Quota is reserved, or a Job is created, before its pods run: they wait for a node, pull images, start. A job's
run begins with the best that is known: when its pods were ready, else when they started, else when its Job
did, else when it was admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness_plugins.readers.kubernetes_objects import Recorded

READY, PODS, JOB, ADMISSION = "they were ready", "they started", "their Job started", "they were admitted"
"""What a run is taken to begin with: when the pods were ready, ..."""

BEST_FIRST = (READY, PODS, JOB, ADMISSION)


class Listed(NamedTuple):
    """A Job or Pod of the list.

    Attributes:
        uid: its own.
        owners: uids of what it was made for.
        pod: whether it is a Pod.
        failed: whether it is a Pod that did not end well.
        start, end: microseconds since 1970; None where it is not known.
    """

    uid: str
    owners: Sequence[str]
    pod: bool
    failed: bool
    start: int | None
    end: int | None


class PodRuns:
    """What Jobs and Pods of a list say about when the pods of what owns them ran.

    Args:
        listed: all Jobs and Pods of the list.
    """

    def __init__(self, listed: Iterable[Listed]) -> None:
        every = list(listed)
        self._jobs = {each.uid: each for each in every if not each.pod and each.uid}
        self._pods: dict[str, list[Listed]] = {}
        for each in every:
            if each.pod:
                for uid in dict.fromkeys(_above(each, self._jobs)):
                    self._pods.setdefault(uid, []).append(each)

    def began(self, job: Recorded, owners: Iterable[str], since: int | None = None) -> tuple[Recorded, str]:
        """A job with what its run begins with, and what that is.

        Args:
            job: as its own object tells of it.
            owners: uids of what a Workload was made for; for a Job its own.
            since: when it was let run, where it also ran before; by default when it was last admitted.
        """
        since = job.admitted if since is None else since
        uids = list(owners)
        pods = [pod for uid in uids for pod in self._pods.get(uid, ()) if _within(pod, since, job.end)]
        if not job.gang and not job.rounds and pods:
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
    """Whether a pod is of the run between these times, and not of one before or after it."""
    if pod.start is None:
        return True
    return (since is None or pod.start >= since) and (end is None or pod.start <= end)


def _above(pod: Listed, jobs: Mapping[str, Listed]) -> Iterator[str]:
    """The uids of a pod, of its owners, and of theirs where these are Jobs of the list (as of a JobSet)."""
    level, known = [pod.uid, *pod.owners], {""}
    while level:
        new = [uid for uid in level if uid not in known]
        yield from new
        known.update(new)
        level = [owner for uid in new if uid in jobs for owner in jobs[uid].owners]


def _together(pods: Sequence[Listed], count: int) -> int | None:
    """When as many pods ran as run at once; those that failed count only where no other is known."""
    good = [pod for pod in pods if not pod.failed] or pods
    starts = sorted(pod.start for pod in good if pod.start is not None)
    return starts[min(count, len(starts)) - 1] if starts else None


def _each_by_itself(job: Recorded, pods: Sequence[Listed]) -> Recorded | None:
    """A job whose pods do not need each other: it runs as long as the longest of them, from the first on.

    None where that is not known of all of them.
    """
    good = [pod for pod in pods if not pod.failed] or pods
    spans = [(pod.start, pod.end) for pod in good if pod.start is not None and pod.end is not None]
    if len(spans) < len(good) or any(end < start for start, end in spans):
        return None
    return replace(job, start=min(start for start, _ in spans), run=max(end - start for start, end in spans))


def _fits(job: Recorded, start: int) -> bool:
    """Whether a run can begin then: not before the job was admitted, nor after its end."""
    return (job.admitted is None or start >= job.admitted) and (job.end is None or start <= job.end)

"""A job from the point of view of policies, which can see its requests but not its run time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import FrozenInstanceError, dataclass, fields
from itertools import repeat
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias, final

from harness.base.pod_set import PodSet


class RecordedRun(NamedTuple):
    """A recorded run of a job, with times in microseconds since the trace's origin.

    Attributes:
        start: the start of the run, which is never before the job's arrival or the end of its previous run.
        end: the end of the run, or `ENDLESS` if the run had not ended when the record was made.
        why: how the run ended, in the words of the record, or "" if unknown.
        preempted: whether the run ended because another job took its place.
    """

    start: int
    end: int
    why: str
    preempted: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job of the trace, which is immutable and compared by identity.

    Creating an immutable object takes one call for each field, so `made` is faster for many jobs.

    Attributes:
        index: the job's position in the order of arrival, beginning with 0. Policies can use it as an index
            into their own lists.
        id: the name of the job in the trace.
        submit: the time of arrival in microseconds since the trace's origin.
        queue, namespace, user: the owner of the job. `user` is "" if the trace doesn't contain it.
        priority: the priority, where a larger number is more important.
        priority_class: the name of the priority class, or "" if the trace contains none.
        preempts: False for `preemptionPolicy: Never`.
        gang: whether the job makes progress only while all its pods hold their resources.
        grace_period: how long a preempted pod keeps its resources, in microseconds.
        uid: the last tie-break in components that compare UIDs.
        pod_sets: the pod sets of the job, at least one. Pods are numbered consecutively across all pod sets.
        pods: the total number of pods.
        duration: how long the job runs without interruptions, in microseconds. None unless the policy is
            clairvoyant.
        requested: the longest run time that the user requested, in microseconds. None if there is no such
            request.
        recorded: the job's runs according to the trace, in order. Empty unless the policy repeats recorded
            runs.
    """

    index: int
    id: str
    submit: int
    queue: str
    namespace: str
    user: str
    priority: int
    priority_class: str
    preempts: bool
    gang: bool
    grace_period: int
    uid: str
    pod_sets: tuple[PodSet, ...]
    pods: int
    duration: int | None = None
    requested: int | None = None
    recorded: tuple[RecordedRun, ...] = ()

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.queue}>"

    def pod_set_of(self, pod: int) -> PodSet:
        """Returns the pod set that contains pod number `pod`."""
        for pod_set in self.pod_sets:
            count = pod_set.count
            if pod < count:
                return pod_set
            pod -= count
        raise IndexError(f"job {self.id} has {self.pods} pods")

    def pod_name(self, pod: int, successor: int = 0) -> str:
        """Returns the name of a pod. If the job has several pods, the name ends with the pod's number.

        Args:
            pod: the pod's number within the job.
            successor: how often the pod was recreated after an eviction. The k-th successor of `p` has the
                name `p-r<k>`.
        """
        name = self.id if self.pods == 1 else f"{self.id}-{pod}"
        return f"{name}-r{successor}" if successor else name

    def requests_of(self, pods: range) -> dict[str, int]:
        """Returns the total request of these pods for each resource."""
        total: dict[str, int] = {}
        first = 0
        for pod_set in self.pod_sets:
            last = first + pod_set.count
            count = min(pods.stop, last) - max(pods.start, first)
            if count > 0:
                for resource, amount in pod_set.requests.items():
                    total[resource] = total.get(resource, 0) + count * amount
            first = last
        return total


def _never_changed(job: Any, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"job {job.id} is immutable, so its {name!r} cannot change")


Job.__setattr__ = Job.__delattr__ = _never_changed  # type: ignore[method-assign]  # Python's own names no job

_SETTERS: Final = [Job.__dict__[each.name].__set__ for each in fields(Job)]
"""The slots' own setters, which can still fill the fields of a new job."""


def made(indices: range, *columns: Iterable[Any]) -> list[Job]:
    """Create jobs from their indices and columns, with one column for each other field.

    This takes a third of the time of separate calls of `Job`.
    """
    jobs = list(map(Job.__new__, repeat(Job, len(indices))))
    for put, column in zip(_SETTERS, (indices, *columns), strict=True):
        deque(map(put, jobs, column), maxlen=0)
    return jobs


Arrival: TypeAlias = (
    tuple[Job, int, int | None]
    | tuple[Job, int, int | None, "Startup"]
    | tuple[Job, int, int | None, "Startup | None", int]
)
"""A job, its run time without interruptions, and its own checkpoint interval or None. Two more elements are
optional: how long its pods take to become ready, and its progress on arrival. All times are in microseconds.
An eviction affects progress from before the arrival in the same way as later progress.
"""

Startup: TypeAlias = tuple[int, ...]
"""How long pods that make progress together take to become ready after all of them hold their resources.
There is a number for the first start, one for the second start, and so on. The last number applies to all
later starts. `ENDLESS` means that the pods never become ready.
"""

ENDLESS: Final = 2**62
"""The run time of work that never ends on its own, and the start-up time of pods that never become ready.
Such work and such pods don't keep a replay alive.
"""

"""A job as policies see it: its requests, never its run time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import FrozenInstanceError, dataclass, fields, make_dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias, final

from harness.base.pod_set import PodSet


class RecordedRun(NamedTuple):
    """One run of a job according to a trace, microseconds since the trace's origin.

    Attributes:
        start: start of the run; never before the job's arrival or the end of its previous run.
        end: end of the run; `ENDLESS` if it had not ended when the record was made.
        why: how the run ended, in the record's own word; "" if unknown.
        preempted: whether the run ended because another job took its place.
    """

    start: int
    end: int
    why: str
    preempted: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job of the trace; compared by identity and immutable.

    Creating one immutable object costs a call for each field; `made` creates many jobs faster.

    Attributes:
        index: its place in the order of arrival, from 0: a dense key for a policy's own tables.
        id: its name in the trace.
        submit: its arrival, microseconds since the trace's origin.
        queue, namespace, user: its owner (`user` is "" if the trace does not give it).
        priority: larger is more important.
        priority_class: "" if the trace names none.
        preempts: False for `preemptionPolicy: Never`.
        gang: whether it makes progress only while all its pods hold their resources.
        grace_period: how long a preempted pod keeps its resources, microseconds.
        uid: the last tie-break of components that compare UIDs.
        pod_sets: at least one; pods are numbered through all of them, in order.
        pods: number of pods over all pod sets.
        duration: run time of one undisturbed run, microseconds; None unless the policy is clairvoyant.
        requested: the longest run time that its user requested, microseconds; None without such a request.
        recorded: its runs according to the trace, in order; empty unless the policy repeats recorded runs.
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
        """Returns the name of a pod: the job's own name if it has one pod, else with the pod's number.

        Args:
            pod: the pod's number within the job.
            successor: how often it was recreated after an eviction; the k-th successor of `p` is `p-r<k>`.
        """
        name = self.id if self.pods == 1 else f"{self.id}-{pod}"
        return f"{name}-r{successor}" if successor else name

    def requests_of(self, pods: range) -> dict[str, int]:
        """Returns resource -> the total request of these pods."""
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

_Open: Any = make_dataclass("_Open", [each.name for each in fields(Job)], eq=False, slots=True)
"""A job that can still be changed; it has the slots of `Job`, so that it can become a `Job`."""


def made(*columns: Iterable[Any]) -> list[Job]:
    """Make jobs from one column per field; the shortest column determines their number.

    This takes a quarter of the time that calls of `Job` take.
    """
    jobs = list(map(_Open, *columns))
    for job in jobs:
        job.__class__ = Job
    return jobs


Arrival: TypeAlias = (
    tuple[Job, int, int | None]
    | tuple[Job, int, int | None, "Startup"]
    | tuple[Job, int, int | None, "Startup | None", int]
)
"""A job, its run time without interruptions, and its own checkpoint interval or None, in microseconds.
Two optional times follow: how long its pods take to become ready, and its progress when it arrived. Evictions
cost progress made before the arrival in the same way as later progress.
"""

Startup: TypeAlias = tuple[int, ...]
"""How long pods that progress together take to become ready after all of them hold their resources. The
numbers are for the first start, the second, and so on; the last holds for all later starts. `ENDLESS` means
that the pods never become ready.
"""

ENDLESS = 2**62
"""The run time of work that never ends by itself, and the start-up time of pods that never become ready.
Neither keeps a replay alive.
"""

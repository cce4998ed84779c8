"""A job as policies see it: what it asks for, never how long it will run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import FrozenInstanceError, dataclass, fields, make_dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias, final

from harness.base.pod_set import PodSet


class RecordedRun(NamedTuple):
    """What a trace says of one run of a job, microseconds since the trace's origin.

    Attributes:
        start: when it started; never before the job arrived, nor before its earlier run ended.
        end: when it ended; `ENDLESS` where it had not when the record was made.
        why: how it ended, in the record's own word; "" where that does not say.
        preempted: whether it ended because another job took its place.
    """

    start: int
    end: int
    why: str
    preempted: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job of the trace; compared by identity and immutable.

    Creating an immutable object costs a call for each field; `made` creates many at once.

    Attributes:
        index: its place in the order of arrival, from 0: a dense key for a policy's own tables.
        id: its name in the trace.
        submit: when it arrives, microseconds since the trace's origin.
        queue, namespace, user: whose it is (`user` is "" when the trace does not say).
        priority: larger is more important.
        priority_class: "" when the trace names none.
        preempts: False for `preemptionPolicy: Never`.
        gang: makes progress only while all its pods hold their resources.
        grace_period: how long a preempted pod keeps what it holds, microseconds.
        uid: the last tie-break of components that compare UIDs.
        pod_sets: at least one; pods are numbered through all of them, in order.
        pods: number of pods over all pod sets.
        duration: run time of one undisturbed run, microseconds; None unless the policy is clairvoyant.
        requested: how long its user said that it would run at most, microseconds; None where nobody said.
        recorded: the runs that the trace says it had, in order; empty unless the policy is a record.
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
        """The pod set that pod number `pod` belongs to."""
        for pod_set in self.pod_sets:
            count = pod_set.count
            if pod < count:
                return pod_set
            pod -= count
        raise IndexError(f"job {self.id} has {self.pods} pods")

    def pod_name(self, pod: int, successor: int = 0) -> str:
        """The name of a pod: the job's own when it has one pod, else with the pod's number.

        Args:
            pod: the pod's number within the job.
            successor: how often it was recreated after an eviction; the k-th successor of `p` is `p-r<k>`.
        """
        name = self.id if self.pods == 1 else f"{self.id}-{pod}"
        return f"{name}-r{successor}" if successor else name

    def requests_of(self, pods: range) -> dict[str, int]:
        """Resource -> amount that these pods hold together."""
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
    raise FrozenInstanceError(f"job {job.id} is never changed, and neither is its {name!r}")


Job.__setattr__ = Job.__delattr__ = _never_changed  # type: ignore[method-assign]  # Python's own names no job

_Open: Any = make_dataclass("_Open", [each.name for each in fields(Job)], eq=False, slots=True)
"""A job that can be changed yet; it has the slots of a `Job`, so that it can become one."""


def made(*columns: Iterable[Any]) -> list[Job]:
    """Jobs from a column for each of their fields; as many as the shortest column has.

    It takes a quarter of the time of as many calls of `Job`.
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
"""A job with times in microseconds. They say how long one undisturbed run takes, and how long its pods take
until they are ready. They give its own checkpoint interval, or None, and how much of its run it has done when
it arrives. An eviction costs what was done before the arrival as it costs what is done later."""

Startup: TypeAlias = tuple[int, ...]
"""The time from the moment when pods that progress as one hold what they ask for until they are ready. There
is a number for the first time, the second, ..., and the last holds for all later ones. `ENDLESS`: they never
are."""

ENDLESS = 2**62
"""The run time of work that does not end by itself, and the start-up of pods that never are ready; neither
keeps a replay alive."""

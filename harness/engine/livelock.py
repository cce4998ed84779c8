"""Detects a livelock, in which the same pods are preempted and started again and again without progress.

Progress means an arrival, the first start of a job, a completion, or work that survives preemptions. A real
cluster would continue forever, but a replay stops (see `Watch`). Only simulated time and counts decide, so
the same replay always stops at the same preemption.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, final

from harness.base.text import first_of, times
from harness.base.units import DAY, SECOND, format_duration
from harness.base.values import Value, fixed
from harness.policy import Job

if TYPE_CHECKING:
    from harness.engine.lifecycle import Lifecycle

SPAN = 30 * DAY
"""How long preemptions without progress can continue in simulated time."""

ROUNDS = 1_000
"""How many preemptions must affect pods that were already preempted, once `SPAN` has passed."""

MOST_ROUNDS = 100_000
"""If this many preemptions affect pods that were already preempted, the replay stops before `SPAN` has
passed, because very short rounds never take that long.
"""

_EACH = 10
"""The minimum mean number of repeated preemptions per pod. Preempting many pods twice is not a loop."""

_ROUNDS_A_SECOND = 100
"""No cluster preempts more often per second than this plus `_EACH` for each pod; see `Watch`."""

_PODS_A_SECOND = 1_000  # more pods than this do not raise the bound
_LEAST_WORK = 30  # surviving work counts as progress if it is at least one part in 30 of the time
_LISTED = 100
_NAMED = 3


class Party(NamedTuple):
    """A job in a livelock, with the numbers of times that it was preempted and that it preempted others."""

    job: str
    preempted: int
    preempts: int


@final
@fixed()
class Livelock(Value):
    """Preemptions without progress.

    Attributes:
        since: the first preemption after the last progress, in microseconds since the origin.
        at: the last preemption.
        jobs: at most 100 victims and preemptors with more than one preemption, beginning with the most
            frequent.
    """

    since: int
    at: int
    preemptions: int
    jobs: tuple[Party, ...]

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Livelock:
        """Recreates a livelock from the dictionary that `plain` returned."""
        jobs = tuple(Party(each["job"], each["preempted"], each["preempts"]) for each in found["jobs"])
        return cls(found["since_us"], found["at_us"], found["preemptions"], jobs)

    def plain(self) -> dict[str, Any]:
        """Returns the livelock in the form that `run.json` stores."""
        return {
            "since_us": self.since,
            "at_us": self.at,
            "preemptions": self.preemptions,
            "jobs": [party._asdict() for party in self.jobs],
        }

    def told(self, at: str | None = None) -> str:
        """Returns a sentence that says why the replay was stopped and which jobs caused it.

        Args:
            at: the text for the time. The default is a duration since the origin.
        """
        when = at or f"{format_duration(self.at)} after the origin"
        return (
            f"the replay was ended at {when}: for {format_duration(self.at - self.since)}, no job arrived, "
            f"started for the first time or ended, while {self}"
        )

    def __str__(self) -> str:
        taken = any(party.preempts for party in self.jobs)
        what, hit = ("preemptions", "preempted") if taken else ("evictions", "evicted")
        named = first_of([_told(party, hit) for party in self.jobs], _NAMED)
        return f"{self.preemptions:,} {what} brought no progress: {named}"


class _Tally:
    """Counts preemptions per pod, and preemptions of pods that were preempted before."""

    def __init__(self) -> None:
        self.times: dict[tuple[Job, int], int] = {}
        self.again = 0

    def add(self, job: Job, pods: Iterable[int]) -> int:
        """Counts the preempted pods of a job, and returns how many of them had been counted before."""
        before = self.again
        for pod in pods:
            times = self.times[job, pod] = self.times.get((job, pod), 0) + 1
            self.again += times > 1
        return self.again - before

    def clear(self) -> None:
        self.times.clear()
        self.again = 0


@final
class Watch:
    """Counts preemptions since the last progress.

    A repeated preemption affects a pod that was already preempted since the last progress. The watch reports
    a livelock if there are
    - at least `ROUNDS` repeated preemptions, and `SPAN` has passed, or
    - at least `MOST_ROUNDS` repeated preemptions in any time, or
    - more than `_ROUNDS_A_SECOND` repeated preemptions in one second, plus `_EACH` for each preempted pod.

    Attributes:
        endless: whether the whole livelock is in one cycle of the policy, so that this cycle would never end.
    """

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self.preemptions = 0
        self._progressed = -1
        self._since = 0
        self._kept = 0
        self._all, self._second = _Tally(), _Tally()
        self._preemptors: dict[Job, int] = {}
        self._now = -1  # the second that `_second` is about
        self._cycle = -1
        self._again_in_cycle = 0
        self.endless = False

    def preempted(self, victim: Job, pods: Iterable[int], by: Job | None) -> Livelock | None:
        """Counts the pods that a decision preempts, and returns the livelock if there is one now.

        `pods` are the numbers of the pods, or any single number if the job was preempted as a whole.
        """
        lifecycle, within = self._lifecycle, self._second
        self.preemptions += 1
        if lifecycle.progressed != self._progressed:
            self._begin()
        if lifecycle.now // SECOND != self._now:
            self._now = lifecycle.now // SECOND
            within.clear()
        if lifecycle.cycles != self._cycle:
            self._cycle, self._again_in_cycle = lifecycle.cycles, 0
        self._all.add(victim, pods)
        self._again_in_cycle += within.add(victim, pods)
        if by is not None:
            self._preemptors[by] = self._preemptors.get(by, 0) + 1
        bound = _ROUNDS_A_SECOND + _EACH * min(len(within.times), _PODS_A_SECOND)
        if within.again <= bound and not self._in_vain():
            return None
        self.endless = self._again_in_cycle > bound
        return self._found()

    def _in_vain(self) -> bool:
        """Returns True if the preemptions since the last progress took too long, or were too many."""
        again, passed = self._all.again, self._lifecycle.now - self._since
        if again < max(ROUNDS, _EACH * len(self._all.times)) or (passed < SPAN and again < MOST_ROUNDS):
            return False
        if (self._lifecycle.kept - self._kept) * _LEAST_WORK >= passed:
            self._begin()  # the jobs share the resources, and make progress in each round
            return False
        return True

    def _begin(self) -> None:
        lifecycle = self._lifecycle
        self._progressed, self._since, self._kept = lifecycle.progressed, lifecycle.now, lifecycle.kept
        self._all.clear()
        self._second.clear()
        self._preemptors.clear()
        self._again_in_cycle = 0

    def _found(self) -> Livelock:
        preempted: dict[Job, int] = {}
        for (job, _), count in self._all.times.items():
            preempted[job] = preempted.get(job, 0) + count
        involved = dict.fromkeys((*preempted, *self._preemptors))
        parties = [Party(job.id, preempted.get(job, 0), self._preemptors.get(job, 0)) for job in involved]
        often = [each for each in parties if max(each.preempted, each.preempts) > 1]
        often.sort(key=lambda each: -each.preempted - each.preempts)
        return Livelock(self._since, self._lifecycle.now, sum(preempted.values()), tuple(often[:_LISTED]))


def _told(party: Party, hit: str) -> str:
    parts = [f"{hit} {times(party.preempted)}"] if party.preempted else []
    parts += [f"preemptor {times(party.preempts)}"] if party.preempts else []
    return f"job {party.job} ({', '.join(parts)})"

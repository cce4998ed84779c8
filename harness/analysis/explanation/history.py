"""The history of one job: events, cut into stretches at its evictions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.analysis.explanation.standing import Standing, waits
from harness.analysis.explanation.vocabulary import Figures

PREEMPTS = "preempts"
"""The name of a preemption in the history of the preemptor; other events have the name of their action."""

EVICTIONS = ("preempt", "evict")
"""The actions that take quota or resources from a job."""

STARTS = ("admit", "bind")
"""The actions that give quota or nodes to a job."""


@dataclass(frozen=True)
class Other:
    """A job on the other side of a preemption: preemptor or victim.

    Attributes:
        job, queue, priority: its name, queue and priority.
        pods: how many pods the victim lost.
        shares: name -> weighted share before and after the victim goes, if several go.
    """

    job: str
    queue: str
    priority: int
    pods: int
    shares: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """One event of a job's history; decisions at one instant about several of its pods are one event.

    Attributes:
        time: microseconds since the trace's origin.
        what: the action, or `preempts` if the job is the preemptor.
        pods: the number of its pods; for `preempts`, of pods that the victims lost.
        reason: the component's word for the rule, or "".
        figures: the policy's record of the event.
        others: preemptor or victims, in the order of their names.
        nodes: node -> pods.
        flavors: JSON of the flavors of an admission, or "".
        waits: whether it is an admission whose resources other jobs still hold, so that the job starts later.
        ran: for an eviction, how long the job had progressed, in microseconds; None if that was not read.
        lost: the progress that the eviction threw away, summed over pods, in microseconds.
        lost_pods: how many pods lost progress with it, including pods of a gang that stay.
        lost_amounts: resource -> amount x microseconds of the lost progress.
        holders: for a refusal, label -> the queues that held most of it then, with the amounts.
        as_at: for a refusal whose reason had been recorded before in this wait, the time of its figures.
    """

    time: int
    what: str
    pods: int
    reason: str = ""
    figures: Figures = field(default_factory=Figures)
    others: tuple[Other, ...] = ()
    nodes: Mapping[str, int] = field(default_factory=dict)
    flavors: str = ""
    waits: bool = False
    ran: int | None = None
    lost: int = 0
    lost_pods: int = 0
    lost_amounts: Mapping[str, int] = field(default_factory=dict)
    holders: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    as_at: int | None = None


@dataclass(frozen=True)
class Stretch:
    """A stretch of time: the job waits, may get what it requests, and then loses it or finishes.

    Attributes:
        events: the events, in order; if an eviction ends the stretch, it is the last event.
        since: when the wait began: the submission, or the return to the queue. None if another pod of the job
            was evicted before any pod returned.
        start: when the job first got quota or nodes in this stretch; None if it did not.
        returned: when it was back in its queue, if that was at the instant of the eviction that ends the
            stretch. The next wait began then.
    """

    events: tuple[Event, ...]
    since: int | None
    start: int | None
    returned: int | None

    @property
    def waited(self) -> int:
        """The wait in microseconds until the job got quota or nodes; 0 if it did not."""
        return 0 if self.since is None or self.start is None else self.start - self.since

    @property
    def eviction(self) -> Event | None:
        """The first eviction at the instant that ends the stretch."""
        last = self.events[-1].time
        return next((each for each in self.events if each.what in EVICTIONS and each.time == last), None)

    @property
    def ending(self) -> tuple[str, str]:
        """Equal for stretches that share a sentence: the rule, and the queue that the eviction served."""
        eviction = self.eviction
        if eviction is None:
            return "", ""
        return eviction.reason, eviction.others[0].queue if eviction.others else ""

    @property
    def lost(self) -> int:
        """Progress that the stretch's evictions threw away, summed over pods, in microseconds."""
        return sum(each.lost for each in self.events)


@dataclass(frozen=True)
class History:
    """The recorded history of a job.

    Attributes:
        job: its row in `jobs.parquet`, times in microseconds since the origin.
        stretches: its stretches, in order.
        behind: another job of its queue with its last refusal, or else its rejection. Set only if the job
            waits first without a refusal of its own.
        end: the end of the measured span.
        standings: the job's state after each instant with a decision about it.
    """

    job: Mapping[str, Any]
    stretches: tuple[Stretch, ...]
    behind: tuple[str, Event] | None
    end: int
    standings: Sequence[tuple[int, Standing]]

    @property
    def waited(self) -> int:
        """The time without quota or resources, from submission to its end or the run's, in microseconds."""
        finish = self.job["finish_time"]
        spans = waits(self.standings, self.end if finish is None else finish)
        return sum(end - start for start, end in spans)

    def standing(self, time: int) -> Standing:
        """The job's state after an instant, from its submission until it has finished."""
        place = bisect_right(self.standings, time, key=lambda each: each[0])
        return self.standings[place - 1][1]

    def reason(self, time: int) -> Event | None:
        """The reason for a wait at an instant: its last refusal, or its last preemption of another job.

        None if it did not wait, or if the scheduler had not yet tried it.
        """
        if not self.job["submit_time"] <= time or self.standing(time) is not Standing.WAITING:
            return None
        latest = None
        for event in (each for stretch in self.stretches for each in stretch.events):
            if event.time > time:
                break
            if event.what in ("refuse", PREEMPTS):
                latest = event
            elif event.what not in ("nominate", "unnominate"):
                latest = None
        return latest

    @property
    def evictions(self) -> int:
        """The number of its evictions without a preemptor."""
        found = [stretch.eviction for stretch in self.stretches]
        return sum(each is not None and each.what == "evict" for each in found)

    @property
    def victims(self) -> int:
        """The number of preemptions that were made for it."""
        return sum(len(event.others) for stretch in self.stretches for event in stretch.events
                   if event.what == PREEMPTS)  # fmt: skip

"""The history of one job: events, cut into stretches at its evictions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.analysis.explanation.standing import Standing, waits
from harness.analysis.explanation.vocabulary import Figures

PREEMPTS = "preempts"
"""What an event is called in the history of a preemptor; all others have the name of their action."""

EVICTIONS = ("preempt", "evict")
"""The actions that take from a job what it has."""

STARTS = ("admit", "bind")
"""The actions that give a job something."""


@dataclass(frozen=True)
class Other:
    """A job on the other side of a preemption: preemptor or victim.

    Attributes:
        job, queue, priority: which one.
        pods: how many pods the victim lost.
        shares: name -> weighted share before and after the victim goes, where several go.
    """

    job: str
    queue: str
    priority: int
    pods: int
    shares: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """What happened to a job at one instant; decisions about several of its pods are one event.

    Attributes:
        time: microseconds since the trace's origin.
        what: the action, or `preempts` where the job is the preemptor.
        pods: how many of its pods; of `preempts` how many pods the victims lost.
        reason: the component's word for the rule, or "".
        figures: what the policy recorded with it.
        others: preemptor or victims, in the order of their names.
        nodes: node -> pods.
        flavors: JSON of the flavors of an admission, or "".
        waits: whether it is an admission for which others still hold the resources: the job starts later.
        ran: of an eviction, how long the job had progressed, microseconds; None where that was not looked up.
        lost: the progress that the eviction threw away, summed over pods, microseconds.
        lost_pods: how many pods lost progress with it: also those that stay of a gang.
        lost_amounts: resource -> amount x microseconds of it.
        holders: of a refusal, label -> the queues that held most of it then, with the amounts.
        as_at: of a refusal for a reason that had been recorded before in this wait: when the figures are of.
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
    """A stretch of time: the job waits, may get what it asks for, and loses it again or comes to its end.

    Attributes:
        events: in order; the last one is the eviction that ends the stretch, if it ends so.
        since: when the wait began: the submission, or the return to the queue; None where another pod of
            the job was evicted before anything returned.
        start: when the job first got quota or nodes in this stretch; None if it did not.
        returned: when it was back in its queue, if that was at the very instant of the eviction that ends the
            stretch: the next wait began then.
    """

    events: tuple[Event, ...]
    since: int | None
    start: int | None
    returned: int | None

    @property
    def waited(self) -> int:
        """How long the wait took until the job got something, 0 if it did not; microseconds."""
        return 0 if self.since is None or self.start is None else self.start - self.since

    @property
    def eviction(self) -> Event | None:
        """The first eviction of the instant that ends the stretch."""
        last = self.events[-1].time
        return next((each for each in self.events if each.what in EVICTIONS and each.time == last), None)

    @property
    def ending(self) -> tuple[str, str]:
        """What stretches with the same sentence have in common: the rule, and the queue that it served."""
        eviction = self.eviction
        if eviction is None:
            return "", ""
        return eviction.reason, eviction.others[0].queue if eviction.others else ""

    @property
    def lost(self) -> int:
        """Progress that its evictions threw away, summed over pods, microseconds."""
        return sum(each.lost for each in self.events)


@dataclass(frozen=True)
class History:
    """All that is known of a job.

    Attributes:
        job: its row in `jobs.parquet`, times in microseconds since the origin.
        stretches: in order.
        behind: for a job that waits first, without a refusal of its own then: the last refusal, else
            rejection, of another job of its queue, with that job's name.
        end: the end of the measured span.
        standings: how the job stood after each instant at which something was decided about it.
    """

    job: Mapping[str, Any]
    stretches: tuple[Stretch, ...]
    behind: tuple[str, Event] | None
    end: int
    standings: Sequence[tuple[int, Standing]]

    @property
    def waited(self) -> int:
        """How long the job held nothing, from submission to its end or the run's, microseconds."""
        finish = self.job["finish_time"]
        spans = waits(self.standings, self.end if finish is None else finish)
        return sum(end - start for start, end in spans)

    def standing(self, time: int) -> Standing:
        """How the job stood after an instant, from its submission until it has finished."""
        place = bisect_right(self.standings, time, key=lambda each: each[0])
        return self.standings[place - 1][1]

    def reason(self, time: int) -> Event | None:
        """Why it waited at an instant: its latest refusal, or preemption for it, in that wait.

        None where it did not wait, or had not been tried itself.
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
        """How often it was evicted without a preemptor."""
        found = [stretch.eviction for stretch in self.stretches]
        return sum(each is not None and each.what == "evict" for each in found)

    @property
    def victims(self) -> int:
        """How many preemptions were made for it."""
        return sum(len(event.others) for stretch in self.stretches for event in stretch.events
                   if event.what == PREEMPTS)  # fmt: skip

"""The history of one job: its events, divided into stretches at its evictions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from harness.analysis.explanation.standing import Standing, time_in
from harness.analysis.explanation.vocabulary import Figures, Table
from harness.base.grouping import grouped

PREEMPTS = "preempts"
"""The name of a preemption in the history of the preemptor. All other events are named after their action."""

EVICTIONS = ("preempt", "evict")
"""The actions that take quota or resources from a job."""

STARTS = ("admit", "bind")
"""The actions that give quota or nodes to a job."""


@dataclass(frozen=True)
class Other:
    """A job on the other side of a preemption: the preemptor or a victim.

    Attributes:
        pods: the number of pods that the victim lost.
        shares: maps each queue or cohort to its weighted share before and after this victim is removed. Empty
            unless there are several victims.
    """

    job: str
    queue: str
    priority: int
    pods: int
    shares: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """One event in a job's history, which may combine simultaneous decisions about several pods.

    Attributes:
        time: microseconds since the trace's origin.
        what: the action, or `preempts` if the job is the preemptor.
        pods: the number of the job's pods; for `preempts`, the number of pods that the victims lost.
        reason: the name of the rule behind the decision; "" if there is none.
        figures: what the policy recorded about the event.
        others: the preemptor or the victims, sorted by name.
        nodes: the number of pods on each node.
        flavors: the flavors of an admission as JSON, or "".
        waits: whether the job is admitted but starts later, because other jobs still hold the resources.
        ran: for an eviction, how long the job had made progress, in microseconds; None if unknown.
        lost: the progress lost to the eviction, summed over pods, in microseconds.
        lost_pods: how many pods lost progress, including pods of a gang that stay.
        lost_amounts: for each resource, the lost progress in resource-microseconds.
        holders: for a refusal, maps each resource that is short to the queues that held the most of it at
            that time, with the amounts.
        as_at: for a refusal with figures from an earlier refusal during the same wait, the time of these
            figures.
        decisions: the number of decisions that the event combines.
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
    decisions: int = 1


@dataclass(frozen=True)
class Stretch:
    """A stretch of time from the start of a wait to an eviction or to the end of the history.

    Attributes:
        events: the events, in order; if an eviction ends the stretch, it is the last event.
        since: when the wait began, which is when the job was submitted or returned to the queue. None if
            another pod of the job was evicted before any pod returned.
        start: when the job first got quota or nodes in this stretch; None if it did not.
        returned: when the job returned to its queue and the next wait began, if this was at the time of the
            eviction that ends the stretch.
    """

    events: tuple[Event, ...]
    since: int | None
    start: int | None
    returned: int | None

    @property
    def waited(self) -> int:
        """The wait in microseconds until the job got quota or nodes; 0 if it did not get them."""
        return 0 if self.since is None or self.start is None else self.start - self.since

    @property
    def eviction(self) -> Event | None:
        """The eviction that ends the stretch; None if no eviction ends it.

        If there are several evictions at that time, this is the first of them.
        """
        last = self.events[-1].time
        return next((each for each in self.events if each.what in EVICTIONS and each.time == last), None)

    @property
    def ending(self) -> tuple[str, str]:
        """The rule behind the eviction, and the preemptor's queue.

        Both are "" if no eviction ends the stretch. The queue is "" if there is no preemptor. Stretches with
        the same ending share a sentence.
        """
        eviction = self.eviction
        if eviction is None:
            return "", ""
        return eviction.reason, eviction.others[0].queue if eviction.others else ""

    @property
    def lost(self) -> int:
        """The progress lost to the stretch's evictions, summed over pods, in microseconds."""
        return sum(each.lost for each in self.events)


class Behind(NamedTuple):
    """A job in the same line that may explain why another job waited. See `Histories.line`.

    Attributes:
        job: the name of the job that explains the wait.
        queue: the queue of that job.
        event: its last refusal or preemption, or else its rejection.
        until: the time of the first refusal, rejection, nomination or preemption of the waiting job itself;
            None if there is none in this wait.
    """

    job: str
    queue: str
    event: Event
    until: int | None


@dataclass(frozen=True)
class History:
    """The recorded history of a job.

    Attributes:
        job: the job's row in `jobs.parquet`; times are in microseconds since the origin.
        behind: for the beginning of each wait, what explains it if the run recorded no reason for this job
            itself at that time. It is None if there is such a reason.
        end: the end of the run's window.
        standings: the job's state after each time at which a decision concerned it.
    """

    job: Mapping[str, Any]
    stretches: tuple[Stretch, ...]
    behind: Mapping[int, Behind | None]
    end: int
    standings: Sequence[tuple[int, Standing]]

    @property
    def waited(self) -> int:
        """The total time in which the job had neither quota nor resources, in microseconds.

        If the job did not end, its last wait lasts until the end of the run.
        """
        return self._time_in(Standing.WAITING)

    @property
    def unplaced(self) -> int:
        """The total time in which the job had quota, but no resources, in microseconds."""
        return self._time_in(Standing.ADMITTED)

    def _time_in(self, state: Standing) -> int:
        finish = self.job["finish_time"]
        return time_in(state, self.standings, self.end if finish is None else finish)

    def standing(self, time: int) -> Standing:
        """Returns the job's state after all decisions up to a time, which must not precede its submission."""
        place = bisect_right(self.standings, time, key=lambda each: each[0])
        return self.standings[place - 1][1]

    def reason(self, time: int) -> Event | None:
        """Returns the event that explains why the job waits at a time; None if there is no such event.

        The event is the job's last refusal, its last preemption of another job, or its last nomination. If
        the job preempted other jobs and was nominated at the same time, the preemption is returned. The
        result is also None if the job does not wait, or if the scheduler has not tried the job yet.
        """
        if not self.job["submit_time"] <= time or self.standing(time) is not Standing.WAITING:
            return None
        latest = None
        for event in (each for stretch in self.stretches for each in stretch.events):
            if event.time > time:
                break
            if event.what in ("refuse", PREEMPTS):
                latest = event
            elif event.what == "nominate":
                own = latest is not None and latest.what == PREEMPTS and latest.time == event.time
                latest = latest if own else event
            elif event.what != "unnominate":
                latest = None
        return latest

    def behind_at(self, time: int) -> Behind | None:
        """Returns what explains the job's wait at a time, if the job waits then without its own reason."""
        if not self.job["submit_time"] <= time or self.standing(time) is not Standing.WAITING:
            return None
        begun = max((since for since in self.behind if since <= time), default=None)
        return None if begun is None or self.reason(time) is not None else self.behind[begun]

    @property
    def evictions(self) -> int:
        """The number of times that the job, or a pod of it, was evicted without a preemptor."""
        events = (event for stretch in self.stretches for event in stretch.events)
        return sum(event.decisions for event in events if event.what == "evict")

    @property
    def victims(self) -> int:
        """The number of preemptions that were made for the job."""
        return sum(len(event.others) for stretch in self.stretches for event in stretch.events
                   if event.what == PREEMPTS)  # fmt: skip


def filled_in(events: Sequence[Event]) -> list[Event]:
    """Completes the refusals among the events.

    If a policy records a repeated refusal without details, the details of the first refusal are added.
    If the policy recorded the queues that hold a missing resource, they are added to the other refusals.
    """
    found: list[Event] = []
    for event in events:
        figures = event.figures
        if event.what == "refuse" and figures.again:
            first = next((each for each in reversed(found) if _is_first_of(each, event)), None)
            if first is not None:
                ahead, waits_for = figures.ahead, figures.waits_for
                figures = replace(first.figures, again=True, ahead=ahead, waits_for=waits_for)
                event = replace(event, figures=figures, as_at=first.time)
        elif figures.holders:
            event = replace(event, holders=_by_label(figures.holders))
        found.append(event)
    return found


def _is_first_of(earlier: Event, event: Event) -> bool:
    """Returns True if an earlier refusal contains the figures for the reason of a repeated refusal."""
    mine, theirs = event.figures, earlier.figures
    return (
        earlier.what == "refuse"
        and not theirs.again
        and earlier.reason == event.reason
        and theirs.lacks == mine.lacks
        and theirs.message.startswith(mine.message)
        and bool(mine.message or mine.lacks or not theirs.message)
    )


def _by_label(holders: Table) -> dict[str, tuple[tuple[str, int], ...]]:
    found = grouped(
        (label, (queue, amount)) for queue, amounts in holders.items() for label, amount in amounts.items()
    )
    return {
        label: tuple(sorted(held, key=lambda each: (-each[1], each[0])))
        for label, held in sorted(found.items())
    }

"""Tells the history of a job: a summary, then the events. Repeated events are folded and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from harness.analysis.explanation.clock import Clock
from harness.analysis.explanation.history import PREEMPTS, Behind, Event, History, Stretch
from harness.analysis.explanation.names import other_ids
from harness.analysis.explanation.sentences import Sentences, pods, summed
from harness.analysis.explanation.vocabulary import Units
from harness.base.grouping import grouped
from harness.base.tables.schemas import RAN_BEFORE
from harness.base.text import first_of, printable, times
from harness.base.units import format_duration
from harness.engine.livelock import Livelock

_NAMED = 3


class Story:
    """Explains one job of a run.

    If `at` is given, the text covers only a part of the job's history: from the start of the last wait before
    that time to the next eviction. `at` is in microseconds since the run's origin. `stopped` is the reason
    why the replay was stopped early, or None.
    """

    def __init__(
        self,
        history: History,
        clock: Clock,
        units: Units,
        at: int | None = None,
        *,
        stopped: Livelock | None = None,
    ) -> None:
        self.history = history
        self.at = at
        self.stopped = stopped
        self._clock = clock
        self._say = Sentences(
            units, history.job["queue"], history.job["priority"], history.job["pods"], clock.text
        )

    def __str__(self) -> str:
        """Returns the text that `harness explain` prints."""
        return self.text()

    def text(self, *, everything: bool = False) -> str:
        """Returns the story as text that is safe for a terminal.

        If the same events repeat several times, the text contains them once, with the number of repetitions.
        If `everything` is true, the text contains all events.
        """
        lines = [*self._summary(), "", *self._told(everything=everything)]
        return "\n".join(printable(line) for line in lines)

    def _event(self, event: Event) -> dict[str, Any]:
        return {**_plain(asdict(event)), "text": self._say.about(event)}

    def to_json(self) -> dict[str, Any]:
        """Returns all events of the story as plain values. Times and durations are in microseconds."""
        history = self.history
        reason = None if self.at is None else history.reason(self.at)
        return {
            "schema": "1",
            "job": dict(history.job),
            "waited": history.waited,
            "reason": None if reason is None else self._event(reason),
            "victims": history.victims,
            "stopped": None if self.stopped is None else self.stopped.plain(),
            "chapters": [  # the name in documents of schema 1
                {
                    "since": stretch.since,
                    "start": stretch.start,
                    "events": [self._event(event) for event in stretch.events],
                }
                for stretch in self._stretches
            ],
        }

    @property
    def _stretches(self) -> Sequence[Stretch]:
        stretches = self.history.stretches
        if self.at is None:
            return stretches
        begun = [stretch for stretch in stretches if stretch.events[0].time <= self.at]
        return begun[-1:]

    # --- the summary --------------------------------------------------------------------------------------

    def _summary(self) -> Iterator[str]:
        job, history = self.history.job, self.history
        name = f"{job['job_id']}{''.join(f' ({each})' for each in other_ids(job))}"
        yield f"job {name} of queue {job['queue']}: {pods(job['pods'])}, priority {job['priority']}"
        state = f"{job['state']}"
        if job["finish_time"] is not None:
            took = format_duration(job["finish_time"] - job["submit_time"])
            state = f"finished {self._clock.text(job['finish_time'])}, {took} after its submission"
        elif job["state"] == "pending":
            state = "still waits at the end of the run"
        elif job["state"] == "running":
            state = "still runs at the end of the run"
        if job["duration"] is None:
            yield f"  {state}; it comes from the manifests, and its run time is unknown"
        else:
            yield f"  {state}; one undisturbed run takes {format_duration(job['duration'])}"
        ran_before = job.get(RAN_BEFORE)
        parts = [f"had run for {format_duration(ran_before)} when the replay began"] if ran_before else []
        parts.append(f"waited {format_duration(history.waited)} in total")
        if history.unplaced:
            parts.append(f"held quota without resources for {format_duration(history.unplaced)}")
        if job["preemptions"]:
            preempted = job["preemptions"] - history.evictions
            told = [f"preempted {times(preempted)}"] if preempted else []
            told += [f"evicted {times(history.evictions)}"] if history.evictions else []
            thrown_away = job["progress_lost"]
            if ran_before:  # no column of the jobs table says how much of that time was lost
                thrown_away = sum(stretch.lost for stretch in history.stretches)
            lost = f"{format_duration(thrown_away)} of work"
            lost += summed(job["pods"]) if thrown_away else ""
            parts.append(f"was {' and '.join(told)} and lost {lost}")
        if job["held_idle"]:
            idle = f"{format_duration(job['held_idle'])}{summed(job['pods'])}"
            parts.append(f"held its resources without progress for {idle}")
        if history.victims:
            made = "preemption was" if history.victims == 1 else "preemptions were"
            parts.append(f"{history.victims:,} {made} made for it")
        yield f"  {'; '.join(parts)}"
        if self.stopped is not None and job["state"] in ("pending", "running"):
            yield f"  {self.stopped.told(self._clock.text(self.stopped.at))}"
        if self.at is not None:
            yield f"  at {self._clock.text(self.at)} {self._state()}"
            yield from self._why_then(self.at)

    def _why_then(self, at: int) -> Iterator[str]:
        reason, behind = self.history.reason(at), self.history.behind_at(at)
        if reason is not None:
            yield f"  latest reason, from {self._clock.text(reason.time)}: {self._say.about(reason)}"
        elif behind is not None:
            yield f"  {self._beside(behind)}"

    def _beside(self, behind: Behind) -> str:
        other, until = behind.event, behind.until
        why = f"{'is ' * (other.what == 'reject')}{self._say.about(other).removeprefix('it ')}"
        span = "" if until is None else f" until {self._clock.text(until)}"
        said = f"the run recorded no reason for this job's own wait{span}"
        if behind.queue == self.history.job["queue"]:
            return f"{said}; job {behind.job} of the same queue {why}"
        return f"{said}; job {behind.job} of queue {behind.queue}, which has the same quota, {why}"

    def _state(self) -> str:
        assert self.at is not None
        job = self.history.job
        if self.at < job["submit_time"]:
            return "it had not been submitted yet"
        if job["finish_time"] is not None and self.at >= job["finish_time"]:
            return "it was finished"
        return self.history.standing(self.at).value

    # --- what happened ------------------------------------------------------------------------------------

    def _told(self, *, everything: bool) -> Iterator[str]:
        known: set[tuple[str, str]] = set()
        fold: list[Stretch] = []
        stretches = self._stretches
        for place, stretch in enumerate(stretches):
            new = stretch.ending not in known
            known.add(stretch.ending)
            if everything or new or place + 1 == len(stretches):
                yield from self._folded(fold)
                fold = []
                yield from self._stretch(stretch, everything=everything)
            else:
                fold.append(stretch)

    def _stretch(self, stretch: Stretch, *, everything: bool) -> Iterator[str]:
        """Yields the events of a stretch. Similar refusals and preemptions appear once, with a count."""
        told: Counter[tuple[str, str]] = Counter()
        for place, event in enumerate(stretch.events):
            if event.what == "gone" and _returns(event, stretch.events[place + 1 :]):
                continue
            kind = event.what, event.reason
            if not everything and event.what in ("refuse", PREEMPTS, "nominate", "unnominate") and told[kind]:
                told[kind] += 1
                continue
            told[kind] += 1
            yield self._line(event.time, self._say.about(event))
            behind = self.history.behind.get(event.time) if event.what in ("submit", "requeue") else None
            if behind is not None:
                yield self._line(behind.event.time, self._beside(behind))
        for (what, reason), count in told.items():
            if count > 1 and what in ("refuse", PREEMPTS):
                again = "it is refused" if what == "refuse" else "it preempts others"
                yield self._line(None, f"{again} {times(count - 1)} more in this time ({reason})")

    def _folded(self, fold: Sequence[Stretch]) -> Iterator[str]:
        """Yields a sentence about stretches that end like stretches that are already shown."""
        if len(fold) == 1:
            yield from self._stretch(fold[0], everything=False)
            return
        if not fold:
            return
        first, last = fold[0].events[0].time, fold[-1].events[-1].time
        ran = sum(event.ran or 0 for stretch in fold for event in stretch.events)
        waited = sum(stretch.waited for stretch in fold)
        lost = sum(stretch.lost for stretch in fold)
        over = summed(self.history.job["pods"]) if lost else ""
        yield self._line(
            first,
            f"this repeats {times(len(fold))} until {self._clock.text(last)}; in total it waits "
            f"{format_duration(waited)}, runs {format_duration(ran)}, and loses "
            f"{format_duration(lost)} of work{over}",
        )
        for (reason, queue), stretches in _by_ending(fold):
            by = Counter(
                other.job
                for stretch in stretches
                if (eviction := stretch.eviction) is not None
                for other in eviction.others[:1]
            )
            if not by:
                yield self._line(None, f"{times(len(stretches))} evicted ({reason})")
                continue
            jobs = first_of([f"{name} ({count}×)" for name, count in by.most_common()], _NAMED)
            yield self._line(None, f"{times(len(stretches))} by queue {queue} ({reason}): jobs {jobs}")

    def _line(self, time: int | None, sentence: str) -> str:
        stamp = self._clock.text(time) if time is not None else ""
        return f"{stamp:<{self._clock.width}}  {sentence}"


def _by_ending(stretches: Sequence[Stretch]) -> list[tuple[tuple[str, str], list[Stretch]]]:
    groups = grouped((stretch.ending, stretch) for stretch in stretches)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def _returns(gone: Event, later: Sequence[Event]) -> bool:
    """Returns True if gone pods return to their queue immediately, so that only the return is mentioned."""
    return any(each.what == "requeue" and each.time == gone.time for each in later)


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    event["figures"] = {name: value for name, value in event["figures"].items() if value}
    return {name: value for name, value in event.items() if value or name in ("time", "pods", "lost")}

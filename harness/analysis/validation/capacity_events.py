"""Explains differences between a simulation and a record by events that reduced the capacity.

The result is a table of events, and the fraction of the error that the events explain.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from harness.analysis.validation.agreement import Record
from harness.analysis.validation.branches import Branches
from harness.analysis.validation.event_search import Search
from harness.analysis.validation.finding_events import with_findings
from harness.analysis.validation.guesses import Guesses
from harness.analysis.validation.history import history_of
from harness.analysis.validation.objects import NODES, QUEUE, WHOLE, Object, objects_of, told
from harness.analysis.validation.supposed import Event, Row, quotas_of, removal, rows_of
from harness.analysis.validation.trials import Trials
from harness.base.grouping import grouped
from harness.base.text import aligned, counted
from harness.base.units import HOUR, MINUTE, SECOND, format_duration

if TYPE_CHECKING:
    from harness.analysis.validation.validation import Validation
    from harness.plugins import Plugins
    from harness.runs.request import Request

_MOST = 300
"""The search may take as long as this many replays of the whole record."""
_LEAST = 0.05
"""An event must explain at least this fraction of the error, so that no event is due to chance."""
_ENOUGH = 0.5
"""All events together must explain at least this fraction of the error before the agreement ends."""
_LATER = (6 * HOUR, 12 * HOUR, 24 * HOUR)
"""An event that is open when the agreement ends may end this long after that."""
_CONFIRMED = 6 * HOUR
"""An event must begin at least this long before the agreement ends."""


class Part(NamedTuple):
    """The events that change the capacity of one object, such as a queue.

    Attributes:
        name: the object's name, for use in texts.
        error: the mean absolute error of waits if only these events are replayed, in microseconds.
    """

    name: str
    rows: Sequence[Row]
    error: float


@dataclass(frozen=True, slots=True)
class Explained:
    """The events that explain why a record differs from a simulation, and how much of the error they explain.

    Attributes:
        rows: all events, in order of time.
        parts: the events by object, with the object that explains most first.
        before: the mean absolute error of waits without events, in microseconds.
        after: the same error with all events.
        notes: sentences about the progress of the search, and about findings that lead to no event.
    """

    rows: Sequence[Row]
    parts: Sequence[Part]
    before: float
    after: float
    notes: Sequence[str]

    def share(self, error: float) -> float | None:
        """Returns `1 - error / before`, which is the explained fraction; None if there was no error before.

        `error` is the error that remains.
        """
        return 1 - error / self.before if self.before else None

    @property
    def table(self) -> str:
        """A text with the mean error of waits, without events and with the events of each object."""
        lines = [("none", 0, self.before), *((part.name, len(part.rows), part.error) for part in self.parts)]
        if len(self.parts) > 1:
            lines.append(("all", len(self.rows), self.after))
        head = ["replayed with events of", "events", "mean error of waits", "explained"]
        rows = [
            [
                name,
                f"{count:,}",
                format_duration(round(error / SECOND) * SECOND),
                self._told(error) if count else "",
            ]
            for name, count, error in lines
        ]
        return aligned([head, *rows], names={0: ()})

    def _told(self, error: float) -> str:
        share = self.share(error)
        return "–" if share is None else f"{share:.0%}"

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values, with errors in microseconds."""
        return {
            "rows": [dict(row) for row in self.rows],
            "objects": [
                {
                    "name": part.name,
                    "events": len(part.rows),
                    "error": part.error,
                    "explained": self.share(part.error),
                }
                for part in self.parts
            ],
            "before": self.before,
            "after": self.after,
            "explained": self.share(self.after),
            "notes": list(self.notes),
        }


def explained(
    validation: Validation,
    request: Request,
    plugins: Plugins,
    watch: Callable[[int, int, int], None] | None = None,
) -> Explained:
    """Searches for events that bring a simulation closer to its record, and says how much each explains.

    `watch` is called when the search finds a better simulation. Its arguments are 0, the time until which
    this simulation agrees with the record, and the number of jobs that were submitted by then.

    Raises:
        InputError: the cluster was made without manifests, so no event can change it.
    """
    world, end, resource = validation.cluster, validation.recorded.window.end, validation.resource
    amount = pl.col(f"request.{resource}") if resource else pl.col("pods")
    jobs = validation.recorded.micros("jobs").select("job_id", amount).collect()
    record = replace(request, plugin="recorded", options={}, startup=0, ignore_events=True)
    objects = objects_of(validation.trace, world, validation.recorded)
    submitted = validation.pairs["submit"].to_list()
    recorded = Record(
        history_of(record.plan(plugins)), dict(jobs.iter_rows()), objects.queue_of, submitted, end
    )

    quotas = quotas_of(world.knobs(), resource)
    unit = gcd(*jobs.to_series(1)) or 1

    possible = [quota.lowered(0, end) for quota in quotas[:1]]
    possible += [removal([name], end) for name in list(world.nodes)[:1]]
    branches = Branches(replace(request, trace=validation.trace), plugins, world, possible, end)

    def error(events: Sequence[Event], until: int = end) -> float:
        return recorded.error(branches.history(events, until), until)

    def agree(until: int) -> None:
        if watch is not None:
            watch(0, until, bisect(submitted, until))

    trials = Trials(branches, recorded)
    found, until = Search(trials, Guesses(trials, quotas, unit), _MOST, agree).run()
    confirmed = [event for event in found if event.start < until - _CONFIRMED]
    ended = {event: event._replace(end=min(event.end, until)) for event in confirmed}
    needed = _needed(list(ended.values()), lambda events: error(events, until))
    for event in [event for event in confirmed if event.end > until and ended[event] in needed]:
        later = [min(end, until + each) for each in (0, *_LATER)]
        several = [
            [other._replace(end=last) if other == ended[event] else other for other in needed]
            for last in dict.fromkeys(later)
        ]
        needed = min(several, key=error)
    since = until if needed else 0
    kept, _, notes = with_findings(
        needed,
        since,
        validation.findings,
        objects.several,
        quotas,
        recorded,
        lambda events: branches.history(events, end),
        _LEAST,
    )
    if until < end:
        notes.insert(0, _how_far(until, len(needed)))
    kept = _needed(kept, error, least=0.0, enough=_LEAST)
    before, after = error(()), error(kept)
    of = grouped((_name(event, objects.several), event) for event in kept)
    parts = [
        Part(name, rows_of(events, end), after if len(of) == 1 else error(events))
        for name, events in of.items()
    ]
    parts.sort(key=lambda part: (part.error, part.name))
    return Explained(rows_of(kept, end), parts, before, after, notes)


def _needed(
    found: Sequence[Event],
    error: Callable[[Sequence[Event]], float],
    least: float = _LEAST,
    enough: float = _ENOUGH,
) -> list[Event]:
    """Returns the events without which the error grows too much, or none if all events explain too little."""
    before, after = error(()), error(found)
    kept = list(found)
    for event in found[::-1]:
        rest = [each for each in kept if each != event]
        if (without := error(rest)) - after <= least * before:
            kept, after = rest, without
    return kept if before - after >= enough * before else []


def _how_far(until: int, events: int) -> str:
    if not events:
        return "no event makes the simulation agree with the record, so events come from findings"
    agrees = f"with the first {counted(events, 'event')}, the simulation agrees with the record"
    period = format_duration(round(until / MINUTE) * MINUTE)
    return f"{agrees} for {period}; later events come from findings, and are less certain"


def _name(event: Event, objects: Iterable[Object]) -> str:
    if event.kind == "Node":
        groups = [
            each.name for each in objects if each.kind == NODES and each.nodes.keys() >= set(event.names)
        ]
        return told(NODES, groups[0] if groups else "")
    return told(QUEUE if event.kind == "ClusterQueue" else WHOLE, event.names[0])

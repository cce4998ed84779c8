"""Two forecasts future by future: with one job more and without, or on one cluster and another.

The futures of one number have the same run times and the same jobs to come, so that what differs between
them comes from what differs between the forecasts. Workloads are known by their names. Preemptions count
until the first of two such futures is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.base.units import SECOND
from harness.studies.forecasting.futures import LATER_ONE, NOBODY, Future
from harness.studies.forecasting.quantiles import Times, quantile

if TYPE_CHECKING:
    from harness.studies.forecasting.forecast import Forecast, Start

MOVED = SECOND
"""A start that is moved by more than this is earlier or later."""

COMES_LATER = "a job to come"
"""What a preemptor is called that is not there now."""


class By(NamedTuple):
    """Who preempts a workload.

    Attributes:
        name: its namespace and name; `COMES_LATER` for those that are not there now.
        share: in which share of the futures.
    """

    name: str
    share: float


class Displaced(NamedTuple):
    """What one job more does to a workload that is there.

    Attributes:
        name: its namespace and name.
        queue: where it holds quota, or waits.
        running: whether it runs now.
        preempted: in which share of the futures it is preempted, also by the job itself, and would not be
            without the job.
        preempted_more: in which share it is preempted by whomever, and would not be without the job.
        later: in which share of the futures it starts later, or not at all any more.
        delay: the median delay in those futures in which it starts, microseconds; None for none.
        by: who preempts it in the futures of `preempted_more`, the likeliest first.
    """

    name: str
    queue: str
    running: bool
    preempted: float
    preempted_more: float
    later: float
    delay: float | None
    by: tuple[By, ...]


class Shift(NamedTuple):
    """What another cluster changes for a workload that is there.

    Attributes:
        name: its namespace and name.
        queue: where it holds quota, or waits.
        running: whether it runs now.
        before, after: the quantiles of its start on the first cluster and on the other one, microseconds from
            now; None for later than the horizon. They mean nothing for those that run.
        earlier, later: in which shares of the futures it starts earlier, and later, or only in one of both.
        shift: the median of the differences in those futures in which it is moved, microseconds; None where
            there is none in which it starts in both.
        preempted_before, preempted_after: in which shares of the futures it is preempted.
    """

    name: str
    queue: str
    running: bool
    before: Times
    after: Times
    earlier: float
    later: float
    shift: float | None
    preempted_before: float
    preempted_after: float

    @property
    def changed(self) -> bool:
        """Whether anything is other than it was."""
        return bool(self.earlier or self.later) or self.preempted_before != self.preempted_after


def preemptors(forecast: Forecast, place: int, numbers: Sequence[int]) -> tuple[By, ...]:
    """Who preempts a workload in some of the futures, the likeliest first; shares are of all futures.

    Where it is evicted for nobody, it is the reason.
    """
    present = forecast.world.now.present
    found: Counter[str] = Counter()
    for number in numbers:
        taken = (each for each in forecast.futures[number].preemptions if each.victim == place)
        named = (
            each.reason
            if each.by == NOBODY
            else COMES_LATER
            if each.by == LATER_ONE
            else present[each.by].job.id
            for each in taken
        )
        found.update({name for name in named if name})
    several = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return tuple(By(name, count / len(forecast.futures)) for name, count in several)


def displaced(forecast: Forecast, other: Forecast, job: Start) -> list[Displaced]:
    """Whom one job more displaces, who is hit most first.

    Args:
        forecast: without it.
        other: with it.
        job: when it starts.
    """
    places = _places(other)
    more: dict[str, list[int]] = {}
    itself: Counter[str] = Counter()
    for number, (one, two) in enumerate(zip(forecast.futures, other.futures, strict=True)):
        until = min(one.end, two.end)
        before, after = _taken(forecast, one, until), _taken(other, two, until)
        own = {each.victim for each in two.preemptions if each.by == job.place and each.at <= until}
        for name in sorted(after - before):
            more.setdefault(name, []).append(number)
            itself[name] += places[name] in own
    count = len(forecast.futures)
    mine, theirs = _starts(forecast), _starts(other)
    found = []
    for each in forecast.world.now.present:
        name = each.job.id
        moves = list(_moves(mine.get(name, ()), theirs.get(name, ())))
        delays = [move for move in moves if move is not None and move > MOVED]
        later = sum(move is None or move > MOVED for move in moves)
        hit = more.get(name, ())
        row = Displaced(
            name,
            each.queue,
            not each.waits,
            itself[name] / count,
            len(hit) / count,
            later / count,
            quantile(delays, 0.5) if delays else None,
            preemptors(other, places[name], hit),
        )
        if row.preempted_more or row.later:
            found.append(row)
    return sorted(found, key=lambda row: (-max(row.preempted_more, row.later), row.name))


def shifts(forecast: Forecast, other: Forecast) -> list[Shift]:
    """What another cluster changes for each workload: for those that wait in their order, then for others.

    Args:
        forecast: on the first cluster.
        other: on the other one; workloads that are on one of both only are left out, and
            those that wait and are not asked about.
    """
    count = len(forecast.futures)
    mine, theirs = _starts(forecast), _starts(other)
    times, after = ({each.name: each.times for each in of.starts} for of in (forecast, other))
    shares, shares_after = ({each.name: each.share for each in of.risks} for of in (forecast, other))
    there = _places(other)
    found = []
    for each in forecast.world.now.present:
        name = each.job.id
        if name not in there or (each.waits and name not in mine):
            continue
        moves = list(_moves(mine.get(name, ()), theirs.get(name, ())))
        back = list(_moves(theirs.get(name, ()), mine.get(name, ())))
        moved = [move for move in moves if move is not None and abs(move) > MOVED]
        never: Times = (None, None, None)
        found.append(
            Shift(
                name,
                each.queue,
                not each.waits,
                times.get(name, never),
                after.get(name, never),
                sum(move is None or move > MOVED for move in back) / count,
                sum(move is None or move > MOVED for move in moves) / count,
                quantile(moved, 0.5) if moved else None,
                shares.get(name, 0.0),
                shares_after.get(name, 0.0),
            )
        )
    return sorted(found, key=lambda each: each.running)


def _places(forecast: Forecast) -> dict[str, int]:
    """The places of those that are there, by their names."""
    return {each.job.id: place for place, each in enumerate(forecast.world.now.present)}


def _taken(forecast: Forecast, future: Future, until: int) -> set[str]:
    """Which of those that are there are preempted in a future, up to a time."""
    present = forecast.world.now.present
    return {present[each.victim].job.id for each in future.preemptions if each.at <= until}


def _starts(forecast: Forecast) -> Mapping[str, Sequence[int | None]]:
    """When each that waits starts, future by future; None for not by the horizon."""
    present = forecast.world.now.present
    waiting = [present[place].job.id for place in forecast.world.asked]
    return {
        name: [None if each.starts[number] < 0 else each.starts[number] for each in forecast.futures]
        for number, name in enumerate(waiting)
    }


def _moves(mine: Sequence[int | None], theirs: Sequence[int | None]) -> Iterator[int | None]:
    """How much later each start is that is there at first; None where it is there no more."""
    for one, other in zip(mine, theirs, strict=False):  # nothing of those that run
        if one is not None:
            yield None if other is None else other - one

"""Compares two forecasts future by future, such as those with and without one more job.

The forecasts may also be for two clusters. Futures with the same number have the same run times and arrivals,
so their results differ only because of the job or the cluster. Workloads are matched by name. Preemptions
count up to the end of the shorter future.
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
"""A start counts as earlier or later if it moves by more than this time."""

COMES_LATER = "a job to come"
"""The name of preemptors that are not present now."""


class By(NamedTuple):
    """A preemptor of a workload.

    Attributes:
        name: the namespace and name of the preemptor; `COMES_LATER` for jobs that are not present now.
        share: the share of the futures in which this preemptor preempts the workload.
    """

    name: str
    share: float


class Displaced(NamedTuple):
    """The effect of one more job on a present workload.

    Attributes:
        name: the namespace and name of the workload.
        queue: the queue in which the workload holds quota or waits.
        running: whether the workload runs now.
        preempted: the share of futures in which the additional job preempts the workload, perhaps together
            with other jobs. Futures in which the workload is preempted even without the additional job do not
            count.
        preempted_more: the share of futures in which any job preempts the workload, although no job does so
            without the additional job.
        later: the share of futures in which the workload starts later, or no longer starts.
        delay: the median delay over the futures in which the workload starts later, in microseconds; None if
            there are no such futures.
        by: the preemptors in the futures of `preempted_more`, with the most likely one first.
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
    """The effect of another cluster on a present workload.

    Attributes:
        name: the namespace and name of the workload.
        queue: the queue in which the workload holds quota or waits.
        running: whether the workload runs now.
        before, after: the quantiles of the start on the first and on the other cluster, in microseconds from
            now; None for times after the horizon. The quantiles have no meaning for running workloads.
        earlier, later: the shares of futures in which the workload starts earlier or later, including those
            in which it starts on only one cluster.
        shift: the median difference over the futures in which the start moves, in microseconds; None if there
            are none. Futures in which the workload starts on only one cluster do not count.
        preempted_before, preempted_after: the shares of futures in which the workload is preempted by the end
            of the shorter future of the pair.
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
        """Returns True if the other cluster makes any difference."""
        return bool(self.earlier or self.later) or self.preempted_before != self.preempted_after


def preemptors(forecast: Forecast, place: int, numbers: Sequence[int]) -> tuple[By, ...]:
    """Returns the preemptors of a workload in some futures, with the most likely one first.

    Shares are relative to all futures. If the workload is evicted without a preemptor, the reason takes the
    place of the preemptor.
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
    """Returns the workloads that one more job displaces, with the most affected one first."""
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
    """Returns the effect of another cluster on each workload. Waiting workloads come first.

    Workloads that only one cluster has are left out, and also waiting workloads that are not requested.
    """
    count = len(forecast.futures)
    mine, theirs = _starts(forecast), _starts(other)
    times, after = ({each.name: each.times for each in of.starts} for of in (forecast, other))
    taken: Counter[str] = Counter()
    taken_after: Counter[str] = Counter()
    for one, two in zip(forecast.futures, other.futures, strict=True):
        until = min(one.end, two.end)
        taken.update(_taken(forecast, one, until))
        taken_after.update(_taken(other, two, until))
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
                taken[name] / count,
                taken_after[name] / count,
            )
        )
    return sorted(found, key=lambda each: each.running)


def _places(forecast: Forecast) -> dict[str, int]:
    return {each.job.id: place for place, each in enumerate(forecast.world.now.present)}


def _taken(forecast: Forecast, future: Future, until: int) -> set[str]:
    present = forecast.world.now.present
    return {present[each.victim].job.id for each in future.preemptions if each.at <= until}


def _starts(forecast: Forecast) -> Mapping[str, Sequence[int | None]]:
    """Returns the start of each waiting workload in each future, or None if it is after the horizon."""
    present = forecast.world.now.present
    waiting = [present[place].job.id for place in forecast.world.asked]
    return {
        name: [None if each.starts[number] < 0 else each.starts[number] for each in forecast.futures]
        for number, name in enumerate(waiting)
    }


def _moves(mine: Sequence[int | None], theirs: Sequence[int | None]) -> Iterator[int | None]:
    """Yields the delay of each start from the first forecast to the second; None if the second lacks it."""
    for one, other in zip(mine, theirs, strict=False):  # Running workloads have no starts.
        if one is not None:
            yield None if other is None else other - one

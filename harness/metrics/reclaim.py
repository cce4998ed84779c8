"""Reclaim latency: how long quotas wait for what is theirs, from when they ask for it until they have it.

An interval begins with the arrival or decision after which a quota asks for more than it holds, and holds
less than is its own, of any resource; it ends with the one after which that is so of none. What happens at
one instant counts in its order, so that what is served at once is an interval, too: most are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from harness.arrays import Bools, Groups, Ints, codes, numbers, quantile
from harness.metrics.arrivals import request_columns
from harness.metrics.levels import Holder, holder_of_jobs, holders, unused_quotas
from harness.metrics.measurement import Measurement, Window
from harness.metrics.pod_moves import COLUMNS, Moves, PodMoves
from harness.metrics.pod_sizes import pod_sizes
from harness.metrics.scopes import ALL
from harness.metrics.survival import estimate
from harness.runs.run import Run
from harness.units import INT64_MAX, SECOND

_STATISTICS = ("p50", "p95")

_NOTHING = np.zeros(0, np.int64)


class _Intervals(NamedTuple):
    """Times for which holders waited.

    Attributes:
        holder: the number of who waited.
        times: how long, or so far.
        ended: whether it has ended.
    """

    holder: Ints
    times: Ints
    ended: Bools


class _Turns(NamedTuple):
    """When holders begin or cease to be `owed` anything."""

    holder: Ints
    time: Ints
    owed: Bools


class _Moves(NamedTuple):
    """How far decisions move what holders hold and ask for, of each resource."""

    holder: Ints
    time: Ints
    held: Sequence[Ints]
    asked: Sequence[Ints]


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The latencies of all quotas together and of each; null where nobody asked for anything of a quota."""
    users = holders(run)
    known = bool(request_columns(run)) and any(user.nominal for user in users)
    found = _intervals(run, window, users) if known else _Intervals(_NOTHING, _NOTHING, _NOTHING > 0)
    every = sorted([*users, *unused_quotas(run)])
    groups = Groups(found.holder)
    figures = {users[number].name: _latencies(found, groups.order[rows]) for number, rows in groups}
    nothing = [None for _ in _STATISTICS]
    yield from _measurements(_latencies(found, groups.order), ALL)
    for each in every:
        yield from _measurements(figures.get(each.name, nothing), each.scope)


def _measurements(latencies: Sequence[float | None], scope: str) -> Iterator[Measurement]:
    for name, value in zip(_STATISTICS, latencies, strict=True):
        seconds = None if value is None else value / SECOND
        yield Measurement(f"reclaim_latency.{name}", seconds, "s", "lower", scope)


def _latencies(intervals: _Intervals, rows: Ints) -> Sequence[float | None]:
    """Percentiles of some intervals, linear where all have ended."""
    times, ended = intervals.times[rows], intervals.ended[rows]
    if not len(times):
        return [None for _ in _STATISTICS]
    if not ended.all():
        return estimate(times, ended, _STATISTICS)
    times = np.sort(times)
    return [quantile(times, int(name[1:]) / 100) for name in _STATISTICS]


def _intervals(run: Run, window: Window, users: Sequence[Holder]) -> _Intervals:
    """The intervals of all holders."""
    turns = _Turns(*map(np.concatenate, zip(*_turns(run, window, users), strict=True)))
    groups = Groups(turns.holder)
    begin, owed, last = turns.time[groups.order], turns.owed[groups.order], groups.last
    end = np.append(begin[1:], np.full(min(1, len(begin)), window.end))
    end[last] = window.end
    return _Intervals(groups.keys[owed], (end - begin)[owed], ~last[owed])


def _turns(run: Run, window: Window, users: Sequence[Holder]) -> Iterator[_Turns]:
    """When holders begin or cease to be owed anything, in order, piece by piece."""
    nominal = [
        np.array([min((user.nominal or {}).get(each, 0), INT64_MAX) for user in users], np.int64)
        for each in run.resources
    ]
    held, asked = ([np.zeros(len(users), np.int64) for _ in nominal] for _ in range(2))
    was_owed = np.zeros(len(users), np.bool_)
    for moves in _moves(run, window):
        groups = Groups(moves.holder)
        last, holder = groups.last, groups.keys
        owed: Bools = np.zeros(len(holder), np.bool_)
        for place, own in enumerate(nominal):
            now = []
            for state, moved in ((held[place], moves.held[place]), (asked[place], moves.asked[place])):
                now.append(groups.running(moved[groups.order]) + state[holder])
                state[holder[last]] = now[-1][last]
            owed |= np.minimum(own[holder], now[1]) > now[0]
        before = np.append(False, owed[:-1])[: len(owed)]
        before[groups.begins] = was_owed[holder[groups.begins]]
        was_owed[holder[last]] = owed[last]
        turned = owed != before
        yield _Turns(holder[turned], moves.time[groups.order][turned], owed[turned])


def _moves(run: Run, window: Window) -> Iterator[_Moves]:
    """How far each decision moves what its job's holder holds and asks for."""
    holder = codes(holder_of_jobs(run))
    pods, each = PodMoves(run), pod_sizes(run).each
    for batch in run.batches("decisions", ("time", *COLUMNS)):
        time, job = numbers(batch, "time", "job")
        moves = pods.of(batch)
        # What one decision moves of several pods goes one way, so that nothing begins and ends in between.
        moves = Moves(*(column[time[moves.row] <= window.end] for column in moves))
        held = [amount[moves.size] * moves.holding for amount in each]
        waiting = [amount[moves.size] * moves.waiting for amount in each]
        # What is held is asked for, too.
        yield _Moves(holder[job[moves.row]], time[moves.row], held, list(map(np.add, held, waiting)))

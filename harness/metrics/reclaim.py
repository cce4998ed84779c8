"""Reclaim latency: how long quotas wait for what is theirs, from when they ask for it until they have it.

An interval begins with the arrival or decision after which a quota asks for more than it holds, and holds
less than is its own, of any resource; it ends with the one after which that is so of none. What happens at
one instant counts in its order, so that what is served at once is an interval, too: most are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from harness.arrays import Bools, Groups, Ints, codes, numbers, quantile
from harness.engine.events import ADMIT
from harness.metrics.arrivals import request_columns
from harness.metrics.levels import Holder, holder_of_jobs, holders, unused_quotas
from harness.metrics.measurement import Measurement, Window
from harness.metrics.scopes import ALL
from harness.metrics.survival import estimate
from harness.recording.actions import ASKED, BOUND, action_codes
from harness.runs.run import Run
from harness.units import INT64_MAX, SECOND

_STATISTICS = ("p50", "p95")
_PODS_MOVE = {"submit": 1, "requeue": 1, "gone": -1, "finish": -1, "reject": -1}
"""How actions move the number of pods that a job has."""

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
    columns = request_columns(run)
    of_jobs, *totals = numbers(run.columns("jobs", "pods", *columns), "pods", *columns)
    holder = codes(holder_of_jobs(run))
    given_up: dict[int, int] = {}
    by_pods = bool(run.info["cluster"]["nodes"])
    for batch in run.batches("decisions", ("seq", "time", "action", "job", "pods", "holding")):
        seq, time, job, pods, holding = numbers(batch, "seq", "time", "job", "pods", "holding")
        action = action_codes(batch["action"])
        # Of a job that is admitted with fewer pods than it has, some may have ended before, though.
        if not given_up and (pods < of_jobs[job])[action == ADMIT].any():
            given_up = _given_up(run, of_jobs)
        held = BOUND[action] if by_pods else holding
        # What is held is asked for too: that moves where it comes, and where what was held goes.
        asked = ASKED[action] + np.minimum(held, 0)
        less = np.array([given_up.get(number, 0) for number in seq.tolist()] if given_up else 0)
        rows = np.flatnonzero(((held != 0) | (asked != 0) | (less != 0)) & (time <= window.end))
        time, job, pods, held, asked = (each[rows] for each in (time, job, pods, held, asked))
        less = less[rows] if given_up else less
        whole = of_jobs[job]
        of_held, of_asked = [], []
        for total in (each[job] for each in totals):
            # Divided first: a total fits 64 bits, its product with a number of pods may not.
            single = total // whole
            amounts = np.where(pods == whole, total, single * pods)
            of_held.append(amounts * held)
            of_asked.append(amounts * asked - single * less)
        yield _Moves(holder[job], time, of_held, of_asked)


def _given_up(run: Run, pods: Ints) -> dict[int, int]:
    """What partial admissions no longer ask for: `seq` of the admission -> how many pods."""
    decisions = run.scan("decisions")
    admissions = decisions.filter((pl.col("action") == "admit") & pl.col("pod_number").is_null())
    found = admissions.select("seq", "job", "pods").collect()
    short = found["job"].filter(pl.Series(found["pods"].to_numpy() < pods[found["job"].to_numpy()])).unique()
    waiting: dict[int, int] = {}
    less: dict[int, int] = {}
    some = decisions.filter(pl.col("job").is_in(short.implode())).select("seq", "job", "action", "pods")
    for seq, job, action, count in some.collect().iter_rows():
        before = waiting.get(job, 0)
        if action == "admit" and count < before:
            less[seq] = before - count
            waiting[job] = count
        elif action in _PODS_MOVE:
            waiting[job] = before + _PODS_MOVE[action] * count
    return less

"""Measures reclaim latency: the time from a quota's request for its own resources until it gets them.

A quota is owed a resource while it requests more than it holds and holds less than its nominal quota. An
episode begins when a quota is first owed any resource, and it ends when the quota is no longer owed any. If a
request is met at the time at which it is made, it counts as an episode of length 0. Most episodes have this
length. If one episode ends and another begins at the same time, they form a single episode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from harness.analysis.metrics.accrued import NOTHING, Figure, statistics
from harness.analysis.metrics.arrivals import request_columns
from harness.analysis.metrics.levels import (
    Holder,
    holder_of_jobs,
    holders,
    nominals_then,
    quotas_named,
    unused_quotas,
)
from harness.analysis.metrics.pod_moves import COLUMNS, Moves, PodMoves
from harness.analysis.metrics.pod_sizes import pod_sizes
from harness.base.arrays import Bools, Groups, Ints, codes, firsts, next_of, numbers
from harness.base.units import SECOND
from harness.plugins.measurement import SHARE, Measurement, Window
from harness.plugins.scopes import ALL
from harness.runs.known import meanwhile
from harness.runs.run import Run

_STATISTICS = ("p50", "p95", "max")
_LATENCY, _OWED = "reclaim_latency", "reclaim.owed"


class _Episodes(NamedTuple):
    """The episodes in which holders waited for their own resources.

    Attributes:
        holder: the number of the holder that waited.
        times: how long the holder waited, or has waited so far.
        going: whether the episode lasts beyond the end of the window.
    """

    holder: Ints
    times: Ints
    going: Bools


class _Turns(NamedTuple):
    """The times at which holders begin or cease to be owed resources; see `owed`."""

    holder: Ints
    time: Ints
    owed: Bools


class _Moves(NamedTuple):
    holder: Ints
    time: Ints
    held: Sequence[Ints]
    asked: Sequence[Ints]

    def part(self, some: slice) -> _Moves:
        held, asked = ([each[some] for each in kind] for kind in (self.held, self.asked))
        return _Moves(self.holder[some], self.time[some], held, asked)


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the reclaim latencies, and how long quotas lacked resources of their own nominal quota."""
    yield from measure_latency(run, window)
    yield from measure_owed(run, window)


def measure_latency(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the reclaim latencies of all quotas together and of each quota.

    A value is null if no quota, or not this quota, requested resources of its own nominal quota.
    """
    users = holders(run)
    found = _episodes(run, window)
    groups = Groups(found.holder)
    figures = {users[number].name: _latencies(found, groups.order[rows]) for number, rows in groups}
    nothing = [NOTHING for _ in _STATISTICS]
    yield from _measurements(_latencies(found, groups.order), ALL)
    for each in sorted([*users, *unused_quotas(run)]):
        yield from _measurements(figures.get(each.name, nothing), each.scope)


def measure_owed(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields, for each quota, the share of the window in which the quota was owed a resource.

    A quota is owed a resource while it requests more than it holds and holds less than its nominal quota. The
    value is null if there are no quotas.
    """
    users = holders(run)
    found, span = _episodes(run, window), window.end - window.start
    owed: Ints = np.zeros(len(users), np.int64)
    np.add.at(owed, found.holder, found.times)
    of_users = {each.name: int(time) for each, time in zip(users, owed, strict=True)}
    known, named = span > 0 and _known(run), quotas_named(run)
    for each in sorted([*users, *unused_quotas(run)]):
        value = of_users.get(each.name, 0) / span if known and named.get(each.name) else None
        yield Measurement(_OWED, value, SHARE, "lower", each.scope)


def _known(run: Run) -> bool:
    return bool(request_columns(run)) and any(quotas_named(run).get(user.name) for user in holders(run))


def _measurements(latencies: Sequence[Figure], scope: str) -> Iterator[Measurement]:
    for name, (value, at_least) in zip(_STATISTICS, latencies, strict=True):
        seconds = None if value is None else value / SECOND
        yield Measurement(f"{_LATENCY}.{name}", seconds, "s", "lower", scope, at_least=at_least)


def _latencies(episodes: _Episodes, rows: Ints) -> Sequence[Figure]:
    return statistics(episodes.times[rows], episodes.going[rows], _STATISTICS)


@meanwhile
def _episodes(run: Run, window: Window) -> _Episodes:
    if not _known(run):
        nothing: Ints = np.zeros(0, np.int64)
        return _Episodes(nothing, nothing, nothing > 0)
    turns = _Turns(*map(np.concatenate, zip(*_turns(run, window, holders(run)), strict=True)))
    groups = Groups(turns.holder)
    holder, time, owed = groups.keys, turns.time[groups.order], turns.owed[groups.order]
    # The states alternate, so the first row of a time implies the state before that time, and the last row
    # shows the state after it.
    first = groups.first | firsts(time)
    last = next_of(first, end=True)
    holder, time, before, after = holder[first], time[first], ~owed[first], owed[last]
    at_once = ~before & ~after
    turned = before != after
    begin, owed = time[turned], after[turned]
    of_holders = holder[turned]
    ends = next_of(firsts(of_holders), end=True)
    until = next_of(begin, window.end)
    until[ends] = window.end
    return _Episodes(
        np.append(of_holders[owed], holder[at_once]),
        np.append((until - begin)[owed], np.zeros(int(at_once.sum()), np.int64)),
        np.append(ends[owed], np.zeros(int(at_once.sum()), np.bool_)),
    )


def _turns(run: Run, window: Window, users: Sequence[Holder]) -> Iterator[_Turns]:
    held, asked = ([np.zeros(len(users), np.int64) for _ in run.resources] for _ in range(2))
    was_owed = np.zeros(len(users), np.bool_)
    for moves, nominal in _by_nominals(run, window, len(users)):
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


def _by_nominals(run: Run, window: Window, users: int) -> Iterator[tuple[_Moves, Sequence[Ints]]]:
    """Yields changes with the holders' nominal quota. When quotas change, every holder has a row."""
    nominals, begins = nominals_then(run), [begin for begin, _ in run.epochs]
    nominal, *_ = nominals
    ahead = [
        (begin, now)
        for begin, before, now in zip(begins[1:], nominals, nominals[1:], strict=False)
        if now is not before and begin < window.end
    ]
    still: list[Ints] = [np.zeros(users, np.int64) for _ in run.resources]
    for moves in _moves(run, window):
        while ahead and len(moves.time) and moves.time[-1] >= ahead[0][0]:
            done = int(moves.time.searchsorted(ahead[0][0]))
            yield moves.part(slice(done)), nominal
            moves = moves.part(slice(done, None))
            begin, nominal = ahead.pop(0)
            yield _Moves(np.arange(users), np.full(users, begin), still, still), nominal
        yield moves, nominal
    for begin, nominal in ahead:
        yield _Moves(np.arange(users), np.full(users, begin), still, still), nominal


def _moves(run: Run, window: Window) -> Iterator[_Moves]:
    holder = codes(holder_of_jobs(run))
    pods, each = PodMoves(run), pod_sizes(run).each
    for batch in run.batches("decisions", ("time", *COLUMNS)):
        time, job = numbers(batch, "time", "job")
        moves = pods.of(batch)
        # A decision changes all of its pods in the same way, so no episode begins and ends within one
        # decision.
        within = slice(int(time[moves.row].searchsorted(window.end, side="right")))
        moves = Moves(*(column[within] for column in moves))
        held = [amount[moves.size] * moves.holding for amount in each]
        waiting = [amount[moves.size] * moves.waiting for amount in each]
        # What is held counts as requested, too.
        yield _Moves(holder[job[moves.row]], time[moves.row], held, list(map(np.add, held, waiting)))

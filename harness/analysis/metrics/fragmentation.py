"""Measures fragmentation, which is the capacity that is free on nodes where no waiting pod fits.

Capacity counts as fragmented only while pods wait. A pod fits on a node if the node has enough free
resources; all other conditions are ignored. Therefore, only the smallest waiting pods matter. A pod is
ignored if another waiting pod requests the same or less of every resource. The remaining pods are the
*needs*. A node's free resources are useless if none of the needs fits into them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial, reduce
from itertools import chain
from operator import le, or_, sub
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from harness.analysis.metrics.arrivals import request_columns
from harness.analysis.metrics.exact import resource_time
from harness.analysis.metrics.pod_moves import COLUMNS, Moves, PodMoves
from harness.analysis.metrics.pod_sizes import PodSizes, pod_sizes
from harness.base.arrays import NEVER, Bools, Groups, Ints, codes, joint, next_of, numbers
from harness.engine.events import BIND, FINISH, GONE
from harness.plugins.measurement import SHARE, Measurement, Window
from harness.runs.recording.actions import action_codes
from harness.runs.run import Run

Shape: TypeAlias = tuple[int, ...]
"""The quantity of each resource that a pod requests or that is free on a node."""

Needs: TypeAlias = tuple[int, ...]
"""The numbers of the shapes that are needs. See the module docstring."""

_KEY = ("job", "pod_number", "successor")

_KEPT = 1 << 8  # the sets of larger shapes that stay in memory
_SPANS = 1 << 8  # how many spans with different needs to examine together
_ROWS = 1 << 11
_PAIRS = 1 << 22
"""How many decisions to examine together, and how many pairs of a decision and a shape if that is more.

If all shapes differ, the needs change all the time, and all needs are compared with most spans.
"""


class _Decisions(NamedTuple):
    time: Ints
    action: Ints
    node: Ints
    job: Ints
    pod: Ints
    successor: Ints
    moves: Moves


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the useless share of each resource's capacity, or null if the run records no nodes."""
    pools = run.info["cluster"].get("allocatable", [])
    wasted = _wasted(run, window, pools) if pools and len(request_columns(run)) else None
    for place, resource in enumerate(run.resources):
        whole = run.capacity_time(resource, window)
        share = wasted[place] / whole if wasted is not None and whole else None
        yield Measurement("fragmentation", share, SHARE, "lower", resource=resource)


def _wasted(run: Run, window: Window, pools: Sequence[Mapping[str, Any]]) -> list[int]:
    pods, sizes = PodMoves(run), pod_sizes(run)
    shape_of = joint(*sizes.each)
    some = np.zeros(int(shape_of.max(initial=-1)) + 1, np.int64)
    some[shape_of] = np.arange(len(shape_of))
    shapes = [amount[some] for amount in sizes.each]
    names, free, unused, changes = _nodes(run, pools)
    waiting, nodes = _Waiting(shapes), _Free(free, sizes, changes, shapes)
    sums = [0] * len(sizes.each)
    begin = window.start
    most = max(_ROWS, len(names), _PAIRS // max(1, len(some)))
    batches = _decisions(run, window, pods, pl.Enum(names), most)
    rows = next(batches)
    for following in batches:
        end = int(rows.time[-1]) if len(rows.time) else begin
        sums = nodes.add(rows, waiting.needs(rows, shape_of), begin, end, unused, sums)
        begin, rows = end, following
    return nodes.add(rows, waiting.needs(rows, shape_of), begin, window.end, unused, sums)


def _decisions(run: Run, window: Window, pods: PodMoves, nodes: pl.Enum, most: int) -> Iterator[_Decisions]:
    """Yields the decisions of the window in order, at most `most` at once."""
    for batch in run.batches("decisions", ("time", "node", "pod_number", "successor", *COLUMNS)):
        (time,) = numbers(batch, "time")
        within = batch[: int(time.searchsorted(window.end, side="right"))]
        for some in within.iter_slices(most) if len(within) else (within,):
            time, job, pod, successor = numbers(some, "time", *_KEY)
            action, node = action_codes(some["action"]), codes(some["node"].cast(nodes))
            yield _Decisions(time, action, node, job, pod, successor, pods.of(some))


class _Changes(NamedTuple):
    time: Ints
    node: Ints
    amounts: list[Ints]


def _nodes(
    run: Run, pools: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[Ints], Counter[Shape], _Changes]:
    """Returns the nodes that change or that get pods, and their free resources at the beginning.

    The result also contains the number of all other nodes, grouped by their resources, and the changes of
    nodes.
    """
    sizes = {name: pool["amounts"] for pool in pools for name in pool.get("nodes", [])}
    rest: Mapping[str, int] = next((pool["amounts"] for pool in pools if "nodes" not in pool), {})
    used: set[str] = set()
    for batch in run.batches("decisions", ("node",)):
        used.update(name for name in batch["node"].unique().to_list() if name is not None)
    changed = [
        (event["at_us"], name, before, after)
        for event in run.info["cluster"].get("events", ())
        for name, (before, after) in event.get("allocatable", {}).items()
    ]
    at_first: dict[str, Mapping[str, int] | None] = {}
    for _, name, before, _ in changed:
        at_first.setdefault(name, before)
    names = sorted(used | at_first.keys())
    there = [name for name in names if at_first.get(name, rest) is not None]
    free = [_shape(run, sizes.get(name, rest) if name in there else {}) for name in names]
    unused = Counter({_shape(run, pool["amounts"]): 0 for pool in pools})
    for pool in pools:
        unused[_shape(run, pool["amounts"])] += pool["count"]
    unused.subtract(_shape(run, sizes.get(name, rest)) for name in there)
    place_of = {name: place for place, name in enumerate(names)}
    moved = [
        (at, place_of[name], *map(sub, _shape(run, after or {}), _shape(run, before or {})))
        for at, name, before, after in changed
    ]
    time, node, *amounts = np.array(moved, np.int64).reshape(-1, 2 + len(run.resources)).T
    places = range(len(run.resources))
    at_begin = [np.array([amounts[place] for amounts in free], np.int64) for place in places]
    return names, at_begin, +unused, _Changes(time, node, amounts)


def _shape(run: Run, amounts: Mapping[str, int]) -> Shape:
    return tuple(amounts.get(resource, 0) for resource in run.resources)


class _Waiting:
    """The pods that are waiting at the current time. `shapes` has the amounts of each resource.

    The shapes are in ascending order. Sets of shapes are integers, in which each shape has one bit.
    """

    def __init__(self, shapes: Sequence[Ints]) -> None:
        self._at_least = lru_cache(_KEPT)(partial(_at_least, shapes))
        self._counts = np.zeros(len(shapes[0]), np.int64)
        self._present = self._covered = 0  # the shapes of waiting pods, and all shapes above any of the needs
        self._least: list[int] = []

    def needs(self, rows: _Decisions, shape_of: Ints) -> list[tuple[int, Needs]]:
        """Returns the sets of needs, each with its first time. The first set applies from the start."""
        some = np.flatnonzero(rows.moves.waiting)
        groups = Groups(shape_of[rows.moves.size[some]])
        time = rows.time[rows.moves.row[some]][groups.order]
        pods = groups.running(rows.moves.waiting[some][groups.order]) + self._counts[groups.keys]
        # If several changes happen at the same time, only the state after the last of them counts.
        stays = groups.last
        stays[:-1] |= time[1:] != time[:-1]
        shape, time, waits = groups.keys[stays], time[stays], pods[stays] > 0
        before = np.append(False, waits[:-1])
        begins = Groups(shape).begins
        before[begins] = self._counts[shape[begins]] > 0
        last = groups.last
        self._counts[groups.keys[last]] = pods[last]
        turned = np.flatnonzero(waits != before)
        turned = turned[np.lexsort((shape[turned], time[turned]))]
        found = {-1: tuple(self._least)}
        for at, number, begun in zip(*(each[turned].tolist() for each in (time, shape, waits)), strict=True):
            self._turn(number, waits=begun)
            found[at] = tuple(self._least)
        return list(found.items())

    def _turn(self, number: int, *, waits: bool) -> None:
        self._present ^= 1 << number
        if waits:
            if not self._covered >> number & 1:
                larger = self._at_least(number)
                self._least = sorted((*(least for least in self._least if not larger >> least & 1), number))
                self._covered |= larger
        elif number in self._least:
            self._least.remove(number)
            self._covered = reduce(or_, map(self._at_least, self._least), 0)
            larger = self._present & self._at_least(number)
            while left := larger & ~self._covered:
                # No other one is below the first, because shapes are in ascending order.
                self._least.append((left & -left).bit_length() - 1)
                self._covered |= self._at_least(self._least[-1])
            self._least.sort()


def _at_least(shapes: Sequence[Ints], number: int) -> int:
    """Returns which shapes request at least as much of every resource as one of them."""
    found: Bools = np.ones(len(shapes[0]), np.bool_)
    for amounts in shapes:
        found &= amounts >= amounts[number]
    return int.from_bytes(np.packbits(found, bitorder="little").tobytes(), "little")


class _Bound(NamedTuple):
    time: Ints
    node: Ints
    job: Ints
    pod: Ints
    successor: Ints


class _Free:
    """The free resources of nodes at the current time."""

    def __init__(
        self, free: Sequence[Ints], sizes: PodSizes, changes: _Changes, shapes: Sequence[Ints]
    ) -> None:
        self._free, self._sizes, self._changes, self._shapes = list(free), sizes, changes, shapes
        nothing = np.zeros(0, np.int64)
        self._bound = _Bound(*[nothing] * len(_Bound._fields))

    def add(
        self,
        rows: _Decisions,
        needs: Sequence[tuple[int, Needs]],
        begin: int,
        end: int,
        unused: Mapping[Shape, int],
        sums: Sequence[int],
    ) -> list[int]:
        """Adds what is useless from `begin` to `end` to `sums`, and then updates the free resources."""
        time, node, size, sign = self._moves(rows)
        changes = self._changes_until(end)
        every = np.arange(len(self._free[0]))
        time = np.concatenate((np.full(len(every), begin), time, changes.time.clip(begin)))
        node = np.concatenate((every, node, changes.node))
        ranked = np.lexsort((time, node))
        groups, time = Groups(node[ranked]), time[ranked]
        levels = []
        for place, (free, each) in enumerate(zip(self._free, self._sizes.each, strict=True)):
            moved = np.concatenate((free, each[size] * sign, changes.amounts[place]))
            levels.append(groups.running(moved[ranked]))
            self._free[place] = levels[-1][groups.last]
        until = next_of(time, end)
        until[groups.last] = end
        lasts = until > time
        levels, time, until = [level[lasts] for level in levels], time[lasts], until[lasts]
        spans: dict[Needs, list[tuple[int, int]]] = {}
        starts = [begin, *(max(at, begin) for at, _ in needs[1:])]
        for (_, least), since, to in zip(needs, starts, [*starts[1:], end], strict=True):
            if least and to > since:
                spans.setdefault(least, []).append((since, to))
        # Needs that apply rarely meet few levels. If all pods request different amounts, most needs do.
        rarely = {least for least, of_least in spans.items() if len(of_least) * len(every) < len(time)}
        pieces = sorted((*span, least) for least in rarely for span in spans[least])
        often = {least: of_least for least, of_least in spans.items() if least not in rarely}
        numbers_of = {least: number for number, least in enumerate(often)}
        parts = _Parts(time, until, starts, [numbers_of.get(least, -1) for _, least in needs])
        found = list(sums)
        shapes = self._shapes
        for some, lengths in chain(
            _in_pieces(shapes, levels, time, until, pieces),
            _by_needs(shapes, levels, time, until, parts, often),
        ):
            for place, level in enumerate(levels):
                # The pods on a node may hold more than the node has, so a level may be negative.
                found[place] += resource_time(level[some].clip(0), lengths)
        for amounts, count in unused.items():
            fits = np.logical_and.reduce([*map(le, shapes, amounts)])
            useless = [of_least for least, of_least in spans.items() if not fits[[*least]].any()]
            whole = count * sum(to - since for since, to in chain.from_iterable(useless))
            found = [sum_ + each * whole for sum_, each in zip(found, amounts, strict=True)]
        return found

    def _changes_until(self, end: int) -> _Changes:
        time, node, amounts = self._changes
        some = int(time.searchsorted(end, side="right"))
        self._changes = _Changes(time[some:], node[some:], [each[some:] for each in amounts])
        return _Changes(time[:some], node[:some], [each[:some] for each in amounts])

    def _moves(self, rows: _Decisions) -> tuple[Ints, Ints, Ints, Ints]:
        """Returns the time, node, pod size and sign of changes in free resources. A sign of 1 means freed."""
        binds = np.flatnonzero(rows.action == BIND)
        new = _Bound(*(each[binds] for each in (rows.time, rows.node, rows.job, rows.pod, rows.successor)))
        bound = _Bound(*map(np.append, self._bound, new))
        over = np.flatnonzero((rows.action == GONE) | (rows.action == FINISH))
        whole = rows.pod[over] == NEVER
        single, of_jobs = over[~whole], over[whole]
        keys = joint(
            np.append(bound.job, rows.job[single]),
            np.append(bound.pod, rows.pod[single]),
            np.append(bound.successor, rows.successor[single]),
        )
        pods = len(bound.job)
        end = _found(keys[:pods], keys[pods:], rows.time[single])
        of_whole = _found(bound.job, rows.job[of_jobs], rows.time[of_jobs])
        end = np.where(end == NEVER, of_whole, end)
        gone = end != NEVER
        self._bound = _Bound(*(each[~gone] for each in bound))
        signs = np.append(np.full(len(binds), -1), np.ones(np.count_nonzero(gone), np.int64))
        node, job, pod = (
            np.append(getattr(new, name), getattr(bound, name)[gone]) for name in ("node", "job", "pod")
        )
        return np.append(new.time, end[gone]), node, self._sizes.of(job, pod), signs


class _Parts:
    """Spans of time, grouped by the needs during each span. The needs of most spans do not change.

    Each span lasts from `time` to `until`. `starts` has the times at which the needs change, in order, and
    `needs` has the numbers of the needs from each of these times on. No span begins before the first of these
    times.
    """

    def __init__(self, time: Ints, until: Ints, starts: Sequence[int], needs: Sequence[int]) -> None:
        since = np.array(starts, np.int64)
        at = since.searchsorted(time, side="right") - 1
        same = at == since.searchsorted(until) - 1
        self._others, one = np.flatnonzero(~same), np.flatnonzero(same)
        groups = Groups(np.array(needs, np.int64)[at[one]])
        self._of_one = {need: one[groups.order[rows]] for need, rows in groups}

    def of(self, need: int) -> Ints:
        """Returns the indexes of the spans with only these needs, and of all spans with changing needs."""
        only = self._of_one.get(need)
        return self._others if only is None else np.append(only, self._others)


def _found(keys: Ints, known: Ints, values: Ints) -> Ints:
    """Returns the value of each key, or `NEVER`. Keys must be small, like jobs or results of `joint`."""
    table = np.full(int(max(keys.max(initial=0), known.max(initial=0))) + 1, NEVER)
    table[known] = values
    return table[keys]


def _in_pieces(
    shapes: Sequence[Ints],
    levels: Sequence[Ints],
    time: Ints,
    until: Ints,
    spans: Sequence[tuple[int, int, Needs]],
) -> Iterator[tuple[Ints, Ints]]:
    """Yields the indexes of the levels that are useless in some spans, and for how long they are useless.

    Args:
        shapes: the amounts of each resource, by the number of the shape.
        levels: the free resources of nodes.
        time: when each level begins.
        until: when each level ends.
        spans: the begin and the end of each span in order, and the needs of the span.
    """
    for first in range(0, len(spans), _SPANS):
        since, to, needs = zip(*spans[first : first + _SPANS], strict=True)
        begins, ends = np.array(since, np.int64), np.array(to, np.int64)
        met = ends.searchsorted(time, side="right")  # the first span that each level meets
        counts = begins.searchsorted(until) - met
        rows = np.repeat(np.arange(len(time)), counts)
        span = np.arange(len(rows)) + np.repeat(met - counts.cumsum() + counts, counts)
        useless = _useless(shapes, [level[rows] for level in levels], needs, span)
        rows, span = rows[useless], span[useless]
        yield rows, np.minimum(until[rows], ends[span]) - np.maximum(time[rows], begins[span])


def _by_needs(
    shapes: Sequence[Ints],
    levels: Sequence[Ints],
    time: Ints,
    until: Ints,
    parts: _Parts,
    spans: Mapping[Needs, list[tuple[int, int]]],
) -> Iterator[tuple[Ints, Ints]]:
    """Yields the same as `_in_pieces`, for one set of needs after another. `spans` has the spans of each."""
    for number, (least, of_least) in enumerate(spans.items()):
        some = parts.of(number)
        some = some[_useless(shapes, [level[some] for level in levels], [least], np.zeros_like(some))]
        yield some, _passed(until[some], of_least) - _passed(time[some], of_least)


def _useless(shapes: Sequence[Ints], levels: Sequence[Ints], needs: Sequence[Needs], of: Ints) -> Bools:
    """Returns whether resources are free but not sufficient for any of the smallest pods.

    `of` contains the index of each level's needs.
    """
    sizes = np.array([len(least) for least in needs])
    firsts = sizes.cumsum() - sizes
    each = np.array([*chain.from_iterable(needs)], np.int64)
    found: Bools = np.logical_or.reduce([level > 0 for level in levels])
    for number in range(sizes.max()):
        (some,) = (found & (sizes[of] > number)).nonzero()
        pods = each[firsts[of[some]] + number]
        short = [level[some] < amounts[pods] for level, amounts in zip(levels, shapes, strict=True)]
        found[some] = np.logical_or.reduce(short)
    return found


def _passed(times: Ints, spans: Sequence[tuple[int, int]]) -> Ints:
    """Returns, for each of the given times, how much of the spans has passed."""
    starts = np.array([since for since, _ in spans], np.int64)
    lengths = np.array([until - since for since, until in spans], np.int64)
    before = lengths.cumsum() - lengths
    place = starts.searchsorted(times, side="right") - 1
    inside = place.clip(0)
    within = np.minimum(times - starts[inside], lengths[inside])
    return np.where(place >= 0, before[inside] + within, 0)

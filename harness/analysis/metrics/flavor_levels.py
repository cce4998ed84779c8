"""Derives from a run's decisions how much quota of each flavor the jobs of each ClusterQueue hold.

The module reads decisions, because `timeline.parquet` does not separate flavors.

A job holds quota of the flavors in its admission until its pods have completed or are gone. If a job has no
bound pod, it holds its quota until the quota is released; see `harness.analysis.metrics.quota_held`. Only
runs of clusters in which a resource has several flavors need this module.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from harness.analysis.metrics.lending import Cell
from harness.analysis.metrics.levels import holder_of_jobs, holders
from harness.analysis.metrics.pieces import Moves, Piece, cut
from harness.analysis.metrics.pod_moves import admitted_of, place_of
from harness.analysis.metrics.pod_sizes import PodSet, pod_sizes
from harness.analysis.metrics.quota_held import latency_of, unbound_evictions
from harness.base.arrays import codes
from harness.plugins.measurement import Window
from harness.runs.run import Run

_COLUMNS = ("seq", "time", "action", "job", "pods", "pod_number", "flavors", "detail")

Chosen = Mapping[str, Mapping[str, str]]


def level_of(cell: Cell) -> str:
    """Returns the name of the column that contains the held amounts of a resource in a flavor."""
    return f"{cell.flavor}/{cell.resource}"


def flavor_pieces(
    run: Run, window: Window, cells: Sequence[Cell], *, changes: int, turns: Sequence[int]
) -> Iterator[Piece]:
    """Yields how much quota the jobs of each ClusterQueue hold over time.

    `cells` contains the resources and flavors of interest. For `changes` and `turns`, see
    `harness.analysis.metrics.pieces.cut`.
    """
    names = [level_of(cell) for cell in cells]
    found, users = _moves(run, window, cells), len(holders(run))
    yield from cut(found, users, names, window, changes=changes, turns=turns)


def _moves(run: Run, window: Window, cells: Sequence[Cell]) -> Iterator[Moves]:
    holder = codes(holder_of_jobs(run))
    places = {cell: place for place, cell in enumerate(cells)}
    following = _Following(run)
    latency = latency_of(run)
    unbound = set(unbound_evictions(run)["seq"]) if latency else set()
    evicted: set[int] = set()  # Jobs without a bound pod stay here until they are requeued.
    late: deque[tuple[int, int, int, int]] = deque()
    for batch in run.batches("decisions", _COLUMNS):
        found: list[tuple[int, int, int, int]] = []
        for seq, time, action, job, pods, pod, flavors, detail in batch.select(_COLUMNS).iter_rows():
            if time > window.end:
                break
            while late and late[0][0] <= time:
                found.append(late.popleft())
            if seq in unbound:
                evicted.add(job)
            moved = following.take(action, job, pods, pod, flavors, detail)
            waits = action == "requeue" and pod is None and job in evicted
            if waits:
                evicted.remove(job)
            for cell, amount in moved.items():
                if amount and cell in places:
                    move = (time + latency * waits, int(holder[job]), places[cell], amount)
                    (late if waits else found).append(move)
        yield _moved(found, places)
    yield _moved([move for move in late if move[0] < window.end], places)


def _moved(found: Sequence[tuple[int, int, int, int]], places: Mapping[Cell, int]) -> Moves:
    """Converts moves to columns. A move consists of a time, a holder, the index of a cell, and a quantity."""
    columns = np.array(found, np.int64).reshape(-1, 4).T
    of_cells = {
        level_of(cell): np.where(columns[2] == place, columns[3], 0) for cell, place in places.items()
    }
    return Moves(columns[0], columns[1], of_cells)


class _Following:
    """Tracks the quota that each job holds."""

    def __init__(self, run: Run) -> None:
        self._run, self._sizes = run, pod_sizes(run)
        self._held: dict[int, dict[Cell, int]] = {}
        self._of_job: dict[int, Chosen] = {}
        # Maps each job to the number of unfinished pods in each of its pod sets.
        self._left: dict[int, list[int]] = {}
        self._chosen: dict[str, Chosen] = {}

    def take(
        self, action: str, job: int, pods: int, pod: int | None, flavors: str | None, detail: str | None
    ) -> dict[Cell, int]:
        """Returns how a decision changes the quota that its job holds in each cell."""
        sets = self._sizes.unequal.get(job) or [PodSet(job, "", int(self._sizes.pods[job]))]
        if action == "admit" and pod is None and flavors:
            if flavors not in self._chosen:
                self._chosen[flavors] = json.loads(flavors)
            self._of_job[job] = self._chosen[flavors]
            counts = admitted_of(sets, self._left.get(job, [each.pods for each in sets]), pods, detail)
            held = self._held[job] = self._asks(sets, counts, self._of_job[job])
            return dict(held)
        if action == "finish" and pod is not None:
            left = self._left.setdefault(job, [each.pods for each in sets])
            left[place_of(sets, pod)] -= 1
        if job not in self._held or action not in ("finish", "gone", "requeue"):
            return {}
        held = self._held[job]
        if pod is None:
            del self._held[job], self._of_job[job]
            return {cell: -amount for cell, amount in held.items()}
        given = self._asks([sets[place_of(sets, pod)]], [1], self._of_job[job])
        # A pod that returns to the queue takes up the quota that its job kept.
        sign = 1 if action == "requeue" else -1
        for cell, amount in given.items():
            held[cell] += sign * amount
        return {cell: sign * amount for cell, amount in given.items()}

    def _asks(self, sets: Sequence[PodSet], counts: Sequence[int], chosen: Chosen) -> dict[Cell, int]:
        found: dict[Cell, int] = {}
        for each, count in zip(sets, counts, strict=True):
            # Here, pods with equal requests form one set, even if they belong to different pod sets.
            of_set = chosen.get(each.name) or next(iter(chosen.values()), {})
            for place, resource in enumerate(self._run.resources):
                amount = int(self._sizes.each[place][each.size]) * count
                if amount and resource in of_set:
                    cell = Cell(resource, of_set[resource])
                    found[cell] = found.get(cell, 0) + amount
        return found

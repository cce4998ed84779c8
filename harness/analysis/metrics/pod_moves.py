"""Counts the pods that wait and the pods that hold resources, decision by decision.

A decision records how many pods it affects, which is nearly always sufficient. There are two exceptions. If a
job is admitted with fewer pods than it has, its other pods no longer wait. If the pods of a job have
different requests, it matters which of them wait. In both cases, the decisions about the job are replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from harness.analysis.metrics.pod_sizes import PodSet, pod_sizes
from harness.base.arrays import Bools, Groups, Ints, numbers
from harness.base.json_text import parse_json
from harness.engine.events import ADMIT
from harness.runs.known import once
from harness.runs.recording.actions import ASKED, BOUND, action_codes
from harness.runs.run import Run

COLUMNS = ("seq", "action", "job", "pods", "holding")
"""The columns of decisions that `PodMoves.of` reads."""


class Moves(NamedTuple):
    """Changes in the numbers of pods, in the order of the decisions that cause them.

    Attributes:
        row: the index of the decision among the given decisions. A decision may cause several changes.
        size: the index of the pods' size; see `PodSizes`.
        waiting, holding: the change in the number of waiting pods, and in the number of pods that hold
            resources.
    """

    row: Ints
    size: Ints
    waiting: Ints
    holding: Ints


class PodMoves:
    """The changes that decisions cause to the pods of a run's jobs."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._sizes = pod_sizes(run)
        self._by_pods = bool(run.info["cluster"]["nodes"])
        self._followed = _followed(run) if self._sizes.unequal else None

    def of(self, decisions: pl.DataFrame) -> Moves:
        """Returns the changes that the run's next decisions cause.

        `decisions` has the columns `COLUMNS`. Each call must continue where the previous call ended.
        """
        seq, job, pods, holding = numbers(decisions, "seq", "job", "pods", "holding")
        action = action_codes(decisions["action"])
        # If a job is admitted with fewer pods than it has, the others may have completed before.
        if self._followed is None:
            admits = np.flatnonzero(action == ADMIT)
            if (pods[admits] < self._sizes.pods[job[admits]]).any():
                self._followed = _followed(self._run)
        held = BOUND[action] if self._by_pods else holding
        # When pods begin to hold resources, they stop waiting.
        waiting, held = (ASKED[action] - held.clip(0)) * pods, held * pods
        moved = (waiting != 0) | (held != 0)
        if self._followed is not None:
            moved &= ~self._followed.jobs[job]
        rows = np.flatnonzero(moved)
        usual = Moves(rows, job[rows], waiting[rows], held[rows])
        if self._followed is None or not len(seq):
            return usual
        first, last = self._followed.moves.row.searchsorted([seq[0], seq[-1] + 1])
        row, *others = (column[first:last] for column in self._followed.moves)
        both = [np.append(*each) for each in zip(usual, (seq.searchsorted(row), *others), strict=True)]
        order = both[0].argsort(kind="stable")
        return Moves(*(column[order] for column in both))


class _Followed(NamedTuple):
    """The jobs whose decisions were replayed, and the resulting changes.

    Attributes:
        jobs: whether each job was replayed in this way.
        moves: the changes from the decisions about these jobs, where `row` is the `seq` number of the
            decision.
    """

    jobs: Bools
    moves: Moves


@once
def _followed(run: Run) -> _Followed:
    """Replays the jobs with different pods, and the jobs that are admitted with fewer pods than they have."""
    sizes = pod_sizes(run)
    decisions = run.scan("decisions")
    admissions = decisions.filter((pl.col("action") == "admit") & pl.col("pod_number").is_null())
    job, pods = numbers(admissions.select("job", "pods").collect(), "job", "pods")
    jobs: Bools = np.zeros(len(sizes.pods), np.bool_)
    jobs[job[pods < sizes.pods[job]]] = True
    jobs[list(sizes.unequal)] = True
    some = np.flatnonzero(jobs).tolist()
    following = {
        each: _Pods(sizes.unequal.get(each, [PodSet(each, "", int(sizes.pods[each]))])) for each in some
    }
    by_pods = bool(run.info["cluster"]["nodes"])
    moved: list[tuple[int, int, int, int]] = []
    rows = decisions.filter(pl.col("job").is_in(some)).select(*COLUMNS, "pod_number", "detail").collect()
    for seq, action, each, count, holding, pod, detail in rows.iter_rows():
        starts = holding == 1 and not by_pods
        moves = following[each].take(action, count, pod, detail, starts=starts)
        moved += [(seq, *move) for move in moves]
    columns = np.array(moved, np.int64).reshape(-1, len(Moves._fields)).T
    return _Followed(jobs, Moves(*columns))


def waiting_after(run: Run, decisions: pl.DataFrame) -> dict[int, list[int]]:
    """Returns what the waiting pods of a job request after each of the given decisions about the job.

    The result covers only jobs whose pods have different requests. `decisions` has the columns `seq` and
    `job`. The result maps row numbers in `decisions` to the requested amounts, in the order of resources.
    """
    sizes = pod_sizes(run)
    rows = [
        (row, seq, sizes.unequal[job])
        for row, (seq, job) in enumerate(decisions.select("seq", "job").iter_rows())
        if job in sizes.unequal
    ]
    if not rows:
        return {}
    moves = _followed(run).moves
    groups = Groups(moves.size)
    when, waiting = moves.row[groups.order], groups.running(moves.waiting[groups.order])
    of_sizes = {size: (when[some], waiting[some]) for size, some in groups}
    found = {}
    for row, seq, sets in rows:
        counts = []
        for each in sets:
            times, levels = of_sizes[each.size]
            counts.append(int(levels[int(times.searchsorted(seq, side="right")) - 1]))
        found[row] = [
            sum(count * int(amounts[each.size]) for each, count in zip(sets, counts, strict=True))
            for amounts in sizes.each
        ]
    return found


class _Pods:
    """The numbers of waiting pods and of pods that hold resources, for each pod set of a job."""

    def __init__(self, pod_sets: Sequence[PodSet]) -> None:
        self._sets = pod_sets
        self._left = [each.pods for each in pod_sets]  # The number of pods that haven't completed.
        self._waiting, self._holding = ([0] * len(pod_sets) for _ in range(2))

    def take(
        self, action: str, pods: int, pod: int | None, detail: str | None, *, starts: bool
    ) -> Iterator[tuple[int, int, int]]:
        """Yields the size and the changes of each pod set that a decision affects.

        If `starts` is true, all waiting pods begin to hold resources, as in clusters without nodes.
        """
        waiting, holding = list(self._waiting), list(self._holding)
        one = None if pod is None else place_of(self._sets, pod)
        if action == "submit" or (action == "requeue" and one is None):
            self._waiting = list(self._left)
        elif action == "requeue" and one is not None:
            self._waiting[one] += 1
        elif action == "reject":
            self._waiting = [0] * len(self._sets)
        elif action == "admit":
            self._waiting = admitted_of(self._sets, self._left, pods, detail)
        elif action == "bind" and one is not None:
            self._waiting[one] -= 1
            self._holding[one] += 1
        elif action in ("gone", "finish") and one is not None:
            self._holding[one] -= 1
            self._left[one] -= action == "finish"
        elif action in ("gone", "finish"):
            self._holding = [0] * len(self._sets)
        if starts:
            self._waiting, self._holding = self._holding, self._waiting
        for number, each in enumerate(self._sets):
            moved = self._waiting[number] - waiting[number], self._holding[number] - holding[number]
            if any(moved):
                yield each.size, *moved


def place_of(sets: Sequence[PodSet], pod: int) -> int:
    """Returns the index of a pod's pod set. Pods are numbered across all pod sets."""
    place = 0
    while pod >= sets[place].pods:
        pod -= sets[place].pods
        place += 1
    return place


def admitted_of(sets: Sequence[PodSet], left: Sequence[int], pods: int, detail: str | None) -> list[int]:
    """Returns how many pods of each pod set are admitted, if the job as a whole is admitted with `pods` pods.

    `left` contains the number of pods of each pod set that have not completed. `detail` names the pod sets
    that get fewer pods, with their numbers of pods. If it names none, the last pods are not admitted.
    """
    admitted = left
    if len(sets) > 1 and pods < sum(left):
        counts = counts_of(detail)
        told = [min(counts.get(each.name, count), count) for each, count in zip(sets, left, strict=True)]
        admitted = told if sum(told) == pods else left
    places = [0, *(min(pods, first) for first in accumulate(admitted))]
    return [end - begin for begin, end in pairwise(places)]


def counts_of(detail: str | None) -> dict[str, int]:
    """Returns how many pods of each pod set run, if the detail of an admission says so."""
    found = parse_json(detail or "{}").get("counts")
    counts = found.items() if isinstance(found, dict) else ()
    return {name: count for name, count in counts if type(count) is int}

"""How many pods wait and how many hold resources: how far each decision moves both.

A decision says how many pods it is about, and nearly always that is all there is to know. A job that is
admitted with fewer pods than it has gives up the others, which wait no longer: such jobs are followed
decision by decision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from harness.arrays import Bools, Ints, numbers
from harness.engine.events import ADMIT
from harness.metrics.arrivals import request_columns
from harness.metrics.known import once
from harness.recording.actions import ASKED, BOUND, action_codes
from harness.runs.run import Run

COLUMNS = ("seq", "action", "job", "pods", "pod_number", "holding")
"""What `PodMoves.of` reads of decisions."""


class Moves(NamedTuple):
    """How far decisions move numbers of pods, in the order of the decisions.

    Attributes:
        row: the place of the decision among those that were asked about.
        job: whose pods.
        waiting, holding: how many more of them wait, and hold resources.
    """

    row: Ints
    job: Ints
    waiting: Ints
    holding: Ints


class PodMoves:
    """How decisions move the pods of a run's jobs.

    Args:
        run: the run.

    Attributes:
        each: of each resource what a pod of each job asks for.
    """

    def __init__(self, run: Run) -> None:
        columns = request_columns(run)
        self._run = run
        self._pods, *totals = numbers(run.columns("jobs", "pods", *columns), "pods", *columns)
        self.each = [total // self._pods for total in totals]
        self._by_pods = bool(run.info["cluster"]["nodes"])
        self._followed: _Followed | None = None

    def of(self, decisions: pl.DataFrame) -> Moves:
        """How far some of the run's decisions move them, the next ones in order, with `COLUMNS`."""
        seq, job, pods, holding = numbers(decisions, "seq", "job", "pods", "holding")
        action = action_codes(decisions["action"])
        # Of a job that is admitted with fewer pods than it has, some may have ended before, though.
        if self._followed is None and (pods < self._pods[job])[action == ADMIT].any():
            self._followed = _followed(self._run)
        held = BOUND[action] if self._by_pods else holding
        # What comes to hold resources waits no longer.
        waiting, held = (ASKED[action] - held.clip(0)) * pods, held * pods
        rows = np.flatnonzero((waiting != 0) | (held != 0))
        usual = Moves(rows, job[rows], waiting[rows], held[rows])
        if self._followed is None or not len(seq):
            return usual
        usual = Moves(*(column[~self._followed.is_followed[usual.job]] for column in usual))
        first, last = self._followed.moves.row.searchsorted([seq[0], seq[-1] + 1])
        row, *others = (column[first:last] for column in self._followed.moves)
        both = Moves(*map(np.append, usual, (seq.searchsorted(row), *others)))
        order = both.row.argsort(kind="stable")
        return Moves(*(column[order] for column in both))


class _Followed(NamedTuple):
    """What was found out of the jobs that were followed.

    Attributes:
        is_followed: whether each job was.
        moves: how their decisions move their pods; `row` is the decision's number `seq`.
    """

    is_followed: Bools
    moves: Moves


@once
def _followed(run: Run) -> _Followed:
    """Follow the jobs that were admitted with fewer pods than they have."""
    pods = run.columns("jobs", "pods")["pods"]
    decisions = run.scan("decisions")
    admissions = (
        decisions.filter((pl.col("action") == "admit") & pl.col("pod_number").is_null())
        .select("job", "pods")
        .collect()
    )
    some = admissions.filter(pl.col("pods") < pods.gather(admissions["job"]))["job"].unique()
    counts = {number: _Pods(pods[number]) for number in some.to_list()}
    rows = decisions.filter(pl.col("job").is_in(some.implode())).select(*COLUMNS).collect()
    by_pods = bool(run.info["cluster"]["nodes"])
    moved = [
        (seq, job, *counts[job].take(action, count, 0 if by_pods else holding, single=pod is not None))
        for seq, action, job, count, pod, holding in rows.iter_rows()
    ]
    is_followed: Bools = np.zeros(len(pods), np.bool_)
    is_followed[some.to_numpy()] = True
    return _Followed(is_followed, Moves(*np.array(moved, np.int64).T))


class _Pods:
    """How many pods of a job wait and hold resources.

    Args:
        pods: how many it has.
    """

    def __init__(self, pods: int) -> None:
        self._left = pods
        self._waiting = self._holding = 0

    def take(self, action: str, pods: int, holding: int, *, single: bool) -> tuple[int, int]:
        """How far a decision moves both.

        Args:
            action: what was decided.
            pods: about how many.
            holding: without nodes, whether its pods hold resources from now on (1), or no longer (-1).
            single: whether it names a pod.
        """
        before = self._waiting, self._holding
        if action == "submit" or (action == "requeue" and not single):
            self._waiting = self._left
        elif action == "requeue":
            self._waiting += pods
        elif action == "reject":
            self._waiting = 0
        elif action == "admit":
            self._waiting = pods
        elif action == "bind":
            self._waiting, self._holding = self._waiting - pods, self._holding + pods
        elif action in ("gone", "finish"):
            self._holding -= pods
            self._left -= pods if action == "finish" else 0
        if holding == 1:
            self._waiting, self._holding = 0, self._waiting
        return self._waiting - before[0], self._holding - before[1]

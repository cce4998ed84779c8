"""Creates the pod sets of jobs. Jobs with equal requests share a single object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import polars as pl

from harness.base.frozen import Frozen
from harness.base.memo import Memo
from harness.policy import PodSet
from harness.trace.job_rows import differs
from harness.trace.schema import DEFAULT_POD_SET, LIMIT, REQUEST, entries, is_map, ordered, resources_of
from harness.trace.topology import topology_of

_MOST_SHARED = 1 << 16
"""The maximum number of cached shapes, which keeps memory small if all jobs of a trace differ."""

_Key: TypeAlias = tuple[Any, ...]
"""The values of a row that belong to its pod set, in the order of columns. Maps become sorted pairs."""


class PodSetMaker:
    """Creates the pod sets of jobs, one slice after another.

    Args:
        rows: the trace's rows, in the order in which their jobs arrive.
        counts: the number of rows of each job, or None if all jobs have one row.
    """

    def __init__(self, rows: pl.DataFrame, counts: pl.Series | None) -> None:
        names = [name for name in ordered(rows.columns) if differs(name)]
        self._columns = [rows[name] for name in names]
        self._place = {name: place for place, name in enumerate(names)}
        self._requests = [(name, self._place[f"{REQUEST}{name}"]) for name in resources_of(names)]
        self._limits = [(name, self._place[f"{LIMIT}{name}"]) for name in resources_of(names, LIMIT)]
        self._ends = counts.cast(pl.Int64).cum_sum() if counts is not None else None
        self._known: Memo[_Key, tuple[PodSet, ...]] = Memo(_MOST_SHARED)

    def of(self, start: int, count: int) -> list[tuple[PodSet, ...]]:
        """Returns the pod sets of the jobs from `start` to `start + count`."""
        if self._ends is None:
            known = self._known
            return [known.get(key) or self._remember(key, (key,)) for key in self._keys(start, count)]
        first = self._ends[start - 1] if start else 0
        ends = [end - first for end in self._ends.slice(start, count)]
        rows = list(self._keys(first, ends[-1]))
        jobs = [tuple(rows[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]
        return [self._known.get(job) or self._remember(job, job) for job in jobs]

    def _keys(self, start: int, count: int) -> Iterator[_Key]:
        slices = [column.slice(start, count) for column in self._columns]
        return zip(
            *(map(entries, part.to_list()) if is_map(part.dtype) else part.to_list() for part in slices),
            strict=True,
        )

    def _remember(self, key: _Key, rows: tuple[_Key, ...]) -> tuple[PodSet, ...]:
        pod_sets = self._known[key] = tuple(self._pod_set(row) for row in rows)
        return pod_sets

    def _pod_set(self, row: _Key) -> PodSet:
        value = dict(zip(self._place, row, strict=True)).get
        count, template = value("pods") or 1, value("pod_template")
        return PodSet(
            value("pod_set") or DEFAULT_POD_SET,
            count,
            value("min_pods") or count,
            Frozen({name: row[place] for name, place in self._requests if row[place]}),
            _present(row, self._limits),
            Frozen(dict(value("labels") or ())),
            Frozen(dict(value("node_selector") or ())),
            value("tolerations"),
            value("affinity"),
            template,
            topology=topology_of(value, template),
        )


def _present(row: _Key, places: list[tuple[str, int]]) -> Mapping[str, int]:
    return Frozen({name: row[place] for name, place in places if row[place] is not None})

"""Why `-` stands in a table where others have a value, and what is in none of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import polars as pl

from harness.comparison.changes import Row
from harness.comparison.figures import Key, shown
from harness.metrics.measurement import Measurement
from harness.metrics.scopes import ALL
from harness.runs.run import Run

_CENSORED = ("wait.first_start", "delay", "jct", "slowdown.bounded")
"""Of these jobs that have not come so far count as longer; see `harness.metrics.survival`."""

_UNFINISHED: Key = ("jobs.unfinished", ALL, "")
_NAMED = 6


NOT_REACHED = "not reached, since too many jobs had not come so far when the replay ended"
"""Why a percentile of what jobs wait for is not there."""


def is_unreached(metric: str, of_run: Mapping[Key, Measurement]) -> bool:
    """Whether a metric without a value in a run has none because of jobs that have not come so far.

    Args:
        metric: its name.
        of_run: what was measured of the run.
    """
    family, _, statistic = metric.rpartition(".")
    unfinished = of_run.get(_UNFINISHED)
    return family in _CENSORED and statistic != "mean" and unfinished is not None and bool(unfinished.value)


def about_missing(rows: Sequence[Row], measured: Sequence[Mapping[Key, Measurement]]) -> Iterator[str]:
    """What `-` means in these lines, in sentences; nothing where none stands there.

    Args:
        rows: the lines.
        measured: for each run what was measured of it.
    """
    unreached: list[str] = []
    other: list[str] = []
    for row in rows:
        about = row.measured
        lacking = [at for at, value in enumerate(row.values) if shown(value, about.unit) == "-"]
        if lacking:
            waits = all(is_unreached(about.metric, measured[at]) for at in lacking)
            (unreached if waits else other).append(about.metric)
    if unreached:
        yield f"- of {_named(unreached)}: {NOT_REACHED}; wait.never_started and jobs.unfinished say how many"
    if other:
        yield f"- of {_named(other)}: there was no such job or event, or it was not measured"


def about_unshaken(
    runs: Sequence[Run], measured: Sequence[Mapping[Key, Measurement]], *, isolated: Sequence[str]
) -> Iterator[str]:
    """Which metrics runs have and their twins have not, in a sentence; nothing where there are none.

    Args:
        runs: the runs themselves.
        measured: what was measured of the twins of each.
        isolated: the metrics that are measured on request only.
    """
    has = (run.metrics.filter(pl.col("value").is_not_null())["metric"].to_list() for run in runs)
    known = {row.metric for of_run in measured for row in of_run.values()}
    lacking = [name for name in dict.fromkeys(chain.from_iterable(has)) if name not in known]
    if lacking:
        how = "; --isolated beside --shake does that" if set(lacking) <= set(isolated) else ""
        yield f"measured of runs, but of none of their twins: {_named(lacking)}{how}"


def _named(metrics: Sequence[str]) -> str:
    """Metrics by name, each once."""
    names = list(dict.fromkeys(metrics))
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

"""Why `-` stands in a table where others have a value, and what is in none of its lines.

A percentile that was not reached is missing because so many jobs waited for so long. Twins without it are
therefore the worst ones, and a mean over the others would say that all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import NamedTuple, TypeAlias

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

_SINCE = "since too many jobs had not come so far when the replay ended"
_HOW_MANY = "wait.never_started and jobs.unfinished say how many"

_OfRuns: TypeAlias = dict[int, list[int]]
"""By run in how many of its twins something is so, once for each line."""


class Lack(NamedTuple):
    """In how many replays of a run, which are the run itself or its twins, a metric has no value.

    Attributes:
        unreached: because of jobs that have not come so far.
        absent: for another reason.
        replays: how many there are.
    """

    unreached: int
    absent: int
    replays: int

    @property
    def nothing(self) -> bool:
        """Whether all have a value."""
        return not self.unreached and not self.absent

    @property
    def not_reached(self) -> str:
        """That a percentile of what jobs wait for is not there, in how many twins, and why."""
        where = f" in {self.unreached:,} of {self.replays:,} twins" if self.replays > 1 else ""
        return f"not reached{where}, {_SINCE}"

    @property
    def partly(self) -> str:
        """Of which twins a mean is; "" where it is of all."""
        if not self.absent or self.absent == self.replays:
            return ""
        return f"over {self.replays - self.absent:,} of {self.replays:,} twins"


def lack_of(key: Key, replays: Sequence[Mapping[Key, Measurement]]) -> Lack:
    """In how many replays a metric has no value.

    Args:
        key: the metric, its scope and resource.
        replays: what was measured of each.
    """
    lacking = [of_replay for of_replay in replays if number(of_replay, key) is None]
    unreached = sum(_is_unreached(key[0], of_replay) for of_replay in lacking)
    return Lack(unreached, len(lacking) - unreached, len(replays))


def number(of_replay: Mapping[Key, Measurement], key: Key) -> float | None:
    """A value; None where it is not there, or is no number that could be averaged."""
    value = of_replay[key].value if key in of_replay else None
    return value if value is not None and isfinite(value) else None


def _is_unreached(metric: str, of_replay: Mapping[Key, Measurement]) -> bool:
    """Whether a metric without a value has none because of jobs that have not come so far."""
    family, _, statistic = metric.rpartition(".")
    unfinished = of_replay.get(_UNFINISHED)
    return family in _CENSORED and statistic != "mean" and unfinished is not None and bool(unfinished.value)


def about_missing(
    rows: Sequence[Row], lack: Callable[[Measurement, int], Lack], names: Sequence[str]
) -> Iterator[str]:
    """What `-` means in these lines, and which values are of some twins only, in sentences.

    Args:
        rows: the lines.
        lack: in how many replays of a run, by its place, something measured has no value.
        names: what the runs are called.
    """
    unreached: list[str] = []
    absent: list[str] = []
    partly: list[str] = []
    in_twins: _OfRuns = {}
    over: _OfRuns = {}
    replays = 1
    for row in rows:
        about = row.measured
        for place, value in enumerate(row.values):
            found = lack(about, place)
            replays = found.replays
            if found.unreached:
                unreached.append(about.metric)
                in_twins.setdefault(place, []).append(found.unreached)
            elif shown(value, about.unit) == "-":
                absent.append(about.metric)
            elif found.partly:
                partly.append(about.metric)
                over.setdefault(place, []).append(replays - found.absent)
    if unreached and replays == 1:
        yield f"- of {_named(unreached)}: not reached, {_SINCE}; {_HOW_MANY}"
    elif unreached:
        twins = _of_twins(in_twins, replays, names)
        yield (
            f"- of {_named(unreached)}: not reached in {twins}, {_SINCE}: "
            f"a mean over the other twins would leave out the worst ones; {_HOW_MANY}"
        )
    if absent:
        yield f"- of {_named(absent)}: there was no such job or event, or it was not measured"
    if partly:
        yield (
            f"{_named(partly)}: over {_of_twins(over, replays, names)}, as in the others there was no such "
            "job or event; changes are over the twins in which both runs have a value"
        )


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


def _of_twins(counts: _OfRuns, replays: int, names: Sequence[str]) -> str:
    """In how many twins of which runs: the least and the most of several lines."""
    several = []
    for place, of_lines in sorted(counts.items()):
        least, most = min(of_lines), max(of_lines)
        count = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        several.append(f"{count} of {replays:,} twins of {names[place]}")
    return _named(several)


def _named(names: Iterable[str]) -> str:
    """Some things by name, each once."""
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more

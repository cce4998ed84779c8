"""Why `-` stands in a table where others have a value, and what is in none of its lines.

A percentile that was not reached is missing because so many jobs waited for so long. Twins without it, or
seeds of an experiment, are therefore the worst ones, and a mean over the others would say that all is well.
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

TWINS, SEEDS = "twins", "seeds"
"""What several replays of one thing are called."""

_OF_RUN_TIMES = (
    *("wait.", "delay.", "jct.", "slowdown.", "starvation", "reclaim_latency", "fairness.finish_time"),
    *("disruption.lost", "disruption.time_to_restart", "utilization.lost"),
)

_UNFINISHED: Key = ("jobs.unfinished", ALL, "")
_NAMED = 6

_SINCE = "since too many jobs had not come so far when the replay ended"
_HOW_MANY = "wait.never_started and jobs.unfinished say how many"

_OfRuns: TypeAlias = dict[int, list["Lack"]]
"""By run what it lacks, once for each line."""


class Lack(NamedTuple):
    """In how many replays of one thing a metric has no value.

    Attributes:
        unreached: because of jobs that have not come so far.
        absent: for another reason.
        replays: how many there are: the run itself, its twins, or the seeds of an experiment's setting.
        called: what several of them are called.
    """

    unreached: int
    absent: int
    replays: int
    called: str = TWINS

    @property
    def nothing(self) -> bool:
        """Whether all have a value."""
        return not self.unreached and not self.absent

    @property
    def not_reached_in(self) -> str:
        """That a percentile of what jobs wait for is not there, and in how many twins."""
        if self.replays == 1:
            return "not reached"
        return f"not reached in {self.unreached:,} of {self.replays:,} {self.called}"

    @property
    def not_reached(self) -> str:
        """The same, and why."""
        return f"{self.not_reached_in}, {_SINCE}"

    @property
    def partly(self) -> str:
        """Of which twins a mean is; "" where it is of all."""
        if not self.absent or self.absent == self.replays:
            return ""
        return f"over {self.replays - self.absent:,} of {self.replays:,} {self.called}"


def depends_on_run_times(metric: str) -> bool:
    """Whether a metric is of waits or of losses, which say nothing where run times are not known.

    Jobs that hold what they have for a whole replay keep others waiting for as long as the trace lasts, and
    lose as much as they have run by then.
    """
    return metric.startswith(_OF_RUN_TIMES)


def lack_of(key: Key, replays: Sequence[Mapping[Key, Measurement]], called: str = TWINS) -> Lack:
    """In how many replays a metric has no value.

    Args:
        key: the metric, its scope and resource.
        replays: what was measured of each.
        called: what several of them are called.
    """
    lacking = [of_replay for of_replay in replays if number(of_replay, key) is None]
    unreached = sum(_is_unreached(key, of_replay) for of_replay in lacking)
    return Lack(unreached, len(lacking) - unreached, len(replays), called)


def told_by(key: Key) -> tuple[Key, ...]:
    """What must be known of a replay to say why it has no value: the metric itself and some others."""
    return (key, _UNFINISHED, _never_started(key)) if _is_censored(key[0]) else (key,)


def number(of_replay: Mapping[Key, Measurement], key: Key) -> float | None:
    """A value; None where it is not there, or is no number that could be averaged."""
    value = of_replay[key].value if key in of_replay else None
    return value if value is not None and isfinite(value) else None


def _is_unreached(key: Key, of_replay: Mapping[Key, Measurement]) -> bool:
    """Whether a metric without a value has none because of jobs that have not come so far."""
    if not _is_censored(key[0]) or not number(of_replay, _UNFINISHED):
        return False
    # Of a queue or priority there may be no jobs at all, while others have some that are not finished.
    return key[1] == ALL or number(of_replay, _never_started(key)) is not None


def _is_censored(metric: str) -> bool:
    """Whether a metric is a percentile that jobs which have not come so far keep from being known."""
    family, _, statistic = metric.rpartition(".")
    return family in _CENSORED and statistic != "mean"


def _never_started(key: Key) -> Key:
    """Which part of the jobs of the scope of a metric did not start; without a value if there are none."""
    return "wait.never_started", key[1], ""


def about_missing(
    rows: Sequence[Row],
    lack: Callable[[Measurement, int], Lack],
    names: Sequence[str],
    *,
    or_else: str = "",
) -> Iterator[str]:
    """What `-` means in these lines, and which values are of some twins only, in sentences.

    Args:
        rows: the lines.
        lack: in how many replays of a run, or of a setting, by its place, something measured has no value.
        names: what the runs, or settings, are called.
        or_else: why replays may lack a value beside that there was no such job or event.
    """
    unreached: list[str] = []
    absent: list[str] = []
    partly: list[str] = []
    without: _OfRuns = {}
    over: _OfRuns = {}
    for row in rows:
        about = row.measured
        for place, value in enumerate(row.values):
            found = lack(about, place)
            if found.unreached:
                unreached.append(about.metric)
                without.setdefault(place, []).append(found)
            elif shown(value, about.unit) == "-":
                absent.append(about.metric)
            elif found.partly:
                partly.append(about.metric)
                over.setdefault(place, []).append(found)
    several = [each for each in chain.from_iterable(without.values()) if each.replays > 1]
    if several:
        of_runs = _of_replays(without, names, lambda each: each.unreached)
        yield (
            f"- of {named(unreached)}: not reached in {of_runs}, {_SINCE}: "
            f"a mean over the other {several[0].called} would leave out the worst ones; {_HOW_MANY}"
        )
    elif unreached:
        yield f"- of {named(unreached)}: not reached, {_SINCE}; {_HOW_MANY}"
    if absent:
        yield f"- of {named(absent)}: there was no such job or event, or it was not measured"
    if partly:
        of_runs = _of_replays(over, names, lambda each: each.replays - each.absent)
        called = next(iter(over.values()))[0].called
        yield (
            f"{named(partly)}: over {of_runs}, as in the others there was no such job or event{or_else}; "
            f"changes are over the {called} in which both have a value"
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
        yield f"measured of runs, but of none of their twins: {named(lacking)}{how}"


def _of_replays(found: _OfRuns, names: Sequence[str], count: Callable[[Lack], int]) -> str:
    """In how many twins of which runs something is so: the least and the most of several lines."""
    told = []
    for place, lacks in sorted(found.items()):
        least, most = min(map(count, lacks)), max(map(count, lacks))
        counted = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        told.append(f"{counted} of {lacks[0].replays:,} {lacks[0].called} of {names[place]}")
    return named(told)


def named(names: Iterable[str]) -> str:
    """Some things by name, each once, and how many more there are."""
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more

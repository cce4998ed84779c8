"""Explains why a table shows `-` for some runs, and which replays a mean covers.

A metric has no value if the replay had no job or event to measure, or if the metric was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import NamedTuple, TypeAlias

import polars as pl

from harness.analysis.comparison.changes import Row
from harness.analysis.comparison.figures import shown
from harness.base.text import first_of
from harness.plugins.measurement import Measurement
from harness.runs.measuring import Key
from harness.runs.run import Run

TWINS, SEEDS = "twins", "seeds"
"""The words for the replays of a run, and for those of an experiment's setting."""

_OF_RUN_TIMES = (
    *("wait.", "delay.", "jct.", "slowdown.", "starvation", "reclaim_latency", "fairness.finish_time"),
    *("disruption.lost", "disruption.time_to_restart", "utilization.lost"),
)

_NAMED = 6

_OfRuns: TypeAlias = dict[int, list["Lack"]]
"""Maps each run to its missing values, with one entry for each line."""


class Lack(NamedTuple):
    """The number of replays of a run or setting in which a metric has no value.

    Attributes:
        absent: the number of replays without a value.
        replays: the total number of replays: the run itself, its twins, or the seeds of an experiment's
            setting.
        called: the word for these replays in messages, such as `twins`.
    """

    absent: int
    replays: int
    called: str = TWINS

    @property
    def partly(self) -> str:
        """A text such as `over 3 of 5 twins`, if only some of the replays have a value; "" otherwise."""
        if not self.absent or self.absent == self.replays:
            return ""
        return f"over {self.replays - self.absent:,} of {self.replays:,} {self.called}"


def depends_on_run_times(metric: str) -> bool:
    """Returns True for metrics that have no meaning if run times are unknown: waits and losses.

    A job whose run time is unknown holds its resources for the whole replay, so other jobs may wait until the
    end of the trace. If such a job is evicted, it loses all its progress up to then.
    """
    return metric.startswith(_OF_RUN_TIMES)


def lack_of(key: Key, replays: Sequence[Mapping[Key, Measurement]]) -> Lack:
    """Counts the replays in which a metric has no value."""
    return Lack(sum(number(of_replay, key) is None for of_replay in replays), len(replays))


def number(of_replay: Mapping[Key, Measurement], key: Key) -> float | None:
    """Returns a replay's value of a metric, or None if the value is missing or not finite."""
    value = of_replay[key].value if key in of_replay else None
    return value if value is not None and isfinite(value) else None


def about_missing(
    rows: Sequence[Row], lack: Callable[[Measurement, int], Lack], names: Sequence[str], *, or_else: str = ""
) -> Iterator[str]:
    """Yields sentences that explain each `-` in a table, and list the values that cover only some twins.

    `lack` returns the number of replays without a value, given a metric and the index of a run or setting.
    `names` has the names of the runs or settings. `or_else` is another reason why replays may have no value,
    besides a missing job or event.
    """
    absent: list[str] = []
    partly: list[str] = []
    over: _OfRuns = {}
    for row in rows:
        about = row.measured
        for place, value in enumerate(row.values):
            found = lack(about, place)
            if shown(value, about.unit) == "-":
                absent.append(about.metric)
            elif found.partly:
                partly.append(about.metric)
                over.setdefault(place, []).append(found)
    if absent:
        yield f"- means no value ({named(absent)}): the run has no such job or event, or did not measure it"
    if partly:
        of_runs = _of_replays(over, names)
        called = next(iter(over.values()))[0].called
        yield (
            f"{named(partly)}: mean over {of_runs}; the other {called} had no such job or event{or_else}; "
            f"changes cover the {called} in which both runs have a value"
        )


def about_unshaken(
    runs: Sequence[Run],
    measured: Sequence[Mapping[Key, Measurement]],
    on_request: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """Yields at most one sentence, about metrics that the runs have but their twins lack.

    `measured` contains the measurements of each run's twins. `on_request` maps options to the metrics that
    they add.
    """
    has = (run.metrics.filter(pl.col("value").is_not_null())["metric"].to_list() for run in runs)
    known = {row.metric for of_run in measured for row in of_run.values()}
    lacking = [name for name in dict.fromkeys(chain.from_iterable(has)) if name not in known]
    if lacking:
        options = [option for option, names in on_request.items() if set(lacking) & set(names)]
        known = {name for option in options for name in on_request[option]}
        how = f"; to measure the twins, add {named(options)} to --shake" if set(lacking) <= known else ""
        yield f"measured for runs, but not for their twins: {named(lacking)}{how}"


def _of_replays(found: _OfRuns, names: Sequence[str]) -> str:
    told = []
    for place, lacks in sorted(found.items()):
        there = [each.replays - each.absent for each in lacks]
        counted = f"{min(there):,}" if min(there) == max(there) else f"{min(there):,} to {max(there):,}"
        told.append(f"{counted} of {lacks[0].replays:,} {lacks[0].called} of {names[place]}")
    return named(told)


def named(names: Iterable[str]) -> str:
    """Lists the first few distinct names as text, followed by the number of other names."""
    return first_of(list(dict.fromkeys(names)), _NAMED)

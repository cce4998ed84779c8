"""Collects Prometheus samples as runs of equal values at consecutive scrapes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from math import isnan
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from harness.base.errors import InputError
from harness.base.units import SECOND, date_text, format_duration
from harness.cluster.yaml.fields import shown

_LAST = 253_402_300_799  # the last second that a date can have

_HINT = "send the same query with curl to see what the server answers"
_OUTAGE = 3
"""A gap between two scrapes is reported if it is longer than this many of the usual intervals."""


class Key(Protocol):
    """The metric of a series, and the object that it describes."""

    @property
    def metric(self) -> str:
        """The name of the metric."""

    @property
    def owner(self) -> str:
        """The name of the object."""

    def __hash__(self) -> int: ...


_K = TypeVar("_K", bound=Key)


class Run(NamedTuple):
    """A value that a series had at all scrapes from the first to the last of the run."""

    first: int
    last: int
    value: float


class Samples(Generic[_K]):
    """All samples of some series, as runs of equal values.

    Args:
        key_of: returns the key of a series from its labels, or None for series to ignore.
        clock: the metric whose samples define the scrapes of all metrics. Other metrics may lack a sample at
            a scrape. Samples of the clock must come first. Without a clock, each metric has its own scrapes.

    Attributes:
        times: the scrapes of each metric in microseconds since 1970, earliest first.
        runs: the runs of each series, earliest first.
        of: the keys of each object's series.
    """

    def __init__(self, key_of: Callable[[Mapping[str, str]], _K | None], clock: str | None = None) -> None:
        self._key_of, self._clock = key_of, clock
        self._last: dict[str, int] = {}
        self.times: dict[str, list[int]] = {}
        self.runs: dict[_K, list[Run]] = {}
        self.of: dict[str, list[_K]] = {}

    def add(self, series: Iterable[Mapping[str, Any]]) -> None:
        """Add the series of an answer.

        Answers for the same metric must be in order of time and may overlap.

        Raises:
            InputError: the value of a sample is not a number, or its time is not a date.
        """
        found: dict[_K, dict[int, float]] = {}
        for each in series:
            key = self._key_of(each["metric"])
            if key is None:
                continue
            values = found.setdefault(key, {})
            for time, text in each["values"]:
                value = _value(text)
                if not 0 <= time <= _LAST:
                    raise InputError(
                        f"{key.metric}: a sample has the time {time}, which is no date", hint=_HINT
                    )
                if not isnan(value):
                    values[round(time * SECOND)] = value
        for metric in dict.fromkeys(key.metric for key in found):
            last = self._last.get(metric, -1)
            new = sorted({at for key in found if key.metric == metric for at in found[key] if at > last})
            self._last[metric] = max([last, *new])
            known = self.times.setdefault(self._clock or metric, [])
            if metric == (self._clock or metric):
                known += new
            places = {at: place for at in new if (place := bisect_left(known, at)) < len(known)}
            before = {at: known[place - 1] if place else -1 for at, place in places.items()}
            for key in found:
                if key.metric == metric:
                    if key not in self.runs:
                        self.of.setdefault(key.owner, []).append(key)
                    self._extend(self.runs.setdefault(key, []), found[key], before)

    def _extend(self, runs: list[Run], values: Mapping[int, float], before: Mapping[int, int]) -> None:
        for at in sorted(values.keys() & before.keys()):
            if runs and runs[-1].last == before[at] and runs[-1].value == values[at]:
                runs[-1] = runs[-1]._replace(last=at)
            else:
                runs.append(Run(at, at, values[at]))

    def value(self, key: _K, at: int) -> float | None:
        """Returns the value of a series at a given time, or None if the series has no value then."""
        return next((run.value for run in self.runs[key] if run.first <= at <= run.last), None)

    def changes(self, keys: Iterable[_K], metric: str) -> set[int]:
        """Returns the scrapes of a metric at which one of the series begins, ends or changes."""
        runs = [run for key in keys for run in self.runs[key]]
        ends = {after for run in runs if (after := _after(self.times[metric], run.last)) is not None}
        return ends | {run.first for run in runs}

    def uncertainty(self, metric: str) -> Iterator[str]:
        """Yields sentences about how late changes were observed, and about gaps between scrapes."""
        scrapes = self.times[metric]
        spans = sorted(later - sooner for sooner, later in pairwise(scrapes))
        usual = spans[len(spans) // 2] if spans else 0
        if usual:
            yield (
                f"a change has the time of the first sample that shows it, which is up to "
                f"{format_duration(usual)} late"
            )
        for sooner, later in pairwise(scrapes):
            if later - sooner > _OUTAGE * usual:
                yield (
                    f"there is no sample between {date_text(sooner)} and {date_text(later)}, so changes in "
                    f"between have the time of the later sample"
                )


def number(value: float) -> str:
    """Formats a value as the text of a quantity."""
    return str(int(value)) if value.is_integer() else repr(value)


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"a sample has the value {shown(text)}, which is not a number", hint=_HINT) from None


def _after(scrapes: list[int], at: int) -> int | None:
    place = bisect_right(scrapes, at)
    return scrapes[place] if place < len(scrapes) else None

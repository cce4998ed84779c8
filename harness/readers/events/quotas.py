"""Events from Prometheus: Kueue's own metrics of quotas, sample by sample.

Kueue exports them where its configuration says `metrics.enableClusterQueueResources: true` (pkg/metrics,
`kueue_cluster_queue_nominal_quota` and its siblings). A limit that is not given is `+Inf` in newer releases,
and 0 in older ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any, NamedTuple

from harness.base.errors import ClusterError, Fault, InputError
from harness.base.json_text import leading_json
from harness.base.units import SECOND, date_text, format_duration
from harness.cluster.yaml.fields import shown
from harness.cluster.yaml.sources import text_of
from harness.readers.events.watched import Field, Object, Watched

NOMINAL = "kueue_cluster_queue_nominal_quota"
METRICS: Mapping[str, str] = {
    NOMINAL: "quota",
    "kueue_cluster_queue_borrowing_limit": "borrowingLimit",
    "kueue_cluster_queue_lending_limit": "lendingLimit",
}
"""Metric -> the knob that it describes."""

_FOLLOWER = "follower"
_LAST = 253_402_300_799
"""The last second that a date can have."""

_HINT = "send the same query with curl to see what the server answers"
_OUTAGE = 3
"""This many times the usual time between two scrapes without any is worth a word."""


class _Key(NamedTuple):
    """What a series is of."""

    metric: str
    queue: str
    cohort: str
    resource: str


class _Run(NamedTuple):
    """A value that a series had at all scrapes of a while: from the first one to the last one."""

    first: int
    last: int
    value: float


@dataclass
class _Samples:
    """All samples, as runs of equal values."""

    times: dict[str, list[int]] = field(default_factory=dict)
    runs: dict[_Key, list[_Run]] = field(default_factory=dict)

    def add(self, series: Iterable[Mapping[str, Any]]) -> None:
        """Add the series of an answer; answers of one metric come in order of time and may overlap."""
        found: dict[_Key, dict[int, float]] = {}
        for each in series:
            labels = each["metric"]
            metric = labels.get("__name__")
            if metric not in METRICS or labels.get("replica_role") == _FOLLOWER:
                continue
            resource = f"{labels.get('flavor', '')}/{labels.get('resource', '')}"
            key = _Key(metric, labels.get("cluster_queue", ""), labels.get("cohort", ""), resource)
            values = found.setdefault(key, {})
            for time, text in each["values"]:
                value = _value(text)
                if not 0 <= time <= _LAST:
                    raise InputError(f"{metric}: a sample has the time {time}", hint=_HINT)
                if not isnan(value):
                    values[round(time * SECOND)] = value
        for metric in dict.fromkeys(key.metric for key in found):
            known = self.times.setdefault(metric, [])
            last = known[-1] if known else -1
            new = sorted({at for key in found if key.metric == metric for at in found[key] if at > last})
            before = dict(zip(new, [last, *new], strict=False))
            known += new
            for key in found:
                if key.metric == metric:
                    self._extend(self.runs.setdefault(key, []), found[key], before)

    def _extend(self, runs: list[_Run], values: Mapping[int, float], before: Mapping[int, int]) -> None:
        for at in sorted(values.keys() & before.keys()):
            if runs and runs[-1].last == before[at] and runs[-1].value == values[at]:
                runs[-1] = runs[-1]._replace(last=at)
            else:
                runs.append(_Run(at, at, values[at]))


def of_answers(answers: Iterable[Iterable[Mapping[str, Any]]], source: str) -> Watched:
    """What answers of Prometheus say of how quotas of ClusterQueues changed.

    Args:
        answers: the series of each, with their samples in `values`; those of a metric in order of time.
        source: where they come from, for messages.

    Raises:
        InputError: no answer has a nominal quota.
    """
    samples = _Samples()
    for series in answers:
        samples.add(series)
    scrapes = samples.times.get(NOMINAL, [])
    if not scrapes:
        raise InputError(
            f"{source} has no sample of {NOMINAL}",
            hint="Kueue exports it where its Configuration says metrics.enableClusterQueueResources: true",
        )
    watched = Watched()
    endless = {key.metric for key, runs in samples.runs.items() if any(run.value == inf for run in runs)}
    queues: dict[str, list[_Key]] = {}
    for key in samples.runs:
        queues.setdefault(key.queue, []).append(key)
    changes: list[tuple[int, str]] = []
    for queue, keys in queues.items():
        runs = [run for key in keys for run in samples.runs[key]]
        ends = {after for run in runs if (after := _after(scrapes, run.last)) is not None}
        changes += [(each, queue) for each in ends | {run.first for run in runs}]
    for at, queue in sorted(changes):
        _take(watched, samples, queue, queues[queue], at, endless, first=scrapes[0])
    _say(watched, samples, endless)
    return watched


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"a sample has the value {shown(text)}, which is no number", hint=_HINT) from None


def _after(scrapes: list[int], at: int) -> int | None:
    """The scrape after an instant."""
    place = bisect_right(scrapes, at)
    return scrapes[place] if place < len(scrapes) else None


def _take(
    watched: Watched,
    samples: _Samples,
    queue: str,
    keys: Iterable[_Key],
    at: int,
    endless: set[str],
    *,
    first: int,
) -> None:
    """What a queue is at an instant at which something of it changes."""
    values: dict[Field, str] = {}
    cohort = ""
    for key in keys:
        value = next((run.value for run in samples.runs[key] if run.first <= at <= run.last), None)
        if value is None:
            continue
        knob = METRICS[key.metric]
        none = value == inf or (value == 0 and knob != "quota" and key.metric not in endless)
        values[Field(f"{knob}[{key.resource}]", missing=None)] = "" if none else _number(value)
        if key.metric == NOMINAL:
            cohort = key.cohort
    each = Object("ClusterQueue", queue)
    if any(name.name.startswith("quota[") for name in values):
        watched.seen(each, at, {**values, Field("cohort"): cohort}, new=at > first)
    else:
        watched.gone(each, at)


def _number(value: float) -> str:
    return str(int(value)) if isfinite(value) and value.is_integer() else repr(value)


def _say(watched: Watched, samples: _Samples, endless: set[str]) -> None:
    """What these metrics cannot tell."""
    scrapes = samples.times[NOMINAL]
    spans = sorted(later - sooner for sooner, later in pairwise(scrapes))
    usual = spans[len(spans) // 2] if spans else 0
    if usual:
        watched.lacks(
            f"a change has the time of the first sample that shows it, up to {format_duration(usual)} late"
        )
    for sooner, later in pairwise(scrapes):
        if later - sooner > _OUTAGE * usual:
            watched.lacks(
                f"there is no sample between {date_text(sooner)} and {date_text(later)}: what changed then "
                "has the time of its end"
            )
    for metric, knob in METRICS.items():
        zero = {
            key.queue
            for key, runs in samples.runs.items()
            if key.metric == metric and any(run.value == 0 for run in runs)
        }
        if knob != "quota" and metric not in endless and zero:
            watched.lacks(
                f"a {knob} of 0 is taken for none, as releases of Kueue export it that do not say +Inf: "
                + ", ".join(sorted(zero))
            )
    watched.lacks(
        "Kueue has no metric of weights, stopPolicy, preemption, LocalQueues and the own quotas of cohorts"
    )


def series_of(path: Path) -> Iterator[Mapping[str, Any]]:
    """The series of all answers in a file: answers of `query_range`, or of `query` with a range.

    Raises:
        ClusterError: the file cannot be read, or has something else.
    """
    from harness.readers.live.prometheus import is_series

    text, at = text_of(path), 0
    number = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        number += 1
        try:
            answer, at = leading_json(text, at)
            series = list(answer["data"]["result"])
        except (ValueError, KeyError, TypeError) as error:
            what = "is no answer of Prometheus: it has no data.result"
            raise ClusterError(str(path), [Fault(f"answer {number:,}", what)]) from error
        for place, each in enumerate(series, 1):
            if not is_series(each):
                what = "is no series with samples [time, text] in `values`"
                raise ClusterError(str(path), [Fault(f"answer {number:,}, series {place:,}", what)])
        yield from series

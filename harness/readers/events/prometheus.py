"""Creates events from Prometheus, using Kueue's metrics of quotas and kube-state-metrics' metrics of nodes.

Kueue exports quotas if its configuration has `metrics.enableClusterQueueResources: true` (pkg/metrics,
`kueue_cluster_queue_nominal_quota` and related metrics). A limit that is not set is `+Inf` in newer
releases, and 0 in older releases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from harness.base.errors import ClusterError, Fault, InputError
from harness.base.json_text import json_items
from harness.cluster.yaml.sources import text_of
from harness.readers.events import ksm_nodes
from harness.readers.events.samples import Samples, number
from harness.readers.events.watched import Field, Object, Watched

NOMINAL = "kueue_cluster_queue_nominal_quota"
_KNOBS: Mapping[str, str] = {
    NOMINAL: "quota",
    "kueue_cluster_queue_borrowing_limit": "borrowingLimit",
    "kueue_cluster_queue_lending_limit": "lendingLimit",
}
"""Maps each metric to the knob that it describes."""

METRICS = (*_KNOBS, *ksm_nodes.METRICS)

_FOLLOWER = "follower"


class _Key(NamedTuple):
    metric: str
    owner: str
    cohort: str
    resource: str


def _key_of(labels: Mapping[str, str]) -> _Key | None:
    metric = labels.get("__name__", "")
    if metric not in _KNOBS or labels.get("replica_role") == _FOLLOWER:
        return None
    resource = f"{labels.get('flavor', '')}/{labels.get('resource', '')}"
    return _Key(metric, labels.get("cluster_queue", ""), labels.get("cohort", ""), resource)


def of_answers(answers: Iterable[Iterable[Mapping[str, Any]]], source: str) -> Watched:
    """Returns the changes to ClusterQueues' quotas and to nodes that answers from Prometheus show.

    Args:
        answers: the series of each answer, with samples in `values`. Answers for the same metric must be in
            order of time.
        source: the origin of the answers, for messages.

    Raises:
        InputError: no answer contains a nominal quota or an allocatable quantity of a node.
    """
    quotas, nodes = Samples(_key_of), ksm_nodes.samples()
    for series in answers:
        each = list(series)
        quotas.add(each)
        for metric in ksm_nodes.METRICS:
            nodes.add(one for one in each if one["metric"].get("__name__") == metric)
    if NOMINAL not in quotas.times and ksm_nodes.THERE not in nodes.times:
        raise InputError(
            f"{source} has no sample of {NOMINAL} or {ksm_nodes.THERE}",
            hint="Kueue exports quotas if its Configuration says metrics.enableClusterQueueResources: true, "
            "and kube-state-metrics exports nodes",
        )
    watched = Watched()
    endless = {key.metric for key, runs in quotas.runs.items() if any(run.value == inf for run in runs)}
    changes = [*_changes(quotas), *ksm_nodes.changes(nodes)]
    for at, kind, name in sorted(changes):
        if kind == "Node":
            ksm_nodes.take(watched, nodes, name, at)
        else:
            _take(watched, quotas, name, at, endless)
    if NOMINAL in quotas.times:
        _say(watched, quotas, endless)
    if ksm_nodes.THERE in nodes.times:
        for note in nodes.uncertainty(ksm_nodes.THERE):
            watched.lacks(note)
    return watched


def _changes(quotas: Samples[_Key]) -> Iterator[tuple[int, str, str]]:
    for queue, keys in quotas.of.items() if NOMINAL in quotas.times else ():
        yield from ((at, "ClusterQueue", queue) for at in quotas.changes(keys, NOMINAL))


def _take(watched: Watched, quotas: Samples[_Key], queue: str, at: int, endless: set[str]) -> None:
    values: dict[Field, str] = {}
    cohort = ""
    for key in quotas.of[queue]:
        value = quotas.value(key, at)
        if value is None:
            continue
        knob = _KNOBS[key.metric]
        none = value == inf or (value == 0 and knob != "quota" and key.metric not in endless)
        values[Field(f"{knob}[{key.resource}]", missing=None)] = "" if none else number(value)
        if key.metric == NOMINAL:
            cohort = key.cohort
    each = Object("ClusterQueue", queue)
    if any(name.name.startswith("quota[") for name in values):
        new = at > quotas.times[NOMINAL][0]
        watched.seen(each, at, {**values, Field("cohort"): cohort}, new=new)
    else:
        watched.gone(each, at)


def _say(watched: Watched, quotas: Samples[_Key], endless: set[str]) -> None:
    """Add notes about facts that these metrics cannot show."""
    for note in quotas.uncertainty(NOMINAL):
        watched.lacks(note)
    for metric, knob in _KNOBS.items():
        zero = {
            key.owner
            for key, runs in quotas.runs.items()
            if key.metric == metric and any(run.value == 0 for run in runs)
        }
        if knob != "quota" and metric not in endless and zero:
            watched.lacks(
                f"a {knob} of 0 counts as no limit, because some releases of Kueue export 0 instead of +Inf: "
                + ", ".join(sorted(zero))
            )
    watched.lacks(
        "Kueue exports no metrics for weights, stopPolicy, preemption, LocalQueues and the quotas of cohorts"
    )


def series_of(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yields the series of all answers in a file, from `query_range` or from `query` with a range.

    Raises:
        ClusterError: the file cannot be read, or does not contain such answers.
    """
    from harness.readers.live.prometheus import is_series

    answers = json_items(text_of(path))
    for place in count(1):
        try:
            answer = next(answers, ...)
            if answer is ...:
                return
            series = list(answer["data"]["result"])
        except (ValueError, KeyError, TypeError) as error:
            what = "is not an answer from Prometheus: it has no data.result"
            raise ClusterError(str(path), [Fault(f"answer {place:,}", what)]) from error
        for index, each in enumerate(series, 1):
            if not is_series(each):
                what = "is not a series with samples [time, text] in `values`"
                raise ClusterError(str(path), [Fault(f"answer {place:,}, series {index:,}", what)])
        yield from series

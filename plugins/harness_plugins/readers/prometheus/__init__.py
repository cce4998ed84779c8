"""Reads saved answers of Prometheus about kube-state-metrics. Each scraped Pod becomes a job.

Events between scrapes are missing. If a pod lived only between two scrapes, there is no sample of it. If a
pod was deleted when it ended, the last sample does not show its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.base.errors import Fault, OptionError, TraceError
from harness.base.units import SECOND
from harness.readers.counts import agreeing, counted, times
from harness.readers.schema import REQUEST
from harness.readers.source import also_read
from harness_plugins.readers.prometheus.answers import Samples, read_answers
from harness_plugins.readers.prometheus.pods import KubeJob, Pod, interval_of, jobs_of, pods_of, silences

_SOURCE = "series of kube-state-metrics, answered by Prometheus"
_NO_JOB = ("DaemonSet", "Node")
_SAME_TIME = 2 * SECOND
_COARSE = 30 * SECOND
_TIME = pl.Datetime("us", "UTC")
_WANTED = {
    "kube_pod_start_time": "without it, no pod has a start time",
    "kube_pod_completion_time": "pods end with the first sample of a final phase, or with their last sample",
    "kube_pod_status_phase": "whether a container starts again is inferred from its completion time",
    "kube_pod_container_resource_requests": "pods request nothing",
    "kube_pod_owner": "neither pods of DaemonSets nor the Job of a pod can be recognized",
    "kube_job_created": "pods arrive when the pods were created, not when their Job was created",
    "kube_pod_labels": "queues are namespaces (kube-state-metrics needs --metric-labels-allowlist="
    "pods=[kueue.x-k8s.io/queue-name])",
}


@dataclass(frozen=True, slots=True)
class _Job:
    """A pod that is a job.

    Attributes:
        pod: the scraped pod.
        owner: the Job that owns the pod, or None.
        submit, start, end: times in microseconds since 1970.
        late: the maximum by which `end` may be too late, if it is the time of the first sample in the final
            phase.
        gone: True if `end` is only the time of the pod's last sample.
    """

    pod: Pod
    owner: KubeJob | None
    submit: int
    start: int
    end: int
    late: int
    gone: bool


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads one or more answers from the file, and from additional files next to it.

    Raises:
        TraceError: the content is not an answer, or an answer is an error. The message lists all faults.
        OptionError: the pattern matches no file next to the file.
    """
    beside = _beside(path, str(options["files"]))
    samples = read_answers([path, *beside])
    metadata = {"harness.source": _SOURCE}
    for other in beside:
        metadata |= also_read(other)
    interval = interval_of(samples)
    pods, owners = pods_of(samples), jobs_of(samples)
    horizon = max(samples.times, default=0)
    left_out: Counter[str] = Counter()
    jobs: list[_Job] = []
    first: dict[tuple[str, str, int], int] = {}
    for pod in reversed(pods):  # the first pod of each Job stays
        if pod.created is not None:
            first[_job_of(pod, _owner(pod, owners))] = pod.created
    for pod in pods:
        gone = pod.seen < horizon - interval
        reason = _reason(pod, interval, gone=gone)
        if reason:
            left_out[reason] += 1
            continue
        assert pod.started is not None
        owner = _owner(pod, owners)
        made = pod.started if pod.created is None else pod.created
        batch = pod.created is not None and pod.created - first.get(_job_of(pod, owner), made) <= _SAME_TIME
        submit = owner.created if owner is not None and batch and options["arrival"] == "job" else made
        jobs.append(_Job(pod, owner, submit, pod.started, *_end(pod, pod.started)))
    if not jobs:
        counts = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        what = f"holds no pod that has ended ({counts or 'no series of kube_pod_*'})"
        raise TraceError(
            str(path), [Fault("", what)], hint="give the answers for all metrics: --set files='*.json*'"
        )
    jobs.sort(key=lambda job: job.submit)
    notes = tuple(_notes(jobs, pods, owners, samples, interval, options))
    return Reading(_frame(jobs, options), len(pods), dict(left_out), notes, metadata)


def _beside(path: Path, pattern: str) -> list[Path]:
    if not pattern:
        return []
    found = sorted(
        other for other in path.parent.iterdir() if fnmatchcase(other.name, pattern) and other.is_file()
    )
    if not found:
        raise OptionError(f"option files: no file next to {path} matches {pattern!r}")
    return [other for other in found if not other.samefile(path)]


def _end(pod: Pod, start: int) -> tuple[int, int, bool]:
    """Returns the end of a pod, the maximum by which this time may be too late, and a flag.

    The flag is True if the end is only the time of the last sample.
    """
    completed, final = pod.end(), pod.final()
    if completed is not None:
        return max(completed, start), 0, False
    if final is not None:
        return max(final.first, start), max(0, final.first - final.after), False
    return max(pod.seen, start), 0, True


def _reason(pod: Pod, interval: int, *, gone: bool) -> str:
    if pod.owner_kind in _NO_JOB:
        return f"of a {pod.owner_kind}, which every node has"
    if pod.started is None:
        return "deleted before a start was scraped" if gone else "not started when last scraped"
    if pod.end() is not None:
        return ""
    final = pod.final()
    if final is not None:
        known = final.seen_before or final.first - final.after <= 2 * interval
        return "" if known else "had ended when first scraped, at an unknown time"
    return "" if gone else "not ended when last scraped, so their run times are unknown"


def _job_of(pod: Pod, owner: KubeJob | None) -> tuple[str, str, int]:
    return pod.namespace, pod.owner, 0 if owner is None else owner.created


def _owner(pod: Pod, owners: Mapping[tuple[str, str], Sequence[KubeJob]]) -> KubeJob | None:
    """Returns the Job of a pod: the last Job with the owner's name that was created before the pod."""
    if pod.owner_kind != "Job" or pod.created is None:
        return None
    known = [job for job in owners.get((pod.namespace, pod.owner), ()) if job.created <= pod.created]
    return known[-1] if known else None


def _queue(job: _Job, options: Mapping[str, Any]) -> str:
    own = job.pod.queue or (job.owner.queue if job.owner is not None else "")
    return (own if options["tenant"] == "queue" else "") or job.pod.namespace or "default"


def _names(jobs: Sequence[_Job]) -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for job in jobs:
        name = f"{job.pod.namespace}/{job.pod.name}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def _frame(jobs: Sequence[_Job], options: Mapping[str, Any]) -> pl.DataFrame:
    amounts = [job.pod.amounts() for job in jobs]
    resources = sorted({resource for each in amounts for resource in each} - {"pods"}) or ["cpu"]

    def texts(name: str, value: Callable[[_Job], str]) -> pl.Series:
        return pl.Series(name, [value(job) or None for job in jobs], dtype=pl.String)

    def times(name: str, value: Callable[[_Job], int | None]) -> pl.Series:
        return pl.Series(name, [value(job) for job in jobs], dtype=pl.Int64).cast(_TIME)

    columns = [
        pl.Series("job_id", _names(jobs), dtype=pl.String),
        times("submit_time", lambda job: job.submit),
        pl.Series("duration", [job.end - job.start for job in jobs], dtype=pl.Duration("us")),
        pl.Series("queue", [_queue(job, options) for job in jobs], dtype=pl.String),
        *(
            pl.Series(f"{REQUEST}{resource}", [each.get(resource) for each in amounts], dtype=pl.Int64)
            for resource in resources
        ),
        texts("priority_class", lambda job: job.pod.priority_class if options["priority"] == "class" else ""),
        texts("namespace", lambda job: job.pod.namespace),
        texts("uid", lambda job: job.pod.uid),
        times("recorded_start", lambda job: job.start),
        times("recorded_end", lambda job: job.end),
        times("recorded_created", lambda job: job.pod.created),
        times("recorded_scheduled", lambda job: job.pod.scheduled),
        texts("recorded_state", lambda job: job.pod.phase),
        texts("owner_kind", lambda job: job.pod.owner_kind),
        texts("owner", lambda job: job.pod.owner),
    ]
    frame = pl.DataFrame(columns)
    empty = [column.name for column in frame if column.null_count() == frame.height]
    return frame.drop([name for name in empty if not name.startswith(REQUEST)])


def _notes(
    jobs: Sequence[_Job],
    pods: Sequence[Pod],
    owners: Mapping[tuple[str, str], Sequence[KubeJob]],
    samples: Samples,
    interval: int,
    options: Mapping[str, Any],
) -> Iterator[str]:
    seconds = f"{interval / SECOND:g} s"
    yield f"each pod is a separate job; samples are {seconds} apart"
    if options["arrival"] == "job":
        with_job = sum(job.owner is not None and job.submit == job.owner.created for job in jobs)
        first = (
            f"{counted(with_job, 'pod')}, the first of their Jobs, arrive when their Job was created; other "
        )
        yield f"{first if with_job else ''}pods arrive when they were created"
    yield f"pods that lived less than {seconds} may be in no sample; their number is unknown"
    without = {(pod.namespace, pod.owner) for pod in pods}
    unseen = sum(key not in without for key in owners)
    if unseen:
        yield (
            f"{agreeing(unseen, 'Job', 'have')} no pod in the answers: their pods lived only between two "
            "samples, or never existed"
        )
    by_phase = [job for job in jobs if job.late]
    if by_phase:
        most = max(job.late for job in by_phase)
        yield (
            f"{counted(len(by_phase), 'pod')} ended without a completion time, for example because of an "
            "eviction: they end with the first sample of their final phase, at most "
            f"{most / SECOND:g} s too late"
        )
    guessed = [job for job in jobs if job.gone]
    if guessed:
        yield (
            f"{agreeing(len(guessed), 'pod', 'were')} gone before the end was scraped: they end with their "
            f"last sample, which is within {seconds} of the end"
        )
    spans = list(silences(samples, interval))
    if spans:
        within = sum(any(job.end == begin for begin, _ in spans) for job in guessed)
        longest = max(later - earlier for earlier, later in spans)
        early = (
            f". {agreeing(within, 'pod', 'were')} gone after a gap: they end too early, by at most the "
            "length of this gap"
        )
        yield (
            f"nothing was scraped for more than two intervals {times(len(spans))}, at most "
            f"{longest / SECOND:g} s{early if within else ''}"
        )
    if interval >= _COARSE:
        yield "samples this far apart miss pods: use query with METRIC[1h] once an hour, not query_range"
    nothing = sum(not job.pod.requests and not job.pod.init for job in jobs)
    if nothing:
        yield f"{agreeing(nothing, 'pod', 'have')} no series of requests, so nothing is requested"
    for metric, says in _WANTED.items():
        if metric not in samples.series:
            yield f"there is no {metric}: {says}"
    odd = sorted({name for job in jobs for name in job.pod.amounts() if "_" in name and "/" not in name})
    if odd:
        yield f"resources keep Prometheus' names, with _ for other characters: {', '.join(odd)[:200]}"
    nameless = sum(not pod.uid for pod in pods)
    if nameless:
        yield f"{agreeing(nameless, 'pod', 'have')} no label uid: several pods with one name count as one"
    for warning, count in sorted(samples.warnings.items()):
        yield f"the server warns in {counted(count, 'answer')}, so data may be missing: {warning:.200}"
    for what, count in sorted(samples.ignored.items()):
        yield f"not read: {count:,} {what}"

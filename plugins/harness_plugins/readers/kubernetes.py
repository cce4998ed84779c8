"""Reads the output of `kubectl get ...` in YAML or JSON with Kueue's Workloads, Jobs, and Pods.

A list contains only objects that still exist in the live cluster. A watch also contains objects that were
deleted during the watch. The run time of a job is known only after the job has ended, so the reader leaves
out jobs that still run or wait, and counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import Reading
from harness.base.errors import Fault, TraceError
from harness.base.units import format_duration
from harness.models.manifests import Document, Fields, read_documents, read_time, unpacked
from harness.readers.counts import agreeing, counted
from harness.readers.recordings import GAP, STANDING, is_recording, read_rows
from harness.readers.source import stop_at_many, text_of, trace_error
from harness_plugins.readers.kubernetes_objects import QUEUE_LABEL, READERS, SPANS, Recorded, final_phase
from harness_plugins.readers.kubernetes_table import frame_of, has_large_slice
from harness_plugins.readers.kubernetes_versions import Life, Version, joined, lives_of
from harness_plugins.readers.pod_runs import BEST_FIRST, Listed, PodRuns

METADATA = {"harness.source": "objects of a Kubernetes cluster, printed by kubectl get"}
_SAME_WORK = "that were replaced by a new object of the same owner, which continues them"
_NO_JOB = ("DaemonSet", "Node")  # the kinds of owners whose pods are not jobs


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads a list of objects. A Workload represents its Job, and a Job represents its Pods.

    Raises:
        TraceError: the file is not kubectl output, or objects are malformed. The error lists all faults.
    """
    versions, told = _versions(path)
    faults: list[Fault] = []
    every = lives_of(versions, faults)
    stop_at_many(path, faults)
    stands_for = {
        uid for life in every if life.last.kind[1] == "Workload" for _, uid in life.last.owners if uid
    }
    jobs_listed = {life.last.uid for life in every if life.last.kind[1] == "Job"} - {""}
    left_out: Counter[str] = Counter()
    found: list[tuple[Life, Recorded]] = []
    listed: list[Listed] = []
    lives = joined(every)
    if len(lives) < len(every):
        left_out[_SAME_WORK] = len(every) - len(lives)
    for life in lives:
        item = life.last
        reason = _no_job(item, stands_for, jobs_listed)
        if item.kind in SPANS:
            listed.append(_listed(life, faults))
        if reason:
            left_out[reason] += 1
        else:
            found.append((life, _recorded(life, faults)))
        stop_at_many(path, faults)
    if faults:
        raise TraceError(str(path), list(dict.fromkeys(faults)))
    runs = PodRuns(listed)
    jobs: list[Recorded] = []
    begins: Counter[str] = Counter()
    for life, recorded in found:
        job, hows = _with_runs(life, recorded, runs)
        reason = _without_times(life, job)
        if reason:
            left_out[reason] += 1
        else:
            jobs.append(job)
            begins[hows] += 1
    if not jobs:
        counts = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise TraceError(str(path), [Fault("", f"holds no job that has ended ({counts or 'no objects'})")])
    notes = (*_notes(every, jobs, begins, options), *told)
    return Reading(frame_of(jobs, options), len(every), dict(left_out), notes, METADATA)


def _recorded(life: Life, faults: list[Fault]) -> Recorded:
    """Returns the job of an object's last version, with the submission time of the first version."""
    told = READERS[life.last.kind](life.last.manifest, life.last.where, faults)
    if life.first is life.last:
        return told
    fields = Fields(life.first.metadata, life.first.where, faults, "metadata")
    return replace(told, submit=read_time(fields, "creationTimestamp"))


def _with_runs(life: Life, job: Recorded, pods: PodRuns) -> tuple[Recorded, str]:
    """Returns a job with its last run and its earlier runs, and the source of the last run's start time.

    If a job was deleted while it waited to run again, its end is the end of its previous run.
    """
    owners = [uid for _, uid in life.last.owners] if life.last.kind[1] == "Workload" else [life.last.uid]
    if not life.runs:
        return pods.began(job, owners)
    over = life.deleted or job.end is not None
    found: list[tuple[Recorded, str]] = []
    for run in life.runs:
        admitted = run.begun if life.last.kind[1] == "Workload" else None
        one = replace(job, start=run.begun, end=run.end, admitted=admitted, ready=run.ready)
        found.append(pods.began(one, owners, run.begun if len(life.runs) > 1 else None))
    runs = tuple(
        run._replace(begun=each.start or run.begun) for run, (each, _) in zip(life.runs, found, strict=True)
    )
    last, how = found[-1]
    return replace(
        last,
        end=last.end if over else None,
        runs=runs,
        evictions=len(runs) - 1 if job.evictions is None else job.evictions,
        past=sum(run.end - run.begun for run in runs[:-1] if run.end is not None) or job.past,
    ), how


def _listed(life: Life, faults: list[Fault]) -> Listed:
    """Returns the facts of a Job or Pod that show when pods ran."""
    item = life.last
    status = item.manifest.get("status")
    failed = isinstance(status, Mapping) and status.get("phase") == "Failed"
    owners = [uid for _, uid in item.owners if uid]
    start, end = SPANS[item.kind](item.manifest, item.where, faults)
    if life.deleted and end is None and life.runs:
        end = life.runs[-1].end
    return Listed(item.uid, owners, item.kind[1] == "Pod", failed, start, end)


def _versions(path: Path) -> tuple[list[Version], tuple[str, ...]]:
    """Returns the objects of a recording or a file, with remarks.

    A file is YAML or JSON with one or more documents. Each document is an object, a list of objects, or an
    event of a watch.
    """
    if is_recording(path):
        return _recorded_versions(path)
    text = text_of(path)
    faults: list[Fault] = []
    found: list[Version] = []
    errors = 0
    for document in read_documents(text, faults)[0]:
        event = _event(document.content)
        if event == "ERROR":
            errors += 1
        elif event is not None:
            inner = replace(document, content=document.content["object"])
            found += [] if event == "BOOKMARK" else _objects(path, inner, faults, event)
        else:
            found += _objects(path, document, faults, "")
    if faults:
        raise trace_error(path, faults, "")
    if errors:
        return found, (
            f"{errors:,} watches ended with an error: objects that existed only after that are missing",
        )
    return found, ()


def _recorded_versions(path: Path) -> tuple[list[Version], tuple[str, ...]]:
    """Returns the objects of a recording, and a remark on the gaps in which the recorder did not watch."""
    found: list[Version] = []
    gaps: list[int] = []
    for row in read_rows(path):
        if row.kind in STANDING:
            continue
        if row.event == GAP:
            faults: list[Fault] = []
            since = read_time(Fields(row.content, row.where, faults), "since")
            gaps += [] if since is None else [row.seen - since]
        else:
            group = row.api_version.rpartition("/")[0]
            where = f"{row.where} ({row.kind})"
            found.append(Version((group, row.kind), where, row.content, row.event, row.seen))
    if not gaps:
        return found, ()
    longest = format_duration(max(gaps))
    note = (
        f"the watch had {counted(len(gaps), 'gap')} (at most {longest}) whose events the server had lost. "
        "Objects that were created and deleted in a gap are missing"
    )
    return found, (note,)


def _event(content: Any) -> str | None:
    if isinstance(content, Mapping) and set(content) == {"type", "object"}:
        return str(content["type"])
    return None


def _objects(path: Path, document: Document, faults: list[Fault], event: str) -> Iterator[Version]:
    for found in unpacked(document, faults):
        stop_at_many(path, faults)
        manifest = found.content
        api, kind = manifest.get("apiVersion"), manifest.get("kind")
        if isinstance(api, str) and isinstance(kind, str):
            yield Version((api.rpartition("/")[0], kind), f"{found.where} ({kind})", manifest, event)
        else:
            faults.append(Fault(found.where, "is not a Kubernetes object: it lacks apiVersion or kind"))


def _no_job(item: Version, stands_for: set[str], jobs_listed: set[str]) -> str:
    if item.kind not in READERS:
        return f"of kind {item.kind[1]}, which is not a Workload, Job or Pod"
    if item.uid in stands_for:
        return "that have a Workload in the list"
    for kind, uid in item.owners if item.kind[1] != "Workload" else ():
        if uid in jobs_listed or uid in stands_for:
            return "that belong to a Job or Workload in the list"
        if kind in _NO_JOB:
            return f"of a {kind}, which every node has"
    return ""


def _without_times(life: Life, job: Recorded) -> str:
    if not job.pod_sets:
        return "that request no pods"
    if job.submit is None:
        return "without creationTimestamp"
    if job.start is None and job.revoked:
        return (
            "that were evicted and wait to run again"
            if job.end is None
            else "that were admitted once, at an unknown time"
        )
    if job.start is None:
        return "that never started, as far as the cluster knows"
    if job.end is None and life.last.kind[1] == "Pod" and final_phase(life.last.manifest):
        return f"that {final_phase(life.last.manifest).lower()} at an unknown time"
    if job.end is None and life.cut:
        return "that were deleted while they ran, at an unknown time"
    if job.end is None:
        return "that have not ended, so their run times are unknown"
    if job.end < job.start:
        return "that ended before they started"
    return ""


def _notes(
    lives: Sequence[Life], jobs: Sequence[Recorded], begins: Mapping[str, int], options: Mapping[str, Any]
) -> tuple[str, ...]:
    which = "the number in spec.priority" if options["priority"] == "number" else "the class's name"
    evicted = sum(bool(job.evictions or job.past or job.evicted) for job in jobs)
    how = "; ".join(f"{word} ({counted(begins[word], 'job')})" for word in BEST_FIRST if begins.get(word))
    before = "plus its earlier runs" if options["attempts"] == "total" else "without its earlier runs"
    watched = any(life.watched for life in lives)
    kept = sum(life.deleted for life in lives)
    if watched:
        missing = (
            f"{agreeing(kept, 'object', 'were')} deleted while they were watched, and their last states are "
            "used. Objects that were deleted before the watch are missing"
        )
    else:
        missing = "the list lacks objects that the cluster had already deleted; their number is unknown"
    large = sum(any(map(has_large_slice, job.pod_sets)) for job in jobs)
    sliced = "slices of more pods than there are; these slices are left out"
    return (
        missing,
        *([f"{agreeing(large, 'job', 'request')} {sliced}"] if large else []),
        (
            f"a job runs from the last start of its pods to its end, {before} "
            f"({counted(evicted, 'job')} had been evicted)"
        ),
        f"the run of a job begins when {how}",
        f"the queue is the LocalQueue (the label {QUEUE_LABEL}), or else the namespace",
        f"priority is {which}",
        "times are whole seconds, as Kubernetes keeps them",
    )

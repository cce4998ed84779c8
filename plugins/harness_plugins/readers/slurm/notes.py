"""Writes notes on assumptions and limits of Slurm's accounting, with the number of jobs that they concern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.readers.counts import agreeing, first_of, times
from harness_plugins.readers.slurm.chains import Chain
from harness_plugins.readers.slurm.hidden import missing_numbers, missing_tasks
from harness_plugins.readers.slurm.jobs import Job, held_by
from harness_plugins.readers.slurm.pods import CPU, MEMORY, amounts_of
from harness_plugins.readers.slurm.record import CANCELLED, NODE_FAIL, PREEMPTED, Clock, Dump, Record
from harness_plugins.readers.slurm.table import tenant_of

_LISTED = 8


def notes_of(
    jobs: Sequence[Job],
    dump: Dump,
    clock: Clock,
    options: Mapping[str, Any],
    priorities: Mapping[str, int] | None,
    lost: Callable[[Job], bool],
) -> tuple[str, ...]:
    """Returns a sentence for each convention and each uncertainty.

    `priorities` has the priority of each QOS, or is None. `lost` returns True if earlier rows of a job are
    not in the dump.
    """
    return (
        *_about_times(jobs, clock, options),
        *_about_columns(dump, options),
        *_about_amounts(jobs, options),
        *_about_runs(jobs, options, lost),
        *_about_ends(jobs, options),
        *_about_tenants(jobs, options, priorities),
        *_about_components(jobs),
        *dump.notes,
        *_about_hidden(dump.records),
    )


def _count(jobs: Sequence[Job], holds: Callable[[Job], object]) -> int:
    return sum(bool(holds(job)) for job in jobs)


def _many(jobs: Sequence[Job], holds: Callable[[Job], object], says: str) -> Iterator[str]:
    """Yields a sentence that begins with the number of jobs that it concerns, unless this number is 0."""
    count = _count(jobs, holds)
    if count:
        does, _, rest = says.partition(" ")
        yield f"{agreeing(count, 'job', does)} {rest}"


def _about_times(jobs: Sequence[Job], clock: Clock, options: Mapping[str, Any]) -> Iterator[str]:
    zone = options["timezone"]
    if clock.local:
        remedy = ": give sacct's zone with --set timezone=ZONE, or run sacct with SLURM_TIME_FORMAT=%s"
        yield (f"times have no zone and are taken as local times of {zone}{remedy if zone == 'UTC' else ''}")
    if clock.doubtful:
        yield (
            f"{agreeing(clock.doubtful, 'time', 'are')} in an hour that {zone} repeats or skips. They "
            "have the offset before the change of clocks, unless a job would then end before it had "
            "worked that long"
        )
    if options["arrival"] == "submit":
        yield "a job arrives at its first Submit time"
    else:
        yield "a job arrives at its first Eligible time"
        late = "have an Eligible time after the Submit time"
        yield from _many(jobs, lambda job: _later(job.chain.eligible, job.chain.submit), late)
    missing = "have no Eligible time: the Submit time counts"
    yield from _many(jobs, lambda job: job.chain.eligible is None, missing)
    suspended = "were suspended: run times exclude suspensions, and recorded times include them"
    yield from _many(jobs, lambda job: any(run.last.suspended for run in job.chain.runs), suspended)


def _about_columns(dump: Dump, options: Mapping[str, Any]) -> Iterator[str]:
    if "AllocTRES" in dump.lacks:
        yield "there is no AllocTRES: CPUs and nodes are from other columns, memory and GPUs from requests"
    elif "ReqTRES" in dump.lacks and options["resources"] == "requested":
        yield "there is no ReqTRES: jobs request the GPUs that they were granted"
    if {"Suspended", "ElapsedRaw", "Elapsed"} <= set(dump.lacks):
        yield "there is neither ElapsedRaw nor Suspended: run times include suspensions"
    if "JobIDRaw" in dump.lacks:
        yield "there is no JobIDRaw: jobs are named by their JobID, and missing job numbers are not detected"


def _later(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one > other


def _about_amounts(jobs: Sequence[Job], options: Mapping[str, Any]) -> Iterator[str]:
    which, other = "were granted", "have requested"
    if options["resources"] == "requested":
        which, other = "requested", "were granted"
    yield f"jobs request the resources that they {which}"
    yield from _many(
        jobs,
        lambda job: any(_differs(chain, options) for chain in job.components),
        f"{other} other quantities",
    )
    yield "a job has one pod on each node"
    yield from _many(
        jobs, lambda job: sum(pods.count for pods in job.pods.values()) > 1, "have several pods, as a gang"
    )
    uneven = (
        "have resources that do not divide by their nodes: their pods have shares that are as even as "
        "possible, because the accounting lacks the resources on each node"
    )
    yield from _many(jobs, lambda job: len(job.pods) > len(job.components), uneven)
    rounded = "have memory that was rounded to two decimals: run sacct with --noconvert"
    yield from _many(
        jobs, lambda job: any(_held(chain, options).rounded for chain in job.components), rounded
    )
    memory = "have no known amount of memory, so no memory is requested"
    yield from _many(jobs, lambda job: any(not pods.each.get(MEMORY) for pods in job.pods.values()), memory)
    cpu = "have no known number of CPUs, so no CPUs are requested"
    yield from _many(jobs, lambda job: any(not pods.each.get(CPU) for pods in job.pods.values()), cpu)
    others: Counter[str] = Counter()
    for job in jobs:
        others.update({name for chain in job.components for name in _held(chain, options).others})
    if others:
        yield f"jobs held other resources, which the trace does not request: {_listed(others)}"
    if options["gpu_model"] == "affinity":
        models = "need nodes with GPUs of the requested type (the label nvidia.com/gpu.product)"
        yield from _many(jobs, lambda job: any(pods.selector for pods in job.pods.values()), models)
        mixed = "have requested several types of GPUs. Pods cannot do this, so they may run on any node"
        yield from _many(
            jobs, lambda job: any(len(chain.last.requested.models) > 1 for chain in job.components), mixed
        )


def _held(chain: Chain, options: Mapping[str, Any]) -> Any:
    return held_by(chain.runs[-1], options)[0] if chain.runs else chain.last.allocated


def _differs(chain: Chain, options: Mapping[str, Any]) -> bool:
    if not chain.runs:
        return False
    held, other = held_by(chain.runs[-1], options)
    return bool(other) and amounts_of(held, other) != amounts_of(other, held)


def _about_runs(
    jobs: Sequence[Job], options: Mapping[str, Any], lost: Callable[[Job], bool]
) -> Iterator[str]:
    again = [job for job in jobs if len(job.chain.runs) > 1]
    if again:
        runs = sum(len(job.chain.runs) - 1 for job in again)
        how = "all its runs together" if options["attempts"] == "total" else "its last run"
        yield (
            f"{agreeing(len(again), 'job', 'were')} requeued, {times(runs)} in total. Each is "
            f"one job that runs as long as {how}; recorded_start is from the first run, recorded_end from "
            "the last run, and recorded_runs has all runs"
        )
    preempted = _count(jobs, lambda job: job.chain.preemptions)
    if preempted:
        for_good = _count(jobs, lambda job: job.chain.last.state == PREEMPTED)
        yield (
            f"{agreeing(preempted, 'job', 'were')} preempted (recorded_preemptions); {for_good:,} of them "
            "have no later row, because they ended or are not eligible again yet. They run "
            "for their recorded time"
        )
    yield from _many(
        jobs,
        lost,
        "have a later Submit than jobs with larger numbers, or a Submit 121 s before Eligible, as after a "
        "requeue. Their earlier rows and first submission are not in the dump (use -D, and an earlier "
        "start), and recorded_restarts is unknown",
    )
    yield from _many(
        jobs,
        lambda job: any(run.resized for run in job.chain.runs),
        "were resized while running, with the resources of the run's first row during the whole run",
    )
    reused = _count(jobs, lambda job: job.chain.again)
    if reused:
        yield (
            f"{agreeing(reused, 'job', 'have')} a number that another job had before; "
            "their names end in #2, #3, ..."
        )


def _about_ends(jobs: Sequence[Job], options: Mapping[str, Any]) -> Iterator[str]:
    early = {
        job.name: job.chain.last.state for job in jobs if job.chain.last.state not in ("COMPLETED", "FAILED")
    }
    if early:
        states = _listed(Counter(early.values()))
        ended = agreeing(len(early), "job", "were")
        yield f"{ended} ended externally ({states}): each job runs for its recorded time"
    yield from _many(
        jobs,
        lambda job: job.chain.last.state == CANCELLED and not job.chain.last.by,
        "are CANCELLED without a user: the controller lost its state. The recorded end is the last time in "
        "the database, which may be before the true end",
    )
    yield from _many(
        jobs,
        lambda job: any(run.last.state == NODE_FAIL for run in job.chain.runs),
        "have lost a node: the run ended when the controller gave it up, not when the work stopped",
    )
    if options["unfinished"] != "drop":
        how = "for their time so far" if options["unfinished"] == "elapsed" else "until their time limit"
        yield from _many(jobs, lambda job: not job.over, f"were not over when sacct ran: they run {how}")


def _about_tenants(
    jobs: Sequence[Job], options: Mapping[str, Any], priorities: Mapping[str, int] | None
) -> Iterator[str]:
    tenant = options["tenant"]
    yield f"the queue is the {tenant}"
    yield from _many(
        jobs, lambda job: not tenant_of(job, tenant), f"have no {tenant}: the queue is 'default'"
    )
    if options["priority"] == "class":
        yield "the priority class is the QOS"
    elif options["priority"] == "number" and priorities is not None:
        yield "the priority is the priority of the QOS"
        unknown = "have a QOS that is not in the list, so their priority is 0"
        yield from _many(jobs, lambda job: job.chain.last.qos not in priorities, unknown)
    else:
        yield (
            "there are no priorities: --set qos=FILE takes them from the output of sacctmgr -P show qos, and "
            "--set priority=class makes the QOS the priority class"
        )


def _about_components(jobs: Sequence[Job]) -> Iterator[str]:
    several = [job for job in jobs if len(job.components) > 1]
    if several:
        yield (
            f"{agreeing(len(several), 'job', 'are')} heterogeneous: each component is a pod set, and the "
            "first component determines the queue and the QOS"
        )
    partial = "lack components of a heterogeneous job, which have no row: their pods are missing"
    yield from _many(jobs, _is_partial, partial)
    other = "have components in a different partition, account or QOS than the first component"
    yield from _many(several, lambda job: len({_place(chain) for chain in job.components}) > 1, other)
    never = "have components that never started and have no pods"
    yield from _many(several, lambda job: any(not chain.runs for chain in job.components), never)
    times = "have components that started or ended at a different time than the first component"
    yield from _many(
        several, lambda job: len({_span(chain) for chain in job.components if chain.runs}) > 1, times
    )


def _is_partial(job: Job) -> bool:
    offsets = [chain.identity.offset for chain in job.components]
    return offsets != [None] and offsets != list(range(len(offsets)))


def _place(chain: Chain) -> tuple[str, str, str]:
    return chain.last.partition, chain.last.account, chain.last.qos


def _span(chain: Chain) -> tuple[int, int | None]:
    return chain.runs[-1].start, chain.runs[-1].end


def _about_hidden(records: Sequence[Record]) -> Iterator[str]:
    numbers = missing_numbers(records)
    if numbers:
        yield (
            f"{numbers:,} job numbers between the first and the last have no row: these jobs belong to other "
            "users or to another period, or they were never eligible. Only `sacct -j` shows them"
        )
    arrays, tasks = missing_tasks(records)
    if arrays:
        yield (
            f"{arrays:,} arrays have gaps in the numbers of their tasks ({tasks:,} numbers): tasks that were "
            "not requested, or were cancelled before they started, have no row"
        )


def _listed(counts: Counter[str]) -> str:
    shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return first_of([f"{name} {count:,}" for name, count in shown], _LISTED, "kind")

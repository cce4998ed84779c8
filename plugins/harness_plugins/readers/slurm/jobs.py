"""Converts chains, which are the rows of one job, to jobs of a trace.

It counts the chains that are left out, by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_plugins.readers.slurm.amounts import Tres
from harness_plugins.readers.slurm.chains import Chain, Run
from harness_plugins.readers.slurm.pods import Pods, amounts_of, pods_of
from harness_plugins.readers.slurm.record import CANCELLED, PENDING

EARLIER_RUNS = "earlier runs and sizes of jobs, which are in recorded_runs"
EARLIER_LEFT_OUT = "earlier runs of jobs that are left out"
COMPONENTS = "other components of heterogeneous jobs, which are pod sets of one job"


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the trace.

    Attributes:
        name: a name that is unique in the trace.
        label: `JobID`, which is easier to read.
        chain: the rows of the job. For a heterogeneous job, it has the rows of the first component.
        components: all components. A plain job has one component.
        submit: the arrival of the job in the trace.
        duration: the run time of the job in the trace.
        pods: the pods of each pod set, by the name of the pod set.
        over: True if the job has ended.
    """

    name: str
    label: str
    chain: Chain
    components: tuple[Chain, ...]
    submit: int
    duration: int
    pods: Mapping[str, Pods]
    over: bool


def jobs_of(chains: Sequence[Chain], options: Mapping[str, Any], left_out: Counter[str]) -> list[Job]:
    """Returns the jobs of a dump, sorted by arrival.

    `left_out` receives the number of rows that are not separate jobs, by reason.
    """
    found: list[tuple[tuple[Chain, ...], int, int]] = []
    for components in _heterogeneous(chains):
        leader = components[0]
        reason = _reason(leader, options)
        if reason:
            for chain in components:
                left_out[reason] += 1
                left_out[EARLIER_LEFT_OUT] += len(chain.records) - 1
            continue
        left_out[EARLIER_RUNS] += sum(len(chain.records) - 1 for chain in components)
        left_out[COMPONENTS] += len(components) - 1
        arrives = leader.submit if options["arrival"] == "submit" else leader.eligible
        other = leader.eligible if arrives is None else arrives
        submit = leader.submit if other is None else other
        assert submit is not None
        found.append((components, submit, _duration(leader, options)))
    found.sort(key=lambda job: job[1])
    names = _names([components for components, _, _ in found])
    return [
        Job(
            name,
            components[0].identity.base if len(components) > 1 else components[0].identity.label,
            components[0],
            components,
            submit,
            duration,
            dict(_pod_sets(components, options)),
            not _unfinished(components[0]),
        )
        for name, (components, submit, duration) in zip(names, found, strict=True)
    ]


def _heterogeneous(chains: Sequence[Chain]) -> list[tuple[Chain, ...]]:
    """Groups the components of each heterogeneous job, in order. Other chains form groups of one."""
    groups: dict[Any, list[Chain]] = {}
    for place, chain in enumerate(chains):
        identity = chain.identity
        key = place if identity.offset is None else (chain.last.cluster, identity.base, chain.again)
        groups.setdefault(key, []).append(chain)
    return [tuple(sorted(group, key=lambda chain: chain.identity.offset or 0)) for group in groups.values()]


def _reason(chain: Chain, options: Mapping[str, Any]) -> str:
    last = chain.last
    if chain.submit is None and chain.eligible is None:
        return "without a time of submission"
    if not chain.runs:
        return _never_ran(chain)
    run = chain.runs[-1]
    if run.end is not None and run.end < run.start:
        return "ended before they started"
    if _unfinished(chain):
        if options["unfinished"] == "drop":
            if chain.goes_on:
                return "requeued, and waiting again or without a later row"
            return "running or suspended when sacct ran, so their run times are unknown"
        if run.work is None and (options["unfinished"] == "elapsed" or last.limit is None):
            return "not ended, and without ElapsedRaw"
    elif run.work is None:
        return "without End and ElapsedRaw"
    return ""


def _never_ran(chain: Chain) -> str:
    last = chain.last
    if last.identity.tasks:
        return "tasks of an array in one row, because none was split off and started"
    if last.state == PENDING:
        if last.eligible is None:
            return "waiting when sacct ran, and not eligible yet (held, or dependent on another job)"
        return "waiting when sacct ran"
    if last.state == CANCELLED:
        return "cancelled before they started"
    if last.start is not None:
        return f"{last.state} before they held a node"
    return f"{last.state} without ever starting"


def _unfinished(chain: Chain) -> bool:
    """Returns True if a job has run but is not over, because it runs, is suspended, or was requeued."""
    if not chain.runs:
        return False
    return chain.goes_on or (chain.runs[-1].end is None and chain.last.state != CANCELLED)


def _duration(chain: Chain, options: Mapping[str, Any]) -> int:
    run = chain.runs[-1]
    before = sum(earlier.work or 0 for earlier in chain.runs[:-1]) if options["attempts"] == "total" else 0
    work = run.work or 0
    if _unfinished(chain) and options["unfinished"] == "limit" and chain.last.limit is not None:
        work = max(work, chain.last.limit)
    return work + before


def _names(jobs: Sequence[tuple[Chain, ...]]) -> list[str]:
    """Returns unique names: the numbers of jobs, or labels if tasks share a number.

    If necessary, a name also contains the cluster and a counter.
    """
    clusters = {components[0].last.cluster for components in jobs}
    numbers: Counter[tuple[str, str, int]] = Counter()
    plain: list[tuple[str, str, int]] = []
    for components in jobs:
        identity = components[0].identity
        number = identity.base if identity.offset is not None else identity.number or identity.label
        key = (components[0].last.cluster, number, components[0].again)
        plain.append(key)
        numbers[key] += 1
    names = []
    for key, components in zip(plain, jobs, strict=True):
        cluster, number, again = key
        name = components[0].identity.label if numbers[key] > 1 else number
        name = f"{name}#{again + 1}" if again else name
        names.append(f"{cluster}/{name}" if len(clusters) > 1 else name)
    return names


def held_by(run: Run, options: Mapping[str, Any]) -> tuple[Tres, Tres]:
    """Returns the granted and the requested amounts of a run, in the order of preference.

    The option `resources` determines which of them comes first.
    """
    if options["resources"] == "requested":
        return run.first.requested, run.first.allocated
    return run.first.allocated, run.first.requested


def _pod_sets(components: Sequence[Chain], options: Mapping[str, Any]) -> Iterator[tuple[str, Pods]]:
    """Yields the pods of the last run of all components. A component that never ran has no pods."""
    for chain in components:
        if not chain.runs:
            continue
        run = chain.runs[-1]
        amounts, nodes = amounts_of(*held_by(run, options))
        models = run.first.requested.models if options["gpu_model"] == "affinity" else ()
        name = "main" if chain.identity.offset is None else f"het-{chain.identity.offset}"
        for number, pods in enumerate(pods_of(amounts, nodes, models), start=1):
            yield (name if number == 1 else f"{name}-{number}"), pods

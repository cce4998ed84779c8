"""Derives a cluster for a trace that has no manifests, and lists the assumptions behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import NamedTuple

from harness.base.units import format_amount
from harness.cluster.load import cluster_from
from harness.cluster.manifests import cluster_queue_manifest, flavor_manifest
from harness.cluster.model import Cluster
from harness.cluster.shares import split_in_units

WANTED_UTILIZATION = Fraction(4, 5)
"""The ratio of mean demand to capacity that harness assumes if the size of the machine is unknown."""

_COHORT = "all"
_FLAVOR = "default"
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


class Demand(NamedTuple):
    """The demand of a trace for one resource. CPU is in millicores, and other resources are in base units.

    Attributes:
        largest: the largest request of any job, summed over all of its pods.
        mean: the resource-time of all jobs divided by the span of the trace. If all jobs are submitted at the
            same time, it is the sum of their requests.
        capacity: the size of the traced machine, if the trace contains it.
        recorded: the peak usage of the recorded runs, if the trace has the runs of nearly all jobs.
    """

    largest: int
    mean: int
    capacity: int | None = None
    recorded: int | None = None


def plain_stem(file: Path) -> str:
    """Returns the name of a file without its suffixes: `philly` for `philly.csv.gz`."""
    name = file.name
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return name.rpartition(".")[0] or name


def find_cluster(trace: Path) -> Path | None:
    """Returns the manifest file in the same folder as a trace, or None if there is none.

    For `philly.parquet` or `philly.swf`, this is `philly.cluster.yaml`.
    """
    beside = trace.with_name(f"{plain_stem(trace)}.cluster.yaml")
    return beside if beside.is_file() else None


def derive_cluster(queues: Iterable[str], demands: Mapping[str, Demand], *, source: str) -> Cluster:
    """Returns a cluster that a trace would keep busy, with one ClusterQueue per queue and no nodes.

    All ClusterQueues belong to one cohort. The capacity of a resource is the capacity of the traced machine,
    if it is known. Otherwise, the capacity is the peak usage of the recorded runs. If neither is known,
    harness chooses the capacity so that the mean demand uses 80 % of it, and rounds it up. Unless the
    capacity is that of the machine, it is at least the request of the largest job. The queues share the
    capacity equally, and the remainder goes to the first queues by name.

    A resource that no job requests gets no quota.
    """
    names = sorted(set(queues))
    asked = {resource: demand for resource, demand in sorted(demands.items()) if demand.largest > 0}
    cohort = _COHORT if len(names) > 1 else ""
    preemption = {"withinClusterQueue": "LowerPriority"}
    if cohort:
        preemption["reclaimWithinCohort"] = "Any"
    nominal: dict[str, dict[str, int]] = {name: {} for name in names}
    assumed = [_about_queues(names, cohort)]
    for resource, demand in asked.items():
        capacity = wanted_capacity(resource, demand)
        assumed.append(_about_capacity(resource, demand, capacity, len(names)))
        shares = split_in_units(capacity, dict.fromkeys(names, 1), unit_of(resource, capacity))
        for name, share in shares.items():
            nominal[name][resource] = share
    manifests = [flavor_manifest(_FLAVOR)] + [
        cluster_queue_manifest(name, _FLAVOR, nominal[name], cohort=cohort, preemption=preemption)
        for name in names
    ]
    return replace(cluster_from(manifests, f"assumed for {source}"), assumed=tuple(assumed), files=("",))


def wanted_capacity(resource: str, demand: Demand, load: Fraction | None = None) -> int:
    """Returns the capacity of a resource in a derived cluster.

    The first of these that is known applies:

    1. the size of the traced machine;
    2. the recorded peak usage, unless `load` is given;
    3. `mean demand / load`, rounded up. The default of `load` is 80 %.

    In cases 2 and 3, the capacity is at least the request of the largest job, so that every job can run.
    """
    if demand.capacity is not None:
        return demand.capacity
    if demand.recorded and load is None:
        return max(demand.recorded, demand.largest)
    least = max(ceil(demand.mean / (load or WANTED_UTILIZATION)), demand.largest)
    return _readable(least, unit_of(resource, least))


def _readable(amount: int, unit: int) -> int:
    """Returns a quantity rounded up to at most two significant digits of `unit`."""
    count = -(-amount // unit)
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step * unit


def unit_of(resource: str, amount: int) -> int:
    """Returns the usual unit of a resource: a core, a binary unit of bytes, or a device."""
    if resource == "cpu":
        return 1000
    if resource in ("memory", "ephemeral-storage"):
        return max(unit for unit in (1, 2**10, 2**20, 2**30) if unit <= max(amount, 1))
    return 1


def _about_queues(names: list[str], cohort: str) -> str:
    if not names:
        return "no queue, because the trace has no queues"
    if not cohort:
        return f"one ClusterQueue, {names[0]}, without a cohort; a job may preempt jobs of lower priority"
    return (
        f"{len(names)} ClusterQueues, one for each queue, in the cohort {cohort!r}. Each borrows idle quota "
        "of the others, takes back its own quota from any borrower, and lets a job preempt jobs of "
        "lower priority"
    )


def _about_capacity(resource: str, demand: Demand, capacity: int, queues: int) -> str:
    size = format_amount(resource, capacity)
    if demand.capacity is not None:
        why = "the size of the machine that was traced"
        if demand.largest > capacity:
            why += f"; the largest job requests {format_amount(resource, demand.largest)} and can never run"
    elif demand.recorded == capacity:
        why = "the peak usage of the recorded runs"
    elif capacity > _readable(ceil(demand.mean / WANTED_UTILIZATION), unit_of(resource, capacity)):
        why = f"the largest job requests {format_amount(resource, demand.largest)}"
    else:
        why = f"the mean demand of {_rough(resource, demand.mean)} at 80 % utilization, rounded up"
    return f"{resource} {size}: {why}" + ("; split equally as nominal quotas" if queues > 1 else "")


def _rough(resource: str, amount: int) -> str:
    unit = unit_of(resource, amount)
    suffix = {2**10: "Ki", 2**20: "Mi", 2**30: "Gi"}.get(unit, "")
    return f"{amount / unit:,.1f}{suffix}"

"""Determines the pods of each job in a log, and the request of each pod.

The Standard Workload Format has only the number of processors. MetaCentrum's extension also has the PBS
request, such as `4:ppn=12:x86_64:cl_zewura#excl` or `1:ppn=1+3:ppn=2`. It contains numbers of nodes, the
processors of each node, and required properties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from harness.base.errors import OptionError
from harness.readers.counts import agreeing, counted
from harness.readers.gangs import pods_of
from harness.readers.names import MACHINE, label_maps
from harness.readers.source import also_read
from harness_plugins.readers.machines import Machine, read_machines

_KIB = 1024
_DIGITS = 6


@dataclass(frozen=True)
class Layout:
    """The pod sets of all jobs, as columns with one row for each pod set.

    Attributes:
        job: for each row, the position of the job's record.
        columns: the columns of the schema that describe pod sets.
        metadata: the metadata of the machines, if they are known.
    """

    job: pl.Series
    columns: list[pl.Series]
    notes: tuple[str, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)


def layout_of(records: pl.DataFrame, options: Mapping[str, Any]) -> Layout:
    """Returns the pods of a log's jobs.

    `records` has one row for each job. Its column `processors` has the number of processors.

    Raises:
        OptionError: an option does not apply to this kind of log.
    """
    per_node = options["processors_per_node"]
    if "node_spec" in records.columns:
        if per_node:
            raise OptionError("option processors_per_node: this log has the number of nodes of each job")
        return _by_request(records, options)
    if options["machines"]:
        raise OptionError("option machines: only MetaCentrum's extension says which machines a job needs")
    processors = records["processors"]
    if per_node == 0:
        each, columns, note = processors, [], "a job is one pod that requests all its processors"
    else:
        pods = pods_of(processors, per_node, "processors_per_node")
        each, columns = pods["each"], [pods["pods"], pods["gang"]]
        gangs = int(pods["gang"].sum())
        note = (
            f"a job of more than {per_node} processors ({counted(gangs, 'job')}) is a gang of equal "
            f"pods; each has the largest divisor that is at most {per_node}"
        )
    amounts, memory = _amounts(records["requested_memory"], each, options, per_processor=True)
    return Layout(pl.arange(records.height, eager=True), [*amounts, *columns], (note, memory))


def recorded_hosts(records: pl.DataFrame) -> list[pl.Expr]:
    """Returns the distinct hosts of each job in MetaCentrum's extension, separated by commas."""
    if "hosts" not in records.columns:
        return []
    hosts = pl.col("hosts").str.strip_chars("{}").str.split(",").list.unique(maintain_order=True)
    return [hosts.list.join(",").alias("recorded_hosts")]


def _amounts(
    requested: pl.Series, each: pl.Series, options: Mapping[str, Any], *, per_processor: bool
) -> tuple[list[pl.Series], str]:
    """Returns the processors and memory of a pod, and the assumption about the memory.

    The requested number is in KiB per processor or in bytes per node. It is -1 if unknown. `each` contains
    the number of processors of a pod.
    """
    cpu = (each * 1000).alias("request.cpu")
    known = requested > 0
    if options["memory"] == "ignore" or not known.any():
        why = "no job requests any" if options["memory"] == "requested" else "it is ignored"
        return [cpu], f"memory is not modelled: {why}"
    bytes_of = pl.lit(each).cast(pl.Int128) * _KIB if per_processor else pl.lit(1, pl.Int128)
    amount = pl.when(pl.lit(known)).then(pl.lit(requested).cast(pl.Int128) * bytes_of)
    memory = pl.select(amount.alias("request.memory")).to_series()
    of = "KiB per processor" if per_processor else "bytes (assumed to be per node; the log does not say)"
    silent = int((~known).sum())
    missing = (
        f"; {agreeing(silent, 'job', 'do')} not have this amount, so none is requested" if silent else ""
    )
    return [cpu, memory], f"memory is the requested amount, in {of}{missing}"


# --- MetaCentrum's extension ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _PodSet:
    pods: int
    processors: int
    properties: tuple[str, ...]


def _by_request(records: pl.DataFrame, options: Mapping[str, Any]) -> Layout:
    machines = read_machines(Path(options["machines"])) if options["machines"] else []
    labels = {f"cl_{machine.name}": machine.name for machine in machines}
    specs = {spec: _pod_sets(spec) for spec in records["node_spec"].unique()}
    rows: list[tuple[int, int, int, str]] = []
    selectors: list[dict[str, str]] = []
    other = 0
    for job, (spec, processors) in enumerate(records.select("node_spec", "processors").iter_rows()):
        parts = specs[spec]
        if sum(part.pods * part.processors for part in parts) != processors:
            parts = (_PodSet(1, processors, parts[0].properties if len(parts) == 1 else ()),)
            other += 1
        for place, part in enumerate(parts, start=1):
            name = "main" if len(parts) == 1 else f"part-{place}"
            rows.append((job, part.pods, part.processors, name))
            selectors.append(_selector(part, labels))
    schema = {"job": pl.Int64, "pods": pl.Int32, "each": pl.Int64, "pod_set": pl.String}
    layout = pl.DataFrame(rows, schema=schema, orient="row")
    columns, memory = _amounts(
        records["requested_memory"][layout["job"]], layout["each"], options, per_processor=False
    )
    columns.append(layout["pods"])
    if layout["pod_set"].n_unique() > 1:
        columns.append(layout["pod_set"])
    if labels:
        columns.append(label_maps("node_selector", selectors))
    gangs = layout.group_by("job").agg(pl.col("pods").cast(pl.Int64).sum()).filter(pl.col("pods") > 1).height
    notes = (
        (
            f"a job has the pods that it requested, nodes x ppn of column 21 "
            f"({agreeing(gangs, 'job', 'are')} gangs)"
        ),
        f"{counted(other, 'job')} requested a different number of processors in column 21: each has one pod"
        if other
        else "",
        _selected(labels, selectors),
        memory,
    )
    return Layout(layout["job"], columns, tuple(note for note in notes if note), _about(machines, options))


def _pod_sets(spec: str) -> tuple[_PodSet, ...]:
    """Returns the parts of a request, without fractions of processors. A named host is one node."""
    found = []
    for part in spec.partition("#")[0].split("+"):
        first, *words = part.split(":")
        nodes = int(first) if first.isdecimal() and len(first) <= _DIGITS else 1
        ppn = next((word.removeprefix("ppn=") for word in words if word.startswith("ppn=")), "1")
        whole = ppn.partition(".")[0]
        processors = int(whole) if whole.isdecimal() and len(whole) <= _DIGITS else 0
        found.append(_PodSet(max(1, nodes), processors, tuple(words)))
    return tuple(found)


def _selector(part: _PodSet, labels: Mapping[str, str]) -> dict[str, str]:
    names = [labels[word] for word in part.properties if word in labels]
    return {MACHINE: names[0]} if names else {}


def _selected(labels: Mapping[str, str], selectors: Sequence[object]) -> str:
    if not labels:
        return "properties that nodes must have are ignored (give the machines with machines=FILE)"
    count = sum(map(bool, selectors))
    known = ", ".join(labels)
    return (
        f"the properties {known} become the node selector {MACHINE} ({counted(count, 'pod set')}); the log "
        "does not say which nodes have the other properties, so they are ignored"
    )


def _about(machines: Sequence[Machine], options: Mapping[str, Any]) -> dict[str, str]:
    if not machines:
        return {}
    total = {
        f"harness.capacity.{resource}": str(
            sum(machine.nodes * machine.allocatable[resource] for machine in machines)
        )
        for resource in ("cpu", "memory")
    }
    return {**total, **also_read(Path(options["machines"]))}

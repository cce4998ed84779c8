"""Reads the pod and node lists of Alibaba's openb, a cluster whose pods share GPUs.

A share of a GPU becomes an amount of milli-GPUs. That keeps the sum on a node right, but not which GPU of it
a pod is on: a pod of 600 fits a node that has 300 left on each of two GPUs, which it would not in reality.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.errors import Fault, OptionError, TraceError
from harness.units import SECOND, format_duration
from harness_plugins.readers.numbers import SECONDS
from harness_plugins.readers.signs import OPENB_NODE_COLUMNS, OPENB_POD_COLUMNS, OPENB_SHORT_COLUMNS
from harness_plugins.readers.source import contents, lines_of, refuse_lines, shown

METADATA = {
    "harness.source": "Alibaba openb, cluster-trace-gpu-v2023 (github.com/alibaba/clusterdata); "
    "Weng et al., Beware of Fragmentation, USENIX ATC 2023",
}
MILLI_GPU, GPU = "nvidia.com/gpu-milli", "nvidia.com/gpu"
MODEL = "nvidia.com/gpu.product"
"""The node label with the model of a node's GPUs, as NVIDIA's feature discovery names it."""

PRIORITIES = {"BE": 0, "Burstable": 500, "LS": 1000, "Guaranteed": 1000}
"""What a QoS class of the lists is worth: best effort gives way to all others."""

_MIB = 2**20
_MOST = 10**12
_PODS_OF_A_NODE = 110
_MICRO = pl.Duration("us")

Row = dict[str, Any]


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read a pod list; every pod is a job.

    Raises:
        TraceError: malformed lines, all of them named.
        OptionError: an option out of its range.
    """
    if options["run"] <= 0:
        raise OptionError("option run: must be longer than 0")
    rows = _rows(path, OPENB_POD_COLUMNS, OPENB_SHORT_COLUMNS)
    timed = not rows or "creation_time" in rows[0]
    total, left_out = len(rows), {}
    if timed and options["pending"] == "drop":
        rows = [row for row in rows if row["scheduled_time"] is not None]
        if len(rows) < total:
            left_out["never ran (no scheduled_time)"] = total - len(rows)
    columns = _columns(rows, options, timed=timed)
    return Reading(
        pl.DataFrame(columns), total, left_out=left_out, notes=_notes(options, timed=timed), metadata=METADATA
    )


def _columns(rows: list[Row], options: Mapping[str, Any], *, timed: bool) -> dict[str, pl.Series]:
    """The pods in the canonical schema."""
    gpus, unit = (GPU, 1) if options["gpu"] == "count" else (MILLI_GPU, None)
    columns = {
        "job_id": pl.Series([row["name"] for row in rows], dtype=pl.String),
        "submit_time": _times(rows, "creation_time"),
        "duration": pl.Series([_run(row, options["run"]) for row in rows], dtype=_MICRO),
        "queue": pl.Series([row.get(options["tenant"]) or "any" for row in rows], dtype=pl.String),
        "request.cpu": _amounts(rows, lambda row: row["cpu_milli"]),
        "request.memory": _amounts(rows, lambda row: row["memory_mib"] * _MIB),
        f"request.{gpus}": _amounts(rows, lambda row: row["num_gpu"] * (unit or row["gpu_milli"])),
    }
    if not timed:
        return columns
    if options["priority"] == "qos":
        columns["priority"] = pl.Series([PRIORITIES.get(row["qos"], 0) for row in rows], dtype=pl.Int32)
    columns["affinity"] = pl.Series([_affinity(row["gpu_spec"]) for row in rows], dtype=pl.String)
    columns["recorded_start"] = _times(rows, "scheduled_time")
    columns["recorded_end"] = _times(rows, "deletion_time")
    for name in ("qos", "pod_phase"):
        columns[name] = pl.Series([row[name] for row in rows], dtype=pl.String)
    return columns


def _times(rows: list[Row], name: str) -> pl.Series:
    return pl.Series([row.get(name, 0) for row in rows], dtype=_MICRO)


def _run(row: Row, otherwise: int) -> int:
    start = row.get("scheduled_time")
    return otherwise if start is None else max(0, row["deletion_time"] - start)


def _amounts(rows: list[Row], amount: Callable[[Row], int]) -> pl.Series:
    return pl.Series([amount(row) for row in rows], dtype=pl.Int64)


@lru_cache(maxsize=1024)
def _affinity(models: str) -> str | None:
    """The models that a pod allows as a required node affinity, as in a Pod; None when it allows all."""
    if not models:
        return None
    named = list(dict.fromkeys(models.split("|")))
    terms = [{"matchExpressions": [{"key": MODEL, "operator": "In", "values": named}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return json.dumps({"nodeAffinity": required})


def _notes(options: Mapping[str, Any], *, timed: bool) -> tuple[str, ...]:
    shared = (
        f"GPUs are {GPU}, num_gpu: a share of a GPU takes a whole one"
        if options["gpu"] == "count"
        else f"GPUs are {MILLI_GPU}, num_gpu x gpu_milli: on which GPU of a node a share is, is not modelled"
    )
    notes = ("every pod is a job; there are no gangs", shared)
    run = format_duration(options["run"])
    if not timed:
        return (*notes, f"the list has no times: all pods arrive at 0 and run for {run}")
    bands = ", ".join(f"{qos} {value}" for qos, value in PRIORITIES.items())
    return (
        *notes,
        "a pod runs from scheduled_time to deletion_time, which for many is only the end of the trace",
        *((f"a pod that never ran is given a run of {run}",) if options["pending"] == "keep" else ()),
        f"gpu_spec is a required node affinity to the label {MODEL}",
        f"priority follows qos: {bands}"
        if options["priority"] == "qos"
        else "priority is not derived from qos",
    )


# --- nodes ------------------------------------------------------------------------------------------------


def node_manifests(path: Path, *, gpu: str = "milli", keep: int | None = None) -> list[dict[str, Any]]:
    """The nodes of a node list as Kubernetes manifests.

    Args:
        path: the list.
        gpu: `milli` or `count`, as for pods.
        keep: how many nodes to keep, evenly spaced over the list so that the mix stays; None keeps all.

    Raises:
        TraceError: malformed lines, all of them named.
        OptionError: there are not that many nodes.
    """
    rows = _rows(path, OPENB_NODE_COLUMNS)
    if keep is not None:
        if not 1 <= keep <= len(rows):
            raise OptionError(f"{keep:,} nodes cannot be kept: {path} has {len(rows):,}")
        rows = [rows[number * len(rows) // keep] for number in range(keep)]
    return [_node(row, gpu) for row in rows]


def _node(row: Row, gpu: str) -> dict[str, Any]:
    name = row["sn"]
    resource, amount = (GPU, row["gpu"]) if gpu == "count" else (MILLI_GPU, 1000 * row["gpu"])
    labels = {"kubernetes.io/hostname": name, **({MODEL: row["model"]} if row["model"] else {})}
    allocatable = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": _PODS_OF_A_NODE}
    if amount:
        allocatable[resource] = amount
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable},
    }


# --- lines ------------------------------------------------------------------------------------------------

_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_COUNTS = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu")
_NAMES = ("name", "sn")


def _rows(path: Path, *known: tuple[str, ...]) -> list[Row]:
    """The rows of a list; counts are int, times microseconds or None, all else text."""
    data = contents(path)
    (_, head), *lines = lines_of(data)
    columns = next((names for names in known if head.strip() == ",".join(names).encode()), None)
    if columns is None:
        wanted = " or ".join(",".join(names) for names in known)
        raise TraceError(str(path), [Fault("line 1", f"the columns are {shown(head)}, not {wanted}")])
    rows: list[Row] = []
    faulty = False
    for _, line in lines:
        row, faults = _row(line, columns)
        faulty = faulty or bool(faults)
        rows.append(row)
    if faulty:
        records = islice(lines_of(data), 1, None)
        raise refuse_lines(
            path, records, lambda line: _row(line, columns)[1], "has values that cannot be read"
        )
    return rows


def _row(line: bytes, columns: tuple[str, ...]) -> tuple[Row, list[str]]:
    """One line's values, and what is wrong with it."""
    words = line.split(b",")
    if len(words) != len(columns):
        return {}, [f"has {len(words)} columns instead of {len(columns)}"]
    row: Row = {}
    faults: list[str] = []
    for name, word in zip(columns, (word.strip() for word in words), strict=True):
        if name in _COUNTS:
            row[name] = int(word) if word.isdigit() and len(word) <= len(str(_MOST)) else -1
            if row[name] < 0:
                faults.append(f"{name}: {shown(word)} is not a whole number")
        elif name in _TIMES:
            row[name] = _time(word)
            if row[name] is None and (word or name != "scheduled_time"):
                faults.append(f"{name}: {shown(word)} is not a number of seconds")
        else:
            row[name] = word.decode("utf-8", "replace")
            if name in _NAMES and not word:
                faults.append(f"{name}: is empty")
    return row, faults


def _time(word: bytes) -> int | None:
    try:
        seconds = float(word)
    except ValueError:
        return None
    return round(seconds * SECOND) if 0 <= seconds <= SECONDS else None

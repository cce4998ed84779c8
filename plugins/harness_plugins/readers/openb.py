"""Reads the pod and node lists of Alibaba's openb, a cluster whose pods share GPUs.

A share of a GPU becomes a number of milli-GPUs. On nodes with devices (`machines.py --gpu devices`), a
pod's share comes from a single GPU. On other nodes, only the total of the node is checked. For example, a
pod of 600 milli-GPUs fits a node with 300 left on each of two GPUs, although it would not fit in reality.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from harness import Reading
from harness.base.errors import OptionError
from harness.base.units import HOUR, LONGEST, format_duration
from harness.readers.cells import amount, seconds, text, whole
from harness.readers.counts import counted
from harness.readers.delimited import open_table
from harness.readers.names import GPU, MILLI_GPU, MODEL, affinity_to_models
from harness.readers.schema import leave_out

METADATA = {
    "harness.source": "Alibaba openb, cluster-trace-gpu-v2023 (github.com/alibaba/clusterdata); "
    "Weng et al., Beware of Fragmentation, USENIX ATC 2023"
}
PRIORITIES = {"BE": 0, "Burstable": 500, "LS": 1000, "Guaranteed": 1000}
"""The priority of each QoS class in the lists. The best-effort class has the lowest priority."""

_MIB = 2**20
_MOST_GPUS = 1_000
_SIZES = (
    text("name"),
    whole("cpu_milli"),
    amount("memory_mib", _MIB),
    whole("num_gpu", most=_MOST_GPUS),
    whole("gpu_milli", most=1000),
)
_TIMES = (seconds("creation_time"), seconds("deletion_time"), seconds("scheduled_time").or_empty())
_FIELDS = (*_SIZES, *(text(name).or_empty() for name in ("gpu_spec", "qos", "pod_phase")), *_TIMES)


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads a pod list. Every pod becomes a job.

    Raises:
        TraceError: lines are malformed. The error lists all faults.
        OptionError: an option is out of range.
    """
    if options["run"] <= 0:
        raise OptionError("option run: must be longer than 0")
    if options["rate"] < 0:
        raise OptionError(f"option rate: {options['rate']} must not be negative")
    if options["fill"] < 0:
        raise OptionError(f"option fill: {options['fill']} must not be negative")
    table = open_table(path)
    named = set(table.names) != {field.name for field in _SIZES}
    timed = named and not options["fill"]
    if timed and options["rate"]:
        raise OptionError("option rate: this list has times of its own")
    pods = table.typed(_FIELDS if named else _SIZES)
    if options["fill"]:
        pods = _filled(pods, options["fill"], Random(options["seed"]).random)  # noqa: S311 no secret
    if options["rate"] and pods.height * HOUR / LONGEST > options["rate"]:
        what = f"option rate: {counted(pods.height, 'pod')} would arrive over more than a hundred years"
        raise OptionError(what)
    read_rows = pods.height
    left_out: dict[str, int] = {}
    if timed:
        never = pl.col("scheduled_time").is_null() if options["pending"] == "drop" else None
        backwards = pl.col("deletion_time") < pl.col("scheduled_time")
        reasons = {"never ran (no scheduled_time)": never, "deleted before it was scheduled": backwards}
        pods, left_out = leave_out(pods, reasons)
    columns = _recorded(options) if timed else _arrivals(options)
    if named and not timed:
        columns.append(affinity_to_models(pl.col("gpu_spec")).alias("affinity"))
    frame = pods.select(*_requests(options), *columns)
    return Reading(frame, read_rows, left_out, _notes(options, timed=timed), METADATA)


def _filled(pods: pl.DataFrame, gpus: float, drawn: Callable[[], float]) -> pl.DataFrame:
    """Returns pods in a random order that request about this many GPUs, as in the experiments with FGD.

    If the pods of the list request more GPUs, random pods are left out until they no longer do. If they
    request fewer GPUs, random pods are repeated under other names until the next pod would exceed the number.
    """
    asked = (pods["num_gpu"] * pods["gpu_milli"]).to_list()
    if not sum(asked):
        raise OptionError("option fill: the pods of this list request no GPU")
    wanted, total = 1000 * gpus, sum(asked)
    order = [row for _, row in sorted((drawn(), row) for row in range(pods.height))]
    while total > wanted:
        total -= asked[order.pop(int(drawn() * len(order)))]
    listed = len(order)
    while total < wanted:
        again = int(drawn() * pods.height)
        if total + asked[again] > wanted:
            break
        total += asked[again]
        order.append(again)
    number = pl.int_range(pl.len()) - listed
    name = pl.when(number < 0).then("name").otherwise(pl.format("{}-again-{}", "name", number))
    return pods[order].with_columns(name=name)


def _requests(options: Mapping[str, Any]) -> list[pl.Expr]:
    whole_gpus = options["gpu"] == "count"
    gpus = pl.col("num_gpu") if whole_gpus else pl.col("num_gpu") * pl.col("gpu_milli")
    return [
        pl.col("name").alias("job_id"),
        pl.col("cpu_milli").alias("request.cpu"),
        pl.col("memory_mib").alias("request.memory"),
        gpus.alias(f"request.{GPU if whole_gpus else MILLI_GPU}"),
    ]


def _recorded(options: Mapping[str, Any]) -> list[pl.Expr]:
    start = pl.col("scheduled_time")
    run = (pl.col("deletion_time") - start).fill_null(options["run"])
    priority = pl.col("qos").replace_strict(PRIORITIES, default=0, return_dtype=pl.Int32)
    return [
        pl.col("creation_time").cast(pl.Duration("us")).alias("submit_time"),
        run.cast(pl.Duration("us")).alias("duration"),
        pl.col(options["tenant"]).replace("", "any").alias("queue"),
        *([priority.alias("priority")] if options["priority"] == "qos" else []),
        affinity_to_models(pl.col("gpu_spec")).alias("affinity"),
        start.cast(pl.Duration("us")).alias("recorded_start"),
        pl.col("deletion_time").cast(pl.Duration("us")).alias("recorded_end"),
        pl.col("qos"),
        pl.col("pod_phase"),
    ]


def _arrivals(options: Mapping[str, Any]) -> list[pl.Expr]:
    """Returns the columns of a list without times. The pods arrive evenly, in the order of the list."""
    apart = HOUR / options["rate"] if options["rate"] else 0.0
    arrival = (pl.int_range(pl.len(), dtype=pl.Int64) * apart).round().cast(pl.Int64)
    return [
        arrival.cast(pl.Duration("us")).alias("submit_time"),
        pl.lit(options["run"]).cast(pl.Duration("us")).alias("duration"),
        pl.lit("any").alias("queue"),
    ]


def _notes(options: Mapping[str, Any], *, timed: bool) -> tuple[str, ...]:
    shared = (
        f"pods request num_gpu of {GPU}: a share of a GPU takes a whole GPU"
        if options["gpu"] == "count"
        else f"pods request num_gpu x gpu_milli of {MILLI_GPU}: if nodes have devices, a share is on one GPU"
    )
    notes = ("every pod is a job; there are no gangs", shared)
    run = format_duration(options["run"])
    if options["fill"]:
        filled = f"pods in a random order (seed {options['seed']}) request {options['fill']:g} GPUs together"
        return (
            *notes,
            filled,
            f"times, QoS and priorities are ignored: all pods arrive at time 0 and run for {run}",
        )
    if not timed:
        rate = options["rate"]
        arrive = f"arrive evenly, {rate:g} an hour, in the order of the list" if rate else "arrive at time 0"
        return (*notes, f"the list has no times: all pods {arrive} and run for {run}")
    bands = ", ".join(f"{qos} {value}" for qos, value in PRIORITIES.items())
    return (
        *notes,
        "a pod runs from scheduled_time to deletion_time, which for many pods is the end of the trace",
        *((f"a pod that never ran gets a run time of {run}",) if options["pending"] == "keep" else ()),
        f"gpu_spec is a required node affinity to the label {MODEL}",
        f"priority is derived from qos: {bands}"
        if options["priority"] == "qos"
        else "priority is not derived from qos",
    )

"""Checks every row of a trace against the rules of the schema, and against the cluster of its replay.

The check finds all faults in a single pass over the columns, so users can repair a trace in one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from harness.base.errors import Fault
from harness.base.json_text import parse_json
from harness.base.text import counted
from harness.base.units import INT64_MAX, LONGEST
from harness.cluster.kinds.pod_reading import read_pod_spec
from harness.cluster.yaml.fields import Fields
from harness.trace.job_rows import ROW, differs, distinct, filled, job_rows, pods_of, total_of
from harness.trace.rules import Rule, breaches, shown
from harness.trace.schema import (
    DEFAULT_NAMESPACE,
    DEFAULT_POD_SET,
    LIMIT,
    PREEMPTION_POLICIES,
    REQUEST,
    Kind,
    column_of,
    entries,
    resources_of,
)
from harness.trace.sums import UNITS, Sums
from harness.trace.topology import topology_rules, wrong_annotations
from harness.trace.typed import typed

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999
_INT32_MAX = 2**31 - 1
_FIRST = "harness.first"
LONGEST_NAME = 1000
"""The maximum length of a name in bytes, which is limited because a name may recur in thousands of rows.

Names in Kubernetes have at most 253 characters.
"""

_DOCUMENTS = {"tolerations": list, "affinity": dict, "pod_template": dict}


def checked(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[Fault]]:
    """Returns the frame in the schema's types, without columns that cannot be converted, and every fault.

    The faults of columns come first, followed by the faults of each row.
    """
    if not frame.height:
        return frame, [*typed(frame)[1], Fault("", "holds no jobs")]
    frame, faults = typed(frame)
    faults += breaches(frame, _row_rules(frame))
    faults += _documents(frame)
    faults += _jobs(frame)
    return frame, faults or Sums().add(frame)


def cluster_faults(trace: Trace, cluster: Cluster, *, by_queues: bool = False) -> list[Fault]:
    """Returns faults for the queues, priority classes and capacities that a trace needs and a cluster lacks.

    If the cluster has ClusterQueues, a queue is known in three cases: it is a ClusterQueue, an ElasticQuota,
    or a LocalQueue of the job's namespace whose ClusterQueue exists. A job is too large if the smallest size
    with which it can start (`min_pods`) exceeds the cluster.

    `by_queues` says whether ClusterQueues admit jobs, so that ElasticQuotas are not used.
    """
    return unknown_names(trace.frame, cluster, by_queues=by_queues) + _too_large(trace.frame, cluster)


def strangers(trace: Trace, cluster: Cluster, *, by_queues: bool = False) -> list[str]:
    """Returns the jobs that are larger than a cluster, and the jobs whose queues the cluster lacks."""
    jobs = _least(trace.frame)
    broken = [rule.broken.fill_null(value=False) for rule in _size_rules(jobs, cluster)]
    large = jobs.select(pl.any_horizontal(pl.lit(value=False), *broken).alias("large"))["large"]
    unknown = {
        (namespace, queue) for namespace, queue, *_ in _strange_queues(trace.frame, cluster, by_queues)
    }
    doors = zip(jobs["namespace"].to_list(), jobs["queue"].to_list(), strict=True)
    strange = pl.Series([door in unknown for door in doors], dtype=pl.Boolean)
    return jobs["job_id"].filter(large | strange).to_list()


def unknown_names(frame: pl.DataFrame, cluster: Cluster, *, by_queues: bool = False) -> list[Fault]:
    """Returns a fault for each queue and each priority class of the rows that a cluster lacks.

    The rows may have other faults, because the function doesn't check them.
    """
    return _unknown_queues(frame, cluster, by_queues) + _unknown_classes(frame, cluster)


def _row_rules(frame: pl.DataFrame) -> Iterator[Rule]:
    for name in frame.columns:
        column = column_of(name)
        if column is None:
            continue
        value = pl.col(name)
        if column.default is None:
            yield Rule(name, value.is_null(), "is missing")
        if name in ("job_id", "queue", "namespace", "pod_set", "uid", "priority_class"):
            yield Rule(name, value == "", "is empty")
        if name not in _DOCUMENTS and column.kind is Kind.STRING:
            texts = value.str if frame.schema[name] == pl.String else value.cat
            yield Rule(name, texts.len_bytes() > LONGEST_NAME, f"is longer than {LONGEST_NAME:,} bytes")
        if isinstance(frame.schema[name], pl.Duration):
            span = value.to_physical()
            yield Rule(name, span < 0, "must not be negative")
            yield Rule(name, span > LONGEST, "is longer than 100 years: is the unit right?")
        elif isinstance(frame.schema[name], pl.Datetime):
            yield Rule(
                name, ~value.to_physical().is_between(_EARLIEST, _LATEST), "is not in the years 1 to 9999"
            )
            if name == "submit_time":
                early = value.min().to_physical().clip(_EARLIEST, _LATEST)
                late = value.to_physical().clip(_EARLIEST, _LATEST) - early > LONGEST
                yield Rule(
                    name, late, "is more than 100 years after the first submission: is the unit right?"
                )
        if name.startswith((REQUEST, LIMIT)):
            yield Rule(name, value < 0, "must not be negative")
    yield from _pod_rules(frame)
    yield from topology_rules(frame)
    if "checkpoint_interval" in frame.columns:
        interval = pl.col("checkpoint_interval").to_physical()
        yield Rule("checkpoint_interval", interval == 0, "must be longer than 0")
    if "preemption_policy" in frame.columns:
        allowed = pl.col("preemption_policy").is_in(list(PREEMPTION_POLICIES))
        yield Rule("preemption_policy", ~allowed, f"is not one of {', '.join(PREEMPTION_POLICIES)}")


def _pod_rules(frame: pl.DataFrame) -> Iterator[Rule]:
    if "pods" in frame.columns:
        yield Rule("pods", pl.col("pods") < 1, "must be at least 1")
        for resource in resources_of(frame.columns):
            name = f"{REQUEST}{resource}"
            large = total_of(frame, resource) > INT64_MAX
            yield Rule(name, large, "for each of {} pods is more than 64 bits can count", "pods")
    if "min_pods" in frame.columns:
        yield Rule("min_pods", pl.col("min_pods") < 1, "must be at least 1")
        about = "pods" if "pods" in frame.columns else None
        more = "is more than the number of pods in the row" + (", {}" if about else ", 1")
        yield Rule("min_pods", pl.col("min_pods") > pods_of(frame), more, about)


def _documents(frame: pl.DataFrame) -> list[Fault]:
    """Checks the columns with JSON and the columns with labels. Each distinct value is checked only once."""
    rules: list[Rule] = []
    for name in _DOCUMENTS:
        if name in frame.columns:
            by_fault: dict[str, list[str]] = {}
            for text in frame[name].drop_nulls().unique(maintain_order=True):
                if fault := _wrong(name, text):
                    by_fault.setdefault(fault, []).append(text)
            rules += [Rule(name, pl.col(name).is_in(texts), fault) for fault, texts in by_fault.items()]
    for name in frame.columns:
        column = column_of(name)
        if column is not None and column.kind is Kind.MAP:
            wrong_rows = pl.Series(
                [any(text is None for _, text in entries(value)) for value in frame[name].to_list()],
                dtype=pl.Boolean,
            )
            rules.append(Rule(name, pl.lit(wrong_rows), "contains a name without a value"))
    return breaches(frame, rules)


def _wrong(name: str, text: str) -> str:
    """Returns a description of the first fault of a document, or "" if there is none."""
    try:
        value = parse_json(text)
    except ValueError:
        value = None
    if not isinstance(value, _DOCUMENTS[name]):
        return f"is not a JSON {'list' if name == 'tolerations' else 'object'}"
    if name == "pod_template" and (fault := wrong_annotations(text)):
        return fault
    faults: list[Fault] = []
    fields = Fields(value if name == "pod_template" else {name: value}, "", faults)
    read_pod_spec(fields.child("spec") if "spec" in fields else fields, DEFAULT_NAMESPACE, {})
    return f"is not valid in a Pod: {faults[0]}" if faults else ""


def _jobs(frame: pl.DataFrame) -> list[Fault]:
    if "job_id" in frame.columns and not distinct(frame["job_id"]):
        return _repeated(frame)
    return []


def _repeated(frame: pl.DataFrame) -> list[Fault]:
    rows = (
        frame.with_columns(filled(frame, "pod_set", DEFAULT_POD_SET), pods_of(frame).alias("pods"))
        .with_row_index(ROW)
        .filter(pl.col("job_id").is_not_null() & pl.col("job_id").is_duplicated())
    )
    first = (pl.col(ROW).min() + 1).over("job_id", "pod_set").alias(_FIRST)
    again = pl.col(ROW) + 1 > pl.col(_FIRST)
    rules = [Rule("job_id", again, "(pod set {}) already has a row", "pod_set")]
    same = [
        name
        for name, dtype in frame.schema.items()
        if name != "job_id" and not differs(name) and not dtype.is_nested()
    ]
    for name in same:
        other = pl.col(name).ne_missing(pl.col(name).first().over("job_id"))
        rules.append(Rule(name, other, "differs from the first row of the job"))
    begins = pl.col(ROW) == pl.col(ROW).min().over("job_id")
    for resource in resources_of(frame.columns):
        name = f"{REQUEST}{resource}"
        total = (pl.col(name).fill_null(0).cast(pl.Int128) * pl.col("pods")).sum().over("job_id")
        large = begins & (total > INT64_MAX)
        rules.append(Rule(name, large, "and the job's other rows add up to more than 64 bits can count"))
    many = begins & (pl.col("pods").cast(pl.Int64).sum().over("job_id") > _INT32_MAX)
    rules.append(Rule("pods", many, f"and the job's other rows add up to more than {_INT32_MAX:,}"))
    rows = rows.with_columns(first)
    return breaches(rows, rules, rows[ROW])


def _unknown_queues(frame: pl.DataFrame, cluster: Cluster, by_queues: bool) -> list[Fault]:
    return [
        Fault(
            f"row {row + 1:,} (job {shown(job)}), queue",
            f"{_no_queue(namespace, queue, cluster)} ({counted(count, 'row')})",
        )
        for namespace, queue, row, job, count in _strange_queues(frame, cluster, by_queues)
    ]


def _no_queue(namespace: str, queue: str, cluster: Cluster) -> str:
    local = cluster.local_queues.get((namespace, queue))
    if local is not None:
        return (
            f"{shown(queue)} is a LocalQueue of namespace {namespace!r} whose ClusterQueue "
            f"{shown(local.cluster_queue)} does not exist"
        )
    others = [local.namespace for local in cluster.local_queues.values() if local.name == queue]
    where = f"; namespaces {', '.join(others)} have a LocalQueue of that name" if others else ""
    return f"{shown(queue)} is neither a LocalQueue of namespace {namespace!r} nor a ClusterQueue{where}"


def _strange_queues(
    frame: pl.DataFrame, cluster: Cluster, by_queues: bool
) -> Iterator[tuple[str, str, int, str, int]]:
    """Yields the namespaces and queues that the cluster lacks, with their first row, its job, and a count."""
    if not cluster.cluster_queues or "queue" not in frame.columns:
        return
    stated = [filled(frame, "namespace", DEFAULT_NAMESPACE)] if "namespace" in frame.columns else []
    named = _first_rows(frame, *stated, pl.col("queue"))
    for *home, queue, row, job, count in named.iter_rows():
        namespace = home[0] if home else DEFAULT_NAMESPACE
        if not queue or cluster.cluster_queue_of(namespace, queue) is not None:
            continue
        if by_queues or queue not in cluster.elastic_quotas:
            yield namespace, queue, row, job, count


def _unknown_classes(frame: pl.DataFrame, cluster: Cluster) -> list[Fault]:
    if "priority_class" not in frame.columns:
        return []
    named = _first_rows(frame, pl.col("priority_class"))
    return [
        Fault(
            f"row {row + 1:,} (job {shown(job)}), priority_class",
            f"{shown(name)} is not a priority class of the cluster ({counted(count, 'row')})",
        )
        for name, row, job, count in named.iter_rows()
        if name and cluster.priority_of(name) is None
    ]


def _first_rows(frame: pl.DataFrame, *keys: pl.Expr) -> pl.DataFrame:
    """Returns each distinct key, its first row, the job of that row, and the number of rows."""
    job = pl.col("job_id") if "job_id" in frame.columns else pl.lit("")
    return (
        frame.select(*keys, job.alias("job"))
        .with_row_index(ROW)
        .group_by([key.meta.output_name() for key in keys], maintain_order=True)
        .agg(pl.col(ROW).first(), pl.col("job").first(), pl.len().alias("count"))
    )


def _too_large(frame: pl.DataFrame, cluster: Cluster) -> list[Fault]:
    jobs = _least(frame)
    return breaches(jobs, _size_rules(jobs, cluster), jobs[ROW])


def _least(frame: pl.DataFrame) -> pl.DataFrame:
    if "min_pods" in frame.columns:
        least = pl.col("min_pods").fill_null(pods_of(frame))
        frame = frame.with_columns(least.alias("pods"))
    return job_rows(frame)


def _size_rules(jobs: pl.DataFrame, cluster: Cluster) -> list[Rule]:
    rules: list[Rule] = []
    for resource in resources_of(jobs.columns):
        capacity = _capacity(cluster, resource)
        if capacity is not None:
            name = f"{REQUEST}{resource}"
            unit = UNITS.get(resource, "")
            says = f"{unit} for the whole job is more than the cluster's {capacity} {unit}".strip()
            rules.append(Rule(name, pl.col(name) > capacity, says))
    pods = cluster.capacity.get("pods")
    if pods is not None:
        rules.append(
            Rule("pods", pl.col("pods") > pods, f"are more than the {pods} pods that the cluster accepts")
        )
    return rules


def _capacity(cluster: Cluster, resource: str) -> int | None:
    """Returns the cluster's capacity of a resource, or None if it is unlimited."""
    amount: Any = cluster.capacity.get(resource)
    if amount is not None or cluster.nodes:
        return amount or 0
    return None if any(resource in group.covered_resources for group in cluster.resource_groups) else 0

"""Finds the LocalQueue of a job if the trace doesn't contain its name or its namespace.

harness resolves only two unambiguous cases. All other cases need `--tenants map:FILE`.

- If the trace contains no namespaces and only one LocalQueue has the name of the queue, it is this
  LocalQueue.
- If the queue has the name of a namespace with only one LocalQueue, it is this LocalQueue. For example, the
  reader of Kubernetes Jobs writes the namespace as the queue of a Job without Kueue's label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from harness.base.errors import Fault
from harness.base.text import first_of
from harness.cluster.model import Cluster, LocalQueue
from harness.trace.schema import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from harness.trace.trace import Trace

_KEYS = ["namespace", "queue"]
_TOLD = 3


def homed(trace: Trace, cluster: Cluster) -> Trace:
    """Returns the trace with the namespaces and names of the LocalQueues that its queues stand for.

    See `home_of`. A note lists these LocalQueues.
    """
    found = _found(trace.frame, cluster)
    if not found:
        return trace
    named = [f"{queue} by {local.namespace}/{local.name}" for (_, queue), local in found.items()]
    told = f"queues are replaced by the only LocalQueues that they can mean: {first_of(named, _TOLD)}"
    return replace(trace, frame=_with(trace.frame, found), notes=(*trace.notes, told))


def map_hint(faults: Iterable[Fault]) -> str | None:
    """Returns a hint for faults about queues that have no quota, or None if there is no such fault."""
    if any(fault.where.endswith("queue") for fault in faults):
        return "--tenants map:FILE says which namespace and LocalQueue a queue of the trace represents"
    return None


def homed_rows(frame: pl.DataFrame, cluster: Cluster) -> pl.DataFrame:
    """Returns rows with the namespaces and names of the LocalQueues that their queues stand for.

    The rows may have other faults, because the function doesn't check them.
    """
    return _with(frame, _found(frame, cluster)) if "queue" in frame.columns else frame


def home_of(cluster: Cluster, namespace: str | None, queue: str) -> LocalQueue | None:
    """Returns the only LocalQueue that a queue of a trace can stand for, or None.

    The result is also None if the queue has a quota, so that it needs no LocalQueue.

    `namespace` is None if the trace does not contain the job's namespace.
    """
    stated = DEFAULT_NAMESPACE if namespace is None else namespace
    known = cluster.local_queues.get((stated, queue)) is not None
    if known or queue in cluster.cluster_queues or queue in cluster.elastic_quotas:
        return None
    doors = [
        local for local in cluster.local_queues.values() if local.cluster_queue in cluster.cluster_queues
    ]
    named = [local for local in doors if local.name == queue] if namespace is None else []
    if not named and namespace in (None, queue):
        named = [local for local in doors if local.namespace == queue]
    return named[0] if len(named) == 1 else None


def _found(frame: pl.DataFrame, cluster: Cluster) -> dict[tuple[str | None, str], LocalQueue]:
    if not cluster.local_queues:
        return {}
    # Categories are compared faster than texts.
    own = [name for name in _KEYS if name in frame.columns]
    distinct = frame.select(own).unique(maintain_order=True)
    homes = {
        (namespace, queue): home_of(cluster, namespace, queue)
        for namespace, queue in distinct.select(_keys(distinct)).iter_rows()
        if queue
    }
    return {key: local for key, local in homes.items() if local is not None}


def _keys(frame: pl.DataFrame) -> list[pl.Expr]:
    namespace = pl.col("namespace") if "namespace" in frame.columns else pl.lit(None)
    return [namespace.cast(pl.String).alias("namespace"), pl.col("queue").cast(pl.String)]


def _with(frame: pl.DataFrame, found: Mapping[tuple[str | None, str], LocalQueue]) -> pl.DataFrame:
    if not found:
        return frame
    table = pl.DataFrame(
        [(*key, local.namespace, local.name) for key, local in found.items()],
        schema=dict.fromkeys((*_KEYS, "new.namespace", "new.queue"), pl.String),
        orient="row",
    )
    keys = frame.select(_keys(frame))
    new = keys.join(table, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
    return frame.with_columns(
        new.select(pl.coalesce(f"new.{name}", name).alias(name) for name in _KEYS).get_columns()
    )

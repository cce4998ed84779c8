"""Makes a run what an older version of harness would have kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.runs.seal import seal_info, seal_tables


def as_schema_2(folder: Path) -> None:
    """Without what jobs ask for, who holds what quota, the content of the cluster, and sums."""
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        newer = [name for name in table.column_names if _is_newer(path.stem, name)]
        table = table.drop_columns(newer) if newer else table
        if path.stem == "metrics":
            newer_metrics = [
                str(name).endswith(".hours") or name == "quota.over" for name in table["metric"].to_pylist()
            ]
            table = _with_older_scopes(table.filter([not newer for newer in newer_metrics]))
        metadata = {**(table.schema.metadata or {}), b"harness.run_schema": b"2"}
        pq.write_table(table.replace_schema_metadata(metadata), path)
    info = json.loads((folder / "run.json").read_text())
    info["schema"] = "2"
    del info["cluster"]["content"], info["cluster"]["cohorts"], info["tables"], info["provenance"]["sha256"]
    (folder / "run.json").write_text(json.dumps(info))


_NEWER = {
    *(("decisions", column) for column in ("pod_number", "successor", "holding", "by_job")),
    ("timeline", "held"),
    ("stints", "pod_number"),
    ("metrics", "at_least"),
}


def as_before_scopes_of_quotas(folder: Path) -> None:
    """Where queue meant quota in fairness, quota and disruption; of queues that are called as quotas are."""
    path = folder / "metrics.parquet"
    table = _with_older_scopes(pq.read_table(path))
    pq.write_table(table, path)
    _sealed_again(folder)


def as_before_goodput(folder: Path) -> None:
    """Where more allocated was better."""
    path = folder / "metrics.parquet"
    table = pq.read_table(path)
    rows = zip(table["metric"].to_pylist(), table["better"].to_pylist(), strict=True)
    older = ["higher" if str(name).startswith("utilization.allocated") else each for name, each in rows]
    place = table.column_names.index("better")
    field = table.schema.field("better")
    pq.write_table(table.set_column(place, field, pa.array(older).cast(field.type)), path)
    _sealed_again(folder)


def _sealed_again(folder: Path) -> None:
    """With the sum of other metrics."""
    info = json.loads((folder / "run.json").read_text())
    info["tables"] |= seal_tables(folder, ["metrics"])
    del info["provenance"]["sha256"]
    (folder / "run.json").write_text(json.dumps(seal_info(info)))


def _with_older_scopes(metrics: pa.Table) -> pa.Table:
    rows = list(zip(metrics["metric"].to_pylist(), metrics["scope"].to_pylist(), strict=True))
    disruption = [str(name).startswith("disruption.") for name, _ in rows]
    kept = [
        not (of and str(scope).startswith("queue=")) for of, (_, scope) in zip(disruption, rows, strict=True)
    ]
    older = [re.sub("^quota=", "queue=", str(scope)) for _, scope in rows]
    place = metrics.column_names.index("scope")
    field = metrics.schema.field("scope")
    return metrics.set_column(place, field, pa.array(older).cast(field.type)).filter(kept)


def _is_newer(table: str, column: str) -> bool:
    of_jobs = table == "jobs" and column.startswith("request.")
    return of_jobs or (table, column) in _NEWER

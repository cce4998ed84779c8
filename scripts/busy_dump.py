"""Writes the dump of a busy cluster. docs/forecast.md uses it to measure the cost of a forecast.

    python scripts/busy_dump.py dump.json [--running 1000] [--waiting 1000]

The cluster is that of traces/philly.parquet without nodes and with twice the quotas (1,280 GPUs), 60 days
after the first job. `--running` Workloads with one GPU run for up to two days, most of them for a short time.
They are divided among the ClusterQueues in proportion to their quotas. The first jobs of Philly after that
day are waiting, with up to 8 GPUs each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from harness.trace.generate.uniform import uniform

TRACES = Path(__file__).parents[1] / "traces"
GPU = "nvidia.com/gpu"


def manifests(running: int, waiting: int) -> Iterator[dict[str, Any]]:
    """Yields the cluster and its Workloads."""
    quotas: dict[str, int] = {}
    for each in yaml.safe_load_all((TRACES / "philly.cluster.yaml").read_text(encoding="utf-8")):
        if each["kind"] == "NodePool":
            continue
        if each["kind"] == "ClusterQueue":
            (resource,) = each["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
            quota = quotas[each["metadata"]["name"]] = 2 * int(resource["nominalQuota"])
            resource["nominalQuota"] = str(quota)
        yield each
    jobs = pl.read_parquet(TRACES / "philly.parquet")
    first: Any = jobs["submit_time"].min()
    now: datetime = first + timedelta(days=60)
    number = below = 0
    for queue, quota in quotas.items():
        below += quota
        while number < round(running * below / sum(quotas.values())):
            number += 1
            since = now - timedelta(hours=48) * uniform("elapsed", number) ** 2
            yield workload(f"runs-{number}", queue, 1, since, since)
    later = jobs.filter((pl.col("submit_time") > now) & (pl.col("pods") == 1)).head(waiting)
    for number, (queue, gpus) in enumerate(later.select("queue", f"request.{GPU}").iter_rows(), 1):
        yield workload(f"waits-{number}", queue, gpus, now - timedelta(seconds=waiting - number))


def workload(
    name: str, queue: str, gpus: int, created: datetime, admitted: datetime | None = None, flavor: str = "gpu"
) -> dict[str, Any]:
    """Returns a Workload. It is running if it was admitted."""
    requests = {"resources": {"requests": {GPU: str(gpus)}}}
    template = {"spec": {"containers": [{"name": "main", **requests}]}}
    found: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": stamp(created)},
        "spec": {
            "queueName": queue,
            "priority": 0,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
    }
    if admitted is not None:
        usage = {"name": "main", "count": 1, "flavors": {GPU: flavor}, "resourceUsage": {GPU: str(gpus)}}
        found["status"] = {
            "admission": {"clusterQueue": queue, "podSetAssignments": [usage]},
            "conditions": [
                {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": stamp(admitted)}
                for kind in ("QuotaReserved", "Admitted")
            ],
        }
    return found


def stamp(time: datetime) -> str:
    """Returns a time in Kubernetes' format."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--running", type=int, default=1000)
    parser.add_argument("--waiting", type=int, default=1000)
    asked = parser.parse_args()
    items = list(manifests(asked.running, asked.waiting))
    asked.output.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}) + "\n")

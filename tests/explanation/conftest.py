"""A slice of Philly on a cluster too small for it, replayed by every built-in policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import polars as pl
import pytest
import yaml

import harness
from harness.runs.run import Run

TRACES = Path(__file__).parents[2] / "traces"
JOBS, NODES = 600, 5
GPU = "nvidia.com/gpu"
ON_NODES = ("none", "default-preemption", "elasticquota", "auto")
BY_ADMISSION = ("kueue-classic", "fairsharing")


@pytest.fixture(scope="package")
def philly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trace of a busy morning and two small clusters: with nodes, and with quotas alone."""
    folder = tmp_path_factory.mktemp("philly")
    busy = pl.col("submit_time") >= pl.datetime(2017, 10, 5, 8)
    jobs = pl.read_parquet(TRACES / "philly.parquet").filter(busy).head(JOBS)
    jobs.with_columns(
        priority=(pl.int_range(pl.len()) * 7919 % 5 // 3 * 10).cast(pl.Int32),
        duration=pl.min_horizontal("duration", pl.duration(hours=5)),
    ).write_parquet(folder / "philly.parquet")
    documents, leaves = [], []
    for document in yaml.safe_load_all((TRACES / "philly.cluster.yaml").read_text()):
        if document["kind"] == "NodePool":
            document["spec"]["count"] = NODES
        if document["kind"] == "ClusterQueue":
            quota = document["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
            quota["nominalQuota"] = int(quota["nominalQuota"]) * NODES // 80
            most = {GPU: 8 * NODES, "cpu": 0, "memory": 0}
            leaf = {"name": document["metadata"]["name"], "min": {GPU: quota["nominalQuota"]}, "max": most}
            leaves.append(leaf)
        documents.append(document)
    root = {"name": "root", "min": {GPU: 8 * NODES}, "max": most, "children": leaves}
    tree = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
    tree |= {"metadata": {"name": "tree", "namespace": "kube-system"}, "spec": {"root": root}}
    for name, chosen in (
        ("nodes", [*documents, tree]),
        ("quotas", [each for each in documents if each["kind"] != "NodePool"]),
    ):
        text = "\n---\n".join(
            json.dumps(each) for each in chosen
        )  # as JSON, since YAML reads 6214e9 as a number
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture(scope="package")
def run_of(philly: Path) -> Callable[[str], Run]:
    """The run of a policy; Kueue's admit without nodes and hear at once of what is gone."""

    @cache
    def run(plugin: str) -> Run:
        kueue = plugin in BY_ADMISSION
        return harness.replay(
            philly / "philly.parquet",
            plugin=plugin,
            cluster=philly / ("quotas.yaml" if kueue else "nodes.yaml"),
            options={"evictionLatency": "0s"} if kueue else {},
            output=philly / "results",
        )

    return run

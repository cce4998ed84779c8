"""Shared GPUs in replays: what the record says, and who says where pods are placed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import harness
from harness.base.errors import HarnessError
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.runs.run import Run

PLUGINS = load(block=["metrics"])
POOL: dict[str, Any] = {
    "apiVersion": "harness/v1",
    "kind": "NodePool",
    "metadata": {"name": "n"},
    "spec": {"count": 1, "template": {"allocatable": {"cpu": 9}, "devices": {"nvidia.com/gpu": 2}}},
}
KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE: list[dict[str, Any]] = [
    {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}},
    {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu-milli"],
                    "flavors": [
                        {"name": "f", "resources": [{"name": "nvidia.com/gpu-milli", "nominalQuota": 2000}]}
                    ],
                }
            ],
        },
    },
]


def configuration(**args: Any) -> dict[str, Any]:
    """What says where pods are placed."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DeviceShare", "args": args}]}],
    }


def replayed(
    folder: Path, cluster: Cluster, plugin: str, shares: list[int], options: Mapping[str, Any] = {}
) -> Run:
    """Pods that ask for shares, one second after the other."""
    count = len(shares)
    frame = pl.DataFrame(
        {
            "job_id": [f"p{number}" for number in range(count)],
            "submit_time": [timedelta(seconds=number) for number in range(count)],
            "duration": [timedelta(hours=1)] * count,
            "queue": ["q"] * count,
            "request.nvidia.com/gpu-milli": shares,
        },
        schema_overrides={"submit_time": pl.Duration("us"), "duration": pl.Duration("us")},
    )
    path = folder / "trace.parquet"
    frame.write_parquet(path)
    return harness.replay(
        path, plugin=plugin, cluster=cluster, options=options, output=folder / "results", plugins=PLUGINS,
        until="30m",
    )  # fmt: skip


def said(run: Run, action: str) -> list[dict[str, Any]]:
    """The details of decisions."""
    rows = run.micros("decisions").collect().to_dicts()
    return [json.loads(row["detail"] or "{}") for row in rows if row["action"] == action]


def test_the_record_says_which_devices_a_pod_has_and_why_another_waits(tmp_path: Path) -> None:
    """Two devices have 0.4 and 0.5 left, and 0.6 fits neither."""
    run = replayed(tmp_path, cluster_from([POOL], "test"), "default-preemption", [600, 500, 600])
    assert said(run, "bind") == [{"devices": [0]}, {"devices": [1]}]
    (why,) = said(run, "refuse")
    assert why["nodes"] == {"Insufficient share of one GPU": {"count": 1}}
    assert why["most_free"] == {"share of one GPU": 500}


@pytest.mark.parametrize(
    ("plugin", "more"), [("none", []), ("default-preemption", []), ("kueue-classic", QUEUE), ("backfill", [])]
)
def test_a_configuration_says_it_for_every_plugin_that_binds_pods(
    plugin: str, more: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Two shares of 0.3 are on one device, or on two."""
    for placement, devices in (("binpack", [[0], [0]]), ("spread", [[0], [1]])):
        cluster = cluster_from([POOL, *more, configuration(placement=placement)], "test")
        folder = tmp_path / placement
        folder.mkdir()
        run = replayed(folder, cluster, plugin, [300, 300])
        assert [each["devices"] for each in said(run, "bind")] == devices


def test_an_option_comes_before_the_configuration(tmp_path: Path) -> None:
    """And what it does not say stays as it is there."""
    cluster = cluster_from([POOL, configuration(placement="binpack", seed=1)], "test")
    run = replayed(tmp_path, cluster, "none", [300, 300], {"devices": "spread"})
    assert [each["devices"] for each in said(run, "bind")] == [[0], [1]]


def test_a_policy_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """With the field, or the option."""
    with pytest.raises(HarnessError, match="placement"):
        cluster_from([configuration(placement="worst")], "test")
    with pytest.raises(HarnessError, match="devices"):
        replayed(tmp_path, cluster_from([POOL], "test"), "none", [300], {"devices": "worst"})

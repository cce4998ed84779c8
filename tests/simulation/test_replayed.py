"""What is asked about an instant of a replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness.cluster.load import cluster_from

FLAVOR = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "f"}}
QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "q"},
    "spec": {
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 4}]}],
            }
        ],
    },
}
WAITS = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "waitForPodsReady": {"timeout": "10s", "requeuingStrategy": {"backoffBaseSeconds": 100}},
}


@pytest.mark.parametrize(("at", "waits_for"), [("30s", "checks"), ("109s", "checks"), ("112s", "quota")])
def test_a_job_in_a_backoff_that_began_in_the_replay_waits_for_its_end(
    at: str, waits_for: str, write_trace: Callable[..., Path]
) -> None:
    """As one whose backoff is in a dump does: no scheduler tries it before, and the answer says when."""
    trace = write_trace(
        {"job_id": "stuck", "queue": "q", "request.cpu": 4000, "duration": 100, "startup": None},
        {
            "job_id": "other",
            "queue": "q",
            "request.cpu": 1000,
            "duration": 900,
            "submit_time": 5,
            "startup": 0,
        },
    )
    cluster = cluster_from([FLAVOR, QUEUE, WAITS], "test")
    asked = harness.simulate(cluster, trace=trace, at=at, plugin="kueue-classic")
    (found,) = (each for each in asked.answers if each.name == "stuck")
    assert (found.verdict, found.waits_for) == ("waits", waits_for)
    said = "it is in a backoff after its eviction (PodsReadyTimeout), and Kueue queues it again at 1m50s"
    assert (found.why == said) == (waits_for == "checks")

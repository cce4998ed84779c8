"""Which quota jobs are measured against: that which the plugin counts them against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_clusters import local_queue, queues, quota_tree

import harness

Replayed = Callable[..., harness.Run]
TREE = quota_tree({"a": {"cpu": "2"}, "b": {"cpu": "2"}}, {"cpu": "4", "memory": "8Gi"})
ALIKE = queues({"a": {"cpu": "4"}, "b": {"cpu": "0"}}, weights={"a": "3"}, nodes=1)
JOBS = [{"queue": "a", "request.cpu": 1000, "duration": 50} for _ in range(4)]
JOBS += [{"queue": "b", "request.cpu": 1000, "duration": 50, "submit_time": 5} for _ in range(4)]
"""Of 4 cores a holds all; from 5 s on b asks for all: 2 are its own by the tree, none by ClusterQueues."""


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Replayed:
    """Replays jobs on a cluster."""

    def replay(*rows: Mapping[str, Any], cluster: str, plugin: str, **choices: Any) -> harness.Run:
        path = tmp_path / "cluster.yaml"
        path.write_text(cluster)
        return harness.replay(
            write_trace(*rows), plugin=plugin, cluster=path, output=tmp_path / "results", **choices
        )

    return replay


def preempting(algorithm: str) -> str:
    """A KubeSchedulerConfiguration with this `preemptionAlgorithm`, to be added to manifests."""
    version = "kubescheduler.config.k8s.io/v1"
    kind = {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "preemptionAlgorithm": algorithm}
    return f"---\n{yaml.safe_dump(kind)}"


@pytest.mark.parametrize("plugin", ["elasticquota", "auto"])
def test_what_goes_by_elastic_quotas_is_measured_as_without_cluster_queues(
    replayed: Replayed, plugin: str
) -> None:
    """Where both kinds share names: against `min`, and without the weights of the queues."""
    both = replayed(*JOBS, cluster=ALIKE + TREE, plugin=plugin)
    bare = replayed(*JOBS, cluster=queues({}, nodes=1) + TREE, plugin=plugin)
    assert [quota["nominal"] for quota in both.info["cluster"]["queues"].values()] == [{"cpu": 2000}] * 2
    assert both.metrics.equals(bare.metrics)
    owed = both.metrics.filter(metric="fairness.guarantee_deficit", scope="quota=b")["value"]
    assert owed.to_list() == [2 * 31 / 3600]


@pytest.mark.parametrize(
    ("plugin", "configuration"),
    [
        ("kueue-classic", ""),
        ("fairsharing", ""),
        ("none", ""),
        ("default-preemption", ""),
        ("auto", preempting("Default")),
        ("auto", preempting("None")),
    ],
)
def test_what_does_not_is_measured_against_cluster_queues(
    replayed: Replayed, plugin: str, configuration: str
) -> None:
    """Whatever elastic quotas of the same names say; `auto` where its configuration chooses another one."""
    both = replayed(*JOBS, cluster=ALIKE + TREE + configuration, plugin=plugin)
    bare = replayed(*JOBS, cluster=ALIKE + configuration, plugin=plugin)
    found = both.info["cluster"]["queues"]
    assert (found["a"]["nominal"], found["b"]["nominal"]) == ({"cpu": 4000}, {"cpu": 0})
    assert both.metrics.equals(bare.metrics)


@pytest.mark.parametrize(
    ("plugin", "quotas"),
    [
        ("elasticquota", {"day": "a", "night": "spare"}),
        ("auto", {"day": "a", "night": "spare"}),
        ("kueue-classic", {"day": "whole", "night": "spare"}),
        ("default-preemption", {"day": "whole", "night": "spare"}),
    ],
)
def test_quotas_of_both_kinds_may_have_other_names(
    replayed: Replayed, plugin: str, quotas: Mapping[str, str]
) -> None:
    """The job's namespace has one, its queue the other, which counts also where no elastic quota does."""
    tree = TREE.replace("name: a\n", "name: a\n      namespaces: [days]\n")
    doors = local_queue("days", "day", "whole") + local_queue("nights", "night", "spare")
    cluster = queues({"whole": {"cpu": "3"}, "spare": {"cpu": "1"}}, nodes=1) + doors + tree
    jobs = [{"queue": name, "namespace": f"{name}s", "request.cpu": 1000} for name in ("day", "night")]
    assert replayed(*jobs, cluster=cluster, plugin=plugin).info["cluster"]["quota_of"] == quotas

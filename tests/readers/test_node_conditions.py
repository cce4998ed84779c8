"""Events of nodes that kube-state-metrics exports: conditions without taints, and resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.base.units import SECOND
from harness.cluster.changes.over_time import unrolled
from harness.cluster.load import cluster_from
from harness.readers.events.ksm_nodes import changes, samples, take
from harness.readers.events.watched import Watched

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": 4, "pods": 110}},
}
BEGIN = 1_700_000_000


def rows(not_ready: Sequence[int], unknown: Sequence[int]) -> list[dict[str, Any]]:
    """The table of a node whose condition Ready is sampled once a minute."""

    def series(values: Sequence[int], **labels: str) -> dict[str, Any]:
        pairs = [[BEGIN + 60 * number, str(value)] for number, value in enumerate(values)]
        return {"metric": {"node": "n", **labels}, "values": pairs}

    nodes = samples()
    nodes.add([series([4] * 5, __name__="kube_node_status_allocatable", resource="cpu")])
    condition = {"__name__": "kube_node_status_condition", "condition": "Ready"}
    nodes.add(
        [series(not_ready, **condition, status="false"), series(unknown, **condition, status="unknown")]
    )
    watched = Watched()
    for at, _, node in sorted(changes(nodes)):
        take(watched, nodes, node, at)
    return list(watched.rows())


@pytest.mark.parametrize(
    ("not_ready", "unknown", "keys"),
    [
        ([0, 1, 0, 0, 0], [0, 0, 0, 0, 0], ["not-ready"]),
        ([0, 0, 0, 0, 0], [0, 0, 1, 1, 0], ["unreachable"]),
        ([0, 1, 0, 0, 0], [0, 0, 1, 0, 0], ["not-ready", "unreachable"]),
    ],
)
def test_a_node_that_is_not_ready_gets_both_taints_of_the_controller(
    not_ready: list[int], unknown: list[int], keys: list[str]
) -> None:
    """One row for each effect of a key; a cluster takes them as two taints, and loses both."""
    found = rows(not_ready, unknown)
    effects = ("NoExecute", "NoSchedule")
    assert [row["value"] for row in found] == [
        f"node.kubernetes.io/{key}:{effect}" for key in keys for effect in effects
    ]
    made = unrolled(cluster_from([NODE], "test").patched(found), BEGIN * SECOND)
    taints = [len(edit.after.taints) for instant in made.changes for edit in instant.edits]
    assert max(taints) == 2
    assert taints[-1] == 0


def test_nodes_and_pods_have_the_same_resources() -> None:
    """A slice of a GPU, a huge page and a shared GPU have the names that pods request, too."""
    exported = ["nvidia_com_mig_1g_5gb", "hugepages_2Mi", "nvidia_com_gpu_shared"]
    nodes = samples()
    metric = {"__name__": "kube_node_status_allocatable", "node": "n"}
    nodes.add([{"metric": {**metric, "resource": each}, "values": [[BEGIN, "4"]]} for each in exported])
    names = {key.what for key in nodes.of["n"]}
    assert names == {"nvidia.com/mig-1g.5gb", "hugepages-2Mi", "nvidia.com/gpu.shared"}

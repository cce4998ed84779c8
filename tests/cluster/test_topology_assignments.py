"""In which domains the pods of a Workload are: both versions of a `topologyAssignment`."""

from __future__ import annotations

from typing import Any

import pytest

from harness.base.errors import ClusterError
from harness.cluster.kinds.topology import DomainPods
from harness.cluster.load import cluster_from

Manifest = dict[str, Any]


def read(assignment: Manifest) -> list[tuple[tuple[str, ...], int]]:
    """The domains of a Workload with this assignment."""
    given = {"name": "main", "count": 3, "flavors": {"cpu": "f"}, "topologyAssignment": assignment}
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podSets": [{"name": "main", "count": 3}]},
        "status": {"admission": {"clusterQueue": "q", "podSetAssignments": [given]}},
    }
    (found,) = cluster_from([workload], "test").workloads
    assert found.admission is not None
    topology = found.admission.assignments[0].topology
    assert topology is not None
    assert topology.levels == tuple(assignment["levels"])
    return list(topology.domains)


def test_domains_are_listed_in_the_older_version() -> None:
    """Each with its values and its pods."""
    domains = [{"values": ["b0", "r1"], "count": 2}, {"values": ["b1", "r0"], "count": 1}]
    found = read({"levels": ["block", "rack"], "domains": domains})
    assert found == [DomainPods(("b0", "r1"), 2), DomainPods(("b1", "r0"), 1)]


def test_slices_of_the_newer_one_say_once_what_is_the_same() -> None:
    """Values with a prefix and a suffix, and numbers of pods one by one or for all."""
    first = {
        "domainCount": 2,
        "valuesPerLevel": [
            {"universal": "b0"},
            {"individual": {"prefix": "r", "suffix": ".x", "roots": ["1", "22"]}},
        ],
        "podCounts": {"individual": [3, 4]},
    }
    second = {
        "domainCount": 1,
        "valuesPerLevel": [{"universal": "b1"}, {"individual": {"roots": ["r7"]}}],
        "podCounts": {"universal": 5},
    }
    assert read({"levels": ["block", "rack"], "slices": [first, second]}) == [
        (("b0", "r1.x"), 3),
        (("b0", "r22.x"), 4),
        (("b1", "r7"), 5),
    ]


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ({"levels": ["rack"], "domains": [{"values": ["a", "b"], "count": 1}]}, "levels: must have one"),
        (
            {"levels": ["rack"], "domains": [{"values": [1], "count": 1}]},
            "values: must be a list of text values",
        ),
        (
            {"levels": ["rack"], "slices": [{"domainCount": 2, "podCounts": {"individual": [1]}}]},
            r"podCounts.individual: must have one entry for each of the 2 domains",
        ),
        (
            {
                "levels": ["rack"],
                "slices": [
                    {
                        "domainCount": 1,
                        "podCounts": {"universal": 1},
                        "valuesPerLevel": [{"individual": {"roots": [1]}}],
                    }
                ],
            },
            r"individual.roots: must have one entry for each of the 1 domains",
        ),
        (
            {"levels": ["rack"], "slices": [{"domainCount": 1, "podCounts": {}, "valuesPerLevel": [{}]}]},
            "universal: is missing",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(assignment: Manifest, says: str) -> None:
    """Nothing is guessed of an assignment that contradicts itself."""
    with pytest.raises(ClusterError, match=says):
        read(assignment)

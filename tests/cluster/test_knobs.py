"""Rules of knobs: what there is to turn, how it is named, and what a cluster is after it was turned."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError, HarnessError, InputError
from harness.cluster.changes.knobs import KNOBS
from harness.cluster.changes.scale import scaled_cluster
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster

TEXT = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: gpu}
spec: {count: 4, template: {allocatable: {cpu: 16}}}
---
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: other}, spec: {weight: 3}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a100}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team.a}
spec:
  cohortName: all
  fairSharing: {weight: 500m}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: a100, resources: [{name: cpu, nominalQuota: 1500m, borrowingLimit: 4}]}]
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - {name: spot, resources: [{name: nvidia.com/gpu, nominalQuota: 2}]}
    - {name: on-demand, resources: [{name: nvidia.com/gpu, nominalQuota: 24, lendingLimit: 8}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-b}
spec:
  cohortName: all
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: a100, resources: [{name: nvidia.com/gpu, nominalQuota: 5}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: all}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: one}
spec: {clusterQueue: team-b}
"""
TREE = """
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: tree, namespace: kube-system}
spec:
  root:
    name: root
    min: {cpu: 16, nvidia.com/gpu: 8}
    max: {cpu: 16, nvidia.com/gpu: 8}
    children: [{name: a, min: {cpu: 8}, max: {cpu: 16, nvidia.com/gpu: 8}, namespaces: [one]}]
"""
FLAT = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: quota, namespace: two}
spec: {min: {cpu: 4, memory: 1Gi}, max: {cpu: 8, memory: 2Gi}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: koordinated
  namespace: kube-system
  labels: {quota.scheduling.koordinator.sh/is-parent: "false"}
spec: {max: {cpu: 8, memory: 2Gi}}
"""


def cluster(text: str) -> Cluster:
    """A cluster of manifests in YAML."""
    return cluster_from(list(yaml.safe_load_all(text)), "base.yaml")


KUEUE, OF_TREE, OF_FLAT = cluster(TEXT), cluster(TREE), cluster(FLAT)


def test_all_knobs_are_listed_with_their_exact_values() -> None:
    """In the unit of manifests, with the flavor where there are several, None where nothing is said."""
    gpu = "ClusterQueue/team.a"
    assert KUEUE.knobs() == {
        "NodePool/gpu.count": 4,
        f"{gpu}.quota[cpu]": Fraction(3, 2),
        f"{gpu}.quota[spot/nvidia.com/gpu]": 2,
        f"{gpu}.quota[on-demand/nvidia.com/gpu]": 24,
        f"{gpu}.borrowingLimit[cpu]": 4,
        f"{gpu}.borrowingLimit[spot/nvidia.com/gpu]": None,
        f"{gpu}.borrowingLimit[on-demand/nvidia.com/gpu]": None,
        f"{gpu}.lendingLimit[cpu]": None,
        f"{gpu}.lendingLimit[spot/nvidia.com/gpu]": None,
        f"{gpu}.lendingLimit[on-demand/nvidia.com/gpu]": 8,
        f"{gpu}.weight": Fraction(1, 2),
        "ClusterQueue/team-b.quota[nvidia.com/gpu]": 5,
        "ClusterQueue/team-b.borrowingLimit[nvidia.com/gpu]": None,
        "ClusterQueue/team-b.lendingLimit[nvidia.com/gpu]": None,
        "ClusterQueue/team-b.weight": None,
        "Cohort/all.weight": None,
        "LocalQueue/one/main.weight": None,
    }


def test_elastic_quotas_are_called_alike_in_a_tree_and_without() -> None:
    """By the name that the model has for them: of a flat quota its namespace, of Koordinator's its own."""
    assert OF_TREE.knobs() == {
        "ElasticQuota/root.min[cpu]": 16,
        "ElasticQuota/root.min[nvidia.com/gpu]": 8,
        "ElasticQuota/root.max[cpu]": 16,
        "ElasticQuota/root.max[nvidia.com/gpu]": 8,
        "ElasticQuota/a.min[cpu]": 8,
        "ElasticQuota/a.min[nvidia.com/gpu]": None,
        "ElasticQuota/a.max[cpu]": 16,
        "ElasticQuota/a.max[nvidia.com/gpu]": 8,
    }
    assert OF_FLAT.knobs("*.min[*]") == {
        "ElasticQuota/two.min[cpu]": 4,
        "ElasticQuota/two.min[memory]": 2**30,
        "ElasticQuota/koordinated.min[cpu]": None,
        "ElasticQuota/koordinated.min[memory]": None,
    }
    assert list(OF_FLAT.elastic_quotas) == ["two", "koordinated"]
    assert not any(path.startswith("ElasticQuota/two") for path in cluster(f"{TREE}---{FLAT}").knobs())


def test_values_by_object_and_by_path_are_one() -> None:
    """A table of knobs for an object, a path for one knob; the flavor where there are several."""
    by_object = KUEUE.with_values(
        {
            "ClusterQueue/team.a": {"quota": {"cpu": 3, "spot": {"nvidia.com/gpu": 7}}, "weight": 2},
            "NodePool/gpu": {"count": 9},
        }
    )
    by_path = KUEUE.with_values(
        {
            "ClusterQueue/team.a.quota[a100/cpu]": "3",
            "ClusterQueue/team.a.quota[spot/nvidia.com/gpu]": 7.0,
            "ClusterQueue/team.a.weight": Fraction(2),
            "NodePool/gpu.count": "9",
        }
    )
    assert by_object.knobs() == by_path.knobs()
    queue = by_object.cluster_queues["team.a"]
    assert queue.weight == 2
    assert queue.resource_groups[0].flavors[0].resources["cpu"].nominal == 3000
    assert queue.resource_groups[1].flavors[0].resources["nvidia.com/gpu"].nominal == 7
    assert len(by_object.nodes) == 9
    assert by_object.source.startswith("base.yaml with ClusterQueue/team.a.quota[cpu] = 3, ")
    assert by_object.source.endswith(" and 1 more")
    assert KUEUE.knobs()["NodePool/gpu.count"] == 4


def test_an_asterisk_stands_for_anything() -> None:
    """All objects, all flavors; a later value counts more."""
    turned = KUEUE.with_values({"*.weight": 3, "ClusterQueue/*.weight": 2, "*.quota[*/nvidia.com/gpu]": 9})
    assert {each.weight for each in turned.cluster_queues.values()} == {2}
    assert turned.cohorts["all"].weight == turned.local_queues["one", "main"].weight == 3
    assert set(turned.knobs("*.quota[*nvidia.com/gpu]").values()) == {9}
    assert turned.knobs("ClusterQueue/team.a.quota[cpu]") == KUEUE.knobs("ClusterQueue/team.a.quota[cpu]")


def test_elastic_quotas_are_turned_in_a_tree_and_without() -> None:
    """Also what they did not name before."""
    tree = OF_TREE.with_values({"ElasticQuota/a": {"min": {"nvidia.com/gpu": 4}, "max": {"cpu": "12500m"}}})
    assert tree.elastic_quotas["a"].min == {"cpu": 8000, "nvidia.com/gpu": 4}
    assert tree.elastic_quotas["a"].max == {"cpu": 12500, "nvidia.com/gpu": 8}
    flat = OF_FLAT.with_values({"ElasticQuota/*.min[cpu]": 6, "ElasticQuota/two.max[memory]": "3Gi"})
    assert {each.min_of("cpu") for each in flat.elastic_quotas.values()} == {6000}
    assert flat.elastic_quotas["two"].max_of("memory") == 3 * 2**30


def test_none_takes_a_value_away() -> None:
    """A limit, a weight, a bound; what is needed stays."""
    turned = KUEUE.with_values(
        {"ClusterQueue/team.a": {"borrowingLimit": {"cpu": None}, "weight": None}, "Cohort/all.weight": None}
    )
    assert turned.cluster_queues["team.a"].weight == 1
    assert turned.knobs()["ClusterQueue/team.a.borrowingLimit[cpu]"] is None
    assert OF_TREE.with_values({"ElasticQuota/a.min[cpu]": None}).elastic_quotas["a"].min == {}


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        (
            {"ClusterQueue/team.b": {"weight": 2}},
            "no ClusterQueue/team.b with knobs",
            "did you mean 'ClusterQueue/team.a'?",
        ),
        (
            {"ClusterQueue/team-b": {"wieght": 2}},
            "ClusterQueue/team-b has no knob 'wieght'",
            "did you mean 'weight'?",
        ),
        ({"NodePool/gpu.weight": 2}, "NodePool/gpu has no knob 'weight'", "there is: count"),
        ({"NodePool/other.count": 2}, "no NodePool/other with knobs", "NodePool/gpu"),
        ({"team-b": 2}, "'team-b' is not the path of a knob", "KIND/NAME.KNOB"),
        (
            {"ClusterQueue/team-b.quota": 2},
            "quota needs a resource",
            "ClusterQueue/team-b.quota[nvidia.com/gpu]",
        ),
        (
            {"ClusterQueue/team-b.quota[]": 2},
            "quota needs a resource",
            "ClusterQueue/team-b.quota[nvidia.com/gpu]",
        ),
        (
            {"ClusterQueue/team-b.weight[cpu]": 2},
            "weight has one value for all resources",
            "write ClusterQueue/team-b.weight",
        ),
        ({"*.quota[nvidia.com/gpus]": 2}, "* has no quota for 'nvidia.com/gpus'", "nvidia.com/gpu"),
        (
            {"*.quota[nvidia.com/gpu]": 2},
            "nvidia.com/gpu in several flavors (spot, on-demand): name the flavor of the quota",
            ".quota[spot/nvidia.com/gpu], or ClusterQueue/team.a.quota[*/nvidia.com/gpu] for all",
        ),
        ({"ClusterQueue/team-b.quota[nvidia.com/gpu]": "3x"}, "'3x' is not a quantity", "500m or 64Gi"),
        ({"ClusterQueue/team-b.quota[nvidia.com/gpu]": "64GB"}, "'64GB' is not a quantity", "500m or 64Gi"),
        ({"ClusterQueue/team-b.quota[nvidia.com/gpu]": -1}, "-1 is below 0", "0 or more"),
        ({"ClusterQueue/team-b.quota[nvidia.com/gpu]": None}, "cannot be removed", "0 or more"),
        ({"ClusterQueue/team-b.weight": True}, "True is not a value", "a number"),
        ({"ClusterQueue/team-b.weight": [1]}, "[1] is not a value", "a number"),
        ({"ClusterQueue/team-b.weight": float("nan")}, "'nan' is not a number", "a number"),
        ({"NodePool/gpu.count": 2.5}, "2.5 is not a whole number from 1 to 100,000", None),
        ({"NodePool/gpu.count": 0}, "0 is not a whole number from 1", None),
        ({}, "{} sets no knob", "weight"),
    ],
)
def test_what_cannot_be_turned_is_said_with_what_was_meant(
    values: dict[str, Any], message: str, hint: str | None
) -> None:
    """Names of objects, knobs, resources and flavors, and values of another unit."""
    with pytest.raises(InputError) as error:
        KUEUE.with_values(values)
    assert message in error.value.message
    assert hint is None or hint in (error.value.hint or "")


def test_values_that_make_manifests_faulty_are_named_with_the_object() -> None:
    """As everywhere."""
    with pytest.raises(ClusterError, match="must not be more than nominalQuota") as error:
        KUEUE.with_values({"ClusterQueue/team.a.quota[on-demand/nvidia.com/gpu]": 3})
    assert error.value.faults[0].where.startswith("ClusterQueue team.a: spec.resourceGroups[1].flavors[1]")


def test_only_manifests_can_be_turned() -> None:
    """Of a cluster that was made without any there are no knobs."""
    for call in (Cluster().knobs, lambda: Cluster().with_values({"a.b": 1})):
        with pytest.raises(InputError, match="has no manifests to change"):
            call()


def test_knobs_of_a_scaled_cluster_are_those_of_its_manifests() -> None:
    """The scale multiplies what is set."""
    turned = scaled_cluster(KUEUE, Fraction(2)).with_values({"NodePool/gpu.count": 5})
    assert (turned.knobs("NodePool/*.count"), len(turned.nodes)) == ({"NodePool/gpu.count": 5}, 10)


def test_every_knob_is_on_the_page() -> None:
    """With the kinds that have it."""
    page = (Path(__file__).parents[2] / "docs" / "what-if.md").read_text(encoding="utf-8")
    for kind, knobs in KNOBS.items():
        for knob in knobs:
            assert kind in next(line for line in page.split("\n") if line.startswith(f"| `{knob.name}` |"))


# --- properties -------------------------------------------------------------------------------------------

CLUSTERS = st.sampled_from([KUEUE, OF_TREE, OF_FLAT])
NUMBERS = (
    st.integers(0, 40)
    | st.fractions(0, 40, max_denominator=1000)
    | st.floats(0, 40).map(lambda x: round(x, 3))
)


@given(CLUSTERS, st.data())
def test_a_listed_knob_turned_to_its_own_value_changes_nothing(base: Cluster, data: st.DataObject) -> None:
    """What is listed is what is set."""
    path = data.draw(st.sampled_from(sorted(base.knobs())))
    assert (
        base.with_values(
            {path: base.knobs()[path]} if base.knobs()[path] is not None else {path: None}
        ).knobs()
        == base.knobs()
    )


@given(CLUSTERS, st.data())
def test_a_knob_has_the_value_it_was_turned_to_and_no_other_moved(base: Cluster, data: st.DataObject) -> None:
    """Rounded up to what can be counted; or the cluster cannot be so, and an error of ours says why."""
    path = data.draw(st.sampled_from(sorted(base.knobs())))
    value = data.draw(NUMBERS)
    try:
        turned = base.with_values({path: value})
    except HarnessError:
        return
    found = turned.knobs()[path]
    assert found is not None
    assert Fraction(str(value)) <= found < Fraction(str(value)) + 1
    assert {**turned.knobs(), path: None} == {**base.knobs(), path: None}


@given(
    st.text("CQ/team-b.a*[]x", max_size=12),
    st.sampled_from([1, "x", None, {"weight": 1}, {"a": {"b": {"c": 1}}}]),
)
def test_no_path_gives_anything_but_a_cluster_or_an_error_of_ours(path: str, value: Any) -> None:
    """Whatever is written in it."""
    try:
        KUEUE.with_values({path: value})
    except HarnessError:
        return

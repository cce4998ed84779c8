"""Quotas given once serve both families: nominal quota is min, and with the borrowing limit it is max."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.base.errors import InputError
from harness.cli.cluster import cluster as command
from harness.cluster.convert import ELASTIC, KUEUE, convert
from harness.cluster.kinds.elastic import ElasticQuota
from harness.cluster.load import cluster_from, load_cluster
from harness.cluster.manifests import (
    cluster_queue_manifest,
    cohort_manifest,
    elastic_quota_tree_manifest,
    flavor_manifest,
    local_queue_manifest,
    quota_node,
)
from harness.cluster.model import UNLIMITED, Cluster, ResourceQuota

RULES = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
Bounds = dict[str, tuple[str, dict[str, tuple[int, int]]]]


def queue(name: str, cohort: str = "", **quotas: ResourceQuota | int) -> dict[str, Any]:
    """A ClusterQueue in flavor `f` with the rules that every elastic quota has."""
    rules = RULES if cohort else {"withinClusterQueue": "LowerPriority"}
    return cluster_queue_manifest(name, "f", quotas, cohort=cohort, preemption=rules)


def elastic(*manifests: Mapping[str, Any]) -> tuple[Mapping[str, ElasticQuota], tuple[str, ...]]:
    """The elastic quotas of these queues, and what they cannot say."""
    found = convert(cluster_from([flavor_manifest("f"), *manifests], "test"), ELASTIC)
    return cluster_from(found.manifests, "test").elastic_quotas, found.notes


def bounds(quotas: Iterable[ElasticQuota], *resources: str) -> Bounds:
    """Name -> parent, and of each resource min and max."""
    return {
        quota.name: (quota.parent, {each: (quota.min_of(each), quota.max_of(each)) for each in resources})
        for quota in quotas
    }


def test_nominal_quota_is_min_and_with_the_borrowing_limit_it_is_max() -> None:
    """Without a limit the cohort is the limit; what a queue does not cover it may have nothing of."""
    found, notes = elastic(
        queue("a", "all", cpu=ResourceQuota(3000, 2000)), queue("b", "all", cpu=ResourceQuota(5000), gpu=2)
    )
    assert bounds(found.values(), "cpu", "gpu") == {
        "all": ("", {"cpu": (8000, 8000), "gpu": (2, 2)}),
        "a": ("all", {"cpu": (3000, 5000), "gpu": (0, 0)}),
        "b": ("all", {"cpu": (5000, 8000), "gpu": (2, 2)}),
    }
    assert notes == ()


def test_cohorts_become_the_quotas_above_and_add_their_own() -> None:
    """A cohort's quota is on top of what its queues have; its borrowing limit bounds all below it."""
    found, _ = elastic(
        cohort_manifest("top", "", "f", {"cpu": 1000}),
        cohort_manifest("part", "top", "f", {"cpu": ResourceQuota(2000, 500)}),
        queue("a", "part", cpu=1000),
        queue("b", "top", cpu=4000),
    )
    assert bounds(found.values(), "cpu") == {
        "top": ("", {"cpu": (8000, 8000)}),
        "part": ("top", {"cpu": (3000, 3500)}),
        "a": ("part", {"cpu": (1000, 3500)}),
        "b": ("top", {"cpu": (4000, 8000)}),
    }


def test_queues_that_share_nothing_do_not_borrow_from_each_other() -> None:
    """Above two cohorts and a queue without one stands a root that lends nothing."""
    found, _ = elastic(queue("a", "x", cpu=1000), queue("b", "y", cpu=2000), queue("c", cpu=4000))
    assert bounds(found.values(), "cpu") == {
        "root": ("", {"cpu": (7000, 7000)}),
        "x": ("root", {"cpu": (1000, 1000)}),
        "a": ("x", {"cpu": (1000, 1000)}),
        "y": ("root", {"cpu": (2000, 2000)}),
        "b": ("y", {"cpu": (2000, 2000)}),
        "c": ("root", {"cpu": (4000, 4000)}),
    }


def test_names_that_a_tree_cannot_have_twice_are_told_apart() -> None:
    """A queue keeps its name, for that is how jobs find it."""
    found, notes = elastic(queue("all", "all", cpu=1000), queue("root", "all", cpu=1000))
    assert list(found) == ["all-cohort", "all", "root"]
    assert notes == ("Cohort all: has the new name all-cohort, because names in a tree must be unique",)


def test_quota_without_an_end_stays_so() -> None:
    """Two of them add up to one without an end, too."""
    endless = ResourceQuota(UNLIMITED)
    found, _ = elastic(queue("a", "all", gpu=endless), queue("b", "all", gpu=endless))
    assert {name: quota.min_of("gpu") for name, quota in found.items()} == dict.fromkeys(found, UNLIMITED)


def test_namespaces_follow_local_queues() -> None:
    """A namespace whose LocalQueues belong to several queues cannot be told by itself."""
    manifests = [queue("a", "all", cpu=1000), queue("b", "all", cpu=1000)]
    doors = [("one", "a"), ("two", "a"), ("both", "a"), ("both", "b")]
    found, notes = elastic(*manifests, *(local_queue_manifest(*door) for door in doors))
    assert found["a"].namespaces == ("one", "two")
    assert found["b"].namespaces == ()
    assert [note.split(":")[0] for note in notes] == ["Namespace both"]


def test_what_a_tree_cannot_say_is_named_object_by_object() -> None:
    """All of it at once, the same of several objects in one sentence."""
    manifest = queue("a", "all", cpu=ResourceQuota(1000, None, 500))
    manifest["spec"] |= {
        "queueingStrategy": "StrictFIFO",
        "stopPolicy": "Hold",
        "namespaceSelector": {"matchLabels": {"x": "y"}},
        "fairSharing": {"weight": "2"},
        "preemption": {
            "reclaimWithinCohort": "LowerPriority",
            "withinClusterQueue": "Never",
            "borrowWithinCohort": {"policy": "LowerPriority"},
        },
    }
    other = flavor_manifest("g") | {"spec": {"nodeLabels": {"kind": "other"}}}
    group = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": name, "resources": [{"name": "cpu", "nominalQuota": 1}]} for name in ("f", "g")],
    }
    several = queue("b", "all")
    several["spec"]["resourceGroups"] = [group]
    found, notes = elastic(manifest, several, other)
    assert found["b"].min_of("cpu") == 2000
    assert [note.split(":")[0].split(" LowerP")[0] for note in notes] == [
        "ClusterQueue a",
        "ClusterQueue a",
        "ClusterQueue a",
        "ClusterQueue a",
        "ClusterQueue a",
        "ClusterQueue a",
        "ClusterQueue a",
        "ClusterQueue a",
        "ClusterQueue b",
        "ResourceFlavor g",
    ]
    for word in ("reclaim", "within", "borrow", "StrictFIFO", "stopPolicy", "Selector", "weight", "lending"):
        assert any(word in note for note in notes), word


def test_leaves_become_queues_and_the_quotas_above_cohorts() -> None:
    """What a quota guarantees beyond its children's is the cohort's own; no lending is a limit of 0."""
    child = quota_node("a", {"cpu": 2000}, {"cpu": 3000}, (), ("team",))
    root = quota_node("top", {"cpu": 4000, "gpu": 1}, {"cpu": 4000, "gpu": 1}, [child])
    found = convert(cluster_from([elastic_quota_tree_manifest(root)], "test"), KUEUE)
    made = cluster_from(found.manifests, "test")
    assert not made.elastic_quotas
    (group,) = made.cluster_queues["a"].resource_groups
    assert group.flavors[0].resources == {"cpu": ResourceQuota(2000, 1000), "gpu": ResourceQuota(0, None)}
    (own,) = made.cohorts["top"].resource_groups
    assert own.flavors[0].resources == {"cpu": ResourceQuota(2000), "gpu": ResourceQuota(1)}
    assert made.cluster_queue_of("team", "a") is made.cluster_queues["a"]


def test_flat_quotas_share_a_cohort_and_koordinators_labels_count() -> None:
    """`allow-lent-resource: false` is a lending limit of 0; a weight has no counterpart."""
    koordinator = "quota.scheduling.koordinator.sh/"

    def flat(name: str, **metadata: Any) -> dict[str, Any]:
        spec = {"min": {"cpu": 1}, "max": {"cpu": 2}}
        return {
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": name, **metadata},
            "spec": spec,
        }

    stingy = flat(
        "b",
        labels={f"{koordinator}allow-lent-resource": "false"},
        annotations={f"{koordinator}shared-weight": '{"cpu": 3}'},
    )
    found = convert(cluster_from([flat("a"), stingy], "test"), KUEUE)
    queues = cluster_from(found.manifests, "test").cluster_queues
    assert {each.cohort for each in queues.values()} == {"elastic-quotas"}
    quotas = {name: each.resource_groups[0].flavors[0].resources["cpu"] for name, each in queues.items()}
    assert quotas == {"a": ResourceQuota(1000, 1000), "b": ResourceQuota(1000, 1000, 0)}
    assert found.notes == (
        "elastic quota b: shared-weight: idle quota goes to the first job that requests it",
    )


def random_tree(seed: int) -> Cluster:
    """An ElasticQuotaTree of three levels with two resources."""
    choose = random.Random(seed)
    serial = iter(range(100))

    def node(depth: int, most: Mapping[str, int]) -> tuple[dict[str, Any], dict[str, int]]:
        name = f"q{next(serial)}"
        if depth == 0 or choose.random() < 0.3:
            least = {each: choose.randint(0, bound) for each, bound in most.items()}
            return quota_node(name, least, most), least
        children = []
        least = {each: choose.randint(0, 3) for each in most}
        for _ in range(choose.randint(1, 3)):
            bound = {each: choose.randint(0, bound) for each, bound in most.items()}
            child, theirs = node(depth - 1, bound)
            children.append(child)
            least = {each: least[each] + theirs[each] for each in least}
        return quota_node(name, least, {each: max(most[each], least[each]) for each in most}, children), least

    children = [node(2, {"cpu": 9000, "gpu": 8})[0] for _ in range(choose.randint(1, 3))]
    whole = {"cpu": 10**9, "gpu": 10**6}
    return cluster_from([elastic_quota_tree_manifest(quota_node("top", whole, whole, children))], "random")


@examples(60)
@given(st.integers(0, 10**6))
def test_a_tree_comes_back_from_queues_and_cohorts(seed: int) -> None:
    """Names, what is above what, min and max of every quota."""
    tree = random_tree(seed)
    queues = cluster_from(convert(tree, KUEUE).manifests, "queues")
    back = cluster_from(convert(queues, ELASTIC).manifests, "back")
    assert bounds(back.elastic_quotas.values(), "cpu", "gpu") == bounds(
        (tree.elastic_quotas[name] for name in back.elastic_quotas), "cpu", "gpu"
    )
    assert back.elastic_quotas.keys() == tree.elastic_quotas.keys()


def test_queues_come_back_from_a_tree_with_their_limits_spelled_out() -> None:
    """The bundled cluster: the same nominal quotas, and as limits what the whole cohort has."""
    given = load_cluster(Path(__file__).parents[2] / "traces" / "philly.cluster.yaml")
    tree = cluster_from(convert(given, ELASTIC).manifests, "tree")
    back = cluster_from(convert(tree, KUEUE).manifests, "back")
    for name, queue in given.cluster_queues.items():
        before = queue.resource_groups[0].flavors[0].resources["nvidia.com/gpu"]
        after = back.cluster_queues[name].resource_groups[0].flavors[0].resources["nvidia.com/gpu"]
        assert after == ResourceQuota(before.nominal, 640 - before.nominal)
        assert back.cluster_queues[name].cohort == queue.cohort
        assert back.cluster_queues[name].preemption == queue.preemption
    assert back.nodes == given.nodes


def test_the_command_keeps_what_there_is_when_asked(tmp_path: Path) -> None:
    """One file for both families, which can be read; without --keep the other family is gone."""
    source = Path(__file__).parents[2] / "traces" / "philly.cluster.yaml"
    both = tmp_path / "both.yaml"
    ran = CliRunner().invoke(
        command, ["convert", "--to", "elasticquota", "--keep", str(source), "-o", str(both)]
    )
    assert ran.exit_code == 0, ran.output
    kept = load_cluster(both)
    assert len(kept.cluster_queues) == 15
    assert len(kept.elastic_quotas) == 16
    alone = CliRunner().invoke(command, ["convert", "--to", "elasticquota", str(source)])
    (tmp_path / "alone.yaml").write_text(alone.stdout)
    assert not load_cluster(tmp_path / "alone.yaml").cluster_queues


@pytest.mark.parametrize(
    ("to", "said"), [(ELASTIC, "already has elastic quotas"), (KUEUE, "already has ClusterQueues")]
)
def test_quotas_that_are_there_are_not_converted_over(to: str, said: str) -> None:
    """Two sets of one family would contradict each other."""
    manifests = [flavor_manifest("f"), queue("a", cpu=1000)]
    both = cluster_from(convert(cluster_from(manifests, "test"), ELASTIC, keep=True).manifests, "test")
    with pytest.raises(InputError, match=said):
        convert(both, to)


def test_a_file_without_quotas_says_so() -> None:
    """There is nothing to convert."""
    with pytest.raises(InputError, match="no ClusterQueues to convert"):
        convert(cluster_from([], "test"), ELASTIC)
    with pytest.raises(InputError, match="no elastic quotas to convert"):
        convert(cluster_from([], "test"), KUEUE)


def test_the_file_itself_is_not_written_over(tmp_path: Path) -> None:
    """A mistaken name would cost the original."""
    path = tmp_path / "c.yaml"
    path.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
    ran = CliRunner().invoke(command, ["convert", "--to", "kueue", str(path), "-o", str(path)])
    assert isinstance(ran.exception, InputError)

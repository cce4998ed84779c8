"""Rules of writing manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.base.errors import Fault
from harness.cluster.derive import Demand, derive_cluster
from harness.cluster.load import cluster_from, load_cluster
from harness.cluster.manifests import (
    cluster_queue_manifest,
    dump_yaml,
    flavor_manifest,
    node_pool_manifest,
    to_manifests,
)
from harness.cluster.model import Node
from harness.cluster.yaml.documents import read_documents

TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(
    "yYnNoOtTrRuUeEfFaAlLsS~=<0123456789.+-_xob:e", max_size=6
)
VALUES = st.recursive(
    TEXT
    | st.booleans()
    | st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda each: not 2**53 < abs(each) < 1e21),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(TEXT, VALUES, min_size=1), min_size=1, max_size=3))
def test_written_manifests_read_back(manifests: list[dict[str, Any]]) -> None:
    """Every value, also text that looks like a number, a boolean, a date or a document's end."""
    faults: list[Fault] = []
    documents, complete = read_documents(dump_yaml(manifests), faults)
    assert [document.content for document in documents] == manifests
    assert faults == []
    assert complete


@given(st.dictionaries(TEXT, TEXT, min_size=1))
def test_written_text_is_text_to_other_readers(content: dict[str, str]) -> None:
    """YAML 1.1 readers such as PyYAML find the same text."""
    assert yaml.safe_load(dump_yaml([content])) == content


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(queues=st.lists(TEXT.filter(bool), min_size=1, max_size=4, unique=True))
def test_derived_cluster_can_be_saved_and_given_back(tmp_path: Path, queues: list[str]) -> None:
    """Saving is how a user begins to edit what was assumed."""
    demands = {"cpu": Demand(1500, 77_000), "memory": Demand(5, 2**40)}
    derived = derive_cluster(queues, demands, source="t")
    path = tmp_path / "t.cluster.yaml"
    path.write_text(dump_yaml(to_manifests(derived)), encoding="utf-8")
    loaded = load_cluster(path)
    assert loaded.digest == derived.digest
    assert loaded.cluster_queues == derived.cluster_queues
    assert loaded.cohorts == derived.cohorts


def test_writing_is_stable() -> None:
    """The same manifests give the same text, in the order of their fields."""
    text = dump_yaml(
        [flavor_manifest("default"), cluster_queue_manifest("010", "default", {"cpu": 1500}, preemption={})]
    )
    assert text == (
        "---\n"
        "apiVersion: kueue.x-k8s.io/v1beta2\n"
        "kind: ResourceFlavor\n"
        "metadata:\n"
        "  name: default\n"
        "---\n"
        "apiVersion: kueue.x-k8s.io/v1beta2\n"
        "kind: ClusterQueue\n"
        "metadata:\n"
        "  name: '010'\n"
        "spec:\n"
        "  namespaceSelector: {}\n"
        "  preemption: {}\n"
        "  resourceGroups:\n"
        "  - coveredResources:\n"
        "    - cpu\n"
        "    flavors:\n"
        "    - name: default\n"
        "      resources:\n"
        "      - name: cpu\n"
        "        nominalQuota: 1500m\n"
    )


def test_pools_and_flavors_are_what_was_meant() -> None:
    """Labels of a pool let a flavor's node labels find its nodes."""
    pool = node_pool_manifest(
        "gpu", 2, {"cpu": 48_500, "memory": 2**39, "nvidia.com/gpu": 8}, {"gpu": "p100"}
    )
    flavor = flavor_manifest("p100") | {"spec": {"nodeLabels": {"gpu": "p100"}}}
    cluster = cluster_from([pool, flavor], "test")
    allocatable = {"cpu": 48_500, "memory": 2**39, "nvidia.com/gpu": 8}
    assert cluster.nodes["gpu-1"] == Node(
        "gpu-1", allocatable, {"gpu": "p100", "kubernetes.io/hostname": "gpu-1"}
    )
    assert cluster.flavors["p100"].node_labels == {"gpu": "p100"}
    assert cluster.warnings == ()

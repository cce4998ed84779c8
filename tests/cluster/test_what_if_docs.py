"""What the page about what-if shows works as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.cluster.load import cluster_from

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "what-if.md"
CLUSTER = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohortName: all
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: a100, resources: [{name: nvidia.com/gpu, nominalQuota: 24}]}]
"""


def blocks(language: str) -> list[str]:
    """The code of a language on the page."""
    parts = PAGE.read_text(encoding="utf-8").split("```")[1::2]
    return [part.partition("\n")[2] for part in parts if part.partition("\n")[0] == language]


def test_the_patch_on_the_page_patches_a_cluster_that_has_what_it_names() -> None:
    """One queue with one flavor."""
    base = cluster_from(list(yaml.safe_load_all(CLUSTER)), "cluster.yaml")
    (patch,) = blocks("yaml")
    queue = base.patched(yaml.safe_load(patch)).cluster_queues["team-a"]
    assert queue.weight == 2
    assert queue.resource_groups[0].flavors[0].resources["nvidia.com/gpu"].nominal == 32


def test_the_code_on_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout, one block after the other."""
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), names)
    assert {"base", "more", "both"} <= names.keys()

"""`harness cluster patch`: what it prints, and what it never overwrites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from harness.cluster.load import cluster_from, load_cluster

COUNTED = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: p}
spec: {count: 2, template: {allocatable: {cpu: 1}}}
"""


def test_patched_manifests_are_printed_or_written(harness: Callable, folder: Path) -> None:
    """As a replay with the same patches has them, in the order given; the manifests themselves stay."""
    before = COUNTED
    (folder / "c.yaml").write_text(before)
    (folder / "1.yaml").write_text("{kind: NodePool, metadata: {name: p}, spec: {count: 5}}")
    (folder / "2.yaml").write_text("{kind: NodePool, metadata: {name: p}, spec: {count: 7}}")
    ended = harness("cluster", "patch", "c.yaml", "1.yaml", "2.yaml")
    assert (ended.code, ended.err) == (0, "")
    assert cluster_from(list(yaml.safe_load_all(ended.out)), "out").knobs() == {"NodePool/p.count": 7}
    written = harness("cluster", "patch", "c.yaml", "1.yaml", "-o", "new.yaml")
    assert written.out == "1 manifest written to new.yaml\n"
    assert load_cluster(folder / "new.yaml").knobs() == {"NodePool/p.count": 5}
    assert (folder / "c.yaml").read_text() == before


@pytest.mark.parametrize("output", ["c.yaml", "1.yaml"])
def test_patched_manifests_never_replace_what_they_are_made_of(
    output: str, harness: Callable, folder: Path
) -> None:
    """Neither the cluster nor a patch."""
    (folder / "c.yaml").write_text(COUNTED)
    (folder / "1.yaml").write_text("{kind: NodePool, metadata: {name: p}, spec: {count: 5}}")
    ended = harness("cluster", "patch", "c.yaml", "1.yaml", "-o", output)
    assert (ended.code, ended.out) == (2, "")
    assert f"{output} is the file itself" in ended.err

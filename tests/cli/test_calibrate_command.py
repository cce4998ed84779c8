"""Which scale offers a load: only what reaches it is offered, since nodes come whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Harness = Callable[..., Any]
NODES = """
apiVersion: harness/v1
kind: NodePool
metadata: {{name: p}}
spec: {{count: {}, template: {{allocatable: {{cpu: 4, pods: 99}}}}}}
"""


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> Path:
    """Eight cores on average over 100 seconds."""
    return write_trace(
        *({"submit_time": 10 * number, "duration": 80, "request.cpu": 1000} for number in range(11))
    )


def calibrate(harness: Harness, trace: Path, nodes: int, load: str, *more: str) -> str:
    """What the command prints for a cluster of so many nodes of 4 cores."""
    cluster = trace.parent / "c.yaml"
    cluster.write_text(NODES.format(nodes))
    code, out, err = harness("trace", "calibrate", trace, "--target-load", load, "--cluster", cluster, *more)
    assert code == 0, err
    return out


def test_both_ways_are_offered_where_both_reach(harness: Harness, trace: Path) -> None:
    """Half the nodes double the load."""
    out = calibrate(harness, trace, 4, "1.1")
    assert "for cpu, either" in out
    assert "--scale-cluster 0.5 " in out


def test_a_size_that_misses_is_only_named(harness: Harness, trace: Path) -> None:
    """Of 2 nodes neither 1 nor 2 gives 150 %: the nearest is said, and not offered."""
    out = calibrate(harness, trace, 2, "1.5")
    table, _, nearest = out.strip().rpartition("\n\n")
    assert "--scale-cluster" not in table
    assert "--scale-arrivals" in table
    assert nearest.startswith("nodes and quotas have whole units, so no cluster gives exactly 150.0 %")
    assert json.loads(calibrate(harness, trace, 2, "1.5", "--json"))["scale_cluster"]["reaches"] is False


def test_factors_are_written_without_exponents(harness: Harness, trace: Path) -> None:
    """They can be typed."""
    out = calibrate(harness, trace, 2, "0.0001")
    assert not re.search(r"\de[-+]", out)
    assert "--scale-arrivals 0.0000" in out

"""What tests of metrics share: a replay that answers its measured values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.policy import PolicyFactory


@pytest.fixture
def measured(tmp_path: Path, write_trace: Callable[..., Path]) -> Callable[..., Any]:
    """Replays jobs on a cluster and answers a function: metric, scope and resource to value."""

    def measure(
        *rows: Mapping[str, Any], cluster: str, plugin: str | PolicyFactory = "none", **settings: Any
    ) -> Callable[..., float | None]:
        path = tmp_path / "cluster.yaml"
        path.write_text(cluster)
        run = harness.replay(
            write_trace(*rows), plugin=plugin, cluster=path, output=tmp_path / "results", **settings
        )
        found = {
            (row["metric"], row["scope"], row["resource"]): row["value"]
            for row in run.metrics.iter_rows(named=True)
        }
        assert len(found) == run.metrics.height, "a value was measured twice"

        def value(metric: str, scope: str = "all", resource: str = "") -> float | None:
            return found[metric, scope, resource]

        return value

    return measure

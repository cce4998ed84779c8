"""A small experiment: two queues of one cohort, thirty jobs, and a policy that shares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_clusters import queues
from small_experiments import written

from harness.studies.experiments.parsing import load_spec
from harness.studies.experiments.specification import Spec

DAY = 24 * 3600


@pytest.fixture
def world(write_trace: Callable[..., Path], tmp_path: Path) -> Path:
    """A folder with `trace.parquet`, three weeks of jobs, `cluster.yaml`, and a patch of another cluster."""
    write_trace(
        *(
            {
                "job_id": f"j{number}",
                "submit_time": number * DAY * 22 // 44,
                "duration": 9000 + 20_000 * (number % 5),
                "queue": "a" if number % 3 else "b",
                "request.cpu": 1000 * (1 + number % 4),
                "priority": number % 2,
            }
            for number in range(45)
        )
    )
    (tmp_path / "cluster.yaml").write_text(queues({"a": {"cpu": "4"}, "b": {"cpu": "2"}}))
    (tmp_path / "patch.yaml").write_text(
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: absent}\n"
    )
    return tmp_path


@pytest.fixture
def spec(world: Path) -> Callable[..., Spec]:
    """Writes a specification of the small world, with some fields more, and reads it."""

    def write(**fields: Any) -> Spec:
        path = written(world, **fields)
        return load_spec(path)

    return write

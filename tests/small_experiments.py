"""Specifications of a small experiment, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def written(world: Path, **fields: Any) -> Path:
    """A specification of the small world."""
    content: Mapping[str, Any] = {
        "experiment": "small",
        "trace": "trace.parquet",
        "cluster": "cluster.yaml",
        "plugins": ["fairsharing"],
        "metrics": ["waiting"],
        **fields,
    }
    path = world / "sweep.yaml"
    given = {key: value for key, value in content.items() if value is not None}
    path.write_text(yaml.safe_dump(given, sort_keys=False))
    return path

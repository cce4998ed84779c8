"""A small suite of one task, which takes seconds."""

from __future__ import annotations

from pathlib import Path

import yaml

from harness.studies.benchmark.suite import load_suite

SETTINGS = {"window": "..14h", "until": "2d", "scale-arrivals": "2"}


def written(folder: Path, **fields: object) -> Path:
    """The file of a suite with one task, whose fields may be others."""
    sums = dict(zip(("trace", "cluster"), load_suite().task("mix").sums.values(), strict=True))
    task = {
        "about": "a morning",
        "trace": "mix",
        "sha256": sums,
        "resource": "nvidia.com/gpu",
        "settings": SETTINGS,
        "twins": 2,
        "shake": "arrivals=30s,ties",
        "built-in": ["none", "kueue-classic"],
        "objectives": {
            "served": ["goodput.of_demand"],
            "waited": ["delay.mean", "starvation"],
            "disrupted": ["disruption.lost"],
        },
        "redrawn": {"window": "..7d", "blocks": "6h", "until": "14h"},
    }
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({"suite": "small", "tasks": {"morning": task | fields}}))
    return path

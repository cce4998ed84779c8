"""Maps names of devices and machines in traces to Kubernetes labels, and to requests of pods."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

import polars as pl

from harness.cluster.devices import GPU as GPU
from harness.cluster.devices import GPU_COUNT as GPU_COUNT
from harness.cluster.devices import MILLI_GPU as MILLI_GPU

MODEL = "nvidia.com/gpu.product"
"""The label with the model of a node's GPUs, as set by NVIDIA's feature discovery."""

MACHINE = "harness/machine"
"""The node label with the name of a MetaCentrum machine. Jobs can request nodes of a single machine."""


def affinity_to_models(models: pl.Expr) -> pl.Expr:
    """Converts a text of allowed GPU models, such as `A|B`, to a required node affinity in JSON.

    An empty text becomes null.
    """
    return models.map_elements(_affinity, return_dtype=pl.String, skip_nulls=True)


@lru_cache(maxsize=1024)
def _affinity(models: str) -> str | None:
    if not models:
        return None
    named = list(dict.fromkeys(models.split("|")))
    terms = [{"matchExpressions": [{"key": MODEL, "operator": "In", "values": named}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return json.dumps({"nodeAffinity": required})


def label_maps(name: str, tables: Sequence[Mapping[str, str]]) -> pl.Series:
    """Returns a column of maps in the schema's type, with null for empty maps."""
    entries = [[{"key": key, "value": value} for key, value in sorted(table.items())] for table in tables]
    return pl.Series(
        name,
        [entry or None for entry in entries],
        dtype=pl.List(pl.Struct({"key": pl.String, "value": pl.String})),
    )

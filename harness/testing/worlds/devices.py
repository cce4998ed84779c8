"""Converts the GPUs of random worlds to devices that pods can share."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from harness.base.units import parse_quantity
from harness.cluster.devices import GPU, GPU_COUNT, MILLI_GPU, WHOLE
from harness.testing.worlds.chance import Chance
from harness.testing.worlds.clusters import Manifest
from harness.trace.schema import REQUEST

_SHARES = (200, 300, 400, 500, 500, 600, 700)


def with_devices(
    chance: Chance, frame: pl.DataFrame, manifests: Sequence[Manifest]
) -> tuple[pl.DataFrame, list[Manifest]]:
    """Returns a copy of a world's trace and manifests, in which GPUs are devices that pods can share.

    The copy counts GPUs in thousandths, and reads the original's quantities as thousandths. Half of the pods
    that request one whole GPU request a share of a GPU instead.
    """
    found: list[Manifest] = json.loads(json.dumps(manifests).replace(f'"{GPU}"', f'"{MILLI_GPU}"'))
    for each in found:
        has = each.get("status", {}).get("allocatable", {}).get(MILLI_GPU) if each["kind"] == "Node" else None
        if has is not None:
            each["metadata"].setdefault("labels", {})[GPU_COUNT] = str(int(parse_quantity(has)) // WHOLE)
    column = f"{REQUEST}{GPU}"
    if column not in frame.columns:
        return frame, found
    asked = [
        chance.choice(_SHARES) if amount == WHOLE and chance.percent(50) else amount
        for amount in frame[column].to_list()
    ]
    return frame.with_columns(pl.Series(column, asked)).rename({column: f"{REQUEST}{MILLI_GPU}"}), found

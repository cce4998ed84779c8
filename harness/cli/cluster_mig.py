"""Lists the GPU slices that nodes offer with MIG, for `harness cluster check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.base.text import aligned, counted, printable
from harness.cli.screen import terminal_width
from harness.cluster.model import Cluster


def slices_of(cluster: Cluster) -> dict[str, Any]:
    """Returns the MIG slices of a cluster's nodes, and why some GPUs are unknown, as JSON values.

    `profiles` has a row for each model and resource. `models` has the number of compute slices of all GPUs of
    each model (`compute`), and the number of those that MIG slices use (`cut`). `unknown` maps each reason to
    the names of the affected nodes. `single` maps each profile that nodes offer as `nvidia.com/gpu` to the
    names of these nodes.
    """
    from harness.cluster.mig import partition_of, profile_of, single_profile

    profiles: dict[tuple[str, str], dict[str, Any]] = {}
    models: dict[str, dict[str, Any]] = {}
    unknown: dict[str, list[str]] = {}
    single: dict[str, list[str]] = {}
    for name, node in cluster.nodes.items():
        if (shared := single_profile(node)) is not None:
            single.setdefault(str(shared), []).append(name)
        partition = partition_of(node)
        if partition is None:
            continue
        if partition.unknown:
            unknown.setdefault(partition.unknown, []).append(name)
        model = partition.model
        for resource, number in partition.slices.items():
            size = profile_of(resource)
            row = profiles.setdefault(
                (model.name if model else "", resource),
                {
                    "model": model.name if model else None,
                    "resource": resource,
                    "slices": 0,
                    "compute": size.compute if size else None,
                    "of_compute": model.compute if model else None,
                    "memory_gb": size.memory if size else None,
                },
            )
            row["slices"] += number
            if model and partition.gpus is not None and size:
                whole = models.setdefault(
                    model.name, {"model": model.name, "gpus": 0, "compute": 0, "cut": 0}
                )
                whole["cut"] += number * size.compute
        if model and partition.gpus is not None:
            models[model.name]["gpus"] += partition.gpus
            models[model.name]["compute"] += partition.gpus * model.compute
    return {
        "profiles": [profiles[key] for key in sorted(profiles)],
        "models": [models[key] for key in sorted(models)],
        "unknown": unknown,
        "single": single,
    }


def slice_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a table of MIG slices, followed by sentences about the GPUs with these slices.

    If no node offers slices, it yields nothing.
    """
    if found["profiles"]:
        yield ""
        head = ("slices of GPUs (MIG)", "model", "slices", "compute each", "memory each")
        yield from aligned([head, *map(_row, found["profiles"])], left=(0, 1), width=terminal_width()).split(
            "\n"
        )
    for each in found["models"]:
        yield printable(
            f"{counted(each['gpus'], 'GPU')} of model {each['model']}: slices use {each['cut']:,} of "
            f"{each['compute']:,} compute slices"
        )
    for why, nodes in found["unknown"].items():
        yield printable(f"slices of {_named(nodes)} are only counted: {why}")
    for profile, nodes in found["single"].items():
        yield printable(
            f"nvidia.com/gpu of {_named(nodes)} counts slices of profile {profile}, not GPUs (strategy "
            "'single')"
        )


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    compute = "" if row["compute"] is None else f"{row['compute']}"
    whole = "" if row["of_compute"] is None else f"/{row['of_compute']}"
    memory = "" if row["memory_gb"] is None else f"{row['memory_gb']} GB"
    return row["resource"], row["model"] or "", f"{row['slices']:,}", compute + whole, memory


def _named(nodes: Sequence[str]) -> str:
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]} and {counted(len(nodes) - 1, 'more node')}"

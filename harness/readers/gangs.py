"""Splits jobs into gangs of equal pods, for logs that have the size of a job but not its number of nodes."""

from __future__ import annotations

from math import isqrt

import polars as pl

from harness.base.errors import OptionError
from harness.base.text import counted
from harness.readers.names import GPU


def pods_of(amounts: pl.Series, per_node: int, option: str) -> pl.DataFrame:
    """Returns the columns `each`, `pods` and `gang` for jobs that request these quantities.

    A job that fits on a node becomes a single pod. Any other job becomes a gang of equal pods. Each pod gets
    the largest divisor of the job's quantity that a node can hold.

    Args:
        amounts: each job's quantity, as integers, which can be 0.
        per_node: the quantity on one node.
        option: the option that sets `per_node`, for messages.

    Raises:
        OptionError: the quantity on a node is less than 1.
    """
    if per_node < 1:
        raise OptionError(f"option {option}: {per_node} must be at least 1")
    sizes = amounts.unique().sort().to_list()
    parts = [_largest_part(size, per_node) for size in sizes]
    each = amounts.replace_strict(sizes, parts, return_dtype=pl.Int64)
    pods = (amounts // each.clip(lower_bound=1)).clip(lower_bound=1).cast(pl.Int32)
    return pl.DataFrame({"each": each, "pods": pods, "gang": amounts > each})


def gpu_columns(gpus: pl.Series, per_node: int) -> list[pl.Series]:
    """Returns the columns `request.nvidia.com/gpu`, `pods` and `gang` for GPU counts, as in `pods_of`."""
    jobs = pods_of(gpus, per_node, "gpus_per_node")
    return [jobs["each"].alias(f"request.{GPU}"), jobs["pods"], jobs["gang"]]


def gpu_notes(per_node: int, gangs: pl.Series) -> tuple[str, ...]:
    """Returns sentences about the assumptions of `gpu_columns`, with the number of resulting gangs."""
    count = int(gangs.sum())
    return (
        (
            f"a job of more than {per_node} GPUs ({counted(count, 'job')}) is a gang of equal pods of at "
            f"most {per_node}"
        ),
        "each pod of a gang has the largest divisor of the job's GPUs that fits; any other job is one pod",
    )


def _largest_part(amount: int, per_node: int) -> int:
    if amount <= per_node:
        return amount
    pairs = ((size, amount // size) for size in range(1, isqrt(amount) + 1) if amount % size == 0)
    return max(size for pair in pairs for size in pair if size <= per_node)

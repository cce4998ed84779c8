"""Derives priorities from kinds of jobs, as numbers or as names of priority classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Band:
    """The priority of a kind of jobs, with the name and the value of a priority class."""

    name: str
    value: int


def priority_column(kind: pl.Expr, bands: Mapping[str, Band], how: str) -> list[pl.Expr]:
    """Returns the jobs' priorities as the column `priority` or `priority_class`, or no column for `none`.

    `how` is the option `priority`, which is `number`, `class` or `none`. Each value of `kind` is a key of
    `bands`.
    """
    if how == "class":
        names = {key: band.name for key, band in bands.items()}
        return [kind.replace_strict(names, return_dtype=pl.String).alias("priority_class")]
    if how == "number":
        values = {key: band.value for key, band in bands.items()}
        return [kind.replace_strict(values, return_dtype=pl.Int32).alias("priority")]
    return []


def priority_note(column: str, bands: Mapping[str, Band], how: str) -> str:
    """Returns a sentence that says how `priority_column` derives the priorities."""
    if how == "none":
        return f"priority is not derived from {column}"
    worth = ", ".join(f"{key} {band.value if how == 'number' else band.name}" for key, band in bands.items())
    return f"priority{' class' if how == 'class' else ''} is derived from {column}: {worth}"

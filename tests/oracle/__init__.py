"""Every metric once more, in plain Python and exact numbers, slow and obvious.

It shares no code with `harness.analysis.metrics` and reads neither stints nor timeline: only what was
decided, what jobs ask for and what the cluster has. It covers every loss model, start-up, pod sets that
differ, quotas of several flavors, what dumps say ran before, and clusters that change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pytest

import harness
from oracle.book import Book, Key
from oracle.disruption import disruption
from oracle.fairness import fairness, finish_time
from oracle.fragmentation import fragmentation
from oracle.quota import quota
from oracle.statistics import Value
from oracle.utilization import utilization
from oracle.waiting import waiting
from oracle.world import World


def values_of(
    run: harness.Run,
    trace: pl.DataFrame,
    end: int | None = None,
    until: int | None = None,
    alone: Mapping[str, harness.Run] | None = None,
) -> dict[Key, Value]:
    """All metrics of a run, by metric, scope and resource.

    Args:
        run: see `World`, as for `trace`, `end` and `until`.
        trace: its jobs.
        end: where integrals end.
        until: when values of jobs are taken.
        alone: quota -> the run in which it is alone, for what is measured against these.
    """
    world, book = World(run, trace, end, until), Book()
    for family in (utilization, waiting, fairness, disruption, quota, fragmentation):
        family(world, book)
    if alone is not None:
        finish_time(world, book, {quota: World(other, trace) for quota, other in alone.items()})
    return book.values


def differences(rows: Iterable[Mapping[str, Any]], slow: Mapping[Key, Value]) -> list[str]:
    """What measured rows say otherwise: other numbers, beyond rounding, or that they are at least."""
    found = []
    fast = {(row["metric"], row["scope"], row["resource"]): row for row in rows}
    for key in sorted(fast.keys() | slow.keys()):
        if key not in fast or key not in slow:
            found.append(f"{key}: {'only the oracle' if key in slow else 'only the product'} has it")
            continue
        row, (number, at_least) = fast[key], slow[key]
        between = re.search(r"\.p\d+$", key[0])
        exact = number is None or (number.denominator == 1 and not between)
        near = (
            None if number is None else pytest.approx(float(number), rel=1e-12 if exact else 1e-9, abs=1e-12)
        )
        if row["value"] != near:
            found.append(f"{key}: {row['value']}, not {None if number is None else float(number)}")
        if row.get("at_least", at_least) is not at_least:
            found.append(f"{key}: at_least is {row['at_least']}, not {at_least}")
    return found


def agrees(run: harness.Run, trace: pl.DataFrame, alone: Mapping[str, harness.Run] | None = None) -> None:
    """Every value of a run is what the oracle makes of it."""
    found = differences(run.metrics.to_dicts(), values_of(run, trace, alone=alone))
    assert not found, "\n".join(found)

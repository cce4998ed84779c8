"""The section on preemptions, with their reasons, their numbers over time, and their chains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from harness.analysis.metrics.chains import cascades
from harness.analysis.metrics.disruption import mean_duration
from harness.analysis.metrics.preemptions import preempted_pods, preemptions
from harness.analysis.report import charts, palette
from harness.analysis.report.blocks import Block, Figure, Key, Points, Table, Text
from harness.analysis.report.material import Material, distinct
from harness.base.units import format_duration
from harness.runs.run import Run

if TYPE_CHECKING:
    from altair.typing import ChartType


_BINS = 120
_DEPTHS = 4
"""Preemptions at this depth or deeper share one row."""
_NAMES_OF_DEPTHS = {0: "after no other", 1: "after 1 other", _DEPTHS: f"after {_DEPTHS} or more others"}
_LINKS = 6


def blocks(material: Material) -> Iterator[Block]:
    """Yields the preemptions of each run by reason, or just a sentence if there were none."""
    found = material.on_axis(material.of_runs(_preemptions))
    if not sum(each.height for each in found):
        yield Text("Nothing was preempted.")
        return
    ranked = pl.concat(found).group_by("reason").len().sort("len", "reason", descending=[True, False])
    reasons = ranked["reason"].to_list()
    most = len(palette.KINDS)
    shown = reasons if len(reasons) <= most else reasons[: most - 1]
    names = distinct(shown) + (["other reasons"] if len(shown) < len(reasons) else [])
    keys = [Key(name, tone.light) for name, tone in zip(names, palette.KINDS, strict=False)]
    counted = [
        each.select(
            "time", reason=pl.col("reason").replace_strict(shown, range(len(shown)), default=len(shown))
        )
        for each in found
    ]
    yield Figure(
        title="Preemptions over time, by reason",
        words=_words(material, counted, names),
        draw=lambda width: _chart(material, counted, keys, width),
        keys=keys,
        note="If a job loses several pods to another job at one time, this counts as one preemption."
        + material.own_jobs,
    )
    yield from _chains(material)


def _preemptions(run: Run) -> pl.DataFrame:
    each = preemptions(preempted_pods(run, run.window))
    return each.select("time", pl.col("reason").fill_null("no reason"))


def _chains(material: Material) -> Iterator[Block]:
    found = material.of_runs(_chains_of)
    deepest = max(depth for each in found for depth in each.depths)
    if not deepest:
        return
    rows = []
    for depth in range(min(deepest, _DEPTHS) + 1):
        counts = [_count(each.depths, depth, further=depth == _DEPTHS) for each in found]
        rows.append([_NAMES_OF_DEPTHS.get(depth, f"after {depth} others"), *(f"{each:,}" for each in counts)])
    yield Table(
        "Chains: preemptions by jobs that had just been preempted themselves",
        ["preemptions", *material.names],
        rows,
    )
    chains = [
        f"{name}: {each.longest}" for name, each in zip(material.names, found, strict=True) if each.longest
    ]
    yield Points(chains, title="The longest chain")


class _Chains(NamedTuple):
    depths: Sequence[int]
    longest: str


def _chains_of(run: Run) -> _Chains:
    each = preemptions(preempted_pods(run, run.window))
    depths, before = cascades(each, mean_duration(run))
    if not any(depths):
        return _Chains(depths, "")
    at: int | None = depths.index(max(depths))
    chain = []
    while at is not None:
        chain.append(each.row(at, named=True))
        at = before[at]
    chain.reverse()
    names = run.scan("jobs").select("job_id").collect()["job_id"]
    told = [f"{names[row['job']]} was preempted for {names[row['by']]}" for row in chain[:_LINKS]]
    more = [f"{len(chain) - _LINKS:,} more"] if len(chain) > _LINKS else []
    span = format_duration(chain[-1]["time"] - chain[0]["time"])
    return _Chains(depths, f"{', '.join([*told, *more])}, within {span}")


def _count(depths: Sequence[int], depth: int, *, further: bool) -> int:
    return sum(each >= depth if further else each == depth for each in depths)


def _words(material: Material, counted: Sequence[pl.DataFrame], names: Sequence[str]) -> str:
    sentences = []
    for name, each in zip(material.names, counted, strict=True):
        if each.is_empty():
            sentences.append(f"{name}: none.")
            continue
        counts = dict(each.group_by("reason").len().sort("reason").iter_rows())
        parts = ", ".join(f"{names[reason]} {count:,}" for reason, count in counts.items())
        width = (material.window.end - material.window.start) // _BINS + 1
        busiest = each.group_by((pl.col("time") - material.window.start) // width).len()["len"]
        sentences.append(
            f"{name}: {each.height:,} in total ({parts}), at most {max(busiest):,} within "
            f"{format_duration(width)}."
        )
    return " ".join(sentences)


def _chart(material: Material, counted: Sequence[pl.DataFrame], keys: Sequence[Key], width: int) -> ChartType:
    bins = _BINS if width >= charts.axes.NARROW else _BINS // 2
    return charts.counts.counts(material, counted, keys, bins=bins, width=width)

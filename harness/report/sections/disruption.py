"""What was preempted, and why: preemptions over time by reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from harness.metrics.preemptions import preempted_pods, preemptions
from harness.report import palette
from harness.report.blocks import Block, Figure, Key, Text
from harness.report.material import Material, distinct
from harness.runs.run import Run
from harness.units import format_duration

if TYPE_CHECKING:
    from altair.typing import ChartType


def blocks(material: Material) -> Iterator[Block]:
    """Preemptions of each run by reason; a sentence where there were none at all."""
    found = material.of_runs(_preemptions)
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
        note="One preemption is one job taken for one other job at one instant, however many pods it had.",
    )


def _preemptions(run: Run) -> pl.DataFrame:
    each = preemptions(preempted_pods(run, run.window))
    return each.select("time", pl.col("reason").fill_null("no reason"))


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
            f"{name}: {each.height:,} in all ({parts}), at most {max(busiest):,} within "
            f"{format_duration(width)}."
        )
    return " ".join(sentences)


_BINS = 120


def _chart(material: Material, counted: Sequence[pl.DataFrame], keys: Sequence[Key], width: int) -> ChartType:
    from harness.report.charts import axes
    from harness.report.charts.counts import counts

    bins = _BINS if width >= axes.NARROW else _BINS // 2
    return counts(material, counted, keys, bins=bins, width=width, title="preemptions")

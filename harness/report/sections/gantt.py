"""Job by job: for small runs, when every job waited, ran and was thrown out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.report.blocks import Block, Figure
from harness.report.material import Material
from harness.units import format_duration

if TYPE_CHECKING:
    from altair.typing import ChartType

MOST_JOBS = 60


def blocks(material: Material) -> Iterator[Block]:
    """A bar for every span in which a job held resources; nothing for runs that are not small."""
    if any(run.jobs.height > MOST_JOBS or run.stints.height > 20 * MOST_JOBS for run in material.runs):
        return
    yield Figure(
        title="When jobs held resources",
        words=_words(material),
        draw=lambda width: _chart(material, width),
        keys=material.lane_keys,
        note="A tick is where a job was submitted; pale spans are without progress (waiting for the rest of "
        "a gang, restoring, terminating); a cross is where an eviction threw progress away.",
    )


def _words(material: Material) -> str:
    sentences = []
    for name, run in zip(material.names, material.runs, strict=True):
        finished = run.jobs["finish_time"].count()
        evicted = int(run.jobs["preemptions"].sum())
        span = format_duration(run.window.end - run.window.start)
        sentences.append(
            f"{name}: {finished:,} of {run.jobs.height:,} jobs finished within {span}, "
            f"with {evicted:,} evictions."
        )
    return " ".join(sentences)


def _chart(material: Material, width: int) -> ChartType:
    from harness.report.charts.gantt import gantt

    return gantt(material, width)

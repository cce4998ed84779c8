"""A sentence about loops in which the same jobs are evicted again and again, for readers of a comparison."""

from __future__ import annotations

import polars as pl

from harness.analysis.comparison.figures import shown
from harness.base.text import times
from harness.runs.run import Run

_NAMED = 3


def about_loops(run: Run) -> str | None:
    """The number of eviction loops in a run, their queues, and the resource time that they held.

    None if there was no loop.
    """
    rows = run.metrics.filter(pl.col("metric").is_in(("disruption.ping_pong", "disruption.ping_pong_held")))
    often = {row["scope"]: row["value"] for row in rows.iter_rows(named=True) if not row["resource"]}
    if not often.get("all"):
        return None
    held = [
        f"{shown(row['value'], row['unit'])} of {row['resource']}"
        for row in rows.iter_rows(named=True)
        if row["resource"] and row["value"]
    ]
    victims, winners = (_queues(often, f"{side}=") for side in ("queue", "beneficiary"))
    cost = f", holding {', '.join(held)}" if held else ""
    return (
        f"{times(round(often['all']))} a job got resources and lost them again to the same queue while "
        f"neither side made progress (disruption.ping_pong): jobs of {victims}, for jobs of {winners}{cost}. "
        "The victim stands before its preemptor in line for what it gave up: see 'Evictions that repeat' in "
        "docs/kueue.md for the settings that cause it"
    )


def _queues(often: dict[str, float], prefix: str) -> str:
    """The queues of one side with their counts, the most frequent ones by name."""
    counts = [(-often[scope], scope.removeprefix(prefix)) for scope in often if scope.startswith(prefix)]
    found = sorted(count for count in counts if count[0])
    named = ", ".join(f"{name} ({-count:,.0f})" for count, name in found[:_NAMED])
    return f"{named} and {len(found) - _NAMED:,} more" if len(found) > _NAMED else named

"""Writes a validation as text: the verdict, the errors, and the causes of the largest differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis.validation.errors import QUANTILES, Errors
from harness.analysis.validation.validation import Validation
from harness.base.text import aligned, folded
from harness.base.units import SECOND, format_duration

_ROWS = 12


def text(validation: Validation, width: int | None = None) -> str:
    """Returns the validation as text. Sentences are folded to `width` columns; None means no limit."""
    parts = [*folded([validation.verdict], width), ""]
    parts += [aligned([["", "recorded, simulated"], *_overall(validation)], left=(0, 1)), ""]
    for group, every in validation.groups():
        if len(every) > 1:
            parts += [_table(group, every, width), ""]
    if validation.findings:
        parts += ["why:", *folded([f"- {validation.told(each)}" for each in validation.findings], width), ""]
    largest = [
        [
            each.job,
            each.queue,
            validation.clock.text(each.recorded).partition(".")[0],
            _signed(each.error),
            "see above" if each.because else "nothing found",
        ]
        for each in validation.largest()
    ]
    if largest:
        head = ["largest differences", "queue", "recorded", "error", "why"]
        parts += [aligned([head, *largest], left=(0, 1, 4), names={0: (), 1: ()}, width=width)]
    parts += folded([f"- {note}" for note in validation.notes()], width)
    return "\n".join(parts).rstrip()


def _overall(validation: Validation) -> Iterator[list[str]]:
    errors = validation.errors
    yield ["started in the record", f"{errors.jobs:,}"]
    if errors.unstarted:
        yield ["of these never start in the simulation", f"{errors.unstarted:,}"]
    names = " ".join(f"p{round(100 * each)}" for each in QUANTILES)
    yield [f"error, {names}", ", ".join(_signed(each) for each in errors.quantiles)]
    yield ["size (±), median and p90", f"{time_text(errors.absolute)}, {time_text(errors.absolute_p90)}"]
    shares = [errors.within_minute, errors.within_ten_minutes, errors.within_tenth]
    yield ["within 1 min, 10 min, 10 %", ", ".join(share_text(each) for each in shares)]
    yield ["rank correlation of waits", "–" if errors.rank is None else f"{errors.rank:.3f}"]
    yield ["total waits", f"{time_text(errors.recorded_wait)}, {time_text(errors.simulated_wait)}"]
    yield ["preempted or evicted", f"{errors.recorded_evictions:,}, {errors.simulated_evictions:,}"]
    difference = validation.use_difference
    if difference is not None:
        yield [f"use of {validation.resource} over time", f"differs by {difference:.1%} on average"]


def _table(group: str, every: Sequence[tuple[str, Errors]], width: int | None) -> str:
    """Returns a table with one row per group. Hours are shown in steps of three."""
    hours = group == "hour"
    shown = [each for each in every if int(each[0]) % 3 == 0] if hours else every[:_ROWS]
    rows = [
        [
            f"{int(name):02}:00" if hours else name,
            f"{errors.jobs:,}",
            time_text(errors.recorded_wait / max(1, errors.jobs)),
            _signed(errors.quantiles[2]),
            time_text(errors.absolute),
            share_text(errors.within_ten_minutes),
        ]
        for name, errors in shown
    ]
    if not hours and len(every) > _ROWS:
        rows.append([f"{len(every) - _ROWS:,} more", "", "", "", "", ""])
    head = [group, "jobs", "mean wait", "error p50", "±p50", "in 10 min"]
    return aligned([head, *rows], names={0: ()}, width=width)


def time_text(time: float | None) -> str:
    """Formats a time of at least 0 in whole seconds."""
    return "–" if time is None else format_duration(round(time / SECOND) * SECOND)


def _signed(time: float | None) -> str:
    if time is None:
        return "–"
    seconds = round(time / SECOND)
    return f"{'-' if seconds < 0 else '+' if seconds else ''}{time_text(abs(time))}"


def share_text(share: float | None) -> str:
    """Formats a share as a whole percentage."""
    return "–" if share is None else f"{share:.0%}"

"""Formats the output of `harness trace info` as tables, or as one document for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from textwrap import wrap
from typing import Any

from harness.base.text import aligned, counted, printable
from harness.base.units import format_duration, short_amount, short_number
from harness.trace.misnamed import sentences
from harness.trace.schema import LEFT_OUT_KEY, LICENSE_KEY, SOURCE_KEY
from harness.trace.summary import Spread, Summary
from harness.trace.trace import Trace

_SHOWN = 20


def document(opened: Trace, summary: Summary) -> dict[str, Any]:
    """Returns the description as JSON values, with the schema's units and times in microseconds."""
    return {
        "schema": "1",
        "path": str(opened.path),
        "sha256": opened.sha256,
        "reader": opened.reader,
        "options": dict(opened.options),
        "metadata": dict(opened.metadata),
        "records_read": opened.rows_read,
        "left_out": dict(opened.left_out),
        "conventions": list(opened.notes),
        **asdict(summary),
    }


def report(opened: Trace, summary: Summary, width: int | None = None) -> str:
    """Returns the summary as text, with tables of at most `width` characters, or of any width if None."""
    head = ("jobs", "mean", "p50", "p90", "p99", "max")
    wait = summary.recorded_wait
    waits = [("recorded wait", *_spread(wait, format_duration))] if wait is not None else []
    parts = [
        "\n".join(printable(line) for line in _about(opened, summary)),
        _table(
            ("", *head),
            [
                ("duration", *_spread(summary.durations, format_duration)),
                ("pods", *_spread(summary.pods, short_number)),
                *waits,
            ],
            width,
        ),
        _resources(summary, head, width),
        _tenants(summary, width),
        _table(("pods of a gang", "jobs"), _gangs(summary), width),
        _table(
            ("priority", "jobs"), [(name, f"{jobs:,}") for name, jobs in summary.priorities.items()], width
        ),
        "\n".join(printable(line) for line in _missing(summary)),
        "\n".join(printable(line) for line in sentences(opened.frame.schema)),
        "\n".join(printable(line) for line in _conventions(opened)),
    ]
    return "\n\n".join(part for part in parts if part)


def _about(opened: Trace, summary: Summary) -> list[str]:
    rows = f" in {counted(summary.rows, 'row')}" if summary.rows != summary.jobs else ""
    queues = counted(len(summary.tenants), "queue")
    lines = [
        f"{opened.path}: {counted(summary.jobs, 'job')}{rows}, {summary.gangs:,} of them gangs; {queues}",
        f"submitted from {summary.first} to {summary.last} ({format_duration(summary.span)})",
    ]
    return lines + [
        f"{key.removeprefix('harness.')}: {opened.metadata[key]}"
        for key in (SOURCE_KEY, LICENSE_KEY)
        if key in opened.metadata
    ]


def _missing(summary: Summary) -> list[str]:
    """Returns the columns whose default applies because values are missing, with the number of values."""
    absent = [name for name, count in summary.missing.items() if count == summary.rows]
    partly = [
        f"{name} in {counted(count, 'row')}"
        for name, count in summary.missing.items()
        if count < summary.rows
    ]
    lines = ["not given, so the default applies"]
    if absent:
        lines += wrap(", ".join(absent), 100, initial_indent="  ", subsequent_indent="  ")
    return lines + [f"  {part}" for part in partly] if summary.missing else []


def _conventions(opened: Trace) -> list[str]:
    before = json.loads(opened.metadata.get(LEFT_OUT_KEY, "{}"))  # The rows that the conversion left out.
    lines = [f"  left out: {count:,} {reason}" for reason, count in {**before, **opened.left_out}.items()]
    lines += [f"  {note}" for note in opened.notes]
    return ["how it was read", *lines] if lines else []


def _tenants(summary: Summary, width: int | None) -> str:
    resources = list(summary.resources)
    total = {name: sum(tenant.resource_seconds[name] for tenant in summary.tenants) for name in resources}
    head = ["queue", "jobs", "share"]
    if summary.recorded_wait is not None:
        head.append("median wait")
    for name in resources:
        head += [f"{name} hours", "share"]
    rows = []
    for tenant in summary.tenants[:_SHOWN]:
        row = [tenant.queue, f"{tenant.jobs:,}", _percent(tenant.jobs, summary.jobs)]
        if summary.recorded_wait is not None:
            row.append("-" if tenant.recorded_wait is None else format_duration(tenant.recorded_wait))
        for name in resources:
            work = tenant.resource_seconds[name]
            row += [short_amount(name, work / 3600), _percent(work, total[name])]
        rows.append(row)
    more = len(summary.tenants) - _SHOWN
    return _table(head, rows, width) + (
        f"\n… and {counted(more, 'more queue')} (all: --json)" if more > 0 else ""
    )


def _resources(summary: Summary, spread: Sequence[str], width: int | None) -> str:
    recorded = any(use.recorded_peak is not None for use in summary.resources.values())
    stated = any(use.capacity is not None for use in summary.resources.values())
    rows: list[tuple[str, ...]] = []
    for name, use in summary.resources.items():
        show = partial(short_amount, name)
        loads = [use.mean, use.p95, use.peak] + ([use.recorded_peak or 0] if recorded else [])
        rows.append((name, *_spread(use.job, show), *map(show, loads)))
        if stated:
            has = use.capacity
            rows[-1] += ("-", "-") if has is None else (show(has), _percent(use.mean, has))
    head = ["requested by a job", *spread, "mean load", "p95 load", "peak load"]
    head += ["recorded peak"] if recorded else []
    return _table(head + (["the machine", "mean load of it"] if stated else []), rows, width)


def _gangs(summary: Summary) -> list[tuple[str, str]]:
    """Returns the sizes of gangs in ascending order. If there are many, the largest ones share a row."""
    sizes = list(summary.gang_sizes.items())
    rows = [(f"{pods:,}", f"{jobs:,}") for pods, jobs in sizes[:_SHOWN]]
    more = sizes[_SHOWN:]
    if more:
        rows.append((f"{more[0][0]:,} to {more[-1][0]:,}", f"{sum(jobs for _, jobs in more):,}"))
    return rows


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    return aligned([head, *rows], width=width) if rows else ""


def _spread(spread: Spread, show: Callable[[float], str]) -> tuple[str, ...]:
    figures = (spread.mean, spread.p50, spread.p90, spread.p99, spread.max)
    return (f"{spread.count:,}", *(show(figure) for figure in figures))


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"

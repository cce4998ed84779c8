"""Measures the costs and benefits of previews of Kueue's rules on Philly, and draws a chart of each.

    python scripts/previews.py FOLDER [--twins N] [--write]

The script replays some days of Philly at twice the load, with several values of each preview, and twins of
each replay. FOLDER keeps the runs, so they are not made again. The script prints the tables of
docs/kueue-previews.md, and `--write` puts tables and charts into docs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import click
import marks
from scipy.stats import t as student

import harness
from harness.trace.calibration import Calibration

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "kueue-previews.md"
WINDOW, LOAD = "40d..43d", 2

VALUES: Mapping[str, tuple[str, ...]] = {
    "previewMinRunTime": ("", "5m", "15m", "1h", "4h"),
    "previewPreemptionRate": ("", "30/1h", "10/1h", "3/1h", "1/1h"),
}
"""Maps a preview to its values. The value "" turns the preview off."""


class Figure(NamedTuple):
    """A measured figure.

    Attributes:
        name: the metric.
        resource: the resource of the metric.
        title: the title of the figure in tables and charts.
        unit: the divisor of the metric's value.
    """

    name: str
    resource: str
    title: str
    unit: float = 1


LATENCY = Figure("reclaim_latency.max", "", "longest reclaim latency, hours", 3600)
LOST = Figure("disruption.lost", "nvidia.com/gpu", "lost GPU-hours")
FIGURES = (
    LATENCY,
    Figure("fairness.guarantee_deficit", "nvidia.com/gpu", "GPU-hours owed to quotas"),
    LOST,
    Figure("disruption.preemptions", "", "preemptions"),
    Figure("delay.mean", "", "mean delay, minutes", 60),
)


class Mean(NamedTuple):
    """A mean over twins, with half of the width of its 95 % interval."""

    value: float
    half: float


Row = dict[str, Mean]
"""Maps a metric to its mean, for one value of a preview."""


def measured(preview: str, value: str, twins: int, folder: Path) -> Row:
    """Returns the figures of one value of a preview, over `twins` twins of the trace."""
    found: dict[str, list[float]] = {each.name: [] for each in FIGURES}
    for number in range(1, twins + 1):
        run = harness.replay(
            ROOT / "traces" / "philly.parquet",
            plugin="kueue-classic",
            options={preview: value} if value else {},
            calibration=Calibration.parse(window=WINDOW),
            scale_arrivals=LOAD,
            twin=str(number),
            output=folder,
            keep="metrics",
        )
        for each in FIGURES:
            found[each.name].append(value_of(run, each))
    return {name: _mean(values) for name, values in found.items()}


def value_of(run: harness.Run, figure: Figure) -> float:
    """Returns the value of a figure over all jobs of a run."""
    (row,) = run.metrics.filter(metric=figure.name, resource=figure.resource, scope="all").rows(named=True)
    return float(row["value"]) / figure.unit


def table(preview: str, rows: Mapping[str, Row]) -> Iterator[str]:
    """Yields the table of a preview, with one row per value."""
    yield f"| `{preview}` | {' | '.join(each.title for each in FIGURES)} |"
    yield f"| --- |{' ---: |' * len(FIGURES)}"
    for value, row in rows.items():
        cells = (f"{_text(row[each.name].value)} ± {_text(row[each.name].half)}" for each in FIGURES)
        yield f"| {f'`{value}`' if value else 'off'} | {' | '.join(cells)} |"


def chart(preview: str, rows: Mapping[str, Row]) -> str:
    """Returns a chart of the latency and the loss of each value of a preview, with their intervals."""
    width, height, left, gap = 560, 150, 56, 54
    parts = [
        f"<title>{preview}: {LATENCY.title} and {LOST.title}</title>",
        "<style>text{font:12px sans-serif;fill:#222}.m{text-anchor:middle}.e{text-anchor:end}</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    step = (width - left - 40) / max(1, len(rows) - 1)
    for number, (figure, colour) in enumerate(((LATENCY, "#2f6fb0"), (LOST, "#c0504d"))):
        top = 30 + number * (height + gap)
        means = [row[figure.name] for row in rows.values()]
        most = max(each.value + each.half for each in means) or 1
        places = [
            (left + 20 + at * step, top + height * (1 - each.value / most), height * each.half / most)
            for at, each in enumerate(means)
        ]
        parts.append(f'<text x="{left}" y="{top - 10}">{figure.title}</text>')
        parts += [
            f'<line x1="{left}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text class="e" x="{left - 6}" y="{y + 4:.1f}">{_text(most * part)}</text>'
            for part in (0, 0.5, 1)
            for y in (top + height * (1 - part),)
        ]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}"/>')
        for (x, y, half), value in zip(places, rows, strict=True):
            bottom = min(y + half, top + height)
            parts += [
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - half:.1f}" y2="{bottom:.1f}" stroke="{colour}"/>',
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>',
                f'<text class="m" x="{x:.1f}" y="{top + height + 17}">{value or "off"}</text>',
            ]
    whole = 30 + 2 * (height + gap) - 20
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}">'
    return "\n".join((head, *parts, "</svg>\n"))


def picture(preview: str) -> Path:
    """Returns the path of a preview's chart."""
    return PAGE.with_name(f"kueue-{_dashed(preview)}.svg")


def _mean(values: Sequence[float]) -> Mean:
    half = 0.0
    if len(values) > 1:
        half = float(student.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return Mean(fmean(values), half)


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--twins", default=5, show_default=True, help="Twins of the trace for each value.")
@click.option("--write", is_flag=True, help="Put tables and charts into docs.")
def main(folder: Path, twins: int, *, write: bool) -> None:
    """Replay, print the tables, and draw the charts."""
    for preview, values in VALUES.items():
        rows = {value: measured(preview, value, twins, folder) for value in values}
        lines = list(table(preview, rows))
        click.echo("\n".join(lines))
        if write:
            marks.write(PAGE, marks.begins("scripts/previews.py", preview), lines)
            picture(preview).write_text(chart(preview, rows), encoding="utf-8")


if __name__ == "__main__":
    main()

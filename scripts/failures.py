"""Measures what node failures cost under each plugin, for the tables of docs/nodes-over-time.md.

    python scripts/failures.py FOLDER [--twins N] [--write]

The script replays two weeks of Philly with each plugin, with and without failures, under two loss models, and
N twins of each replay. This takes 24 CPU-minutes for 20 twins. FOLDER keeps the runs, so they are not made
again. The script prints the tables, and `--write` puts them into the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from textwrap import wrap

import click
import marks
import polars as pl
from previews import Figure, value_of

import harness
from harness.analysis.comparison.statistics.significance import LEVEL, mean_and_error, t_quantile
from harness.plugins import load
from harness.trace.calibration import Calibration
from harness.trace.trace import open_trace

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "nodes-over-time.md"
TRACE = ROOT / "traces" / "philly.parquet"
NAME = "scripts/failures.py"
WINDOW, FAILURES = "40d..54d", "mtbf:30d mttr:4h"
PLUGINS = ("none", "default-preemption", "kueue-classic", "fairsharing")
LOSSES = ("restart", "checkpoint=30m")
FIGURES = (
    Figure("disruption.lost", "nvidia.com/gpu", "lost GPU-hours"),
    Figure("delay.mean", "", "mean delay, minutes", 60),
)

Case = tuple[str, str, Figure]
"""A plugin, a loss model and a figure."""

Costs = Mapping[Case, Sequence[float]]
"""For each case, the increase of its figure by failures in each twin."""


def costs(twins: int, folder: Path) -> Costs:
    """Returns the increase of each figure by failures for each twin, and prints the twins' numbers."""
    found: dict[Case, list[float]] = {
        (plugin, loss, figure): [] for plugin in PLUGINS for loss in LOSSES for figure in FIGURES
    }
    for twin in range(1, twins + 1):
        for plugin in PLUGINS:
            for loss in LOSSES:
                without, with_failures = (
                    _run(plugin, loss, failures, twin, folder) for failures in ("", FAILURES)
                )
                for each in FIGURES:
                    added = value_of(with_failures, each) - value_of(without, each)
                    found[plugin, loss, each].append(added)
        click.echo(f"twin {twin}", err=True)
    return found


def added(found: Costs) -> Iterator[str]:
    """Yields the increase by failures, one row per plugin, as means over twins with 95 % intervals."""
    yield from _head("added by failures")
    for plugin in PLUGINS:
        yield _row(f"`{plugin}`", (_mean(found[plugin, *column]) for column in _COLUMNS))
    work, told = asked(), []
    for loss in LOSSES:
        parts = sorted(fmean(found[plugin, loss, FIGURES[0]]) / work for plugin in PLUGINS)
        ends = dict.fromkeys(_text(100 * part) for part in (parts[0], parts[-1]))
        told.append(f"{' to '.join(ends)} % under `{loss}`")
    twins = len(next(iter(found.values())))
    sentences = (
        f"The figures are means over {twins} twins of the trace, with 95 % intervals. "
        f"The jobs request {work:,.0f} GPU-hours. "
        f"Of these GPU-hours, failures waste {' and '.join(told)}."
    )
    yield from ("", *wrap(sentences, 120))


def asked() -> float:
    """Returns the GPU-hours that the jobs of the window request."""
    jobs = Calibration.parse(window=WINDOW).of_trace(open_trace(TRACE, load())).frame
    hours = pl.col("duration").dt.total_seconds() / 3600
    return float(jobs.select((hours * pl.col("pods") * pl.col("request.nvidia.com/gpu")).sum()).item())


def differences(found: Costs) -> Iterator[str]:
    """Yields how much more failures add under one plugin than under another, one row per differing pair.

    All intervals together have a confidence of 95 % (Bonferroni), so that many tests do not give a verdict by
    chance.
    """
    apart: list[str] = []
    for plugin in PLUGINS:
        if all(any(found[plugin, *each] != found[other, *each] for each in _COLUMNS) for other in apart):
            apart.append(plugin)
    pairs = list(combinations(apart, 2))
    yield from _head("difference")
    for base, plugin in pairs:
        cells = (
            _difference(found[base, *column], found[plugin, *column], len(pairs) * len(_COLUMNS))
            for column in _COLUMNS
        )
        yield _row(f"`{plugin}` minus `{base}`", cells)


_COLUMNS = tuple((loss, figure) for figure in FIGURES for loss in LOSSES)


def _head(what: str) -> Iterator[str]:
    yield f"| {what} | {' | '.join(f'{figure.title}, `{loss}`' for loss, figure in _COLUMNS)} |"
    yield f"| --- |{' ---: |' * len(_COLUMNS)}"


def _row(name: str, cells: Iterator[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _mean(values: Sequence[float]) -> str:
    mean, error = mean_and_error(values)
    return f"{_text(mean)} ± {_text(error * t_quantile(1 - LEVEL / 2, len(values) - 1))}"


def _difference(base: Sequence[float], other: Sequence[float], count: int) -> str:
    """Returns the mean difference of twins, its interval (corrected for `count` pairs), and the verdict."""
    mean, error = mean_and_error([after - before for before, after in zip(base, other, strict=True)])
    half = error * t_quantile(1 - LEVEL / 2 / count, len(base) - 1)
    verdict = "more" if mean > half else "less" if mean < -half else "may be luck"
    return f"{_text(mean, '+')} ({_text(mean - half, '+')} to {_text(mean + half, '+')}): {verdict}"


def _text(value: float, sign: str = "") -> str:
    return f"{value:{sign},.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def _run(plugin: str, loss: str, failures: str, twin: int, folder: Path) -> harness.Run:
    return harness.replay(
        TRACE,
        plugin=plugin,
        on_preemption=loss,
        calibration=Calibration.parse(window=WINDOW, **({"failures": failures} if failures else {})),
        twin=str(twin),
        output=folder,
        keep="metrics",
    )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--twins", default=20, show_default=True, help="Twins of the trace.")
@click.option("--write", is_flag=True, help="Put the tables into the page.")
def main(folder: Path, twins: int, *, write: bool) -> None:
    """Replay, and print the tables."""
    found = costs(twins, folder)
    for make in (added, differences):
        lines = list(make(found))
        click.echo("\n".join(lines))
        if write:
            marks.write(PAGE, marks.begins(NAME, make.__name__), ["", *lines, ""])


if __name__ == "__main__":
    main()

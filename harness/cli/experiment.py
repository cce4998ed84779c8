"""`harness experiment` shows the results of many replays."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.base.errors import OptionError
from harness.cli.context import command_line
from harness.cli.group import Group
from harness.cli.output import STDOUT, deliver, is_page, json_layout, layout_option, page_format
from harness.cli.screen import fold, put, show_table, terminal_width

_EXPERIMENT = click.argument("experiment", metavar="DIR", type=click.Path(path_type=Path))
_OBJECTIVES = click.option(
    "--objective", "objectives", multiple=True, metavar="METRIC[{SCOPE}]",
    help="A metric by which to judge settings; may be repeated. [default: wait.first_start.p95, "
    "disruption.lost, "
    "fairness.share_deviation]",
)  # fmt: skip
_WHERE = click.option(
    "--where", multiple=True, metavar="NAME=VALUE", help="Use only items with this setting; may be repeated."
)
_PAGE = Path("experiment.html")


@click.group(
    cls=Group,
    epilog="""\b
Examples:
  harness experiment show results/small-sweep
  harness experiment compare results/small-sweep 0 1""",
)
def experiment() -> None:
    """Show the results of an experiment, compare its settings, or write a report of it."""


@experiment.command(
    epilog="""\b
Examples:
  harness experiment show results/small-sweep
  harness experiment show results/small-sweep --where scale-arrivals=2"""
)
@_EXPERIMENT
@_OBJECTIVES
@_WHERE
def show(experiment: Path, objectives: tuple[str, ...], where: tuple[str, ...]) -> None:
    """Print best and worst settings, the effect of each factor, and the frontier.

    The frontier contains the settings that no other setting beats. A setting beats another setting at the
    same load if it is as good in all objectives and better in one. All means are over seeds, with 95 %
    intervals.
    """
    from harness.studies.experiments.experiment import Experiment
    from harness.studies.experiments.objectives import Judged
    from harness.studies.experiments.table import show as told

    judged = Judged(Experiment.open(experiment), objectives, _pairs(where))
    click.echo(fold(told(judged, terminal_width())))


def _pairs(where: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in where:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise OptionError(f"--where {text!r} is not understood", hint="write NAME=VALUE")
        found[name] = value
    return found


@experiment.command(
    epilog="""\b
Examples:
  harness experiment report results/small-sweep
  harness experiment report results/small-sweep --format markdown"""
)
@_EXPERIMENT
@_OBJECTIVES
@_WHERE
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="Write to this file; - is stdout. [default: experiment.html, or stdout for Markdown]",
)  # fmt: skip
@page_format
@click.pass_context
def report(
    ctx: click.Context,
    experiment: Path,
    objectives: tuple[str, ...],
    where: tuple[str, ...],
    output: Path | None,
    form: str | None,
) -> None:
    """Write a report: the frontier, its winners and losers, effects, and interactions of pairs of factors."""
    from harness.studies.experiments.experiment import Experiment
    from harness.studies.experiments.objectives import Judged
    from harness.studies.experiments.report import report as made

    page = is_page(form, output)
    judged = Judged(Experiment.open(experiment), objectives, _pairs(where))
    written = made(judged, command=command_line(ctx))
    text = written.html() if page else written.markdown()
    deliver(text, output or (_PAGE if page else STDOUT))


@experiment.command(
    epilog="""\b
Examples:
  harness experiment compare results/small-sweep 0 1
  harness experiment compare results/small-sweep 0 1 --metric wait.first_start.p95"""
)
@_EXPERIMENT
@click.argument("items", nargs=-1, required=True, type=click.IntRange(min=0), metavar="ITEM ITEM...")
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="Show only this metric; may be repeated."
)
@layout_option
@json_layout
def compare(experiment: Path, items: tuple[int, ...], metrics: tuple[str, ...], layout: str) -> None:
    """Compare settings with the first setting, paired by seed.

    Each ITEM selects a setting, with all of its seeds.
    """
    from harness.studies.experiments.compared import Compared
    from harness.studies.experiments.experiment import Experiment
    from harness.studies.experiments.objectives import Judged

    compared = Compared(Judged(Experiment.open(experiment)), items, metrics)
    if layout == "json":
        click.echo(json.dumps(compared.to_json()))
    elif layout == "csv":
        put(compared.to_polars().write_csv())
    elif layout == "markdown":
        click.echo(compared.markdown())
    else:
        show_table(compared.text(terminal_width()))

"""`harness diff` finds the first difference between two runs of the same jobs."""

from __future__ import annotations

import json

import click

from harness.cli.given_runs import given_runs
from harness.cli.output import json_layout
from harness.cli.screen import fold, put, terminal_width


@click.command(
    epilog="""\b
Examples:
  harness diff results/philly/none-* results/philly/none@strict-*
  harness diff results/philly/none-* results/philly/none@strict-* --most 3 --format markdown"""
)
@click.argument("words", nargs=-1, required=True, metavar="FIRST SECOND")
@click.option("--most", default=10, show_default=True, type=click.IntRange(min=0), metavar="NUMBER",
              help="Number of jobs and decisions to list.")  # fmt: skip
@click.option(
    "--format", "layout", type=click.Choice(["table", "markdown", "json", "csv"]), default="table",
    show_default=True, help="Output format; 'csv' has the changes of all jobs, in microseconds.",
)  # fmt: skip
@json_layout
def diff(words: tuple[str, ...], most: int, layout: str) -> None:
    """Show the first decision in which two runs of the same jobs differ, and which jobs gained or lost."""
    from harness.analysis.difference import Difference
    from harness.runs.run import Run

    (first, second), _ = given_runs("diff", words, 2)
    difference = Difference(Run.open(first), Run.open(second))
    if layout == "json":
        click.echo(json.dumps(difference.to_json(most)))
    elif layout == "csv":
        put(difference.jobs.write_csv())
    else:
        told = difference.text(most, markdown=layout == "markdown", width=terminal_width())
        click.echo(told if layout == "markdown" else fold(told))

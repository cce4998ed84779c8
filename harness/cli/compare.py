"""`harness compare`: finished runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from harness.comparison import Comparison


@click.command(
    epilog="""\b
Examples:
  harness compare results/philly/none-* --metric 'wait.*'
  harness compare results/philly/* --scope queue --metric wait.first_start.p95 --format markdown
  harness compare results/philly/* --fail-on 'wait.first_start.p95 > +500%'"""
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    metavar="LABEL",
    help="The run that the others are compared with, by its label. [default: the first]",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Show these metrics, such as 'wait.*'; may be repeated.",
)
@click.option(
    "--scope", default="all", show_default=True, metavar="SCOPE",
    help="all, queue, quota, priority, reason, beneficiary, or one of them such as queue=prod.",
)  # fmt: skip
@click.option(
    "--format", "layout", type=click.Choice(["table", "markdown", "json", "csv"]), default="table",
    show_default=True, help="How to print; csv has one line a value, with its interval.",
)  # fmt: skip
@click.option("--json", "layout", flag_value="json", help="The same as --format json.")
@click.option(
    "--fail-on", "conditions", multiple=True, metavar="CONDITION",
    help="Exit with 1 where it holds, such as 'wait.first_start.p95{queue=prod} > +5%'; may be repeated.",
)  # fmt: skip
def compare(
    runs: tuple[Path, ...],
    baseline: str | None,
    metrics: tuple[str, ...],
    scope: str,
    layout: str,
    conditions: tuple[str, ...],
) -> None:
    """Compare finished runs of one trace: one table, the first run is the baseline.

    Changes of what comes from single jobs (waits, slowdown, lost work) have a 95 % interval; ~ stands where
    neither better nor worse can be said.
    """
    from harness import api
    from harness.comparison.conditions import parse_condition
    from harness.errors import CheckError

    parsed = [parse_condition(text) for text in conditions]
    comparison = api.compare(runs, baseline=baseline)
    click.echo(_printed(comparison, metrics, scope, layout))
    held = [sentence for condition in parsed for sentence in condition.violations(comparison)]
    if held:
        raise CheckError("\n".join(["what must not be holds:", *(f"  {sentence}" for sentence in held)]))


def _printed(comparison: Comparison, metrics: tuple[str, ...], scope: str, layout: str) -> str:
    if layout == "json":
        return json.dumps(comparison.to_json(*metrics, scope=scope))
    if layout == "csv":
        return comparison.changes(*metrics, scope=scope).write_csv().rstrip("\n")
    if layout == "markdown":
        return comparison.markdown(*metrics, scope=scope)
    return comparison.table(*metrics, scope=scope)

"""`harness compare`: finished runs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  harness compare results/philly/none-* --metric 'wait.*'
  harness compare results/philly/* --scope queue --metric wait.first_start.p95 --json"""
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
    help="all, queue, priority, reason, or one of them such as queue=prod.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
def compare(
    runs: tuple[Path, ...], baseline: str | None, metrics: tuple[str, ...], scope: str, as_json: bool
) -> None:
    """Compare finished runs of one trace: one table, the first run is the baseline."""
    from harness import api

    comparison = api.compare(runs, baseline=baseline)
    if as_json:
        click.echo(json.dumps(comparison.to_json(*metrics, scope=scope)))
    else:
        click.echo(comparison.table(*metrics, scope=scope))

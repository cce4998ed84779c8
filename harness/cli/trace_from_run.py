"""`harness trace from-run`: the trace of a run, with what happened in the run as its record."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.context import loaded_plugins
from harness.cli.output import parquet_target, spare
from harness.text import printable


@click.command(
    "from-run",
    epilog="""\b
Examples:
  harness trace from-run results/philly/none-* recorded.parquet
  harness trace from-run results/philly/none-* recorded.parquet --trace traces/philly.parquet""",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--trace", "file", type=click.Path(path_type=Path), metavar="FILE",
    help="The trace that was replayed, if it is not where the run found it.",
)  # fmt: skip
@click.pass_context
def from_run(ctx: click.Context, run: Path, output: Path, file: Path | None) -> None:
    """Write the trace of a run, with starts, ends and evictions of the run as what is recorded.

    The plugin `recorded` replays them, and `harness validate` judges another plugin or cluster against them.
    """
    from harness.runs.outcome import outcome_of
    from harness.runs.run import Run
    from harness.trace.write import write_trace

    parquet_target(output, None)
    found = Run.open(run)
    trace = outcome_of(found, loaded_plugins(ctx), file)
    spare(trace.path, output)
    write_trace(trace, output)
    click.echo(printable(f"{trace.frame.height:,} rows written to {output}"))

"""`harness trace from-run` writes the trace of a run, with the events of the run as recorded events."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.text import counted, printable
from harness.cli.context import loaded_plugins
from harness.cli.given_runs import given_runs
from harness.cli.output import parquet_target, spare, trace_output
from harness.cli.screen import results_only


@click.command(
    "from-run",
    epilog="""\b
Examples:
  harness trace from-run results/philly/none-* recorded.parquet
  harness trace from-run results/philly/none-* recorded.parquet --trace traces/philly.parquet""",
)
@click.argument("words", nargs=-1, required=True, metavar="RUN [OUT.parquet]")
@trace_output
@click.option(
    "--trace", "file", type=click.Path(path_type=Path), metavar="FILE",
    help="The trace that was replayed, if it has moved since the run.",
)  # fmt: skip
@click.pass_context
def from_run(ctx: click.Context, words: tuple[str, ...], output: Path | None, file: Path | None) -> None:
    """Write the trace of a run, with its starts, ends and evictions as recorded events.

    The plugin `recorded` replays these events, and `harness validate` compares another plugin or cluster with
    them.
    """
    from harness.runs.outcome import outcome_of
    from harness.runs.run import Run
    from harness.trace.write import write_trace

    (run,), target_word = given_runs("trace from-run", words, 1, others=1)
    target = parquet_target(next(map(Path, target_word), None), output)
    found = Run.open(run)
    with results_only():
        trace = outcome_of(found, loaded_plugins(ctx), file)
    spare(trace.path, target)
    write_trace(trace, target)
    click.echo(printable(f"{counted(trace.frame.height, 'row')} written to {target}"))
    more = found.jobs.join(trace.frame, on="job_id", how="anti").height
    if more:
        click.echo(f"  left out: {counted(more, 'job')} of the manifests, which the replayed trace lacks")

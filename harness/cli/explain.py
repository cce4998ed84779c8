"""`harness explain` explains what happened to a job, in a queue, or at a given time."""

from __future__ import annotations

import json

import click

from harness.cli.given_runs import given_runs
from harness.cli.screen import fold


@click.command(
    epilog="""\b
Examples:
  harness explain results/philly/none-* 38
  harness explain results/philly/none-* --queue 0e4a51 --at 12h
  harness explain results/philly/none-* --at 1d --all
  harness explain results/philly/none-* 38 --json"""
)
@click.argument("words", nargs=-1, required=True, metavar="RUN [JOB]")
@click.option("--queue", metavar="NAME", help="Explain a queue instead of a job.")
@click.option(
    "--at", metavar="TIME",
    help="Explain a moment: a time as the run shows it, or a duration since the origin such as 30d12h.",
)  # fmt: skip
@click.option(
    "--all", "everything", is_flag=True, help="Show every round of a loop and every job, without summaries."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of sentences.")
def explain(
    words: tuple[str, ...], queue: str | None, at: str | None, everything: bool, as_json: bool
) -> None:
    """Explain the life of a job of a finished run: why it waited, what admitted it, who preempted it and why.

    The explanation uses only the records of the run, and the same words for all plugins. JOB is the job_id in
    the trace, or an id from another system that the trace contains, such as slurm_job_id.
    """
    from harness.analysis.explanation.explain import explain as answer_to
    from harness.runs.run import Run

    (run,), job = given_runs("explain", words, 1, others=1)
    opened = Run.open(run)
    answer = answer_to(opened, next(iter(job), None), queue=queue, at=at)
    if as_json:
        click.echo(json.dumps(answer.to_json(), default=str))
        return
    if opened.is_record:
        click.echo(fold("this run is a record of what happened, not a simulation, so it has no reasons\n"))
    click.echo(fold(answer.text(everything=everything)))

"""`harness explain`: explains what happened to a job, in a queue, or at an instant."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.cli.screen import fold


@click.command(
    epilog="""\b
Examples:
  harness explain results/philly/none-* 38
  harness explain results/philly/none-* --queue 0e4a51 --at 12h
  harness explain results/philly/none-* --at 1d --all
  harness explain results/philly/none-* 38 --json"""
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("job", required=False)
@click.option("--queue", metavar="NAME", help="Explain a queue instead of a job.")
@click.option(
    "--at", metavar="TIME",
    help="Explain one instant: a time in the form of the run, or a duration such as 30d12h.",
)  # fmt: skip
@click.option(
    "--all", "everything", is_flag=True, help="Show every round of a loop and every job, without summaries."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of sentences.")
def explain(
    run: Path, job: str | None, queue: str | None, at: str | None, everything: bool, as_json: bool
) -> None:
    """Explain the life of a job of a finished run: why it waited, what admitted it, who preempted it and why.

    The explanation uses only the records of the run, and the same words for all plugins.
    """
    from harness.analysis.explanation.explain import explain as answer_to
    from harness.runs.run import Run

    opened = Run.open(run)
    answer = answer_to(opened, job, queue=queue, at=at)
    if as_json:
        click.echo(json.dumps(answer.to_json(), default=str))
        return
    if opened.is_record:
        click.echo(fold("a record of what happened, not a simulation: it has no reasons\n"))
    click.echo(fold(answer.text(everything=everything)))

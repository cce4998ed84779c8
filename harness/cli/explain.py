"""`harness explain` explains what happened to a job, in a queue, or at a given time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from harness.base.errors import RunError
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

    run, job = _one_run(words)
    opened = Run.open(run)
    answer = answer_to(opened, job, queue=queue, at=at)
    if as_json:
        click.echo(json.dumps(answer.to_json(), default=str))
        return
    if opened.is_record:
        click.echo(fold("this run is a record of what happened, not a simulation, so it has no reasons\n"))
    click.echo(fold(answer.text(everything=everything)))


def _one_run(words: Sequence[str]) -> tuple[Path, str | None]:
    """Returns the run and the job of the arguments. A shell may expand a pattern to several arguments."""
    runs = [Path(word) for word in words if (Path(word) / "run.json").is_file()]
    rest = [word for word in words if Path(word) not in runs]
    if not runs:
        runs, rest = [Path(words[0])], list(words[1:])
    if len(rest) > 1:
        raise click.UsageError(f"Got unexpected extra argument ({rest[1]})")
    if len(runs) > 1:
        runs.sort(key=lambda run: (run / "run.json").stat().st_mtime, reverse=True)
        lines = [f"  {run}: {_command(run)}" for run in runs]
        raise RunError(
            "\n".join([f"explain accepts one run, but these are {len(runs):,}, the latest first:", *lines]),
            hint=f"name one of them: {' '.join(['harness explain', str(runs[0]), *rest])}",
        )
    return runs[0], next(iter(rest), None)


def _command(run: Path) -> str:
    from harness.runs.folder import read_info

    return str(read_info(run)["provenance"].get("command") or "made in Python")

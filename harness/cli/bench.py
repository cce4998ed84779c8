"""`harness bench` scores policies in named tasks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import CheckError, InputError
from harness.base.text import agreeing, printable
from harness.cli.context import loaded_plugins
from harness.cli.group import Group
from harness.cli.output import table_format
from harness.cli.progress import SweepBar
from harness.cli.run_options import folder_option, workers_option
from harness.cli.screen import fold, printable_lines, results_only, tell, terminal_width

if TYPE_CHECKING:
    from harness.plugins import Plugins
    from harness.studies.benchmark.submission import Submission
    from harness.studies.benchmark.suite import Suite, Task

_TASKS = click.argument("tasks", nargs=-1, metavar="[TASK]...")
_SUITE = click.option(
    "--suite", "suite_name", default="sched-1.0", show_default=True, metavar="NAME|FILE",
    help="Name of a suite of tasks, or a file with your own tasks.",
)  # fmt: skip
_SEED = click.option(
    "--seed", type=click.IntRange(min=1), metavar="N",
    help="Replay weeks drawn from the record with this seed, instead of the task's own weeks.",
)  # fmt: skip
_TWINS = click.option(
    "--twins", type=click.IntRange(min=2), metavar="N",
    help="Number of twins to replay. [default: the task's number]",
)  # fmt: skip
_OUTPUT = folder_option("Store results in DIR/SUITE, in one folder per policy.", "results/bench")
_WORKERS = workers_option("Run N replays in parallel, each in its own process.")


@click.group(
    cls=Group,
    epilog="""\b
Examples:
  harness bench run hpc2n -p none --twins 2
  harness bench table hpc2n --twins 2""",
)
def bench() -> None:
    """Score policies in named tasks, and check submissions."""


@bench.command(
    epilog="""\b
Examples:
  harness bench run hpc2n -p none --twins 2
  harness bench run hpc2n -p none -p backfill --twins 2"""
)
@_TASKS
@click.option(
    "-p", "--plugin", "names", multiple=True, metavar="NAME", help="A policy to score; may be repeated."
)
@_SEED
@_TWINS
@_SUITE
@_OUTPUT
@_WORKERS
@click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")
@click.pass_context
def run(
    ctx: click.Context,
    tasks: tuple[str, ...],
    names: tuple[str, ...],
    seed: int | None,
    twins: int | None,
    suite_name: str,
    output: Path,
    workers: int | None,
    quiet: bool,
) -> None:
    """Replay policies in tasks, together with the built-in policies, which define the scale of scores.

    The command does not repeat replays that are already stored, so you can continue a stopped command by
    running it again. The folder of each policy is a submission. Without --plugin, the command replays only
    the built-in policies.
    """
    from harness.studies.benchmark.running import reference, run_task
    from harness.studies.benchmark.scores import values_of
    from harness.studies.benchmark.submission import Result

    plugins = loaded_plugins(ctx)
    for name in names:
        plugins.policy(name)
    suite, failed = _suite(suite_name, tasks, twins), 0
    home = output / suite.name
    for task in suite.tasks.values():
        with SweepBar(shown=not quiet) as bar, results_only():
            scale = reference(task, plugins, home, seed=seed, workers=workers, watch=bar.update)
        for name in names:
            with SweepBar(shown=not quiet) as bar, results_only():
                made = run_task(
                    task, [name], plugins, home / name, seed=seed, workers=workers, watch=bar.update
                )
            if not made.items.filter(state="failed").is_empty():
                error = made.items.filter(state="failed")["error"][0].split("\n")[0]
                tell(f"{task.name}: {name} failed: {error}")
                failed += 1
                continue
            result = Result(task.name, seed, task.twins, scale.score(values_of(made, task)[name]))
            submission = _submission(home / name, suite, name, plugins).with_result(result)
            submission.write(home / name)
    click.echo(_table(suite, home, plugins, seed, "text"))
    if failed:
        raise CheckError(f"{agreeing(failed, 'result', 'are')} missing, because replays failed")


@bench.command(
    epilog="""\b
Examples:
  harness bench table hpc2n --twins 2
  harness bench table hpc2n --twins 2 --format markdown"""
)
@_TASKS
@_SEED
@_TWINS
@_SUITE
@_OUTPUT
@table_format
@click.pass_context
def table(
    ctx: click.Context,
    tasks: tuple[str, ...],
    seed: int | None,
    twins: int | None,
    suite_name: str,
    output: Path,
    form: str,
) -> None:
    """Print the scores of all policies that were replayed.

    The worst built-in policy has the score 0, and the best has the score 1. If a built-in policy has no
    results yet, the command replays it first.
    """
    suite = _suite(suite_name, tasks, twins)
    click.echo(_table(suite, output / suite.name, loaded_plugins(ctx), seed, form))


@bench.command(
    epilog="""\b
Examples:
  harness bench check results/bench/sched-1.0/none
  harness bench check results/bench/sched-1.0/none -o results/bench"""
)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@_SUITE
@_OUTPUT
@_WORKERS
@click.pass_context
def check(ctx: click.Context, folder: Path, suite_name: str, output: Path, workers: int | None) -> None:
    """Check the decisions of a submission, and recompute its scores.

    The exit code is 1 if a run breaks a rule, or if a score doesn't follow from the decisions of the run. The
    policy need not be installed.
    """
    from dataclasses import replace

    from harness.studies.benchmark.running import reference
    from harness.studies.benchmark.submission import Submission, faults_of

    submission = Submission.read(folder)
    suite, plugins = _suite(suite_name, (), None), loaded_plugins(ctx)
    if submission.suite != suite.name:
        raise InputError(
            f"{folder} is a submission to {submission.suite}, not to {suite.name}", hint="--suite names it"
        )
    wrong = 0
    for result in submission.results:
        task = replace(suite.task(result.task), twins=result.twins)
        with results_only():
            scale = reference(task, plugins, output / suite.name, seed=result.seed, workers=workers)
            faults = faults_of(folder, submission, result, task, plugins, scale)
        wrong += bool(faults)
        called = task.called(result.seed)
        click.echo(printable(f"{called}: {'; '.join(faults) or 'the results match the decisions'}"))
    if wrong:
        raise CheckError(f"{wrong:,} of {len(submission.results):,} results are refused")


def _suite(name: str, tasks: Iterable[str], twins: int | None) -> Suite:
    from dataclasses import replace

    from harness.studies.benchmark.suite import Suite, load_suite

    whole = load_suite(name)
    chosen: list[Task] = [whole.task(each) for each in tasks] or list(whole.tasks.values())
    some = {task.name: replace(task, twins=task.twins if twins is None else twins) for task in chosen}
    return Suite(whole.name, some)


def _submission(folder: Path, suite: Suite, name: str, plugins: Plugins) -> Submission:
    from harness.studies.benchmark.submission import FILE, Submission

    if (folder / FILE).is_file():
        return Submission.read(folder)
    return Submission(suite.name, name, plugins.policy(name).clairvoyant)


def _table(suite: Suite, home: Path, plugins: Plugins, seed: int | None, form: str) -> str:
    import json

    from harness.studies.benchmark import table as tables
    from harness.studies.benchmark.running import reference
    from harness.studies.benchmark.submission import FILE, Submission

    with results_only():
        scales = {name: reference(task, plugins, home, seed=seed) for name, task in suite.tasks.items()}
    there = [Submission.read(path.parent) for path in sorted(home.glob(f"*/{FILE}"))]
    scores = tables.scores_of(scales, there, seed)
    if form == "json":
        return json.dumps(tables.to_json(scores), indent=2)
    if form == "markdown":
        return tables.markdown(scores)
    return fold(printable_lines(tables.text(scores, terminal_width())))

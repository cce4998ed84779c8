"""`harness sweep` carries out many replays as one experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CheckError, OptionError
from harness.base.text import aligned, counted, printable, shortened
from harness.base.units import SECOND, format_duration
from harness.cli.context import loaded_plugins
from harness.cli.input_options import ONCE
from harness.cli.progress import SweepBar
from harness.cli.run_options import folder_option, workers_option
from harness.cli.screen import error_width, results_only, tell, terminal_width

if TYPE_CHECKING:
    from harness.studies.experiments.experiment import Experiment
    from harness.studies.experiments.specification import Spec
    from harness.studies.experiments.sweep import Sweep

_ENDINGS = (".yaml", ".yml")
_SHOWN = 20
_WIDEST_ERROR = 160


@click.command(
    epilog="""\b
Examples:
  harness sweep docs/examples/sweep.yaml --dry-run
  harness sweep traces/philly.parquet -p none -p fairsharing --vary scale-arrivals=1,1.2
  harness sweep items docs/examples/sweep.yaml
  harness sweep run docs/examples/sweep.yaml --item 0"""
)
@click.argument("words", nargs=-1, required=True, metavar="[items|run] SPEC.yaml|TRACE...")
@click.option(
    "-p", "--plugin", "names", multiple=True, metavar="NAME[@LABEL]",
    help="Scheduler plugin, if traces are given instead of a specification; may be repeated.",
)  # fmt: skip
@click.option(
    "--cluster", **ONCE, metavar="PATH",
    help="Manifests, if traces are given instead of a specification. [default: as for harness replay]",
)  # fmt: skip
@click.option(
    "--vary", multiple=True, metavar="NAME=VALUE,...",
    help="Vary a setting of harness replay, an option of a plugin, or a knob of the cluster, in addition to "
    "a specification or instead of one; may be repeated.",
)  # fmt: skip
@click.option(
    "--seeds", metavar="N", type=click.IntRange(min=1),
    help="Replay each setting on N random draws of the trace's weeks.",
)  # fmt: skip
@click.option("--item", metavar="N", type=click.IntRange(min=0), help="With `run`: the number of the item.")
@folder_option("Store the experiment as DIR/NAME.")
@workers_option("Run N items in parallel, each in its own process.")
@click.option("--dask", metavar="ADDRESS", help="Run items on the workers of this Dask scheduler.")
@click.option("--dry-run", is_flag=True, help="List the items, and estimate their CPU time by a short pilot.")
@click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")
@click.pass_context
def sweep(
    ctx: click.Context,
    words: tuple[str, ...],
    names: tuple[str, ...],
    cluster: str | None,
    vary: tuple[str, ...],
    seeds: int | None,
    item: int | None,
    output: Path,
    workers: int | None,
    dask: str | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Replay many settings as one experiment, and collect the results in one table.

    SPEC.yaml or --vary names the settings that vary, and the command replays all combinations. Existing items
    are skipped, so you can continue a stopped sweep by running the same command again. With `items`, the
    command lists the items, one per line. With `run`, it replays a single item, for job arrays of a batch
    system.
    """
    from harness.runs.elsewhere import dask_executor
    from harness.studies.experiments.preparation import prepared
    from harness.studies.experiments.sweep import Sweep
    from harness.studies.experiments.table import stopped_text

    verb, paths = (words[0], words[1:]) if words[0] in ("items", "run") else ("", words)
    if (item is not None) != (verb == "run"):
        raise OptionError(
            "sweep run requires --item, and only sweep run accepts it", hint="harness sweep run SPEC --item 0"
        )
    spec = _spec(paths, names, cluster, vary, seeds)
    with results_only():
        made = Sweep(prepared(spec, loaded_plugins(ctx)), output)
    if verb == "run":
        assert item is not None
        _run_one(made, item)
    elif verb == "items" or dry_run:
        click.echo(_listed(made))
        if dry_run and not quiet:
            tell(_estimated(made))
    else:
        with SweepBar(shown=not quiet) as progress, dask_executor(dask) as executor, results_only():
            experiment = made.run(workers=workers, executor=executor, watch=progress.update)
        click.echo(printable(f"{experiment.root / 'experiment.parquet'}"))
        if stopped := stopped_text(experiment):
            tell(stopped)
        _check_failures(experiment)


def _spec(
    paths: tuple[str, ...],
    names: tuple[str, ...],
    cluster: str | None,
    vary: tuple[str, ...],
    seeds: int | None,
) -> Spec:
    from dataclasses import replace

    from harness.studies.experiments.parsing import from_texts, label_of, load_spec, more_varied, spec_of
    from harness.studies.experiments.specification import Seeds

    if not paths:
        raise OptionError("which experiment?", hint="give SPEC.yaml, or a trace with --plugin and --vary")
    varied = from_texts(vary)
    if paths[0].endswith(_ENDINGS):
        if len(paths) > 1 or names or cluster:
            raise OptionError(
                f"{paths[0]} already says what to replay",
                hint="with a specification, only --vary and --seeds are allowed",
            )
        spec = more_varied(load_spec(Path(paths[0])), varied)
        return spec if seeds is None else replace(spec, seeds=replace(spec.seeds or Seeds(1), count=seeds))
    if not names:
        raise OptionError(f"which plugins should replay {paths[0]}?", hint="name each plugin with -p NAME")
    content: dict[str, Any] = {"traces": list(paths), "plugins": list(names), "vary": varied}
    content |= {} if cluster is None else {"cluster": cluster}
    content |= {} if seeds is None else {"seeds": seeds}
    called = "+".join(label_of(Path(path)) for path in paths)
    return spec_of(content, source="the command line", name=f"{called}-sweep")


def _run_one(made: Sweep, item: int) -> None:
    with results_only():
        found = made.make(item)
    if found.error:
        message, _, hint = found.error.partition("\nHint: ")
        raise CheckError(f"item {item}: {message}", hint=hint or None)
    told = f"{found.seconds:.1f} CPU-s" if found.table else "was there"
    click.echo(printable(f"item {item}: {told}, {made.folder.file(found.item.key)}"))


def _listed(made: Sweep) -> str:
    from harness.studies.experiments.store import value_text

    factors = [factor.name for factor in made.bench.spec.factors]
    rows = [["item", *factors, ""]]
    missing = {each.number for each in made.folder.missing(made.items)}
    for item in made.items:
        there = "" if item.number in missing else "there"
        rows.append([str(item.number), *(value_text(item.point[name]) or "-" for name in factors), there])
    return aligned(rows, left=range(1, len(factors) + 2), width=terminal_width())


@results_only()
def _estimated(made: Sweep) -> str:
    from harness.studies.experiments.time_estimate import PILOT_JOBS, estimated

    missing = len(made.folder.missing(made.items))
    if not missing:
        return f"{counted(len(made.items), 'item')} (all of them exist)"
    spent = format_duration(estimated(made) * SECOND)
    return (
        f"{counted(len(made.items), 'item')}, {missing:,} still to run: about {spent} of CPU time, from "
        f"pilots of the first {PILOT_JOBS:,} jobs (more if queues grow longer than in these pilots)"
    )


def _check_failures(experiment: Experiment) -> None:
    failed = experiment.items.filter(state="failed")
    if failed.is_empty():
        return
    names = list(experiment.factors)
    rows = [["item", *names, "failed with"]]
    for row in failed.head(_SHOWN).iter_rows(named=True):
        told = shortened(row["error"].split("\n")[0], _WIDEST_ERROR)
        rows.append(
            [str(row["item"]), *("-" if row[name] is None else str(row[name]) for name in names), told]
        )
    click.echo(aligned(rows, left=range(1, len(names) + 2), width=error_width()), err=True)
    raise CheckError(
        f"{failed.height:,} of {counted(experiment.items.height, 'item')} failed",
        hint=f"the results of the other items are kept; {experiment.root / 'failed'} has all error messages, "
        "and another sweep repeats the failed items",
    )

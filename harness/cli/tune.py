"""`harness tune`: a search for better weights, quotas and settings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.context import loaded_plugins
from harness.cli.output import write_output
from harness.text import aligned, printable

if TYPE_CHECKING:
    from harness.experiments.tuner import Tuned, Tuner


@click.command(
    epilog="""\b
Examples:
  harness tune docs/examples/tune.yaml
  harness tune docs/examples/tune.yaml --workers 2 -o results"""
)
@click.argument("spec", metavar="SPEC.yaml", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("results"), show_default=True,
    metavar="DIR", help="All that is tried is kept as the experiment DIR/NAME.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N",
    help="Processes; of use where points are asked for several at once, or have seeds. [default: as many "
    "as there is work for]",
)  # fmt: skip
@click.option("--dask", metavar="ADDRESS", help="Replay on the workers of this Dask scheduler.")
@click.pass_context
def tune(ctx: click.Context, spec: Path, output: Path, workers: int | None, dask: str | None) -> None:
    """Search for values of knobs, settings and options that are better than today's.

    The search is on some weeks of the trace; what it found is held against today's configuration on others,
    and its knobs are written as a patch of the manifests. A search that was stopped goes on where it was.
    """
    from harness.cluster.manifests import dump_yaml
    from harness.experiments.crew import crew_for
    from harness.experiments.elsewhere import dask_executor
    from harness.experiments.making import Replays
    from harness.experiments.tuner import Tuner
    from harness.experiments.tuning import load_tuning

    tuning = load_tuning(spec)
    tuner = Tuner(tuning, loaded_plugins(ctx), output / tuning.spec.name)
    seeds = 1 if tuning.spec.seeds is None else tuning.spec.seeds.count
    replays = Replays(tuner.bench.inputs, tuner.root / "runs")
    most = tuning.at_once * seeds
    with (
        dask_executor(dask) as executor,
        crew_for(replays, most, workers=workers, executor=executor) as (crew, _),
    ):
        found = tuner.tune(crew)
    click.echo(_told(found, tuner))
    if found.winner is not None and found.patch:
        path = tuner.root / "winner.patch.yaml"
        write_output(path, dump_yaml(found.patch))
        click.echo()
        click.echo(printable(f"its knobs are in {path}; to replay them beside today's:"))
        click.echo(printable(_command(tuner, path)))


def _told(found: Tuned, tuner: Tuner) -> str:
    """What was found, on the weeks of the search and on those that were held out."""
    from harness.comparison.figures import name_of, shown
    from harness.experiments.objectives import Judged, value_text
    from harness.experiments.search import gain
    from harness.experiments.telling import compare

    pruned = sum(each.pruned for each in found.trials)
    failed = sum(each.found is None for each in found.trials) - pruned
    barred = sum(each.found is not None and not each.found.allowed for each in found.trials)
    ended = f", {pruned:,} pruned" if tuner.tuning.parts else ""
    count = f"{len(found.trials):,} trials{ended}, {failed:,} failed, {barred:,} beyond a constraint"
    if found.winner is None:
        return f"{count}\nnothing is better than the present configuration, which stays"
    changed = [
        f"{name}: {value_text(tuner.today[name])} -> {value_text(value)}"
        for name, value in found.winner.point.items()
        if value != tuner.today[name]
    ]
    rows = [["objective", "weeks", "today", "winner", "gain"]]
    survives = []
    before, after = found.trials[0].found, found.winner.found
    pairs = [(tuner.windows[0], (before, after)), (tuner.windows[1], found.held_out or (None, None))]
    for at, measured in enumerate(found.objectives):
        gains = []
        for window, (today, winner) in pairs:
            if today is None or winner is None:
                continue
            values = today.values[at], winner.values[at]
            gains.append(gain(*values, measured.better))
            told = [shown(value, measured.unit, measured.resource) for value in values]
            rows.append([name_of(measured), window, *told, f"{100 * gains[-1]:+.1f} %"])
        if len(gains) > 1 and gains[0] > 0:
            share = f"{100 * max(0.0, gains[1]) / gains[0]:.0f} %"
            survives.append(f"{name_of(measured)}: {share} of the gain survives on the held-out weeks")
    parts = [count, "\n".join(changed), aligned(rows, left=(0, 1)), "\n".join(survives)]
    if found.held_out is None:
        parts.append("the held-out weeks cannot be replayed with it")
    elif found.items is not None:
        parts += ["on the held-out weeks:", compare(Judged(found.experiment), found.items)]
    return "\n\n".join(part for part in parts if part)


def _command(tuner: Tuner, patch: Path) -> str:
    """The command that replays the whole trace with the patch and without."""
    spec = tuner.tuning.spec
    (trace,), (cluster,), (arm,) = spec.traces.values(), spec.clusters.values(), spec.arms
    words = ["harness", "replay", str(trace), *([] if cluster is None else ["--cluster", str(cluster)])]
    return shlex.join([*words, "--patch", str(patch), "-p", f"{arm.plugin}@{arm.label}"])

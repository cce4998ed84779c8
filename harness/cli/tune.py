"""`harness tune` searches for better weights, quotas and settings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.options import durations, option_text
from harness.base.text import printable
from harness.cli.context import loaded_plugins
from harness.cli.output import remove_output, write_output
from harness.cli.run_options import folder_option, workers_option
from harness.cli.screen import fold, results_only, terminal_width

if TYPE_CHECKING:
    from harness.studies.tuning.tuner import Tuner


@click.command(
    epilog="""\b
Examples:
  harness tune docs/examples/tune.yaml
  harness tune docs/examples/tune.yaml --workers 2 -o results"""
)
@click.argument("spec", metavar="SPEC.yaml", type=click.Path(path_type=Path))
@folder_option("Store all trials as the experiment DIR/NAME.")
@workers_option(
    "Number of processes. More than one is used if the search tries several points at once, or a point has "
    "several seeds.",
    "as many as the search can use",
)
@click.option("--dask", metavar="ADDRESS", help="Replay on the workers of this Dask scheduler.")
@click.pass_context
def tune(ctx: click.Context, spec: Path, output: Path, workers: int | None, dask: str | None) -> None:
    """Search for values of knobs, settings and options that are better than today's.

    The search uses some weeks of the trace. Then the command compares the result with today's configuration
    on other weeks, and writes the knobs that it found as a patch for the manifests. You can continue a
    stopped search by running the same command again.
    """
    from harness.cluster.changes.knob_values import is_knob
    from harness.cluster.manifests import dump_yaml
    from harness.runs.elsewhere import dask_executor
    from harness.studies.experiments.objectives import value_text
    from harness.studies.tuning.result import text
    from harness.studies.tuning.specification import load_tuning
    from harness.studies.tuning.tuner import Tuner

    with results_only():
        tuner = Tuner(load_tuning(spec), loaded_plugins(ctx), output)
    with dask_executor(dask) as executor, results_only():
        found = tuner.run(workers=workers, executor=executor)
    click.echo(fold(text(found, terminal_width())))
    path = tuner.root / "winner.patch.yaml"
    remove_output(path)  # This is the patch of an earlier search.
    if found.winner is not None and found.patch:
        write_output(path, dump_yaml(found.patch))
        click.echo()
        others = [
            f"{name} from {value_text(found.today[name])} to {value_text(value)}"
            for name, value in found.winner.point.items()
            if value != found.today[name] and not is_knob(name)
        ]
        rest = f", without the other changes of the winner ({', '.join(others)})" if others else ""
        click.echo(
            fold(printable(f"the winner's knobs are in {path}; to replay them beside today's knobs{rest}:"))
        )
        click.echo(printable(_command(tuner, path)))


def _command(tuner: Tuner, patch: Path) -> str:
    """Returns the command that replays the whole trace with and without the patch, as in the tuning."""
    from harness.studies.experiments.requests import TENANTS

    spec = tuner.tuning.spec
    (trace,), (cluster,), (arm,) = spec.traces.values(), spec.clusters.values(), spec.arms
    words = ["harness", "replay", str(trace), *([] if cluster is None else ["--cluster", str(cluster)])]
    words += ["--patch", str(patch), "-p", f"{arm.plugin}@{arm.label}"]
    known = durations(tuner.plugins.policy(arm.plugin).options)
    for name, value in arm.options.items():
        words += ["--set", f"{name}={option_text(value, duration=name in known)}"]
    for name, text in spec.settings.items():
        # Paths in the specification are relative to its folder, and paths in the command to the current
        # folder.
        words += [f"--{name}", str(tuner.bench.inputs.tenants[text]) if name == TENANTS else text]
    return shlex.join(words)

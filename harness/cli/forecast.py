"""`harness forecast` predicts when the waiting jobs of a live cluster will start."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import click

from harness.base.errors import OptionError
from harness.base.units import since_1970
from harness.cli.context import loaded_plugins
from harness.cli.input_options import ONCE
from harness.cli.plugin_options import assign
from harness.cli.progress import Count
from harness.cli.run_options import live_plugin, setting_options, workers_option
from harness.cli.screen import printable_lines, results_only, terminal_width
from harness.cli.worlds import read_worlds, tell_quota_is_capacity
from harness.cluster.load import load_cluster
from harness.cluster.model import Cluster


@click.command(
    epilog="""\b
Examples:
  kubectl get clusterqueues,localqueues,resourceflavors,workloads -A -o yaml > dump.yaml
  harness forecast --cluster dump.yaml --history history.parquet
  harness forecast --cluster dump.yaml --history history.parquet --patch more-quota.yaml
  harness forecast --cluster dump.yaml --history history.parquet --submit job.yaml --json"""
)
@click.option(
    "--cluster", "clusters", multiple=True, type=click.Path(path_type=str), metavar="[NAME=]PATH[,PATH...]",
    required=True,
    help="Output of kubectl get for a live cluster, with its Workloads or Pods. If you give several dumps, "
    "the forecast shows how each cluster differs from the first, by workload.",
)  # fmt: skip
@click.option(
    "--patch", "patches", multiple=True, type=click.Path(path_type=str), metavar="[NAME=]PATH",
    help="Also forecast with these changes to the cluster, in the format of harness replay --patch.",
)  # fmt: skip
@click.option(
    "--history", **ONCE, type=click.Path(path_type=Path), metavar="TRACE",
    help="Past jobs, in any format that harness trace convert reads. [default: the jobs of PATH that have "
    "ended]",
)  # fmt: skip
@click.option(
    "--reader", metavar="NAME", help="Format of the history. [default: by its suffix or first bytes]"
)
@click.option(
    "--submit", **ONCE, type=click.Path(path_type=Path), metavar="JOB.yaml",
    help="Forecast when this Job, Pod or Workload would start if submitted now, and which jobs it would "
    "displace.",
)  # fmt: skip
@click.option(
    "--for", "workloads", multiple=True, metavar="[NAMESPACE/]NAME",
    help="Forecast only this waiting workload; may be repeated. Futures end when these workloads have "
    "started.",
)  # fmt: skip
@live_plugin
@setting_options("on_preemption")
@click.option(
    "--futures", type=click.IntRange(min=1), default=200, show_default=True, metavar="N",
    help="Number of futures to simulate.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of all random draws.")
@click.option(
    "--horizon", default="7d", show_default=True, metavar="TIME", help="Longest simulated time of a future."
)
@click.option(
    "--now", metavar="TIME",
    help="When PATH was recorded, such as 2026-01-31T08:00:00Z. [default: the latest time in PATH]",
)  # fmt: skip
@workers_option("Number of processes.", "one per core")
@click.option("--dask", metavar="ADDRESS", help="Simulate futures on the workers of this Dask scheduler.")
@click.option(
    "--calibrate", type=click.IntRange(min=0), default=40, show_default=True, metavar="N",
    help="Derive the width of intervals from the errors of forecasts at N past moments, if the history "
    "records starts. 0 turns this off.",
)  # fmt: skip
@click.option(
    "--backtest", type=click.IntRange(min=1), metavar="N",
    help="Forecast at N moments of the history's second half, and compare the forecasts with what happened.",
)  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Show all rows of all tables.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")
@click.pass_context
def forecast(
    ctx: click.Context,
    clusters: tuple[str, ...],
    patches: tuple[str, ...],
    history: Path | None,
    reader: str | None,
    submit: Path | None,
    workloads: tuple[str, ...],
    name: str | None,
    settings: tuple[str, ...],
    on_preemption: str,
    futures: int,
    seed: int,
    horizon: str,
    now: str | None,
    workers: int | None,
    dask: str | None,
    calibrate: int,
    backtest: int | None,
    every: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Forecast when waiting work in a cluster starts, and which jobs are likely to be preempted.

    The command simulates many futures with the scheduler's plugin. Run times are drawn from past jobs of the
    same user, queue, size and kind of name that ran at least as long. Later arrivals are drawn from the same
    weekdays. A future ends when all workloads in question have started.
    """
    from harness.runs.elsewhere import dask_executor
    from harness.runs.live_cluster import scheduler_of
    from harness.studies.forecasting.from_files import Asked
    from harness.studies.forecasting.text import text, verdict

    plugins = loaded_plugins(ctx)
    worlds = read_worlds(clusters, patches, _read)
    world = worlds[0].cluster
    if patches:
        tell_quota_is_capacity(world)
    spec = plugins.policy(name or scheduler_of(world))
    asked = Asked(
        world,
        history,
        submit,
        name,
        assign(settings, [(spec, spec.name)], plugins.readers)[spec.name],
        on_preemption,
        futures,
        seed,
        horizon,
        None if now is None else _moment(now),
        reader,
        {each.name: each.cluster for each in worlds[1:]},
        workloads,
        calibrate,
    )
    of_futures = Count("simulating", "future", shown=not quiet)
    of_past = Count("forecasting from", "past moment", shown=not quiet)
    with dask_executor(dask) as executor:
        if backtest is not None:
            with results_only():
                held = asked.judged(
                    backtest, plugins, workers=workers, executor=executor, watch=of_past.update
                )
            click.echo(json.dumps(held.to_json()) if as_json else verdict(held, terminal_width()))
            return
        with results_only():
            made = asked.made(
                plugins,
                workers=workers,
                executor=executor,
                watch=of_futures.update,
                watch_past=of_past.update,
            )
    if as_json:
        click.echo(json.dumps(made.to_json(), indent=2))
    else:
        click.echo(printable_lines(text(made, terminal_width(), rows=None if every else 20)))


@results_only()
def _read(path: Path | None) -> Cluster:
    assert path is not None  # The option is required.
    return load_cluster(path)


def _moment(text: str) -> int:
    """Returns a date in microseconds since 1970. Without an offset, the date is in UTC."""
    try:
        return since_1970(datetime.fromisoformat(text))
    except ValueError as error:
        raise OptionError(f"now: {text!r} is not a time such as 2026-01-31T08:00:00Z") from error

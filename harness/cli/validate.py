"""`harness validate` compares a simulation with recorded events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from harness.base.errors import OptionError
from harness.base.text import counted, printable
from harness.cli.calibration import calibrated
from harness.cli.context import command_line, loaded_plugins
from harness.cli.input_options import ONCE
from harness.cli.plugin_options import assign
from harness.cli.progress import ProgressBars
from harness.cli.replays import How, carried_out, planned
from harness.cli.run_options import kept, one_plugin, setting_options
from harness.cli.screen import fold, results_only, tell, terminal_width
from harness.cli.trace_file import conventions

if TYPE_CHECKING:
    from harness.runs.request import Request
    from harness.runs.settings import Given
    from harness.trace.calibration import Calibration


@click.command(
    epilog="""\b
Examples:
  harness validate month.parquet --cluster traces/philly.cluster.yaml -p kueue-classic
  harness validate month.parquet -p none --calibrate --json"""
)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--cluster", **ONCE, type=click.Path(path_type=Path), metavar="PATH",
    help="Kubernetes manifests. [default: the .cluster.yaml beside TRACE, else a cluster made from the "
    "trace]",
)  # fmt: skip
@one_plugin("the plugin that the manifests select, else the plugin 'none'")
@setting_options("on_preemption", "grace_period", "startup")
@click.option(
    "--calibrate", is_flag=True,
    help="Fit start-up, eviction latency and capacity to the first half of the jobs, and judge the second "
    "half.",
)  # fmt: skip
@click.option(
    "--write-events", type=click.Path(path_type=Path), metavar="FILE",
    help="Write a table of events with the outages and lower quotas that the command found. Also print how "
    "much of the error in waits these events explain.",
)  # fmt: skip
@calibrated(cluster=True)
@click.option("--reader", metavar="NAME", help="Format of the trace. [default: by its suffix or first bytes]")
@kept
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")
@click.pass_context
def validate(
    ctx: click.Context,
    trace: Path,
    cluster: Path | None,
    name: str | None,
    settings: tuple[str, ...],
    calibration: Calibration,
    calibrate: bool,
    write_events: Path | None,
    reader: str | None,
    output: Path,
    as_json: bool,
    quiet: bool,
    **choices: Unpack[Given],
) -> None:
    """Compare the events recorded in a trace with a simulation of the same jobs, and explain the differences.

    The trace must have the columns recorded_start and recorded_end, which the plugin `recorded` replays. The
    command stores both runs, and `harness report` draws them.
    """
    from harness import api
    from harness.analysis.validation import Validation
    from harness.analysis.validation.calibrate import calibrate as fitted
    from harness.analysis.validation.capacity_events import explained
    from harness.analysis.validation.text import text
    from harness.cli.event_file import check_name, write
    from harness.cluster.changes.remake import without_work
    from harness.trace.job_rows import count_jobs

    if write_events is not None:
        check_name(write_events)
    plugins = loaded_plugins(ctx)
    with results_only():
        opened = calibration.of_trace(api.read_trace(trace, plugins, None, reader=reader))
        manifests = api.read_cluster(cluster, opened, calibration)
    world = without_work(manifests)  # the record does not have this work
    spec = plugins.policy(name or api.default_plugin(world))
    if spec.record:
        raise OptionError(
            f"{spec.name} repeats what happened, so it is not a simulation",
            hint="name a scheduler plugin with -p",
        )
    options = assign(settings, [(spec, spec.name)], plugins.readers)[spec.name]

    def asked(plugin: str) -> Request:
        simulated = plugin == spec.name
        given: Given = {**choices, "at_start": "empty"}
        if not simulated:
            given |= {"startup": 0, "ignore_events": True}  # changes of the cluster do not change a record
        return api.Request(
            opened, plugin=plugin, cluster=world, options=options if simulated else {}, output=output, **given
        )

    requests = [asked("recorded"), asked(spec.name)]
    plans = planned(requests, plugins)
    if not quiet:
        for line in conventions(opened):
            tell(line)
        for sentence in dict.fromkeys([*world.assumed, *plans[1].assumed, *plans[1].warnings]):
            tell(f"note: {sentence}")
        if world is not manifests:
            tell("note: both runs leave out the Workloads and Pods of the manifests")
    how = How(None, command_line(ctx), quiet)
    runs = carried_out(requests, plans, plugins, how, jobs=count_jobs(opened.frame))
    validation = Validation(opened, world, *runs)
    with results_only():
        fit = fitted(validation, requests[1], plugins) if calibrate else None
    events = None
    if write_events is not None:
        if not quiet:
            tell("searching for events that make the simulation agree with the record")
        bars = ProgressBars(["events"], count_jobs(opened.frame), shown=not quiet)
        with results_only(), bars as progress:
            events = explained(validation, requests[1], plugins, progress.watch)
        write(write_events, events.rows)
    if as_json:
        found = validation.to_json()
        if fit is not None:
            found["calibration"] = fit.to_json()
        if events is not None:
            found["events"] = events.to_json()
        click.echo(json.dumps(found))
        return
    click.echo(text(validation, terminal_width()))
    for sentence in () if fit is None else fit.told:
        click.echo(fold(sentence))
    if events is not None:
        click.echo(f"\n{events.table}" if events.rows else "\nno event brings the waits closer to the record")
        if not quiet:
            for note in events.notes:
                tell(f"note: {note}")
            told, use = counted(len(events.rows), "event"), f"; replay with --events {write_events}"
            click.echo(printable(f"{told}: {write_events}{use if events.rows else ''}"), err=True)
    if not quiet:
        folders = " ".join(str(run.path) for run in runs)
        click.echo(printable(f"to see the results: harness report {folders} -o validation.html"), err=True)

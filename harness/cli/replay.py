"""Implements `harness replay`, the main command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from harness.base.errors import OptionError, PluginError, StoppedError
from harness.base.grouping import grouped
from harness.base.text import counted
from harness.cli.calibration import calibrated
from harness.cli.context import command_line, complete_policies, loaded_plugins
from harness.cli.cycles import check_watched, watched
from harness.cli.plugin_options import assign
from harness.cli.replays import How, carried_out, isolated, judged, planned, shaken
from harness.cli.run_options import kept, setting_options, workers_option
from harness.cli.screen import results_only, show_table, tell, terminal_width
from harness.cli.trace_file import conventions
from harness.cli.worlds import World, read_worlds
from harness.runs.settings import SETTINGS, Given

if TYPE_CHECKING:
    from harness.plugins import Plugins
    from harness.plugins.registries import PolicySpec
    from harness.runs.plan import Plan
    from harness.runs.request import Request
    from harness.runs.run import Run
    from harness.trace.calibration import Calibration
    from harness.trace.failures import Failures
    from harness.trace.shake import Shake
    from harness.trace.trace import Trace

_NO_CLUSTER = (
    "assumed: this whole cluster, because no cluster was given. If your cluster has another capacity, write "
    "its manifests (harness cluster init or harness cluster from-slurm), and replay with --cluster FILE"
)


@click.command(
    epilog="""\b
Examples:
  harness replay traces/philly.parquet --plugin none
  harness replay traces/philly.parquet -p none -p fairsharing --until 30d
  harness replay traces/philly.parquet -p none@a -p none@b --set b.percentageOfNodesToScore=50
  harness replay traces/philly.parquet --cluster traces/philly.cluster.yaml --cluster pr.yaml"""
)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "-p", "--plugin", "names", multiple=True, metavar="NAME[@LABEL]", shell_complete=complete_policies,
    help="Scheduler plugin; may be repeated: harness then compares the runs with the first one. [default: "
    "the plugin that a KubeSchedulerConfiguration of the cluster selects, else the plugin 'none']",
)  # fmt: skip
@click.option(
    "--cluster", "clusters", multiple=True, type=click.Path(path_type=str), metavar="[NAME=]PATH[,PATH...]",
    help="Kubernetes manifests of one cluster: files, folders or - for stdin, separated by commas. If given "
    "several times, every plugin is replayed on each cluster, as PLUGIN@NAME. [default: the .cluster.yaml "
    "beside TRACE, else a cluster made from the trace]",
)  # fmt: skip
@click.option(
    "--patch", "patches", multiple=True, type=click.Path(path_type=str), metavar="[NAME=]PATH",
    help="Changes to the cluster: manifests with kind, name and the changed fields. Every plugin is replayed "
    "on the unchanged cluster and with each patch, as PLUGIN@base and PLUGIN@NAME.",
)  # fmt: skip
@click.option(
    "--events", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="A table (CSV or Parquet) of changes of quotas and nodes over time, for all clusters. To "
    "replay every plugin both without the table and with it, give it with --patch FILE instead.",
)  # fmt: skip
@click.option(
    "--set", "settings", multiple=True, metavar="[LABEL.]KEY=VALUE",
    help="Set an option of the plugin with this label, or of all plugins that have the option; `harness "
    "plugins` lists options.",
)  # fmt: skip
@setting_options(*SETTINGS)
@calibrated(cluster=True, failures=True)
@click.option(
    "--drop-impossible", is_flag=True,
    help="Leave out jobs that could never start with one of the plugins; harness shows and records their "
    "number.",
)  # fmt: skip
@click.option("--reader", metavar="NAME", help="Format of the trace. [default: by its suffix or first bytes]")
@kept
@click.option("--force", is_flag=True, help="Replay even if the same run already exists.")
@workers_option(
    "Run N replays in parallel, each in its own process.",
    "one per core, or fewer if memory is short; 1 for a short trace",
)
@click.option(
    "--shake", "shake_text", metavar="N[@SEED]",
    help="Also replay N twins of every run, in which jobs arrive up to 30 s earlier or later. Every "
    "difference then has a 95 % interval. Other variations: N,arrivals=5m,ties,durations=1%,priorities.",
)  # fmt: skip
@click.option(
    "--step", is_flag=True,
    help="Show the events and decisions of the policy, and wait for Enter after each cycle (q quits). "
    "Without a terminal, print all cycles.",
)  # fmt: skip
@click.option(
    "--trace-policy", "traced", multiple=True, metavar="JOB",
    help="Show the cycles that concern this job; may be repeated.",
)  # fmt: skip
@click.option(
    "--isolated", "alone", is_flag=True,
    help="Also replay the jobs of each quota alone, with only their nominal quota, and measure which quotas "
    "are worse off when they share the cluster: fairness.finish_time and fairness.sharing_violations. This "
    "roughly doubles the time of the runs, and of the twins with --shake.",
)  # fmt: skip
@click.option(
    "--idle-causes", "idle", is_flag=True,
    help="Replay each run again to find out why jobs wait, and measure idle capacity by cause (idle.*). This "
    "takes up to three times as long; with --shake it also covers every twin.",
)  # fmt: skip
@click.option(
    "--all", "every", is_flag=True, help="Show all headline metrics, not only the most important ones."
)
@click.option("--notes", "every_note", is_flag=True, help="Show all notes below the table, not only four.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")
@click.pass_context
def replay(
    ctx: click.Context,
    trace: Path,
    names: tuple[str, ...],
    clusters: tuple[str, ...],
    patches: tuple[str, ...],
    events: tuple[Path, ...],
    settings: tuple[str, ...],
    calibration: Calibration,
    drop_impossible: bool,
    reader: str | None,
    output: Path,
    force: bool,
    workers: int | None,
    shake_text: str | None,
    step: bool,
    traced: tuple[str, ...],
    alone: bool,
    idle: bool,
    every: bool,
    every_note: bool,
    as_json: bool,
    quiet: bool,
    **choices: Unpack[Given],
) -> None:
    """Replay a trace through scheduler plugins and measure what they do.

    Results are written to stdout, and all other output to stderr. The same inputs always give the same run.
    """
    from harness import api
    from harness.analysis.comparison import Comparison
    from harness.runs.alarms import alarms
    from harness.runs.impossible import without
    from harness.trace.homes import homed
    from harness.trace.job_rows import count_jobs
    from harness.trace.validate import strangers

    plugins = loaded_plugins(ctx)
    shake = _shake(shake_text)
    chosen = _chosen(names, settings, plugins) if names else None  # Report mistakes before files are read.
    with results_only():
        raw = api.read_trace(trace, plugins, reader=reader)
    failing = calibration.failures
    calibration = replace(calibration, failures=None)
    opened = calibration.of_trace(raw)
    # Twins draw the stated priorities of the trace again.
    anew = shake is not None and shake.shaking.priorities
    if anew and drop_impossible:
        raise OptionError(
            "--shake: priorities cannot be combined with --drop-impossible, which leaves out jobs before "
            "they get their priorities",
            hint="leave such jobs out of the trace beforehand: harness trace convert",
        )
    with results_only():
        worlds = read_worlds(
            clusters, patches, lambda path: api.cluster_for(path, opened, calibration), events
        )
    selected = [api.default_plugin(world.cluster) for world in worlds]
    policies, options = chosen or _chosen(dict.fromkeys(selected), settings, plugins)
    pairs = [
        (spec, label, world)
        for spec, label in policies
        for world, own in zip(worlds, selected, strict=True)
        if names or spec.name == own
    ]

    changes = replace(calibration, failures=failing, scale_cluster=Fraction(1)) if anew else _failing(failing)

    def asked(trace: Trace) -> list[Request]:
        return [
            api.Request(
                raw if anew else trace,
                calibration=changes,
                plugin=spec.name,
                cluster=world.cluster,
                options=options[label],
                label=world.label(label),
                output=output,
                force=force,
                **choices,
            )
            for spec, label, world in pairs
        ]

    if drop_impossible:
        found = [
            strangers(
                homed(opened, world.cluster),
                world.cluster,
                by_queues=any(spec.admits_by_queues(world.cluster) for spec, _, on in pairs if on is world),
            )
            for world in worlds
        ]
        opened = without(opened, (job for jobs in found for job in jobs))
    requests = asked(opened)
    if step or traced:
        check_watched(requests, shaken=shake is not None, as_json=as_json)
    plans = planned(requests, plugins)
    never = [job for plan in plans for each in plan.impossible for job in each.jobs]
    if drop_impossible and never:
        opened = without(opened, never)
        requests = asked(opened)
        plans = planned(requests, plugins)
    if not quiet:
        of_plans = [next(world for world in worlds if world.cluster is each.cluster) for each in requests]
        for line in _preface(opened, worlds, list(zip(of_plans, plans, strict=True)), selected=not names):
            tell(line)
    command = command_line(ctx)
    how = How(workers, command, quiet)
    if step or traced:
        runs = [watched(requests[0], plans[0], plugins, jobs=traced, step=step, command=command, quiet=quiet)]
    else:
        runs = carried_out(requests, plans, plugins, how, jobs=count_jobs(opened.frame))
    if alone:
        runs = isolated(runs, plugins, how)
    if idle:
        runs = judged(runs, plugins, how)
    chosen_by = f"the first of the {len(runs)} runs of this replay"
    comparison = Comparison(runs, chosen=chosen_by)
    if shake is not None:
        comparison = shaken(comparison, shake, lambda: plugins, how, isolated=alone, idle=idle)
    if as_json:
        click.echo(json.dumps(comparison.to_json(scope=None, changes=False)))
    else:
        table = comparison.table(width=terminal_width(), brief=not every, every_note=every_note)
        show_table(table)
    for run in runs:
        for sentence in alarms(run):
            tell(f"warning: {run.label}: {sentence}")
    _check_measured(runs)
    _check_ends(runs)


def _failing(failures: Failures | None) -> Calibration | None:
    """Returns the failures of nodes, which are the only calibration that the replay itself applies."""
    from harness.trace.calibration import Calibration

    return None if failures is None else Calibration(failures=failures)


def _shake(text: str | None) -> Shake | None:
    if text is None:
        return None
    from harness.trace.shake import Shake

    return Shake.parse(text)


def _chosen(
    names: Iterable[str], settings: Iterable[str], plugins: Plugins
) -> tuple[list[tuple[PolicySpec, str]], Mapping[str, dict[str, Any]]]:
    from harness import api
    from harness.runs.identity import look_at

    policies = [(plugins.policy(name), label) for name, label in api.labels(names)]
    for spec, _ in policies:
        look_at(spec)  # Do this before the trace is read, because the file may be edited later.
    return policies, assign(settings, policies, plugins.readers)


def _preface(
    trace: Trace, worlds: Sequence[World], plans: Sequence[tuple[World, Plan]], *, selected: bool
) -> list[str]:
    """Returns the lines to show before the replay. `selected` says whether manifests select the plugins."""
    lines = [f"trace: {trace.path}, {counted(trace.frame.height, 'row')}", *conventions(trace)]
    assumed = dict.fromkeys(f"assumed: {sentence}" for world in worlds for sentence in world.cluster.assumed)
    lines += [*assumed, *([_NO_CLUSTER] if assumed else [])]
    lines += _told("assumed", worlds, [(world, plan, plan.assumed) for world, plan in plans])
    for world in worlds:
        lines += _of_world(world, selected=selected)
    scale = worlds[0].cluster.scale
    if scale != 1:
        lines.append(f"note: --scale-cluster {scale}: the cluster has {scale} times its nodes and quotas")
    notes = [(world, plan, plan.trace.notes[len(trace.notes) :]) for world, plan in plans]
    lines += _told("note", worlds, notes)
    begun = [(world, plan, [plan.begins, plan.work.said, plan.changing]) for world, plan in plans]
    lines += _told("note", worlds, begun)
    lines += _told("warning", worlds, [(world, plan, plan.warnings) for world, plan in plans])
    return lines


def _of_world(world: World, *, selected: bool) -> Iterator[str]:
    cluster, of_it = world.cluster, f" {world.name}" if world.name else ""
    if world.name or not cluster.assumed:
        yield f"cluster{of_it}: {cluster.source}"
    if selected and cluster.scheduler is not None:
        algorithm = cluster.scheduler.preemption_algorithm or "Auto, the default,"
        yield (
            f"plugin{of_it}: {cluster.scheduler.plugin}, as preemptionAlgorithm {algorithm} "
            "of the KubeSchedulerConfiguration says"
        )


def _told(
    what: str, worlds: Sequence[World], said: Iterable[tuple[World, Plan, Iterable[str]]]
) -> Iterator[str]:
    """Yields each distinct sentence about replays once, and names the replays unless all of them have it.

    A replay is named by its cluster if the sentence applies to all plugins of the cluster, and by its label
    otherwise.
    """
    every = [(world, plan, list(filter(None, sentences))) for world, plan, sentences in said]
    of = grouped((sentence, (world, plan)) for world, plan, sentences in every for sentence in sentences)
    for sentence, whose in of.items():
        named = list(dict.fromkeys(world.name for world, _ in whose))
        of_these = sum(world.name in named for world, _, _ in every)
        names = named if len(named) < len(worlds) else []
        if len(whose) < of_these and not all(plan.policy.name in sentence for _, plan in whose):
            names = [plan.label for _, plan in whose]
        yield f"{what}: {', '.join(names)}: {sentence}" if names else f"{what}: {sentence}"


def _check_measured(runs: Iterable[Run]) -> None:
    told = [f"{run.label}: {sentence}" for run in runs for sentence in run.unmeasured.values()]
    if told:
        raise PluginError(
            "\n".join(told),
            hint="runs are kept without these metrics; --no-plugin NAME leaves a plugin out, and replaying "
            "again measures the missing metrics",
        )


def _check_ends(runs: Iterable[Run]) -> None:
    told = [(run, run.stopped) for run in runs if run.stopped is not None]
    if not told:
        return
    first, livelock = told[0]
    names = [party.job for party in livelock.jobs[:1]]
    raise StoppedError(
        "\n".join(f"{run.label}: {stopped.told()}" for run, stopped in told),
        hint="harness keeps the runs up to that point; to see the loop: "
        + shlex.join(["harness", "explain", str(first.path), *names]),
    )

"""`harness simulate` shows whether a job would start now, what it would preempt, and what would help."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from harness.base.errors import OptionError
from harness.cli.context import loaded_plugins
from harness.cli.input_options import ONCE
from harness.cli.plugin_options import assign
from harness.cli.run_options import live_plugin, setting_options
from harness.cli.screen import printable_lines, results_only, tell, terminal_width
from harness.cli.worlds import tell_quota_is_capacity
from harness.cluster.load import load_cluster
from harness.cluster.model import Cluster
from harness.plugins import Plugins


@click.command(
    epilog="""\b
Examples:
  kubectl get clusterqueues,localqueues,resourceflavors,workloads -A -o yaml > dump.yaml
  harness simulate --cluster dump.yaml job.yaml
  harness simulate --cluster dump.yaml
  harness simulate --cluster dump.yaml --patch more-quota.yaml job.yaml --json
  harness simulate --cluster dump.yaml --largest cpu=1..512 --shape cpu=4,memory=16Gi
  harness simulate --trace traces/mix.parquet --at 2d -p kueue-classic"""
)
@click.argument("jobs", nargs=-1, type=click.Path(path_type=Path), metavar="[JOB.yaml]...")
@click.option(
    "--cluster", "path", **ONCE, type=click.Path(path_type=Path), metavar="PATH[,PATH...]",
    help="Output of kubectl get for a live cluster, with its Workloads or Pods. With --trace: the cluster of "
    "the replay. [default with --trace: the .cluster.yaml beside TRACE]",
)  # fmt: skip
@click.option(
    "--trace", type=click.Path(path_type=Path), metavar="TRACE",
    help="Simulate a given time in a replay of TRACE, instead of a dump.",
)  # fmt: skip
@click.option(
    "--at", metavar="TIME", help="The time in the replay, in the form of the trace or as a duration."
)
@click.option(
    "--patch", "patches", multiple=True, type=click.Path(path_type=Path), metavar="PATH",
    help="Changes to apply to the cluster first, in the format of harness replay --patch; may be repeated.",
)  # fmt: skip
@click.option(
    "--for", "workloads", multiple=True, metavar="[NAMESPACE/]NAME",
    help="Answer only for this waiting workload of the dump; may be repeated.",
)  # fmt: skip
@live_plugin
@setting_options("on_preemption")
@click.option("--each", is_flag=True, help="Simulate each job alone, instead of adding one after another.")
@click.option(
    "--changes/--no-changes", "changes", default=None,
    help="Search for the smallest changes that let jobs start. [default: on for jobs that you submit to "
    "a dump, or name with --for]",
)  # fmt: skip
@click.option(
    "--largest", metavar="RESOURCE=FROM..TO",
    help="Find the largest gang in this range that would start now, by queue and flavor, such as "
    "nvidia.com/gpu=1..512.",
)  # fmt: skip
@click.option(
    "--shape", metavar="RESOURCE=AMOUNT,...",
    help="With --largest: the requests of each pod of the gang, such as "
    "nvidia.com/gpu=8,cpu=32,memory=200Gi.",
)  # fmt: skip
@click.option("--queue", metavar="NAME", help="With --largest: try only this queue.")
@click.option("--all", "every", is_flag=True, help="Show all rows of all tables.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.pass_context
def simulate(
    ctx: click.Context,
    jobs: tuple[Path, ...],
    path: Path | None,
    trace: Path | None,
    at: str | None,
    patches: tuple[Path, ...],
    workloads: tuple[str, ...],
    name: str | None,
    settings: tuple[str, ...],
    on_preemption: str,
    each: bool,
    changes: bool | None,
    largest: str | None,
    shape: str | None,
    queue: str | None,
    every: bool,
    as_json: bool,
) -> None:
    """Show whether jobs would start now, which jobs they would preempt, and what would help waiting jobs.

    The scheduler's plugin simulates the time at which the jobs are submitted. Without a job, the command
    answers for every waiting workload, or for those named with --for. The exit code is 0 if all submitted or
    named jobs start now, 3 if a job does not start now, and 4 if a job can never start.
    """
    from harness.studies.simulation.asking import Question
    from harness.studies.simulation.text import text

    plugins = loaded_plugins(ctx)
    _check(jobs, workloads, each=each, largest=largest, shape=shape, queue=queue)
    cluster, default = _read(path, trace, patches, plugins)
    if patches and cluster is not None:
        tell_quota_is_capacity(cluster)
    spec = plugins.policy(name or default)
    options = assign(settings, [(spec, spec.name)], plugins.readers)[spec.name]
    question = Question(plugins, cluster, name, options, on_preemption, trace, at)
    if largest is not None and shape is not None:
        with results_only():
            fits = question.largest(largest, shape, queue)
        click.echo(json.dumps(fits.to_json(), indent=2) if as_json else fits.text(terminal_width()))
        return
    with results_only():
        found = question.answered(jobs, workloads=workloads, each=each, changes=changes)
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=2))
    else:
        click.echo(printable_lines(text(found, terminal_width(), rows=None if every else 20)))
        if not found.named and changes is None and any(each.verdict == "waits" for each in found.answers):
            tell("note: --changes searches for changes that would let these jobs start")
    ctx.exit(found.exit_code)


def _check(
    jobs: Sequence[Path],
    workloads: Sequence[str],
    *,
    each: bool,
    largest: str | None,
    shape: str | None,
    queue: str | None,
) -> None:
    if each and not jobs:
        raise OptionError("--each needs jobs to submit", hint="name their files")
    if (largest is None) != (shape is None):
        raise OptionError("--largest and --shape must be given together")
    if queue is not None and largest is None:
        raise OptionError("--queue requires --largest", hint="submitted jobs name their own queues")
    if largest is not None and (jobs or workloads):
        raise OptionError("--largest cannot be combined with jobs", hint="leave out the files and --for")


@results_only()
def _read(
    path: Path | None, trace: Path | None, patches: Sequence[Path], plugins: Plugins
) -> tuple[Cluster | None, str]:
    from harness.runs.inputs import cluster_for, default_plugin, read_trace
    from harness.runs.live_cluster import scheduler_of

    if trace is not None:
        cluster = cluster_for(path, read_trace(trace, plugins))
    elif path is not None:
        cluster = load_cluster(path)
    else:
        raise OptionError(
            "neither a cluster nor a trace is given", hint="--cluster names a dump, and --trace names a trace"
        )
    for patch in patches:
        cluster = cluster.patched(patch)
    return cluster, default_plugin(cluster) if trace is not None else scheduler_of(cluster)

"""`harness replay`: the main job."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.context import loaded_plugins
from harness.errors import OptionError
from harness.options import did_you_mean
from harness.text import printable
from harness.units import format_duration

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins import PolicySpec
    from harness.run import Run
    from harness.trace.trace import Trace


@click.command(
    epilog="""\b
Examples:
  harness replay traces/philly.parquet --plugin none
  harness replay traces/philly.parquet -p none@strict -p none@skip --set strict.blocking=strict --until 7d"""
)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "-p", "--plugin", "names", multiple=True, metavar="NAME[@LABEL]",
    help="Scheduler plugin; several in one call are compared, the first is the baseline. [default: none]",
)  # fmt: skip
@click.option(
    "--cluster", type=click.Path(path_type=Path), metavar="FILE",
    help="Kubernetes manifests. [default: TRACE's .cluster.yaml, else made from the trace]",
)  # fmt: skip
@click.option(
    "--set", "settings", multiple=True, metavar="[LABEL.]KEY=VALUE",
    help="An option of the plugin of that label, or of all that have it; see `harness plugins`.",
)  # fmt: skip
@click.option(
    "--on-preemption", default="restart", show_default=True, metavar="MODEL",
    help="What a preempted job loses: restart, resume, or checkpoint=INTERVAL[,restore=COST].",
)  # fmt: skip
@click.option(
    "--grace-period", default="30s", show_default=True, metavar="TIME",
    help="How long preempted pods keep their resources, for jobs that do not say.",
)  # fmt: skip
@click.option("--until", metavar="TIME", help="Stop at this time after the trace's origin, such as 7d.")
@click.option(
    "--scale-arrivals",
    default="1",
    show_default=True,
    metavar="FACTOR",
    help="2 lets jobs arrive twice as fast.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("results"), show_default=True,
    metavar="DIR", help="Runs are kept as DIR/TRACE/RUN.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replay even where the same run is there already.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.option("-q", "--quiet", is_flag=True, help="Only results and errors.")
@click.pass_context
def replay(
    ctx: click.Context,
    trace: Path,
    names: tuple[str, ...],
    cluster: Path | None,
    settings: tuple[str, ...],
    on_preemption: str,
    grace_period: str,
    until: str | None,
    scale_arrivals: str,
    output: Path,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Replay a trace through scheduler plugins and measure what they do.

    Results go to stdout, everything else to stderr. The same inputs always give the same run.
    """
    from harness import api
    from harness.compare import Comparison

    plugins = loaded_plugins(ctx)
    policies = [(plugins.policy(name), label) for name, label in api.labels(names or ("none",))]
    options = assign(settings, policies)
    opened = api.read_trace(trace, plugins)
    where = api.read_cluster(cluster, opened)
    plans = [
        api.make_plan(
            opened,
            where,
            spec,
            options=options[label],
            label=label,
            on_preemption=on_preemption,
            grace_period=grace_period,
            until=until,
            scale_arrivals=scale_arrivals,
        )
        for spec, label in policies
    ]
    if not quiet:
        _say(_preface(opened, where))
    command = f"harness {shlex.join(sys.argv[1:])}"
    runs = []
    for plan in plans:
        with _Progress(plan.label, opened.frame.height, shown=not quiet) as watch:
            run = api.execute(plan, plugins, output=output, force=force, watch=watch, command=command)
        runs.append(run)
        if not quiet:
            _say([_ending(run)])
    comparison = Comparison(runs)
    click.echo(
        json.dumps(comparison.to_json(scope=None), ensure_ascii=False) if as_json else comparison.table()
    )


def assign(
    settings: Iterable[str], policies: Sequence[tuple[PolicySpec, str]]
) -> Mapping[str, dict[str, Any]]:
    """`[LABEL.]KEY=VALUE` texts as the options of each label.

    Raises:
        OptionError: no plugin declares the key, or a text is not of that form.
    """
    labels = {label: spec for spec, label in policies}
    chosen: dict[str, dict[str, Any]] = {label: {} for label in labels}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise OptionError(
                f"--set {text!r} is not understood", hint="use --set KEY=VALUE or --set LABEL.KEY=VALUE"
            )
        label, dot, name = key.rpartition(".")
        if dot and label in labels:
            chosen[label][name] = value
            continue
        having = [each for each, spec in labels.items() if any(option.name == key for option in spec.options)]
        if not having:
            known = {option.name for spec in labels.values() for option in spec.options} | {
                f"{each}.{option.name}" for each, spec in labels.items() for option in spec.options
            }
            raise OptionError(
                f"--set {text!r}: none of the plugins has an option {key!r}", hint=did_you_mean(key, known)
            )
        for each in having:
            chosen[each].setdefault(key, value)
    return chosen


def _preface(trace: Trace, cluster: Cluster) -> list[str]:
    """What a reader should know before the replay begins."""
    lines = [f"{trace.path}: {trace.frame.height:,} rows"]
    lines += [f"left out: {count:,} rows: {reason}" for reason, count in trace.left_out.items()]
    lines += [f"note: {note}" for note in trace.notes]
    lines += [f"assumed: {sentence}" for sentence in cluster.assumed]
    lines += [f"warning: {sentence}" for sentence in cluster.warnings]
    return lines


def _ending(run: Run) -> str:
    if run.stored:
        return f"{run.label}: stored result {run.path} (--force replays it)"
    spent = run.info["provenance"]["cpu_seconds"]
    return f"{run.label}: {run.info['outcome']['jobs']:,} jobs in {spent:.1f} CPU-s, kept in {run.path}"


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(printable(line), err=True)


class _Progress:
    """One line on a terminal: jobs, simulated time and rate; nothing where stderr is no terminal."""

    def __init__(self, label: str, jobs: int, *, shown: bool) -> None:
        self._shown = shown and sys.stderr.isatty() and "CI" not in os.environ
        self._label, self._jobs = label, jobs
        self._began = self._last = time.monotonic()

    def __enter__(self) -> Callable[[int, int], None] | None:
        return self._update if self._shown else None

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo("\r\033[K", nl=False, err=True)

    def _update(self, simulated: int, arrived: int) -> None:
        now = time.monotonic()
        if now - self._last < 0.1:  # ten times a second is smooth
            return
        self._last = now
        rate = arrived / (now - self._began)
        click.echo(
            f"\r\033[K{self._label}: {arrived:,} of {self._jobs:,} jobs, "
            f"{format_duration(simulated)} simulated, {rate:,.0f} jobs/s",
            nl=False,
            err=True,
        )

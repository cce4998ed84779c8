"""`harness trace` checks, describes, records, converts and generates job traces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import InputError, OptionError
from harness.base.options import factor
from harness.base.text import counted, printable
from harness.cli.calibration import calibrated
from harness.cli.context import loaded_plugins
from harness.cli.group import Group
from harness.cli.input_options import ONCE
from harness.cli.output import parquet_target, spare, trace_output
from harness.cli.screen import fold, results_only, tell, terminal_width
from harness.cli.trace_fetch import fetch
from harness.cli.trace_file import account, from_file, open_file
from harness.cli.trace_from_run import from_run
from harness.cli.trace_generate import generate
from harness.cli.trace_record import record

if TYPE_CHECKING:
    from harness.trace.calibration import Calibration


@click.group(
    cls=Group,
    epilog="""\b
Examples:
  harness trace check traces/philly.parquet --cluster traces/philly.cluster.yaml
  harness trace info traces/philly.parquet""",
)
def trace() -> None:
    """Check, describe, record, convert and generate job traces."""


trace.add_command(generate)
trace.add_command(from_run)
trace.add_command(record)
trace.add_command(fetch)


@trace.command(
    epilog="""\b
Examples:
  harness trace check traces/philly.parquet
  harness trace check traces/philly.parquet --cluster traces/philly.cluster.yaml"""
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--cluster",
    **ONCE,
    type=click.Path(path_type=Path),
    help="Also check whether the trace fits these manifests.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, faults included.")
@from_file
@click.pass_context
def check(
    ctx: click.Context,
    file: Path,
    cluster: Path | None,
    as_json: bool,
    reader: str | None,
    settings: tuple[str, ...],
) -> None:
    """Check a trace against every rule of the schema.

    The command lists all faults; if there are any, the exit code is 2. If the trace has no faults, the
    command prints one line. --cluster also lists jobs that could never start; a job that can't start with any
    plugin is a fault.
    """
    from harness.cli.trace_check import checked

    found = None
    if cluster is not None:
        from harness.cluster.load import load_cluster

        with results_only():
            found = load_cluster(cluster)
    with results_only():
        result = checked(
            lambda cluster: open_file(ctx, file, reader, settings, cluster), found, loaded_plugins(ctx)
        )
    if as_json:
        click.echo(json.dumps(result.document(file, cluster)))
        ctx.exit(2 if result.faults else 0)
    for line in result.remarks:
        tell(line)
    if result.faults:
        raise InputError("\n".join(result.faults), hint=result.hint)
    fits = f", fits {cluster}" if cluster is not None and not result.impossible else ""
    jobs, queues = counted(result.jobs, "job"), counted(result.queues, "queue")
    click.echo(printable(f"{file}: no faults; {jobs}, {queues}{fits}"))


@trace.command(
    epilog="""\b
Examples:
  harness trace info traces/philly.parquet
  harness trace info traces/philly.parquet --json"""
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document with all tenants and exact figures."
)
@from_file
@calibrated(cluster=False)
@click.pass_context
def info(
    ctx: click.Context,
    file: Path,
    as_json: bool,
    reader: str | None,
    settings: tuple[str, ...],
    calibration: Calibration,
) -> None:
    """Describe a trace: its span, tenants, sizes, durations, load and missing data.

    The mean load is resource-time divided by the time from the first to the last submission. The peak load
    assumes that every job starts when it is submitted.
    """
    from harness.cli.trace_info import document, report
    from harness.trace.summary import summarize

    opened = calibration.of_trace(open_file(ctx, file, reader, settings))
    summary = summarize(opened)
    click.echo(
        json.dumps(document(opened, summary)) if as_json else fold(report(opened, summary, terminal_width()))
    )


@trace.command(
    epilog="""\b
Examples:
  harness trace lint traces/philly.parquet
  harness trace lint traces/philly.parquet --cluster traces/philly.cluster.yaml --scale-cluster 4"""
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--cluster", **ONCE, type=click.Path(path_type=Path), help="Manifests of the cluster for the replay."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@from_file
@calibrated(cluster=True)
@click.pass_context
def lint(
    ctx: click.Context,
    file: Path,
    cluster: Path | None,
    as_json: bool,
    reader: str | None,
    settings: tuple[str, ...],
    calibration: Calibration,
) -> None:
    """Find misleading properties of a trace; each finding has a figure and a remedy.

    Examples are a cluster that is far too big or too small, silences, bursts, truncated durations, tenants
    with a single job, reused ids, and units that look wrong. Because a finding is not a fault, the exit code
    is 0.
    """
    from harness.cluster.load import load_cluster
    from harness.runs.impossible import verdicts
    from harness.trace.job_rows import count_jobs
    from harness.trace.lint import lint as findings_of

    opened = calibration.of_trace(open_file(ctx, file, reader, settings))
    with results_only():
        on = calibration.of_cluster(load_cluster(cluster)) if cluster is not None else None
        said = verdicts(opened, on, loaded_plugins(ctx)) if on is not None else []
    found = findings_of(opened, on, [line for each in said for line in each.told(count_jobs(opened.frame))])
    if as_json:
        rows = [asdict(finding) for finding in found]
        click.echo(json.dumps({"schema": "1", "path": str(file), "findings": rows}))
        return
    count = counted(len(found), "finding")
    click.echo(fold(printable(f"{file}: {count}" if found else f"{file}: no misleading values")))
    for finding in found:
        click.echo(fold(printable(f"{finding.check}: {finding.says}")))
        click.echo(fold(printable(f"  do: {finding.do}")))


@trace.command(
    epilog="""\b
Examples:
  harness trace calibrate traces/philly.parquet --target-load 1.2
  harness trace calibrate traces/philly.parquet --target-load 0.9 --sample 0.5"""
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target-load", required=True, metavar="LOAD", help="The desired load; 1.2 is 120 % of the capacity."
)
@click.option(
    "--cluster", **ONCE, type=click.Path(path_type=Path), metavar="FILE",
    help="Kubernetes manifests. [default: the .cluster.yaml beside FILE, else a cluster made from the trace]",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@from_file
@calibrated(cluster=True)
@click.pass_context
def calibrate(
    ctx: click.Context,
    file: Path,
    target_load: str,
    cluster: Path | None,
    as_json: bool,
    reader: str | None,
    settings: tuple[str, ...],
    calibration: Calibration,
) -> None:
    """Compute the scale of arrivals, or of the cluster, that results in a desired load.

    The load is the resource-time of all jobs, divided by the time from the first to the last submission and
    by the capacity of the scarcest resource. The command changes nothing. Pass one of the printed options to
    `harness replay`.
    """
    from harness import api
    from harness.cli.trace_target import document, report
    from harness.trace.target import aim

    load = factor("the load cannot be", target_load, hint="1.2 means 120 % of the capacity")
    opened = calibration.of_trace(open_file(ctx, file, reader, settings))
    with results_only():
        target = aim(opened, api.read_cluster(cluster, opened, calibration), load)
    click.echo(json.dumps(document(target)) if as_json else fold(report(target, terminal_width())))


@trace.command(
    epilog="""\b
Examples:
  harness trace convert HPC2N-2002-2.2-cln.swf.gz hpc2n.parquet --set tenant=user
  harness trace convert job_table.parquet pm100.parquet --map pm100"""
)
@click.argument(
    "files", metavar="IN... OUT.parquet", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@trace_output
@click.option(
    "--map", "mapping", **ONCE, metavar="MAPPING.yaml|NAME|suggest",
    help="Read a job table (a file, a folder, or several files) by this mapping. --map suggest prints a "
    "mapping to start from.",
)  # fmt: skip
@from_file
@calibrated(cluster=False)
@click.pass_context
def convert(
    ctx: click.Context,
    files: tuple[Path, ...],
    output: Path | None,
    mapping: str | None,
    reader: str | None,
    settings: tuple[str, ...],
    calibration: Calibration,
) -> None:
    """Convert a trace of any format that a reader knows to canonical Parquet.

    The command prints the conventions that it applied, and how many rows it left out for each reason; the
    file stores both. --map reads a job table with any columns, in Parquet, JSON or text.
    """
    from harness.trace.write import write_trace

    if mapping == _SUGGEST:
        click.echo(_suggested(ctx, files[0]), nl=False)
        return
    last = files[-1] if len(files) > 1 and (output is None or mapping is None) else None
    source, *more = files[:-1] if last is not None else files
    target = parquet_target(last, output)
    if mapping is not None:
        if reader is not None:
            raise OptionError(
                f"--map reads a table, but --reader {reader} reads another format", hint="give one"
            )
        reader, settings = _TABLE, (*settings, f"mapping={mapping}", *_further(more))
    elif more:
        told = counted(len(more) + 1, "file")
        raise OptionError(
            f"{told} are given, but harness converts only one", hint="--map reads several files of one table"
        )
    opened = calibration.of_trace(open_file(ctx, source, reader, settings, hashed=False))
    for each in (source, *more):
        spare(each, target, "trace")
    write_trace(opened, target)
    click.echo(account(opened, target))


_SUGGEST = "suggest"
_TABLE = "table"


def _suggested(ctx: click.Context, file: Path) -> str:
    from harness.trace.choose import require_readable

    draft = loaded_plugins(ctx).reader(_TABLE).draft
    if draft is None:
        raise OptionError(f"--map {_SUGGEST}: the reader {_TABLE} cannot draft a mapping")
    require_readable(file)
    return draft(file)


def _further(files: Sequence[Path]) -> list[str]:
    return ["also=" + "\n".join(map(str, files))] if files else []

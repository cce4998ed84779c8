"""A plugin that implements every hook in its smallest form; `plugins/README.md` explains the hooks.

To try the plugin, make a package of this module, and add `every-hook = "every_hook"` to the table
`[project.entry-points.harness]` of its `pyproject.toml`.
"""

import sys
from dataclasses import dataclass

import click
import polars as pl

import harness
from harness.analysis.report import SectionSpec, Table
from harness.models import manifests
from harness.plugins.conformance import ConformanceSpec


class Fifo:
    """Starts whole jobs in the order of their arrival, on clusters without nodes."""

    def __init__(self, cluster, view, options):
        self.view, self.waiting = view, []

    def submit(self, job, pods, now):
        self.waiting.append(job)

    def release(self, job, pods, now, why):
        pass  # the view knows what is free

    def cycle(self, now):
        while self.waiting and self.view.fits(self.waiting[0]):
            yield harness.Admit(self.waiting.pop(0))


@harness.hookimpl
def harness_register_policies(register):
    register(harness.PolicySpec("every-fifo", Fifo, help="first come, first served"))


def read_seconds(path, options):
    """Read a file with one run time in seconds on each line; a job is submitted each minute."""
    try:
        lengths = [float(line) for line in path.read_text(encoding="utf-8").split()]
    except ValueError as error:
        raise harness.TraceError(str(path), [harness.Fault("", str(error))]) from error
    jobs = pl.DataFrame({"seconds": lengths}).with_row_index("number")
    frame = jobs.select(
        job_id=pl.col("number").cast(pl.String),
        submit_time=pl.duration(minutes="number"),
        duration=pl.duration(microseconds=(pl.col("seconds") * 1_000_000).cast(pl.Int64)),
        queue=pl.lit("default"),
        **{"request.cpu": pl.lit(options["cpu"], pl.Int64)},
    )
    return harness.Reading(frame, frame.height, notes=("a job is submitted each minute",))


@harness.hookimpl
def harness_register_readers(register):
    options = (harness.Option("cpu", 1000, "what a job asks for, millicores", type=int),)
    about = "seconds, one a line"
    register(
        harness.ReaderSpec("every-seconds", read_seconds, about, suffixes=(".seconds",), options=options)
    )


@dataclass(frozen=True)
class Team:
    """An object that policies find in `cluster.custom_resources["Team.example.org"]`."""

    name: str
    weight: int


def read_team(fields, draft):
    """Add a valid object to the cluster; `fields` collects errors."""
    name, weight = manifests.read_metadata(fields).name, fields.child("spec").integer("weight", 1, least=1)
    draft.custom_resources("Team.example.org").add(name, Team(name, weight), fields)


@harness.hookimpl
def harness_register_kinds(register):
    known = manifests.Coverage(manifests.metadata(), manifests.STATUS, manifests.modelled("spec.weight"))
    register(manifests.KindSpec("Team.example.org", manifests.Kind(("v1",), read_team, known)))


def jobs_by_queue(run, window):
    """Count the jobs that were submitted to each queue."""
    queues = run.jobs.group_by("queue").len().sort("queue")
    for queue, count in queues.iter_rows():
        yield harness.Measurement("every.jobs", count, "count", "", f"queue={queue}")
    yield harness.Measurement("every.jobs", run.jobs.height, "count")


@harness.hookimpl
def harness_register_metrics(register):
    register(harness.MetricSpec("every-jobs", jobs_by_queue, help="jobs by queue"))


def windows(material):
    """Make a table of the length of each run."""
    ends = [(name, run.window.end) for name, run in zip(material.names, material.runs, strict=True)]
    rows = [[name, f"{end / 3_600_000_000:.1f} h"] for name, end in ends]
    yield Table(caption="How long runs lasted", head=["run", "end"], rows=rows)


@harness.hookimpl
def harness_register_sections(register):
    register(SectionSpec("every-window", windows, title="Windows", help="how long runs lasted", place=640))


def answer(case):
    """Return the fields that `expect` of the case has."""
    return {"sum": sum(case["given"]["numbers"])}


@harness.hookimpl
def harness_register_conformance(register):
    register(ConformanceSpec("every/sum", answer, help="adds numbers, for `harness conform`"))


@click.command()
def every():
    """Say hello."""
    click.echo("hello")


@harness.hookimpl
def harness_register_commands(cli):
    cli.add_command(every)


@harness.hookimpl
def harness_replay_started(plan):
    print(f"every hook: {plan.label} begins", file=sys.stderr)


@harness.hookimpl
def harness_replay_finished(run):
    print(f"every hook: {run.label} has {run.info['outcome']['jobs']} jobs", file=sys.stderr)

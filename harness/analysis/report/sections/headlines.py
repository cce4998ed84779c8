"""The first section, with the recommendation, and the costs and gains of each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.analysis.comparison.recommendation import recommendation
from harness.analysis.comparison.samples import is_of_jobs
from harness.analysis.comparison.table import Line
from harness.analysis.report.amounts import shown_in
from harness.analysis.report.blocks import Block, Cell, Points, Score, Scores, Table, Text
from harness.analysis.report.compared import (
    cells,
    compared_head,
    compared_row,
    hours_cells,
    hours_waited,
    so_far,
)
from harness.analysis.report.material import Material
from harness.plugins.measurement import Measurement


class _Headline(NamedTuple):
    topic: str
    metric: str
    meaning: str
    of_resource: bool = False


_HEADLINES = (
    _Headline(
        "Utilization",
        "goodput.of_capacity",
        "the share of the capacity that became work of finished jobs; more is better",
        of_resource=True,
    ),
    _Headline(
        "Fairness",
        "fairness.share_deviation",
        "how far the shares of quotas were from their ideal shares; less is better",
    ),
    _Headline(
        "Disruption",
        "disruption.lost_of_allocated",
        "the share of the allocated resources that evictions threw away; less is better",
        of_resource=True,
    ),
    _Headline(
        "Waiting",
        "wait.first_start.p95",
        "95 of 100 jobs waited no longer than this to start; less is better",
    ),
)


def blocks(material: Material) -> Iterator[Block]:
    """Yields the recommendation, then warnings and differences, and then the headline figures of each run.

    The warnings list the replays that were stopped because they made no progress, and the metrics that could
    not be measured. The differences are those between the runs' options, settings, traces and clusters. A
    table of costs and gains comes last.
    """
    answer = recommendation(material.comparison)
    if answer is not None:
        yield Text(answer.sentence, lead=True)
        for name, price in answer.prices.items():
            yield Points(list(price), title=f"Gains and losses of {name}")
    ended = [
        f"{name}: {run.stopped.told()}"
        for name, run in zip(material.names, material.runs, strict=True)
        if run.stopped is not None
    ]
    if ended:
        yield Points(ended, title="Stopped early")
    failed = [
        f"{name}: {sentence}"
        for name, run in zip(material.names, material.runs, strict=True)
        for sentence in run.unmeasured.values()
    ]
    if failed:
        yield Points(failed, title="Not measured")
    for group in material.comparison.head.groups:
        how = "The same" if group.alike else "Different"
        yield Points(list(group.sentences), title=f"{how} in {', '.join(group.names)}")
    lines = {(line.measured.metric, line.measured.resource): line for line in material.table}
    about = [(each, (each.metric, material.resource if each.of_resource else "")) for each in _HEADLINES]
    yield Scores([_score(material, headline, lines[key]) for headline, key in about if key in lines])
    yield from _costs(material)
    for line in material.lines("wait.never_started"):
        told = zip(material.names, line.row.values, line.cells, strict=True)
        if unstarted := [f"{name} {text}" for name, value, (text, _) in told if value]:
            whose = f", of {material.common_jobs}" if material.common_jobs else ""
            yield Text(
                f"Jobs that had not started when the replay ended{whose}: {', '.join(unstarted)}. "
                "Their waits count up to that time, so they are lower bounds."
            )


def _costs(material: Material) -> Iterator[Table]:
    rows, caption = list(_amounts(material)), "What each run costs and gains"
    tables = [(caption, "of all jobs", [row for _, row in rows])]
    if material.common_jobs:
        common = [row for measured, row in rows if is_of_jobs(measured)]
        own = [row for measured, row in rows if not is_of_jobs(measured)]
        tables = [
            (caption, f"of {material.common_jobs}", common),
            ("What else each run costs and gains", "of all jobs of each run", own),
        ]
    for title, whose, shown in tables:
        if shown:
            yield Table(title, compared_head(material, whose), shown)


def _amounts(material: Material) -> Iterator[tuple[Measurement, Sequence[str | Cell]]]:
    unit = shown_in(material.resource)
    jobs = [sum(each.values()) for each in material.jobs_of_queues]
    for line in material.lines("wait.first_start.mean"):
        hours = hours_cells(hours_waited(line, jobs), line)
        name = f"hours that jobs waited for their start{so_far(material)}"
        yield line.measured, compared_row(name, hours)
    # The row above names the total, unless it covers other jobs.
    lost = f"{unit.hours} lost, " if material.common_jobs else ""
    for metric, resource, name in (
        ("wait.first_start.p95", "", "95 of 100 jobs started within"),
        ("slowdown.bounded.mean", "", "mean time of a job, as a multiple of its run time"),
        ("disruption.lost", material.resource, f"{unit.hours} lost to evictions"),
        ("disruption.lost_of_allocated", material.resource, f"{lost}as a share of what was allocated"),
        ("disruption.preemptions", "", "preemptions"),
        ("utilization.useful.hours", material.resource, f"{unit.hours} of work of finished jobs"),
    ):
        for line in material.lines(metric):
            if line.measured.resource == resource:
                yield line.measured, compared_row(name, cells(line))


def _score(material: Material, headline: _Headline, line: Line) -> Score:
    meaning = headline.meaning
    if headline.of_resource:
        meaning = f"{material.resource}: {meaning}"
    if material.common_jobs and is_of_jobs(line.measured):
        meaning = f"of {material.common_jobs}: {meaning}"
    values = [(name, *pair) for name, pair in zip(material.names, cells(line), strict=True)]
    return Score(headline.topic, meaning, values)

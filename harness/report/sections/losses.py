"""Who pays, who gains: the work that preemptions threw away, by whose it was and for whom that was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from harness.metrics.preemptions import preempted_pods, preemptions
from harness.metrics.scopes import BENEFICIARY, QUEUE
from harness.report import palette
from harness.report.amounts import number, unit_of
from harness.report.blocks import Block, Figure, Key, Table
from harness.report.material import Material, distinct, others
from harness.runs.run import Run

if TYPE_CHECKING:
    from altair.typing import ChartType

_SHOWN = 12
_PAIRS = 8
_KEYS = (
    Key("lost by its own jobs", palette.KINDS[2].light),
    Key("lost by others to make room for its jobs", palette.KINDS[0].light),
)


class _Loss(NamedTuple):
    """Resource-hours of a queue."""

    own: float = 0.0
    for_it: float = 0.0


def blocks(material: Material) -> Iterator[Block]:
    """Lost work by queue in every run, and the pairs of queues between which most was preempted."""
    found = material.of_runs(lambda run: _losses(run, material.resource))
    sums: dict[str, float] = {}
    for of_queues in found:
        for queue, loss in of_queues.items():
            sums[queue] = sums.get(queue, 0.0) + loss.own + loss.for_it
    if any(sums.values()):
        ranked = sorted(sums, key=lambda queue: (-sums[queue], queue))
        unit = unit_of(material.resource)
        groups = [[queue] for queue in ranked[:_SHOWN]]
        names = distinct(ranked[:_SHOWN])
        if ranked[_SHOWN:]:
            groups.append(ranked[_SHOWN:])
            names.append(others(len(ranked) - _SHOWN))
        tables = [[_sum(of_queues, group) for group in groups] for of_queues in found]
        yield Figure(
            title=f"Work thrown away, in {unit.hours}",
            words=_words(material, names, tables),
            draw=lambda width: _chart(material, names, tables, width),
            keys=_KEYS,
            note="To the left: what a queue's own jobs lost. To the right: what others lost to make room for "
            "its jobs.",
        )
    yield from _pairs(material)


def _losses(run: Run, resource: str) -> Mapping[str, _Loss]:
    """Queue -> what it lost and what was lost for it, from the metrics."""
    metrics = run.metrics.filter(metric="disruption.lost", resource=resource)
    found: dict[str, _Loss] = {}
    for scope, value in metrics.select("scope", "value").iter_rows():
        kind, _, queue = scope.partition("=")
        before = found.get(queue, _Loss())
        if kind == QUEUE:
            found[queue] = before._replace(own=_hours(resource, value))
        elif kind == BENEFICIARY:
            found[queue] = before._replace(for_it=_hours(resource, value))
    return found


def _hours(resource: str, value: float | None) -> float:
    """Resource-hours as measured, in the unit that is shown; cores are measured as such."""
    size = 1 if resource == "cpu" else unit_of(resource).size
    return (value or 0.0) / size


def _sum(of_queues: Mapping[str, _Loss], group: Sequence[str]) -> _Loss:
    losses = [of_queues.get(queue, _Loss()) for queue in group]
    return _Loss(sum(loss.own for loss in losses), sum(loss.for_it for loss in losses))


def _words(material: Material, names: Sequence[str], tables: Sequence[Sequence[_Loss]]) -> str:
    sentences = []
    for run, losses in zip(material.names, tables, strict=True):
        rows = [(name, loss) for name, loss in zip(names, losses, strict=True) if loss != _Loss()]
        each = "; ".join(
            f"{name} lost {number(loss.own)}, gained from {number(loss.for_it)}" for name, loss in rows
        )
        sentences.append(f"{run}: {each or 'nothing was lost'}.")
    return " ".join(sentences)


def _chart(
    material: Material, names: Sequence[str], tables: Sequence[Sequence[_Loss]], width: int
) -> ChartType:
    import altair as alt

    from harness.report.charts.bars import grouped

    most = max(value for losses in tables for loss in losses for value in loss) * 1.05
    panels = []
    for run, losses in zip(material.names, tables, strict=True):
        if not any(any(loss) for loss in losses):
            continue
        rows = [(place, 0, -loss.own) for place, loss in enumerate(losses)]
        rows += [(place, 1, loss.for_it) for place, loss in enumerate(losses)]
        panels.append(
            grouped(
                rows, names, _KEYS, width=width, title=unit_of(material.resource).hours,
                name=run, limit=most,
            )
        )  # fmt: skip
    return alt.vconcat(*panels, spacing=14)


def _counts(run: Run) -> pl.DataFrame:
    """How often jobs of a queue were preempted for those of another."""
    each = preemptions(preempted_pods(run, run.window)).drop_nulls("by_queue")
    return each.group_by("queue", "by_queue").len()


def _pairs(material: Material) -> Iterator[Block]:
    """Whose jobs were preempted for whose, how often."""
    counts: dict[tuple[str, str], list[int]] = {}
    for place, each in enumerate(material.of_runs(_counts)):
        for victim, beneficiary, count in each.iter_rows():
            counts.setdefault((victim, beneficiary), [0] * len(material.runs))[place] = count
    if not counts:
        return
    ranked = sorted(counts, key=lambda pair: (-sum(counts[pair]), pair))[:_PAIRS]
    yield Table(
        caption="Preemptions by pair of queues"
        + (f": the {len(ranked)} most frequent of {len(counts):,}" if len(ranked) < len(counts) else ""),
        head=["job of", "made room for a job of", *material.names],
        rows=[[*pair, *(f"{count:,}" for count in counts[pair])] for pair in ranked],
    )

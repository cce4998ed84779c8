"""The section on gains and losses, with waits and lost work by queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from harness.analysis.metrics.preemptions import preempted_pods, preemptions
from harness.analysis.report import charts, palette
from harness.analysis.report.amounts import number, shown_in
from harness.analysis.report.blocks import Block, Figure, Key, Table, Text
from harness.analysis.report.compared import compared_head, compared_row, hours_cells, hours_waited, so_far
from harness.analysis.report.material import Material, distinct
from harness.base.grouping import summed
from harness.base.text import counted
from harness.plugins.scopes import BENEFICIARY, QUEUE
from harness.runs.run import Run

if TYPE_CHECKING:
    from altair.typing import ChartType

_SHOWN = 12
_PAIRS = 8
_KEYS = (
    Key("lost by its own jobs", palette.KINDS[2].light),
    Key("lost by others to free capacity for its jobs", palette.KINDS[0].light),
)


def _waited(material: Material) -> Iterator[Block]:
    counts = material.jobs_of_queues
    found = []
    for line in material.lines("wait.first_start.mean", QUEUE):
        queue = line.measured.scope.partition("=")[2]
        found.append((queue, line, hours_waited(line, [each.get(queue, 0) for each in counts])))
    if len(found) < 2:
        return
    ranked = sorted(found, key=lambda each: (-_spread(each[2]), each[0]))[:_SHOWN]
    widest = max(_spread(hours) for _, _, hours in ranked)
    names = distinct(queue for queue, _, _ in ranked)
    yield Table(
        f"Hours that jobs waited for their start{so_far(material)}, by queue"
        + (f", of {material.common_jobs}" if material.common_jobs else "")
        + (f": the {len(ranked)} of {len(found):,} that differ most" if len(ranked) < len(found) else ""),
        compared_head(material, QUEUE),
        [
            compared_row(name, hours_cells(hours, line, widest=widest))
            for name, (_, line, hours) in zip(names, ranked, strict=True)
        ],
    )
    if len(material.runs) > 1:
        yield Text(f"A bar to the left means that the jobs wait fewer hours than under {material.names[0]}.")


def _spread(hours: Sequence[float | None]) -> float:
    """Returns the largest difference of a run's hours from the baseline's hours, or a single run's hours."""
    base, *others = [each or 0.0 for each in hours]
    return max((abs(each - base) for each in others), default=base)


class _Loss(NamedTuple):
    """The resource-hours that a queue's jobs lost, and those that were lost to free capacity for its jobs."""

    own: float = 0.0
    for_it: float = 0.0


def blocks(material: Material) -> Iterator[Block]:
    """Yields hours waited and lost work by queue, and the pairs of queues with the most preemptions."""
    yield from _waited(material)
    found = material.of_runs(lambda run: _losses(run, material.resource))
    sums = summed((queue, part) for of_queues in found for queue, loss in of_queues.items() for part in loss)
    if any(sums.values()):
        ranked = sorted(sums, key=lambda queue: (-sums[queue], queue))
        unit = shown_in(material.resource)
        groups = [[queue] for queue in ranked[:_SHOWN]]
        names = distinct(ranked[:_SHOWN])
        if ranked[_SHOWN:]:
            groups.append(ranked[_SHOWN:])
            names.append(counted(len(ranked) - _SHOWN, "other"))
        tables = [[_sum(of_queues, group) for group in groups] for of_queues in found]
        yield Figure(
            title=f"Work thrown away, in {unit.hours}",
            words=_words(material, names, tables),
            draw=lambda width: _chart(material, names, tables, width),
            keys=_KEYS,
            note="Bars to the left show what a queue's own jobs lost, and bars to the right show what others "
            "lost to free capacity for its jobs." + material.own_jobs,
        )
    yield from _pairs(material)


def _losses(run: Run, resource: str) -> Mapping[str, _Loss]:
    metrics = run.metrics.filter(metric="disruption.lost", resource=resource)
    found: dict[str, _Loss] = {}
    for scope, value in metrics.select("scope", "value").iter_rows():
        kind, _, queue = scope.partition("=")
        before = found.get(queue, _Loss())
        if kind == QUEUE:
            found[queue] = before._replace(own=value or 0.0)
        elif kind == BENEFICIARY:
            found[queue] = before._replace(for_it=value or 0.0)
    return found


def _sum(of_queues: Mapping[str, _Loss], group: Sequence[str]) -> _Loss:
    losses = [of_queues.get(queue, _Loss()) for queue in group]
    return _Loss(sum(loss.own for loss in losses), sum(loss.for_it for loss in losses))


def _words(material: Material, names: Sequence[str], tables: Sequence[Sequence[_Loss]]) -> str:
    sentences = []
    for run, losses in zip(material.names, tables, strict=True):
        rows = [(name, loss) for name, loss in zip(names, losses, strict=True) if loss != _Loss()]
        each = "; ".join(
            f"{name} lost {number(loss.own)}, others lost {number(loss.for_it)} for it" for name, loss in rows
        )
        sentences.append(f"{run}: {each or 'nothing was lost'}.")
    return " ".join(sentences)


def _chart(
    material: Material, names: Sequence[str], tables: Sequence[Sequence[_Loss]], width: int
) -> ChartType:
    import altair as alt

    most = max(value for losses in tables for loss in losses for value in loss) * 1.05
    panels = []
    for run, losses in zip(material.names, tables, strict=True):
        if not any(any(loss) for loss in losses):
            continue
        rows = [(place, 0, -loss.own) for place, loss in enumerate(losses)]
        rows += [(place, 1, loss.for_it) for place, loss in enumerate(losses)]
        panels.append(
            charts.bars.grouped(
                rows, names, _KEYS, width=width, title=shown_in(material.resource).hours,
                name=run, limit=most,
            )
        )  # fmt: skip
    return alt.vconcat(*panels, spacing=14)


def _counts(run: Run) -> pl.DataFrame:
    each = preemptions(preempted_pods(run, run.window)).drop_nulls("by_queue")
    return each.group_by("queue", "by_queue").len()


def _pairs(material: Material) -> Iterator[Block]:
    counts: dict[tuple[str, str], list[int]] = {}
    for place, each in enumerate(material.of_runs(_counts)):
        for victim, beneficiary, count in each.iter_rows():
            counts.setdefault((victim, beneficiary), [0] * len(material.runs))[place] = count
    if not counts:
        return
    ranked = sorted(counts, key=lambda pair: (-sum(counts[pair]), pair))[:_PAIRS]
    queues = list(dict.fromkeys(queue for pair in ranked for queue in pair))
    names = dict(zip(queues, distinct(queues), strict=True))
    yield Table(
        caption="Preemptions by pair of queues"
        + (f": the {len(ranked)} most frequent of {len(counts):,}" if len(ranked) < len(counts) else ""),
        head=["preempted queue → preempting queue", *material.names],
        rows=[
            [" → ".join(names[queue] for queue in pair), *(f"{count:,}" for count in counts[pair])]
            for pair in ranked
        ],
    )

"""The section on topology domains, which shows what pods held in each domain and its capacity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from harness.analysis.export.holding import holding
from harness.analysis.metrics.pod_sizes import pod_sizes
from harness.analysis.report import charts
from harness.analysis.report.amounts import number, percent, shown_in
from harness.analysis.report.blocks import Block, Figure
from harness.analysis.report.material import Material, distinct
from harness.analysis.report.reduction import per_pixel
from harness.base.text import printable
from harness.engine.events import NEVER
from harness.plugins.measurement import Window
from harness.runs.epochs import Step
from harness.runs.run import Run

if TYPE_CHECKING:
    from altair.typing import ChartType

MOST = 24
"""The maximum number of domains in each chart, which are the most used ones."""


class _Shown(NamedTuple):
    """The domains of a level that have a panel in the chart.

    Attributes:
        level: the label of the level.
        names: the printable names of the domains.
        steps: for each run, the quantities held in each domain: `series` (the index of the domain), `time`
            and `level`.
        room: for each run and domain, the capacity of the domain's nodes, as steps on the time axis; empty if
            the run's cluster does not have the domain.
        left_out: the number of domains that are not shown.
    """

    level: str
    names: Sequence[str]
    steps: Sequence[pl.DataFrame]
    room: Sequence[Sequence[Sequence[Step]]]
    left_out: int


def blocks(material: Material) -> Iterator[Block]:
    """Yields a chart for each level of each topology, such as racks, with a panel for each domain."""
    of_runs = material.of_runs(levels_of)
    known = dict.fromkeys((level.topology, level.name) for own in of_runs for level in own)
    if not known:
        return
    changes = material.on_axis(material.of_runs(lambda run: moves(run, material.resource)))
    unit = shown_in(material.resource)
    for topology, name in known:
        own = [
            next((each for each in found if (each.topology, each.name) == (topology, name)), None)
            for found in of_runs
        ]
        shown = _shown(material, name, own, changes)
        yield Figure(
            title=f"{unit.name} held in each {printable(name)} of topology {printable(topology)}",
            words=_words(material, shown),
            draw=lambda width, shown=shown: _panels(material, shown, width),  # type: ignore[misc]
            keys=material.run_keys,
            note="Lines are means over three pixels, and bands show the lowest and highest level in "
            "these pixels; the dashed line is the nodes' capacity.",
        )


def _shown(
    material: Material, name: str, own: Sequence[Level | None], changes: Sequence[pl.DataFrame]
) -> _Shown:
    every = list(dict.fromkeys(domain for level in own if level is not None for domain in level.nodes))
    held = dict.fromkeys(every, 0.0)
    places = {domain: number for number, domain in enumerate(every)}
    empty = pl.DataFrame(schema={"series": pl.Int32, "time": pl.Int64, "level": pl.Int64})
    steps = [
        empty if level is None else levels(moved, level.nodes, places)
        for level, moved in zip(own, changes, strict=True)
    ]
    for frame in steps:
        for number_, mean in per_pixel(frame, material.window, 1).select("series", "mean").iter_rows():
            held[every[number_]] += mean
    chosen = sorted(sorted(every, key=lambda domain: (-held[domain], domain))[:MOST])
    renamed = {places[domain]: number for number, domain in enumerate(chosen)}
    kept = [
        frame.filter(pl.col("series").is_in(list(renamed))).with_columns(
            pl.col("series").replace_strict(list(renamed), list(renamed.values()), return_dtype=pl.Int32)
        )
        for frame in steps
    ]

    def room(run: Run, level: Level | None, window: Window, shift: int) -> list[list[Step]]:
        has = {} if level is None else capacities(run, level, material.resource)
        return [material.drawn(has.get(domain, ()), window, shift) for domain in chosen]

    return _Shown(
        name,
        distinct(chosen),
        kept,
        [room(*each) for each in zip(material.runs, own, material.windows, material.shifts, strict=True)],
        len(every) - len(chosen),
    )


def _words(material: Material, shown: _Shown) -> str:
    unit = shown_in(material.resource)
    means: list[dict[int, float]] = []
    for window, frame in zip(material.windows, shown.steps, strict=True):
        means.append(dict(per_pixel(frame, window, 1).select("series", "mean").iter_rows()))
    sentences = []
    for place, name in enumerate(shown.names):
        each = []
        for called, mean, room, window in zip(
            material.names, means, shown.room, material.windows, strict=True
        ):
            held, has = mean.get(place, 0.0), _mean(room[place], window)
            of = f" of {number(has / unit.size)} ({percent(held / has)})" if has else ""
            each.append(f"{called} {number(held / unit.size)}{of}")
        sentences.append(f"{name}: {', '.join(each)}.")
    if shown.left_out:
        sentences.append(f"{shown.left_out:,} more domains, which were used less, are not shown.")
    return f"Mean {unit.name} held. " + " ".join(sentences)


def _mean(steps: Sequence[Step], window: Window) -> float:
    if len(steps) < 2:
        return sum(each.amount or 0 for each in steps)
    times = [max(each.time, window.start) for each in steps] + [window.end]
    spans = [until - since for since, until in pairwise(times)]
    whole = sum((each.amount or 0) * span for each, span in zip(steps, spans, strict=True))
    return whole / max(1, sum(spans))


def _panels(material: Material, shown: _Shown, width: int) -> ChartType:
    unit = shown_in(material.resource)

    def reduced(pixels: int) -> list[pl.DataFrame]:
        frames = material.reduced(shown.steps, pixels)
        return [frame.with_columns(pl.col("low", "mean", "high") / unit.size) for frame in frames]

    references = [
        [
            charts.levels.Reference([(time, (amount or 0) / unit.size) for time, amount in course], (6, 3))
            for course in sorted({tuple(own[place]) for own in shown.room})
            if any(each.amount for each in course)
        ]
        for place in range(len(shown.names))
    ]
    return charts.levels.panels(material, shown.names, reduced, references, width=width, title=unit.name)


class Level(NamedTuple):
    """A level of a topology in one run.

    Attributes:
        topology, name: the name of the topology, and the node label of the level.
        nodes: for each domain, the names of its nodes. The name of a domain consists of its label values
            for this level and all coarser levels.
    """

    topology: str
    name: str
    nodes: Mapping[str, Sequence[str]]


def levels_of(run: Run) -> list[Level]:
    """Returns the levels of the topologies in a run's cluster, the coarsest first, without the host name."""
    found = []
    for topology in run.info["cluster"].get("domains", ()):
        for depth, name in enumerate(topology["levels"], start=1):
            nodes: dict[str, list[str]] = {}
            for each in topology["domains"]:
                nodes.setdefault("/".join(each["values"][:depth]), []).extend(each["nodes"])
            found.append(Level(topology["name"], name, nodes))
    return found


def capacities(run: Run, level: Level, resource: str) -> Mapping[str, Sequence[Step]]:
    """Returns each domain's capacity for a resource over time, which is the sum over its nodes.

    The first step lasts until the first change.
    """
    pools = run.info["cluster"]["allocatable"]
    rest: Mapping[str, int] = next((pool["amounts"] for pool in pools if "nodes" not in pool), {})
    own = {name: pool["amounts"] for pool in pools for name in pool.get("nodes", ())}
    found = {
        domain: [Step(NEVER, sum(own.get(node, rest).get(resource, 0) for node in nodes))]
        for domain, nodes in level.nodes.items()
    }
    of_nodes = {node: domain for domain, nodes in level.nodes.items() for node in nodes}
    for event in run.info["cluster"].get("events", ()):
        for node, (before, after) in event.get("allocatable", {}).items():
            more = (after or {}).get(resource, 0) - (before or {}).get(resource, 0)
            if more and node in of_nodes:
                course = found[of_nodes[node]]
                now = Step(event["at_us"], (course[-1].amount or 0) + more)
                course[-1 if course[-1].time == now.time else len(course) :] = [now]
    return found


def moves(run: Run, resource: str) -> pl.DataFrame:
    """Returns the changes in what pods hold on nodes, with the columns `time`, `node` and `amount`.

    Raises:
        RunError: a table is damaged, or the run is so old that it does not record when jobs hold resources.
    """
    stays = holding(run, run.window).pods
    sizes = pod_sizes(run)
    job, pod = np.array([(stay.job, stay.pod[0]) for stay in stays if stay.pod], np.int64).reshape(-1, 2).T
    each = sizes.each[run.resources.index(resource)]
    frame = pl.DataFrame(
        {
            "node": pl.Series([stay.node for stay in stays], dtype=pl.String),
            "start": pl.Series([stay.start for stay in stays], dtype=pl.Int64),
            "end": pl.Series([stay.end for stay in stays], dtype=pl.Int64),
        }
    ).with_columns(amount=each[sizes.of(job, pod)])
    return pl.concat(
        [frame.select("node", "amount", time="start"), frame.select("node", -pl.col("amount"), time="end")]
    )


def levels(
    changes: pl.DataFrame, nodes: Mapping[str, Sequence[str]], places: Mapping[str, int]
) -> pl.DataFrame:
    """Returns the amounts that pods hold in each domain over time, in the form that `per_pixel` expects.

    `changes` is the result of `moves`. `places` maps domains to the indices of their series. Domains
    that are not in `places` are left out.
    """
    numbers = {node: places[domain] for domain, own in nodes.items() if domain in places for node in own}
    number = pl.col("node").replace_strict(
        list(numbers), list(numbers.values()), default=None, return_dtype=pl.Int32
    )
    return (
        changes.with_columns(series=number)
        .drop_nulls("series")
        .group_by("series", "time")
        .agg(level=pl.col("amount").sum())
        .sort("series", "time")
        .with_columns(pl.col("level").cum_sum().over("series"))
    )

"""The notes below a comparison's table, as sentences, the most important first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from harness.analysis.comparison.figures import name_of, shown
from harness.analysis.comparison.missing import about_missing, about_unshaken
from harness.analysis.comparison.samples import LOST
from harness.analysis.metrics.finish_time import FINISH_TIMES
from harness.analysis.metrics.idle import METRICS as IDLE_METRICS
from harness.base.grouping import summed
from harness.base.text import counted, first_of, printable, times
from harness.base.units import format_amount, format_duration
from harness.plugins.scopes import ALL
from harness.runs.epochs import node_counts, number_at
from harness.runs.measuring import key_of
from harness.runs.run import Run

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.analysis.comparison.table import Line

_NAMED_GANGS = 3
_NAMED_VALUES = 12

_ON_REQUEST = {"--isolated": FINISH_TIMES, "--idle-causes": IDLE_METRICS}
"""Maps each option of a replay to the metrics that require this option."""

_OF_CAPACITY = ("utilization.", "goodput.", "backlog", "fairness.")
_OF_WINDOW = (*_OF_CAPACITY, "fragmentation", "quota.", "reclaim.owed")
_LOST_PART = f"{LOST}_of_allocated"


_NAMED = 3


def remarks(comparison: Comparison, shown: Sequence[Line]) -> Iterator[str]:
    """Yields the notes: the legend, unusual facts about runs, and how runs were measured."""
    runs, names = comparison.runs, comparison.names
    legend, *about_changes = _about_changes(comparison, shown) if len(runs) > 1 else ("",)
    if legend:
        yield legend
    elif not names[0].startswith(runs[0].info["policy"]["name"]):
        yield f"{names[0]}: plugin {runs[0].info['policy']['name']}"
    yield from stopped(comparison)
    for name, run in zip(names, runs, strict=True):
        yield from (f"{name}: {sentence}" for sentence in _about_run(run))
    yield from about_changes
    yield from about_missing([line.row for line in shown], comparison.lack, names)
    if comparison.shake is not None:
        yield from about_unshaken(runs, comparison.measured, _ON_REQUEST)
    yield from _about_windows(comparison, shown)
    if any(line.measured.metric.startswith(_OF_CAPACITY) for line in shown):
        yield from _about_capacity(comparison)


def _about_run(run: Run) -> Iterator[str]:
    if run.is_record:
        yield "a record of what happened, not a simulation"
    if run.without_run_times:
        yield f"{run.without_run_times}; waits and losses have no verdict"
    yield from (*run.unmeasured.values(), *run.remarks)
    gangs = run.info["outcome"]["half_bound_gangs"]
    if gangs:
        yield _half_bound(gangs)
    loops = about_loops(run)
    if loops is not None:
        yield loops


def stopped(comparison: Comparison) -> Iterator[str]:
    """Yields a sentence for each run that was stopped because it made no progress."""
    for name, run in zip(comparison.names, comparison.runs, strict=True):
        if run.stopped is not None:
            yield f"{name}: {run.stopped.told()}"


def _about_windows(comparison: Comparison, shown: Sequence[Line]) -> Iterator[str]:
    if comparison.shake is not None:
        found = [list(_over_own_window(comparison, shown, place)) for place in range(len(comparison.runs))]
        if any(found):
            yield "for each twin, all values except waits of ended jobs cover the window that all runs share"
        yield from chain.from_iterable(found)
        return
    window, windows = comparison.window, [run.window for run in comparison.runs]
    if window is None:
        spans = [format_duration(each.end - each.start) for each in windows]
        each = ", ".join(f"{name} {span}" for name, span in zip(comparison.names, spans, strict=True))
        yield f"arrivals differ, so each run is measured over its own window: {each}"
    elif not comparison.shares_window:
        end = format_duration(window.end - window.start)
        if comparison.shares[0].cut:
            yield f"a run was cut short, so all metrics cover the first {end}"
        elif any(line.measured.metric.startswith(_OF_WINDOW) for line in shown):
            yield f"utilization, goodput, fairness and quota cover the first {end}, which all runs share"
        for place in range(len(windows)):
            yield from _over_own_window(comparison, shown, place)
    pairs = comparison.pairs
    if not pairs.whole:
        left = [
            f"{jobs - pairs.count:,} jobs that only {name} has"
            for name, jobs in zip(comparison.names, pairs.jobs, strict=True)
            if jobs > pairs.count
        ]
        if window is not None:
            yield f"jobs that arrive after this window do not count: {', '.join(left)}"
            return
        yield (
            f"waits, jct, slowdown and lost work cover the {pairs.count:,} jobs that all runs have, but "
            f"not {', '.join(left)}; other metrics cover each run's own jobs"
        )


def _over_own_window(comparison: Comparison, of_table: Sequence[Line], place: int) -> Iterator[str]:
    """Yields a run's values over its own window, from its own files, if the table shows other values."""
    own = comparison.over_own_window(place)
    told = []
    for line in of_table:
        each = own.get(key_of(line.measured))
        if each is not None and each.value != line.row.values[place]:
            told.append(f"{name_of(each)} {shown(each.value, each.unit, at_least=bool(each.at_least))}")
    if told:
        name, window = comparison.names[place], comparison.runs[place].window
        span = format_duration(window.end - window.start)
        over = f"over its own window of {span}, as in its metrics.parquet"
        over = over if comparison.shake is None else "over its twins' own windows"
        yield f"{name} {over}: {first_of(told, _NAMED_VALUES)}"


def _about_capacity(comparison: Comparison) -> Iterator[str]:
    capacities = [_capacity(run) for run in comparison.runs]
    if not any(capacities):
        return
    on_nodes = [any(node_counts(run.info["cluster"])) for run in comparison.runs]
    if not comparison.differing_capacities and len(set(on_nodes)) == 1:
        assumed = all(run.info["cluster"].get("assumed") for run in comparison.runs)
        why = ", which harness assumed, because no cluster was given" if assumed else ""
        yield f"shares refer to a capacity of {capacities[0]}{why}"
        return
    each = "; ".join(f"{name} {text}" for name, text in zip(comparison.names, capacities, strict=True))
    yield f"shares refer to each run's own capacity: {each}"
    without = [name for name, nodes in zip(comparison.names, on_nodes, strict=True) if not nodes]
    if 0 < len(without) < len(on_nodes):
        yield f"{', '.join(without)}: without nodes, only quotas limit jobs, which start with all their pods"


def _capacity(run: Run) -> str:
    first = number_at(run.epochs, run.window.start)
    last = max(first, number_at(run.epochs, run.window.end - 1))
    counts = node_counts(run.info["cluster"])[first : last + 1]
    known = []
    for resource in run.resources:
        amounts = [epoch.cluster["capacity"].get(resource) for epoch in run.epochs[first : last + 1]]
        if any(each is not None for each in amounts):
            span = _between([each or 0 for each in amounts], partial(format_amount, resource))
            known.append(f"{span} {resource}")
    nodes = f"{_between(counts, '{:,}'.format)} node{'' if max(counts) == 1 else 's'}"
    return f"{', '.join(known)} ({nodes if any(counts) else 'nominal quotas'})" if known else ""


def _between(amounts: Sequence[int], text: Callable[[int], str]) -> str:
    least, most = min(amounts), max(amounts)
    return text(most) if least == most else f"{text(least)} to {text(most)}"


def _half_bound(gangs: Sequence[Mapping[str, Any]]) -> str:
    held: dict[str, int] = summed(each for gang in gangs for each in gang["held"].items())
    amounts = ", ".join(f"{format_amount(each, held[each])} {each}" for each in sorted(held))
    named = [f"{printable(gang['job'])} ({gang['bound']} of {gang['pods']})" for gang in gangs[:_NAMED_GANGS]]
    more = ", ..." if len(gangs) > len(named) else ""
    what = f"{counted(len(gangs), 'gang')} held {amounts or 'nodes'} at the end"
    whose = "its" if len(gangs) == 1 else "their"
    return f"{what}, but not all of {whose} pods were bound: {', '.join(named)}{more}"


def _about_changes(comparison: Comparison, shown: Sequence[Line]) -> Iterator[str]:
    changes = [change for line in shown for change in line.row.changes]
    sure = any(each.exact and each.difference for each in changes)
    exact = ", △ ▽ the same in every twin" if sure else ""
    against = f"changes are against {comparison.names[0]}"
    yield f"▲ better, ▼ worse, ~ unclear, = equal{exact}; {against}"
    yield from comparison.remarks(changes)
    yield from _about_lost_work(comparison, shown)


def _about_lost_work(comparison: Comparison, listed: Sequence[Line]) -> Iterator[str]:
    """Yields the share of work that each run loses, if the baseline loses no work.

    In this case, the change cannot be expressed as a percentage.
    """
    from_nothing = [
        line.measured.resource
        for line in listed
        if line.measured.metric == LOST and line.measured.scope == ALL
        if line.row.values[0] == 0 and any(line.row.values[1:])
    ]
    for measured, parts in comparison.select() if from_nothing else ():
        if measured.metric == _LOST_PART and measured.resource in from_nothing:
            each = [
                f"{name} {shown(part, measured.unit)}"
                for name, part in zip(comparison.names[1:], parts[1:], strict=True)
            ]
            yield f"the share of the allocated {measured.resource} that was lost ({LOST}): {', '.join(each)}"


def about_loops(run: Run) -> str | None:
    """Describes how often a run's jobs got resources and lost them again without progress.

    The text also names the queues of these jobs, and the resource-time that they held. It is None if this
    never happened.
    """
    rows = run.metrics.filter(pl.col("metric").is_in(("disruption.ping_pong", "disruption.ping_pong_held")))
    often = {row["scope"]: row["value"] for row in rows.iter_rows(named=True) if not row["resource"]}
    if not often.get("all"):
        return None
    held = [
        f"{shown(row['value'], row['unit'])} of {row['resource']}"
        for row in rows.iter_rows(named=True)
        if row["resource"] and row["value"]
    ]
    victims, winners = (_queues(often, f"{side}=") for side in ("queue", "beneficiary"))
    cost = f", after holding {', '.join(held)}" if held else ""
    return (
        f"{times(round(often['all']))} a job got resources and lost them again to the same queue without "
        f"progress of either side (disruption.ping_pong): jobs of {victims} lost them to jobs of {winners}"
        f"{cost}. A victim that comes before its preemptor in the queue takes the freed resources again: see "
        "'Evictions that repeat' in docs/kueue.md for the settings that cause it"
    )


def _queues(often: dict[str, float], prefix: str) -> str:
    counts = [(-often[scope], scope.removeprefix(prefix)) for scope in often if scope.startswith(prefix)]
    found = sorted(count for count in counts if count[0])
    return first_of([f"{name} ({-count:,.0f})" for count, name in found], _NAMED)

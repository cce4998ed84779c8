"""Turns findings about missing capacity into events that reduce the capacity.

It does so only for the time after the simulation ceases to agree with the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from harness.analysis.validation.agreement import Record
from harness.analysis.validation.findings import LESS, MORE, Finding
from harness.analysis.validation.history import History
from harness.analysis.validation.objects import WHOLE, Object, told
from harness.analysis.validation.supposed import Event, Quota, removal
from harness.base.units import HOUR

_MOST = 20
"""Only this many of the largest findings are tried, because each takes a replay."""
_SHORTEST = 6 * HOUR
"""A shorter finding may come from chance, because one late start changes many later ones."""


class Tried(NamedTuple):
    """Events, the simulation with these events, and notes that explain why some findings lead to no event."""

    events: list[Event]
    simulated: History
    notes: list[str]


def with_findings(
    events: Sequence[Event],
    since: int,
    findings: Sequence[Finding],
    objects: Sequence[Object],
    quotas: Sequence[Quota],
    record: Record,
    replay: Callable[[Sequence[Event]], History],
    least: float,
) -> Tried:
    """Adds an event for each finding after `since`, if the event brings waits closer to the record.

    The largest findings are chosen, and then tried in order of time. An event must reduce the remaining error
    by at least the fraction `least`. `objects` contains the objects whose capacity may differ.
    """
    less = [each for each in findings if each.kind == LESS and each.end - max(since, each.start) >= _SHORTEST]
    more = dict.fromkeys(told(each.object, each.name) for each in findings if each.kind == MORE)
    notes = [f"only the {_MOST} largest of {len(less):,} findings are tried as events"] * (len(less) > _MOST)
    notes += [f"no event can express that there was more of {name} than its manifests say" for name in more]
    several = {(each.kind, each.name): each for each in objects}
    kept, simulated = list(events), replay(events)
    less = sorted(less[:_MOST], key=lambda each: each.start)
    for finding, later in zip_longest(less, less[1:]):
        name, of = told(finding.object, finding.name), several.get((finding.object, finding.name))
        if of is not None and of.nodes:
            tried = [_removal(finding, of.nodes, record.history, simulated, since)]
        else:
            tried = list(_lowered(finding, of, quotas, since))
        until = record.end if later is None else later.start
        if not tried:
            notes.append(f"no event can express that {name} had less: no manifest sets how much it has")
        elif any(_contradict(one, other) for one in tried for other in kept):
            notes.append(f"{name} already has an event at the time of a finding, so the finding is left out")
        elif record.error(other := replay([*kept, *tried]), until) <= (1 - least) * record.error(
            simulated, until
        ):
            kept, simulated = [*kept, *tried], other
        else:
            notes.append(f"harness leaves out an event for {name} that brings no waits closer to the record")
    return Tried(kept, simulated, notes)


def _lowered(finding: Finding, of: Object | None, quotas: Sequence[Quota], since: int) -> Iterator[Event]:
    """Yields the quotas that an object consists of, each lower by its part of the missing amount."""
    owners = {("ClusterQueue", finding.name)}
    if finding.object == WHOLE:
        names = of.queues if of is not None else ()
        owners = {("Cohort", finding.name), *(("ClusterQueue", name) for name in names)}
    for quota in quotas:
        if (quota.kind, quota.name) in owners:
            lower = quota.nominal * min(finding.amount, finding.capacity) // finding.capacity
            yield quota.lowered(lower, max(since, finding.start))._replace(end=finding.end)


def _removal(
    finding: Finding,
    nodes: Mapping[str, Mapping[str, int]],
    recorded: History,
    simulated: History,
    since: int,
) -> Event:
    """Removes nodes when the record evicts the most jobs near the beginning of the finding.

    The removed nodes ran the evicted jobs and few others. Of equally likely nodes, the last ones leave first.
    """
    around = (finding.end - finding.start) // 2
    near = {
        time: jobs
        for time, jobs in recorded.evicted.items()
        if abs(time - finding.start) <= around and time >= since
    }
    start = min(near, key=lambda each: (-len(near[each]), each), default=max(since, finding.start))
    score = simulated.scores(near.get(start, frozenset()), start) if near else {}
    missing = sum(has.get(finding.resource, 0) for has in nodes.values())
    missing -= finding.capacity - finding.amount  # also capacity beyond quotas
    found: list[str] = []
    order = list(nodes)[::-1]
    order.sort(key=lambda node: -score.get(node, 0))
    for node in order:
        amount = nodes[node].get(finding.resource, 0)
        likely = score.get(node, 0) > 0 or not near  # else only an idle node that is missing as a whole
        if amount and (not found or missing >= amount or (likely and 2 * missing >= amount)):
            found.append(node)
            missing -= amount
    return removal(found, start)._replace(end=finding.end)


def _contradict(one: Event, other: Event) -> bool:
    same = (one.kind, one.field) == (other.kind, other.field) and set(one.names) & set(other.names)
    return bool(same) and one.start < other.end and other.start < one.end

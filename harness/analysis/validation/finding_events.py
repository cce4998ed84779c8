"""Turns findings into events, for the time after the simulation no longer agrees with the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

from harness.analysis.validation.findings import LESS, MORE, Finding
from harness.analysis.validation.history import History
from harness.analysis.validation.objects import WHOLE, Object, told
from harness.analysis.validation.supposed import Event, Quota, quotas_of, removal
from harness.base.units import HOUR

if TYPE_CHECKING:
    from harness.analysis.validation.validation import Validation

_MOST = 20
"""Only the largest findings are tried, since each takes a replay."""
_SHORTEST = 6 * HOUR
"""A shorter finding may come from chance, because one late start changes many later ones."""

Waits: TypeAlias = Sequence[tuple[str, int]]
"""Jobs, and when each first starts in the record."""


class FindingEvents:
    """Tries the findings of a validation as events.

    Args:
        validation: the validation.
        recorded: the record as a replay.
        objects: the objects whose capacity may differ.
        waits: the jobs of the record.
        replay: replays with events.
        error: the error of a simulation for jobs that were submitted until a time.
        least: an event must explain this part of the error that remains.
    """

    def __init__(
        self,
        validation: Validation,
        recorded: History,
        objects: Sequence[Object],
        waits: Waits,
        replay: Callable[[Sequence[Event]], History],
        error: Callable[[History, int], float],
        least: float,
    ) -> None:
        self._findings = validation.findings
        self._knobs = validation.cluster.knobs()
        self._end = validation.recorded.window.end
        self._recorded = recorded
        self._objects = {(each.kind, each.name): each for each in objects}
        self._waits = waits
        self._replay = replay
        self._error = error
        self._least = least
        self.notes: list[str] = []

    def added(self, events: Sequence[Event], since: int) -> list[Event]:
        """Events, and those findings after a time that bring waits nearer to the record.

        Findings are tried in order of time. A note says why one gives no event.
        """
        kept, simulated = list(events), self._replay(events)
        less = self._chosen(since)
        for finding, later in zip_longest(less, less[1:]):
            name = told(finding.object, finding.name)
            tried = list(self._supposed(finding, simulated, since))
            if not tried:
                self.notes.append(
                    f"no event can express that {name} had less: no manifest sets how much it has"
                )
            elif any(_contradict(one, other) for one in tried for other in kept):
                self.notes.append(f"{name} already has an event at the time of a finding, which is left out")
            else:
                until = self._end if later is None else later.start
                other = self._replay([*kept, *tried])
                if self._error(other, until) <= (1 - self._least) * self._error(simulated, until):
                    kept, simulated = [*kept, *tried], other
                else:
                    self.notes.append(
                        f"an event for {name} does not bring waits closer to the record, so it is left out"
                    )
        return kept

    def _chosen(self, since: int) -> list[Finding]:
        """The largest findings of less capacity that last long after a time, in order of time."""
        less = [
            each
            for each in self._findings
            if each.kind == LESS and each.end - max(since, each.start) >= _SHORTEST
        ]
        if len(less) > _MOST:
            self.notes.append(f"only the {_MOST} largest of {len(less):,} findings are tried as events")
        more = dict.fromkeys(told(each.object, each.name) for each in self._findings if each.kind == MORE)
        self.notes += (
            f"no event can express that there was more of {name} than its manifests say" for name in more
        )
        return sorted(less[:_MOST], key=lambda each: each.start)

    def _supposed(self, finding: Finding, simulated: History, since: int) -> Iterator[Event]:
        """The events of a finding, which begin not before a time."""
        of = self._objects.get((finding.object, finding.name))
        if of is not None and of.nodes:
            yield self._removal(finding, of.nodes, simulated, since)
            return
        owners = {("ClusterQueue", finding.name)}
        if finding.object == WHOLE:
            queues = of.queues if of is not None else ()
            owners = {("Cohort", finding.name), *(("ClusterQueue", name) for name in queues)}
        start = max(since, self._parted(finding, simulated))
        for quota in quotas_of(self._knobs, finding.resource):
            if (quota.kind, quota.name) in owners:
                yield quota.lowered(_part(quota, finding), start)._replace(end=finding.end)

    def _parted(self, finding: Finding, simulated: History) -> int:
        """The first start in the simulation of a job that the record starts later, near the beginning."""
        around = (finding.end - finding.start) // 4
        starts = [
            spans[0][0]
            for job, recorded in self._waits
            if (spans := simulated.spans.get(job, ())) and recorded > spans[0][0]
        ]
        return min((each for each in starts if abs(each - finding.start) <= around), default=finding.start)

    def _removal(
        self, finding: Finding, nodes: Mapping[str, Mapping[str, int]], simulated: History, since: int
    ) -> Event:
        """Removed nodes, from the instant at which the record evicts most jobs near the beginning."""
        around = (finding.end - finding.start) // 2
        near = {
            time: jobs
            for time, jobs in self._recorded.evicted.items()
            if abs(time - finding.start) <= around and time >= since
        }
        start = min(near, key=lambda each: (-len(near[each]), each), default=max(since, finding.start))
        amounts = {name: has.get(finding.resource, 0) for name, has in nodes.items()}
        missing = sum(amounts.values()) - (finding.capacity - finding.amount)  # also capacity beyond quotas
        names = _nodes(simulated, start, near.get(start, frozenset()), amounts, missing)
        return removal(names, start)._replace(end=finding.end)


def _part(quota: Quota, finding: Finding) -> int:
    """By how much a quota is lower: its part of the missing amount, rounded down."""
    return quota.nominal * min(finding.amount, finding.capacity) // finding.capacity


def _nodes(
    simulated: History, time: int, evicted: frozenset[str], nodes: Mapping[str, int], missing: int
) -> list[str]:
    """The nodes that ran the evicted jobs and few others, enough for the missing amount; at least one.

    Among equally likely nodes, the last ones are chosen first.
    """
    score = simulated.scores(evicted, time)
    order = list(nodes)[::-1]
    if evicted:
        order.sort(key=lambda node: -score.get(node, 0))
    found: list[str] = []
    for node in order:
        amount = nodes[node]
        likely = score.get(node, 0) > 0 or not evicted  # else only an idle node that is missing as a whole
        if amount and (not found or missing >= amount or (likely and 2 * missing >= amount)):
            found.append(node)
            missing -= amount
        if missing <= 0:
            break
    return found


def _contradict(one: Event, other: Event) -> bool:
    """Returns True if two events change the same object at one time."""
    same = (one.kind, one.field) == (other.kind, other.field) and set(one.names) & set(other.names)
    return bool(same) and one.start < other.end and other.start < one.end

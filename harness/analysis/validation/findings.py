"""Finds reasons why a record differs from a simulation: capacity, late starts, or other evictions.

The module assumes a scheduler that leaves nothing idle. If a job waits during a whole span although its
requests seem free, some of the capacity was missing. The missing amount is at most what seemed free at the
time of the highest use. Over a period, this bound is close to the truth, because jobs fill the available
capacity. A scheduler may hold jobs back for another reason (a strict order, reservations, fragmentation). The
simulation then shows the same effect, and only what exceeds it is a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harness.analysis.validation.load import Amounts, Bins, Held, Level, Tag, above, levels, together, waiting
from harness.analysis.validation.objects import (
    NODES,
    QUEUE,
    UNLIMITED,
    WHOLE,
    Object,
    Objects,
    limits_of,
    objects_of,
    told,
    use_of,
)
from harness.analysis.validation.pieces import IN_PIECES, Pieces
from harness.base.text import counted
from harness.base.units import MINUTE, SECOND, format_duration, short_amount
from harness.runs.run import Run

if TYPE_CHECKING:
    import polars as pl

    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

LESS, MORE, LATE, EVICTIONS = "less", "more", "late", "evictions"

# Each threshold separates planted faults of known size from no fault: tests/test_validation_thresholds.py.
_SLACK = 5 * MINUTE
_LEAST = 0.015
"""The smallest missing fraction of a capacity that is a finding. Smaller fractions appear only in
fragments."""
_CONTRADICTS = 0.6
"""During a whole period, at least this fraction of the missing amount must be free."""
_EVIDENCE = 6
"""A finding needs at least this many spans of evidence."""
_MINE = 0.9
"""If a queue has this fraction of the evidence, the queue has lost quota. Otherwise the whole object has."""
_EVERYWHERE = 0.6
"""Several periods that span this fraction of the time are a single load that varies."""
_LEAST_LATE = 2 * SECOND
"""The smallest delay of starts that records in whole seconds cannot explain."""
_SURE = 20
"""Late starts are a finding only if at least this many jobs start immediately in the simulation."""
_TIMES_MORE = 2
"""Evictions are a finding if there are at least this many times as many in one of both."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason why a record differs from a simulation.

    Attributes:
        kind: `less` or `more` capacity than in the manifests, `late` starts, or other `evictions`.
        object: the kind of object with the capacity: `queue`, `nodes`, `whole`; "" for other findings.
        name: the object's name.
        resource: the resource with less or more capacity; "" for other findings.
        amount: how much less or more, in the resource's unit; for late starts in microseconds, and for
            evictions their number.
        capacity: the capacity in the manifests; 0 for other findings.
        start, end: the period, in microseconds since the origin.
        evidence: how many spans of time, jobs or evictions show the difference.
        told: the finding as a sentence, with the placeholders `{start}` and `{end}` for the times.
    """

    kind: str
    object: str
    name: str
    resource: str
    amount: int
    capacity: int
    start: int
    end: int
    evidence: int
    told: str

    def to_json(self) -> dict[str, Any]:
        """Returns the finding as plain values."""
        return asdict(self)

    def covers(self, start: int, end: int) -> bool:
        """Returns True if the finding's period overlaps this time, so that it may be the cause."""
        return self.start < end and start < self.end

    @property
    def weight(self) -> float:
        """The size of the finding: its fraction of a capacity, multiplied by its length in microseconds."""
        return self.amount / max(1, self.capacity) * (self.end - self.start)


def findings_of(
    trace: Trace, cluster: Cluster, recorded: Run, simulated: Run, pairs: pl.DataFrame
) -> list[Finding]:
    """Returns all findings, the most important first: late starts, then capacity by weight.

    Evictions follow from other causes, too, so they are a finding only if there is no other.
    """
    late = list(_late(pairs, recorded))
    resources = tuple(name for name in recorded.resources if name in recorded.capacity)
    if not resources:
        return late or list(_evictions(pairs, recorded))
    objects = objects_of(trace, cluster, recorded)
    bins = Bins.of(recorded.window)
    slack = _SLACK + 2 * (late[0].amount if late else 0)
    worlds = [_World(run, objects, resources, bins, slack) for run in (recorded, simulated)]
    found: list[Finding] = []
    for place in range(len(objects.several)):
        look = _Look(place, *worlds)
        found += [*look.missing(), *look.beyond()]
    alone = {each.name for each in objects.several if each.kind == QUEUE}
    found = sorted(_attributed(found, alone), key=lambda each: (-each.weight, each.start, each.name))
    return [*late, *found] or list(_evictions(pairs, recorded))


def _late(pairs: pl.DataFrame, run: Run) -> Iterator[Finding]:
    """Yields a finding if jobs that start immediately in the simulation start equally late in the record.

    The shortest interval that contains half of their waits is the densest one, whatever the other waits are.
    """
    import polars as pl

    ordered = pairs.filter(pl.col("simulated_wait") == 0)["wait"].sort().to_list()
    if len(ordered) < _SURE:
        return
    half = len(ordered) // 2
    width, at = min((ordered[at + half - 1] - ordered[at], at) for at in range(len(ordered) - half + 1))
    late = ordered[at + half // 2]
    if late < _LEAST_LATE or width > max(late // 2, SECOND):
        return
    sentence = (
        f"starts are {format_duration(late)} late: the {len(ordered):,} jobs that start immediately in the "
        "simulation start that long after their submission in the record. Pods may take that long to be "
        "ready, or victims may take that long to terminate"
    )
    yield Finding(LATE, "", "", "", late, 0, *run.window, len(ordered), sentence)


def _evictions(pairs: pl.DataFrame, run: Run) -> Iterator[Finding]:
    """Yields a finding if either the record or the simulation has far more evictions than the other."""
    ours, theirs = int(pairs["recorded_evictions"].sum()), int(pairs["simulated_evictions"].sum())
    more = abs(ours - theirs)
    if more < _EVIDENCE or max(ours, theirs) < _TIMES_MORE * min(ours, theirs):
        return
    sentence = (
        f"the record has {counted(ours, 'eviction')}, and the simulation {theirs:,}: a job that makes way in "
        "only one of them changes the waits of other jobs. Compare the priorities and preemption policies "
        "of the manifests with those of the recorded scheduler"
    )
    yield Finding(EVICTIONS, "", "", "", more, 0, *run.window, more, sentence)


class _World:
    """The use of every object in one run, and the jobs that waited although they would have fitted."""

    def __init__(
        self, run: Run, objects: Objects, resources: tuple[str, ...], bins: Bins, slack: int
    ) -> None:
        self.objects = objects
        self.resources = resources
        self.bins = bins
        use = use_of(run, resources)
        self._pieces = [Pieces.of(each.nodes, resources, use.unit) for each in objects.several]
        self.held: list[list[Held]] = [[] for _ in objects.several]
        of_queue: dict[str, list[Held]] = {}
        for job, spans in use.held.items():
            for place in objects.of_job[job]:
                self.held[place] += spans
            of_queue.setdefault(objects.queue_of[job], []).extend(spans)
        width = len(resources)
        self.limits = [limits_of(each.limits, resources) for each in objects.several]
        self.levels: list[list[Level]] = [levels(bins, spans, width) for spans in self.held]
        self._of_queue = {name: levels(bins, spans, width) for name, spans in of_queue.items()}
        waited = [(span, (objects.queue_of[job], objects.of_job[job])) for job, span in use.waited.items()]
        self.waiting: list[Sequence[tuple[Amounts, Tag]]] = list(waiting(bins, waited, slack))
        self.shown: list[dict[int, Counter[str]]] = [{} for _ in objects.several]
        for number, asked in enumerate(self.waiting):
            for amounts, (queue, places) in asked:
                if all(self._fits(amounts, place, number) for place in places):
                    # A job that selects nodes waits for those, not for the whole cluster.
                    for place in places if objects.several[places[0]].queues else places[-1:]:
                        of = self.shown[place].setdefault(number, Counter())
                        of[queue if self._guaranteed(amounts, queue, places[0], number) else ""] += 1
        for place, one in enumerate(objects.several):
            if one.kind == NODES and not one.name:
                self._keep_apart(place)

    def _keep_apart(self, nodes: int) -> None:
        """Counts each span as evidence either of missing nodes or of missing quota.

        If nodes are missing, jobs of all queues wait although they are within their quotas. If a queue has
        lost quota, only its own jobs wait in this way.
        """
        shown = self.shown[nodes]
        trees = [place for place, one in enumerate(self.objects.several) if len(one.queues) > 1]
        quota = []
        for number in shown:
            guaranteed: Counter[str] = Counter()
            for near in range(number - _EVIDENCE, number + _EVIDENCE + 1):
                guaranteed.update(shown.get(near, {}))
            del guaranteed[""]
            if max(guaranteed.values(), default=0) >= _MINE * guaranteed.total():
                quota.append(number)
        for number in [*shown]:
            for place in [nodes] if number in quota else trees:
                self.shown[place].pop(number, None)

    def free(self, place: int, number: int) -> Amounts:
        most = self.levels[place][number].most
        return tuple(limit - level for limit, level in zip(self.limits[place], most, strict=True))

    def _fits(self, amounts: Amounts, place: int, number: int) -> bool:
        """Returns True if a request fitted during a whole span, however the nodes were filled."""
        free, pieces = self.free(place, number), self._pieces[place]
        if pieces is not None and pieces.have_room(amounts, self.levels[place][number].most):
            return True
        margin = 0 if pieces is None else IN_PIECES
        return all(
            asked <= max(0, left - (margin * limit if asked and limit < UNLIMITED else 0))
            for asked, left, limit in zip(amounts, free, self.limits[place], strict=True)
        )

    def _guaranteed(self, amounts: Amounts, queue: str, place: int, number: int) -> bool:
        """Returns True if the request is within the queue's own quota, so that no other queue may hold it."""
        nominal = self.objects.several[place].queues.get(queue)
        if nominal is None:
            return False
        used = self._of_queue[queue][number].most if queue in self._of_queue else (0,) * len(amounts)
        limits = limits_of(nominal, self.resources)
        return all(asked + held <= limit for asked, held, limit in zip(amounts, used, limits, strict=True))

    def saturated(self, place: int) -> list[int]:
        return [
            number
            for number, asked in enumerate(self.waiting)
            if any(place in places for _, (_, places) in asked)
        ]


class _Look:
    def __init__(self, place: int, recorded: _World, simulated: _World) -> None:
        self._place = place
        self._recorded = recorded
        self._simulated = simulated
        self._object: Object = recorded.objects.several[place]
        self._limits = recorded.limits[place]

    def missing(self) -> Iterator[Finding]:
        place = self._place
        usual = self._simulated.shown[place]
        shown = [number for number in self._recorded.shown[place] if number not in usual]
        for at, resource in enumerate(self._recorded.resources):
            limit = self._limits[at]
            if not 0 < limit < UNLIMITED:
                continue
            mine = [number for number in shown if self._scarcest(number) == at]
            floor = _LEAST * limit
            idle = sorted(self._simulated.free(place, number)[at] for number in usual)
            if len(idle) >= max(_EVIDENCE, len(mine) // 20):
                floor = max(floor, idle[len(idle) * 9 // 10])
            mine = [number for number in mine if self._free(number, at) > floor]
            periods = list(self._periods(mine, at))
            spans = sum(len(period) for period in periods)
            wide = len(periods) > 2 and periods[-1][-1] - periods[0][0] > _EVERYWHERE * self._bins.count
            if wide and spans >= 3 * _EVIDENCE:
                yield self._varying(periods, at, resource)
            else:
                yield from (self._less(period, at, resource) for period in periods)

    @property
    def _bins(self) -> Bins:
        return self._recorded.bins

    def _free(self, number: int, at: int) -> int:
        return self._recorded.free(self._place, number)[at]

    def _less(self, period: list[int], at: int, resource: str) -> Finding:
        free = sorted(self._free(number, at) for number in period)
        amount = free[len(free) // 10]
        time = self._lasting(free[0], at, self._bins.begin(period[0]), self._bins.begin(period[-1] + 1))
        return self._finding(amount, at, resource, time, period)

    def _lasting(self, missing: int, at: int, start: int, end: int) -> tuple[int, int]:
        """Returns a period, extended at each end while nothing held the missing amount.

        An extension is at most as long as the period. When the capacity returns, a waiting job takes it.
        Nodes leave with their pods, so use falls immediately. A lower quota evicts no pod, so its beginning
        is invisible.
        """
        held = above(self._recorded.held[self._place], at, self._limits[at] - missing)
        middle, most = (start + end) // 2, end - start
        before = max((ends for _, ends in held if ends <= middle), default=start - most - 1)
        after = min((begins for begins, _ in held if begins >= middle), default=end + most + 1)
        if not self._object.nodes or start - before > most:
            before = start
        return before, end if after - end > most else after

    def _varying(self, periods: list[list[int]], at: int, resource: str) -> Finding:
        """Returns a varying load, which is the amount missing from use while jobs waited."""
        used = [self._recorded.levels[self._place][n].mean[at] for n in self._recorded.saturated(self._place)]
        usual = [
            self._simulated.levels[self._place][n].mean[at] for n in self._simulated.saturated(self._place)
        ]
        shown = [number for period in periods for number in period]
        amount = sum(self._free(number, at) for number in shown) / len(shown)
        if len(usual) >= _EVIDENCE:
            amount = sum(usual) / len(usual) - sum(used) / len(used)
        start, end = self._bins.begin(shown[0]), self._bins.begin(shown[-1] + 1)
        return self._finding(max(1, round(amount)), at, resource, (start, end), shown)

    def _finding(
        self, amount: int, at: int, resource: str, time: tuple[int, int], shown: Sequence[int]
    ) -> Finding:
        kind, name, limit = self._object.kind, self._object.name, self._limits[at]
        if kind == WHOLE and (queue := self._queue_of(shown)):
            kind, name, limit = QUEUE, queue, self._object.queues[queue].get(resource, limit)
        why = {
            QUEUE: "the quota was lower then, or load that is not in the trace used this capacity",
            NODES: "this capacity was missing (an outage, or drained nodes), or other load used it",
            WHOLE: "load that is not in the trace used this capacity, or the capacity was missing",
        }[kind]
        missing, has = short_amount(resource, amount), short_amount(resource, limit)
        sentence = (
            f"from {{start}} to {{end}}, no job of the trace holds {missing} of the {has} {resource} of "
            f"{told(kind, name)} ({amount / limit:.0%}), although waiting jobs would fit: {why}"
        )
        return Finding(LESS, kind, name, resource, amount, limit, *time, len(shown), sentence)

    def _queue_of(self, shown: Sequence[int]) -> str:
        """Returns the queue whose own quota the waiting jobs need, or "" if it lacks most of the evidence."""
        spans: Counter[str] = Counter()
        for number in shown:
            spans.update(name for name in self._recorded.shown[self._place][number] if name)
        total = sum(spans.values())
        name, most = max(spans.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        return name if total and most >= _MINE * total else ""

    def beyond(self) -> Iterator[Finding]:
        for at, resource in enumerate(self._recorded.resources):
            limit = self._limits[at]
            every = self._recorded.levels[self._place]
            over = [number for number, level in enumerate(every) if level.most[at] > limit]
            for period in together(over):
                most = max(every[number].most[at] for number in period)
                start, end = self._bins.begin(period[0]), self._bins.begin(period[-1] + 1)
                used, has = short_amount(resource, most), short_amount(resource, limit)
                sentence = (
                    f"from {{start}} to {{end}}, jobs use up to {used} of the {has} {resource} of "
                    f"{told(self._object.kind, self._object.name)}: the capacity was larger then"
                )
                yield Finding(
                    *(MORE, self._object.kind, self._object.name, resource, most - limit, limit),
                    *(start, end, len(period), sentence),
                )

    def _scarcest(self, number: int) -> int:
        free = self._recorded.free(self._place, number)
        parts = [
            (amount / limit if 0 < limit < UNLIMITED else 2.0, at)
            for at, (amount, limit) in enumerate(zip(free, self._limits, strict=True))
        ]
        return min(parts)[1]

    def _periods(self, shown: list[int], at: int) -> Iterator[list[int]]:
        """Joins spans of evidence to periods if nothing between them shows the full capacity."""
        period: list[int] = []
        for number in shown:
            if period:
                recent = min(self._free(each, at) for each in period[-_EVIDENCE:])
                least = _CONTRADICTS * min(self._free(number, at), recent)
                if any(self._free(each, at) < least for each in range(period[-1] + 1, number)):
                    if len(period) >= _EVIDENCE:
                        yield period
                    period = []
            period.append(number)
        if len(period) >= _EVIDENCE:
            yield period


def _attributed(found: list[Finding], alone: Collection[str]) -> list[Finding]:
    """Returns a single cause for each time at which capacity is missing, even if several objects show it.

    If nearly all waiting jobs belong to one of several queues, within its quota, that queue has lost quota.
    Otherwise nodes are missing, which explains what their queues lack. Queues in `alone` have no cohort.
    """

    def rank(each: Finding) -> int:
        if each.kind != LESS:
            return 0
        return 1 if each.object == QUEUE and each.name not in alone else 2 if each.object == NODES else 3

    def explained(each: Finding) -> bool:
        return any(0 < rank(one) < min(rank(each), 3) and _overlap(each, one) > 0.5 for one in found)

    return [each for each in found if not explained(each)]


def _overlap(one: Finding, other: Finding) -> float:
    """Returns the fraction of the shorter period that lies in the other period."""
    both = min(one.end, other.end) - max(one.start, other.start)
    return both / max(1, min(one.end - one.start, other.end - other.start))

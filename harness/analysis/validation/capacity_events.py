"""Turns findings into a table of events, and replays with them to see how much of the error they explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from harness.analysis.validation.findings import LESS, MORE, Finding
from harness.analysis.validation.lost_nodes import nodes_of, went_at
from harness.analysis.validation.objects import WHOLE, Object, objects_of, told
from harness.analysis.validation.pairs import pairs_of
from harness.base.text import aligned
from harness.base.units import (
    SECOND,
    exact_duration,
    format_amount,
    format_duration,
    parse_duration,
    round_up,
)

if TYPE_CHECKING:
    from harness.analysis.validation.validation import Validation
    from harness.plugins import Plugins
    from harness.runs.request import Request
    from harness.runs.run import Run

Row = Mapping[str, str]
"""A row of a table of events, by column."""

_MOST = 20
"""Only the largest findings are tried, since each takes a replay."""


class Part(NamedTuple):
    """The events of one object.

    Attributes:
        name: the object, as people see it.
        rows: its events, in order of time.
        error: the mean size of the error of waits if only these events are replayed, in microseconds.
    """

    name: str
    rows: Sequence[Row]
    error: float


@dataclass(frozen=True, slots=True)
class Explained:
    """Events from findings, and the effect of a replay with them.

    Attributes:
        rows: all events, in order of time.
        parts: the events by object; the object that explains most comes first.
        before: the mean size of the error of waits without events, in microseconds.
        after: the same with all events.
        notes: a sentence for each finding that gives no event.
    """

    rows: Sequence[Row]
    parts: Sequence[Part]
    before: float
    after: float
    notes: Sequence[str]

    def share(self, error: float) -> float | None:
        """The part of the error that is gone if `error` remains; None if there was no error."""
        return 1 - error / self.before if self.before else None

    @property
    def table(self) -> str:
        """The mean error of waits without events, with each object's events alone, and with all, as text."""
        lines = [("none", 0, self.before), *((part.name, len(part.rows), part.error) for part in self.parts)]
        if len(self.parts) > 1:
            lines.append(("all", len(self.rows), self.after))
        head = ["replayed with events of", "events", "mean error of waits", "explained"]
        rows = [
            [
                name,
                f"{count:,}",
                format_duration(round(error / SECOND) * SECOND),
                self._told(error) if count else "",
            ]
            for name, count, error in lines
        ]
        return aligned([head, *rows], names={0: ()})

    def _told(self, error: float) -> str:
        share = self.share(error)
        return "–" if share is None else f"{share:.0%}"

    def to_json(self) -> dict[str, Any]:
        """The result as plain values; errors are in microseconds."""
        return {
            "rows": [dict(row) for row in self.rows],
            "objects": [
                {
                    "name": part.name,
                    "events": len(part.rows),
                    "error": part.error,
                    "explained": self.share(part.error),
                }
                for part in self.parts
            ],
            "before": self.before,
            "after": self.after,
            "explained": self.share(self.after),
            "notes": list(self.notes),
        }


def explained(
    validation: Validation, request: Request, plugins: Plugins, run: Callable[[Request], Run] | None = None
) -> Explained:
    """Makes events from the findings of a validation, and replays with them.

    Less quota becomes a lower nominal quota for that time. Fewer nodes become removed nodes: the nodes whose
    jobs the record then evicts, as placed by the simulation with all earlier events.

    Args:
        validation: the validation with its findings.
        request: the simulation.
        plugins: the plugins that carry it out.
        run: a function that carries a request out; by default in this process.

    Raises:
        InputError: the cluster was made without manifests, so no event can change it.
    """
    carry_out = run or (lambda asked: asked.run(plugins=plugins))
    cluster, recorded_end = validation.cluster, validation.recorded.window.end

    def replayed(rows: Sequence[Row]) -> Run:
        return carry_out(replace(request, cluster=cluster.patched([dict(row) for row in rows])))

    objects = objects_of(validation.trace, cluster, validation.recorded).several
    several = {(each.kind, each.name): each for each in objects}
    found, simulated = _Events(), validation.simulated
    less = [each for each in validation.findings if each.kind == LESS]
    if len(less) > _MOST:
        found.notes.append(f"only the {_MOST} largest of {len(less):,} findings are tried as events")
    more = dict.fromkeys(told(each.object, each.name) for each in validation.findings if each.kind == MORE)
    found.notes += (
        f"no event can express that there was more of {name} than its manifests say" for name in more
    )
    less = sorted(less[:_MOST], key=lambda each: each.start)
    for finding, later in zip_longest(less, less[1:]):
        name, of = told(finding.object, finding.name), several.get((finding.object, finding.name))
        if of is not None and of.nodes:
            rows = _removals(finding, of, validation.recorded, simulated)
        else:
            start = _parted(pairs_of(validation.recorded, simulated, validation.resource), finding)
            rows = list(_quotas(finding, start, of, cluster.knobs()))
        if not rows:
            found.notes.append(f"no event can express that {name} had less: no manifest sets how much it has")
            continue
        if found.contradict(rows):
            found.notes.append(
                f"two findings change {name} at the same time; the events contain only the first one"
            )
            continue
        tried = replayed([*found.rows, *rows])
        until = recorded_end if later is None else later.start
        if _error(validation, tried, until) < _error(validation, simulated, until):
            found.add(name, rows)
            simulated = tried
        else:
            found.notes.append(
                f"an event for {name} does not bring waits closer to the record, so it is left out"
            )
    after = _error(validation, simulated, recorded_end)
    parts = [
        Part(name, rows, after if len(found.of) == 1 else _error(validation, replayed(rows), recorded_end))
        for name, rows in found.of.items()
    ]
    parts.sort(key=lambda part: (part.error, part.name))
    return Explained(
        found.rows, parts, _error(validation, validation.simulated, recorded_end), after, found.notes
    )


class _Events:
    """Rows by object, and notes on findings that give no rows."""

    def __init__(self) -> None:
        self.of: dict[str, list[Row]] = {}
        self.notes: list[str] = []

    @property
    def rows(self) -> list[Row]:
        """All rows, in order of time."""
        return sorted(chain(*self.of.values()), key=_begins)

    def add(self, name: str, rows: Sequence[Row]) -> None:
        """Adds the rows of an object."""
        self.of[name] = sorted([*self.of.get(name, ()), *rows], key=_begins)

    def contradict(self, rows: Sequence[Row]) -> bool:
        """Returns True if rows change a field of an object at a time when earlier rows have changed it."""
        return any(
            _key(one) == _key(other) and _begins(one) < _ends(other) and _begins(other) < _ends(one)
            for one in rows
            for other in self.rows
        )


def _begins(row: Row) -> int:
    return parse_duration(row["time"])


def _ends(row: Row) -> int:
    return parse_duration(row["until"])


def _key(row: Row) -> tuple[str, str, str]:
    return row["kind"], row["name"], row["field"]


def _parted(pairs: pl.DataFrame, finding: Finding) -> int:
    """The first start in the simulation of a job that the record starts later, near a finding's beginning."""
    around = (finding.end - finding.start) // 4
    near = pl.col("simulated").is_between(finding.start - around, finding.start + around)
    first = pairs.filter(near & (pl.col("recorded") > pl.col("simulated")))["simulated"].min()
    return first if isinstance(first, int) else finding.start


def _quotas(
    finding: Finding, start: int, of: Object | None, knobs: Mapping[str, int | Fraction | None]
) -> Iterator[Row]:
    """Rows for the quotas that an object consists of, each smaller by the missing part."""
    owners = {f"ClusterQueue/{finding.name}"}
    if finding.object == WHOLE:
        queues = of.queues if of is not None else ()
        owners = {f"Cohort/{finding.name}", *(f"ClusterQueue/{name}" for name in queues)}
    left = max(0, finding.capacity - finding.amount)
    for path, value in knobs.items():
        owner, _, field = path.partition(".quota[")
        if owner not in owners or not value or not f"/{field}".endswith(f"/{finding.resource}]"):
            continue
        amount = round_up(finding.resource, Fraction(value) * left / finding.capacity)
        yield _row(start, finding.end, owner, f"quota[{field}", format_amount(finding.resource, amount))


def _removals(finding: Finding, of: Object, recorded: Run, simulated: Run) -> list[Row]:
    """Rows for the removed nodes, from the instant at which the record evicts their jobs."""
    around = (finding.end - finding.start) // 2
    time, evicted = went_at(recorded, finding.start - around, finding.start + around)
    start = time if evicted else finding.start
    nodes = {name: has.get(finding.resource, 0) for name, has in of.nodes.items()}
    missing = sum(nodes.values()) - (finding.capacity - finding.amount)  # also capacity beyond all quotas
    names = nodes_of(simulated, start, evicted, nodes, missing)
    return [_row(start, finding.end, f"Node/{name}", "remove", "") for name in names]


def _row(start: int, end: int, owner: str, field: str, value: str) -> Row:
    kind, _, name = owner.partition("/")
    return {
        "time": exact_duration(start),
        "until": exact_duration(end),
        "kind": kind,
        "name": name,
        "field": field,
        "value": value,
    }


def _error(validation: Validation, simulated: Run, until: int) -> float:
    """The mean size of the error of waits, over jobs submitted before a time.

    A job that never starts in the simulation waits until its end.
    """
    found = pairs_of(validation.recorded, simulated, validation.resource)
    waits = pl.coalesce("simulated_wait", pl.lit(validation.recorded.window.end) - pl.col("submit"))
    error = (waits - pl.col("wait")).abs().filter(pl.col("submit") <= until).mean()
    return float(found.select(error.fill_null(0)).item())

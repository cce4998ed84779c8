"""Defines the events that a search tries: nodes that are removed, and quotas that are lower, for a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from harness.base.units import exact_duration, format_amount, parse_duration, round_up

Row: TypeAlias = Mapping[str, str]
"""A row of a table of events, by column."""

OPEN = 1 << 62
"""The end of an event that has not ended."""


class Event(NamedTuple):
    """An event that removes nodes or lowers a quota for a time.

    Attributes:
        kind: `Node`, `ClusterQueue` or `Cohort`.
        names: the names of the objects. Only events of nodes have several.
        field: the name of the changed field in the table of events.
        value: the lower quota in the resource's unit, or 0 for nodes.
        start, end: the times in microseconds since the origin. `end` is `OPEN` if the event has not ended.
        resource: the quota's resource, or "" for nodes.
    """

    kind: str
    names: tuple[str, ...]
    field: str
    value: int
    start: int
    end: int = OPEN
    resource: str = ""

    @property
    def is_open(self) -> bool:
        """Returns True if the event has not ended."""
        return self.end == OPEN

    def rows(self, last: int) -> Iterator[Row]:
        """Yields the rows of a table of events. An open event ends at the time `last`."""
        end = min(self.end, last)
        for name in self.names if self.start < end else ():
            yield {
                "time": exact_duration(self.start),
                "until": exact_duration(end),
                "kind": self.kind,
                "name": name,
                "field": self.field,
                "value": format_amount(self.resource, self.value) if self.resource else "",
            }


def rows_of(events: Iterable[Event], last: int) -> list[Row]:
    """Returns the rows of events in order of time. Open events end at the time `last`."""
    rows = (row for event in events for row in event.rows(last))
    return sorted(rows, key=lambda row: (parse_duration(row["time"]), row["kind"], row["name"]))


def removal(names: Iterable[str], start: int) -> Event:
    """Returns an event that removes nodes at the given time, and has no end yet."""
    return Event("Node", tuple(sorted(names)), "remove", 0, start)


class Quota(NamedTuple):
    """A quota that may be lower for a time."""

    kind: str
    name: str
    field: str
    resource: str
    nominal: int

    def lowered(self, by: int, start: int) -> Event:
        """Returns an event that lowers the quota by an amount at the given time, and has no end yet."""
        return Event(self.kind, (self.name,), self.field, self.nominal - by, start, resource=self.resource)

    def is_of(self, event: Event) -> bool:
        """Returns True if an event changes this quota."""
        return (event.kind, event.names, event.field) == (self.kind, (self.name,), self.field)


def quotas_of(knobs: Mapping[str, int | Fraction | None], resource: str) -> list[Quota]:
    """Returns the quotas of a resource that are not 0.

    `knobs` maps paths of fields in the cluster's manifests to the values of these fields.
    """
    found = []
    for path, value in knobs.items():
        owner, _, rest = path.partition(".quota[")
        kind, _, name = owner.partition("/")
        if kind in ("ClusterQueue", "Cohort") and value and f"/{rest}".endswith(f"/{resource}]"):
            found.append(Quota(kind, name, f"quota[{rest}", resource, round_up(resource, Fraction(value))))
    return found

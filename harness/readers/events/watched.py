"""Collects observations of objects over time, and creates rows of an event table from their changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.cluster.changes.timed import Moment

_REMOVE = "remove"


class Object(NamedTuple):
    """The kind and the name that identify an object in a table."""

    kind: str
    name: str


class Field(NamedTuple):
    """A field of an object, as rows of an event table name it.

    Attributes:
        name: the text in the column `field`.
        begins: the prefix of the text in the column `value`, such as `cpu=`.
        missing: the value for an object that no longer has the field, or None if no row can express this.
    """

    name: str
    begins: str = ""
    missing: str | None = ""


class _Row(NamedTuple):
    time: int
    object: Object
    field: Field
    until: int | None
    value: str


@dataclass
class Watched:
    """Collects observations, which must be in order of time.

    Attributes:
        notes: sentences about changes that no row can express, without repetitions.
    """

    notes: dict[str, None] = field(default_factory=dict)
    _begin: int | None = None
    _values: dict[tuple[Object, Field], list[tuple[int, str]]] = field(default_factory=dict)
    _spans: dict[tuple[Object, Field, str], list[list[int | None]]] = field(default_factory=dict)
    _there: set[Object] = field(default_factory=set)

    def seen(
        self,
        each: Object,
        at: int,
        values: Mapping[Field, str],
        states: Iterable[tuple[Field, str]] = (),
        *,
        new: bool = False,
    ) -> None:
        """Record an object's state at a given time.

        Args:
            each: the object.
            at: the time in microseconds since 1970, which must not be before an earlier observation.
            values: the fields that always have exactly one value, such as a quota, with their values.
            states: the states that are currently true, such as a taint, with their values in a row.
            new: whether the object did not exist before.
        """
        self._begins(at)
        came_back = self._end(each, Field(_REMOVE), "", at)
        if new and each not in self._there and not came_back:
            self.span(each, Field(_REMOVE), "", self._begin, at)
        self._there.add(each)
        for name in [*values, *(name for of, name in self._values if of == each and name not in values)]:
            known = self._values.setdefault((each, name), [])
            value = values.get(name, name.missing)
            if value is None:
                continue
            if not known or known[-1][1] != value:
                known.append((at, value))
        now = set(states)
        for of, name, value in list(self._spans):
            if of == each and name.name != _REMOVE and (name, value) not in now:
                self._end(of, name, value, at)
        for name, value in sorted(now, key=str):
            spans = self._spans.setdefault((each, name, value), [])
            if not spans or spans[-1][1] is not None:
                spans.append([at, None])

    def gone(self, each: Object, at: int) -> None:
        """Record that an object no longer exists."""
        self._begins(at)
        if each in self._there:
            self._there.discard(each)
            self.span(each, Field(_REMOVE), "", at, None)

    def lacks(self, what: str) -> None:
        """Add a note about a change that rows cannot express."""
        self.notes[what] = None

    @property
    def objects(self) -> int:
        """The number of observed objects."""
        return len({each for each, _ in self._values} | {each for each, _, _ in self._spans})

    def rows(self) -> list[dict[str, str]]:
        """Returns the rows of the table. Fields that never changed have no rows."""
        found = [
            _Row(at, each, name, None, f"{name.begins}{value}")
            for (each, name), known in self._values.items()
            if len(known) > 1
            for at, value in known
        ]
        found += [
            _Row(begin, each, name, until, value)
            for (each, name, value), spans in self._spans.items()
            for begin, until in spans
            if begin is not None and begin != until
        ]
        return [
            {
                "time": str(Moment(dated=True, time=row.time)),
                "until": "" if row.until is None else str(Moment(dated=True, time=row.until)),
                "kind": row.object.kind,
                "name": row.object.name,
                "field": row.field.name,
                "value": row.value,
            }
            for row in sorted(found, key=lambda row: (row.time, row.object, row.field[:2], row.value))
        ]

    def _begins(self, at: int) -> None:
        if self._begin is None:
            self._begin = at

    def span(self, each: Object, name: Field, value: str, begin: int | None, end: int | None) -> None:
        """Record that an object has a state from `begin` to `end`. A time of None is unknown."""
        self._spans.setdefault((each, name, value), []).append([begin, end])

    def _end(self, each: Object, name: Field, value: str, at: int) -> bool:
        spans = self._spans.get((each, name, value), [])
        if not spans or spans[-1][1] is not None:
            return False
        spans[-1][1] = at
        return True

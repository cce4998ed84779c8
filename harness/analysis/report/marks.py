"""Describes the changes of a run's cluster as marks, with the time and length of each change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.cluster.changes.event_nodes import CONTROLLER
from harness.runs.epochs import SORTS, sentence, sort_name, sort_of, told_sorts
from harness.runs.run import Run

FAILURES = "failures"
"""The kind of changes that remove a node. Metrics use this name for the evictions that follow."""

ROWS = (FAILURES, *reversed(SORTS), "removed", "added", "others")
"""The kinds of changes in the order in which charts and tables show them, which begins with nodes."""


class Mark(NamedTuple):
    """A change of an object.

    Attributes:
        sort: the kind of the change, one of `ROWS`.
        name: the name of the object, with its kind.
        begin: when the change happens, in microseconds since the run's origin.
        end: when all of the changed fields have changed again; None if some never do.
        told: the kind and the change in words.
    """

    sort: str
    name: str
    begin: int
    end: int | None
    told: str


class _Open:
    """A mark that may still be extended. `_left` contains the fields that have not changed again."""

    def __init__(self, at: int, edit: Mapping[str, Any]) -> None:
        self.begin = at
        self.how = edit["how"]
        self._edit = {**edit, "fields": {}}
        self._left: set[str] = set()
        self._end: int | None = None

    def add(self, field: str, values: Sequence[str | None]) -> None:
        self._edit["fields"][field] = values
        self._left.add(field)
        self._end = None

    def over(self, field: str, at: int) -> None:
        self._left.discard(field)
        self._end = None if self._left else at

    def mark(self) -> Mark:
        failed = self._edit["kind"] == "Node" and self.how == "removed"
        sort = FAILURES if failed else sort_of(self._edit)
        told = sentence(self._edit)
        if sort != self.how:  # otherwise, the sentence already names the kind
            told = f"{sort_name(sort, 1)}: {told}"
        return Mark(sort, f"{self._edit['kind']} {self._edit['name']}", self.begin, self._end, told)


def marks_of(run: Run) -> list[Mark]:
    """Returns the changes of a run's cluster in chronological order.

    If a change restores a field's first value, the change has no mark of its own but ends the previous mark.
    If an object changes several times within a second, the changes share a mark. For example, a taint follows
    a cordon immediately.
    """
    found: list[_Open] = []
    latest: dict[tuple[str, str], _Open] = {}
    # Maps each changed field to its first value and its last mark.
    changed: dict[tuple[str, str, str], tuple[str | None, _Open]] = {}
    for event in run.info["cluster"].get("events", ()):
        at = event["at_us"]
        for edit in event["edits"]:
            key = edit["kind"], edit["name"]
            begun = {}
            for field, values in edit["fields"].items():
                first, before = changed.pop((*key, field), (values[0], None))
                if before is not None:
                    before.over(field, at)
                if before is None or values[1] != first:
                    begun[field] = first, values
            if edit["fields"] and not begun:
                continue
            mark = latest.get(key)
            if mark is None or at > mark.begin + CONTROLLER or mark.how != edit["how"]:
                mark = latest[key] = _Open(at, edit)
                found.append(mark)
            for field, (first, values) in begun.items():
                mark.add(field, values)
                changed[(*key, field)] = first, mark
    return [each.mark() for each in found]


def by_kind(marks: Iterable[Mark]) -> str:
    """Counts marks in total and by kind of change: `5 (3 failures, 2 quotas)`."""
    return told_sorts(Counter(mark.sort for mark in marks))


def merged(marks: Sequence[Mark], least: int) -> Iterator[Sequence[Mark]]:
    """Groups marks of one kind so that the beginnings of two groups are at least `least` apart.

    Marks are in order of time.
    """
    group: list[Mark] = []
    for mark in marks:
        if group and mark.begin - group[0].begin >= least:
            yield group
            group = []
        group.append(mark)
    if group:
        yield group

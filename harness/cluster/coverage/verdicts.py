"""What can be said of a field of a manifest, and tables that say it of every field of a kind.

A path is written as `spec.taints[].key`: `[]` is each item of a list, `{}` each value of a mapping with free
names. `{name}` is the value of one name, and `{prefix*}` those of all names that begin so. A row about a path
holds for all below it without a row of its own, but for `modelled`. A modelled mapping has only the fields
with a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple, final

from harness.base.values import Value, fixed

_STEP = re.compile(r"\{[^}]*\}|\[\]|[^.\[\]{}]+")


class Verdict(Enum):
    """What a replay makes of a field."""

    MODELLED = "modelled"
    HARMLESS = "cannot change a decision here"
    ASSUMED = "not modelled"
    SAME = "the same as another place"


@fixed()
class Row(Value):
    """What is said of a field.

    Attributes:
        path: of the field.
        verdict: what a replay makes of it.
        why: why it cannot change a decision, or what is assumed instead of it; the other place of `SAME`.
        usual: values that ask for nothing beyond what is assumed, so that there is nothing to warn of.
        versions: the API versions that have it; all, if empty.
    """

    path: str
    verdict: Verdict
    why: str = ""
    usual: tuple[Any, ...] = ()
    versions: tuple[str, ...] = ()


def modelled(*paths: str) -> list[Row]:
    """Fields that are read and count."""
    return [Row(path, Verdict.MODELLED) for path in paths]


def harmless(why: str, *paths: str) -> list[Row]:
    """Fields that cannot change a decision here, and why."""
    return [Row(path, Verdict.HARMLESS, why) for path in paths]


def assumed(what: str, *paths: str, usual: tuple[Any, ...] = ()) -> list[Row]:
    """Fields that are not modelled, and what is assumed instead."""
    return [Row(path, Verdict.ASSUMED, what, usual) for path in paths]


def same(path: str, other: str) -> list[Row]:
    """A place whose fields are the same as those of a place above it, such as the children of a tree."""
    return [Row(path, Verdict.SAME, other)]


def below(path: str, rows: Iterable[Row]) -> list[Row]:
    """The same rows one mapping deeper."""
    return [replace(row, path=f"{path}.{row.path}") for row in rows]


def only(versions: Iterable[str], rows: Iterable[Row]) -> list[Row]:
    """Rows that hold in some API versions alone."""
    return [replace(row, versions=tuple(versions)) for row in rows]


class Finding(NamedTuple):
    """A field of a manifest that is not modelled.

    Attributes:
        path: of the field.
        row: what is said of it; None where nothing is known of such a field.
        known: the names that are known where an unknown one stands.
        wanted: what has to stand there, where it is something else; "" where that is not the matter.
    """

    path: str
    row: Row | None
    known: tuple[str, ...] = ()
    wanted: str = ""


@final
@dataclass(slots=True)
class Place:
    """A place of a kind's tree of fields.

    Attributes:
        row: what is said of it; None where it only leads to others.
        names: the fields in it.
        prefixes: what is said of names that begin alike, the longest first.
        free: what is said of any other name; None where there are no others.
        item: what is said of the items of a list.
        quiet: whether nothing is found here, whatever the value is; known once the tree is whole.
    """

    row: Row | None = None
    names: dict[str, Place] = field(default_factory=dict)
    prefixes: dict[str, Place] = field(default_factory=dict)
    free: Place | None = None
    item: Place | None = None
    quiet: bool = False

    @property
    def ends(self) -> bool:
        """Whether nothing is said of anything in it."""
        return not (self.names or self.prefixes) and self.free is None and self.item is None

    @property
    def covers(self) -> Row | None:
        """What holds for everything in it without a row of its own."""
        return None if self.row is None or self.row.verdict is Verdict.MODELLED else self.row

    def find(self, name: str) -> Place | None:
        """The field of a name; None where nothing is said of it."""
        found = self.names.get(name)
        if found is None:
            found = next((each for start, each in self.prefixes.items() if name.startswith(start)), self.free)
        return found

    def _make(self, step: str) -> Place:
        """The place one step further, made where it is not there."""
        if step == "[]":
            self.item = self.item or Place()
            return self.item
        if step == "{}":
            self.free = self.free or Place()
            return self.free
        if step.endswith("*}"):
            made = self.prefixes.setdefault(step[1:-2], Place())
            self.prefixes = dict(sorted(self.prefixes.items(), key=lambda each: (-len(each[0]), each[0])))
            return made
        return self.names.setdefault(step.strip("{}"), Place())

    def at(self, path: str) -> Place:
        """The place of a path below this one, made where it is not there."""
        place = self
        for step in _STEP.findall(path):
            place = place._make(step)
        return place

    def said_of(self, path: str) -> Row | None:
        """What is said of a path below this one; None where nothing is.

        Of a mapping that only leads to fields it is as if it were modelled.
        """
        place: Place | None = self
        row = self.covers
        for step in _STEP.findall(path):
            assert place is not None
            if step == "[]":
                inner = place.item
            else:
                inner = place.free if step == "{}" else place.find(step.strip("{}"))
            if inner is None:
                return row
            place, row = inner, inner.covers or (None if inner.row else row)
        assert place is not None
        return place.row or (row if place.ends else Row(path, Verdict.MODELLED))

    def findings(self, value: Any) -> list[Finding]:
        """The fields of a value that are not modelled, each once, with `[]` for the items of lists."""
        found: list[Finding] = []
        self.look(value, [], None, found)
        return found

    def look(self, value: Any, steps: list[str], above: Finding | None, found: list[Finding]) -> None:
        """Find those of one place.

        Args:
            value: what the manifest has here.
            steps: the path of this place; as it was when this is over.
            above: what covers it; None where only the fields that are said may be there.
            found: where they are collected.
        """
        row = self.row
        if row is not None:
            if row.usual and value in row.usual:
                return
            if row.verdict is Verdict.MODELLED:
                above = None
            elif self.ends and row.verdict is not Verdict.ASSUMED:
                return
            else:
                above = Finding("".join(steps), row)
        if self.ends:
            if above is not None:
                _covered(above, value, found)
        elif isinstance(value, (dict, Mapping)):
            names = self.names
            for name, inner in value.items():
                if inner is not None:
                    place = names.get(name) or self.find(str(name))
                    if place is not None and place.quiet:
                        continue
                    steps.append(f".{name}" if steps else str(name))
                    if place is not None:
                        place.look(inner, steps, above, found)
                    else:
                        self._unknown(inner, steps, above, found)
                    steps.pop()
        elif isinstance(value, list):
            steps.append("[]")
            for inner in value:
                if self.item is not None:
                    self.item.look(inner, steps, above, found)
                else:
                    self._unknown(inner, steps, above, found)
            steps.pop()
        else:
            wanted = "a list" if self.item else "a mapping of names to values"
            found.append(Finding("".join(steps), None, wanted=wanted))

    def _unknown(self, value: Any, steps: list[str], above: Finding | None, found: list[Finding]) -> None:
        """The same of a value in it without a row."""
        if above is None:
            found.append(Finding("".join(steps), None, tuple(self.names)))
        else:
            _covered(above, value, found)


def _covered(above: Finding, value: Any, found: list[Finding]) -> None:
    """What covers a value, where that is not modelled and the value, not being empty, asks for something."""
    if above.row is not None and above.row.verdict is Verdict.ASSUMED and value not in (None, "", [], {}):
        found.append(above)


@final
class Coverage:
    """What is said of every field of a kind.

    Args:
        rows: what is said, of each path once.
        strict: whether a manifest with an unknown field is refused, as its component does.
    """

    def __init__(self, *rows: Iterable[Row], strict: bool = False) -> None:
        self.rows = tuple(row for several in rows for row in several)
        self.strict = strict
        self._places: dict[str, Place] = {}

    def of(self, version: str) -> Place:
        """The tree of fields of an API version."""
        place = self._places.get(version)
        if place is None:
            place = self._places[version] = Place()
            for row in self.rows:
                if not row.versions or version in row.versions:
                    _put(place, row)
            _settle(place, set())
        return place


def _settle(place: Place, known: set[int]) -> None:
    """Find out which places are quiet, in a tree whose branches may lead back."""
    if id(place) in known:
        return
    known.add(id(place))
    row = place.row
    assumed = row is not None and (row.verdict is Verdict.ASSUMED or bool(row.usual))
    place.quiet = place.ends and row is not None and not assumed
    further = (*place.names.values(), *place.prefixes.values(), place.free, place.item)
    for inner in further:
        if inner is not None:
            _settle(inner, known)


def _put(root: Place, row: Row) -> None:
    if row.verdict is Verdict.SAME:
        above, _, last = row.path.rpartition("[]")
        assert not last, "lists of the same mapping are all there is"
        root.at(above).item = root.at(row.why)
        return
    place = root.at(row.path)
    if place.row is not None:
        raise ValueError(f"two rows say something of {row.path}")
    place.row = row

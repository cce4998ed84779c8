"""Verdicts on manifest fields, and tables with a verdict for every field of a kind.

A verdict states how a replay treats the field: whether harness models it, ignores it because it can't change
a decision, or makes an assumption instead.

In a path such as `spec.taints[].key`, `[]` means each item of a list. For a mapping with arbitrary names,
`{}` means each value, `{name}` means the value of one name, and `{prefix*}` means the values of all names
with this prefix. `(one|other)` stands for several paths, each with its own row.

A row applies to its path and to all paths below it that don't have their own row. A row from `modelled`
applies only to its own path, so each field of a modelled mapping needs its own row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, final

_SEVERAL = re.compile(r"\(([^)]*)\)")
STEP = re.compile(r"\{[^}]*\}|\[\]|[^.\[\]{}]+")


class Verdict(Enum):
    """How a replay treats a field."""

    MODELLED = "modelled"
    HARMLESS = "cannot change a decision here"
    ASSUMED = "not modelled"
    SAME = "the same as another field"


class Row(NamedTuple):
    """The verdict on a field.

    Attributes:
        verdict: how a replay treats the field.
        why: the reason why the field can't change a decision, or the assumption that harness makes. If the
            verdict is `SAME`, it is the path of a place with the same fields.
        usual: the values that agree with the assumption. These values don't cause a warning.
        versions: the API versions that have the field. If it is empty, all versions have the field.
    """

    path: str
    verdict: Verdict
    why: str = ""
    usual: tuple[Any, ...] = ()
    versions: tuple[str, ...] = ()


def _each(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        found = _SEVERAL.search(path)
        if found is None:
            yield path
        else:
            yield from _each(
                path[: found.start()] + name + path[found.end() :] for name in found[1].split("|")
            )


def modelled(*paths: str) -> list[Row]:
    """Returns rows for fields that harness reads and models."""
    return [Row(path, Verdict.MODELLED) for path in _each(paths)]


def harmless(why: str, *paths: str) -> list[Row]:
    """Returns rows for fields that can't change a decision in a replay, with the reason."""
    return [Row(path, Verdict.HARMLESS, why) for path in _each(paths)]


def assumed(what: str, *paths: str, usual: tuple[Any, ...] = ()) -> list[Row]:
    """Returns rows for fields that harness doesn't model, with the assumption that it makes instead."""
    return [Row(path, Verdict.ASSUMED, what, usual) for path in _each(paths)]


def same(path: str, other: str) -> list[Row]:
    """Returns a row stating that the place `path` has the same fields as the place `other`.

    For example, the children of a tree have the same fields as its root.
    """
    return [Row(path, Verdict.SAME, other)]


def below(path: str, rows: Iterable[Row]) -> list[Row]:
    """Returns the rows with the path `path` before their own paths."""
    return [row._replace(path=f"{path}.{row.path}") for row in rows]


def only(versions: Iterable[str], rows: Iterable[Row]) -> list[Row]:
    """Returns the rows, restricted to certain API versions."""
    return [row._replace(versions=tuple(versions)) for row in rows]


class Finding(NamedTuple):
    """A field in a manifest that is not modelled.

    Attributes:
        row: the verdict on the field, or None if the field is unknown.
        known: the known names at the same place, if the field's name is unknown.
        wanted: the type that the value should have, or "" if its type is right.
    """

    path: str
    row: Row | None
    known: tuple[str, ...] = ()
    wanted: str = ""


@final
@dataclass(slots=True, repr=False, eq=False)
class Place:
    """A place in the tree of fields of a kind.

    Attributes:
        row: the verdict on the place, or None if only places below it have verdicts.
        prefixes: maps prefixes of names to their places, the longest prefix first.
        free: the place of any other name, or None if other names are not allowed.
        item: the place of the items, if the value is a list.
        quiet: whether no value at this place can cause a finding. It is set when the tree is complete.
    """

    row: Row | None = None
    names: dict[str, Place] = field(default_factory=dict)
    prefixes: dict[str, Place] = field(default_factory=dict)
    free: Place | None = None
    item: Place | None = None
    quiet: bool = False

    @property
    def ends(self) -> bool:
        """True if no place below this place has a verdict."""
        return not (self.names or self.prefixes) and self.free is None and self.item is None

    @property
    def covers(self) -> Row | None:
        """The verdict that applies to all fields below this place that have no row of their own."""
        return None if self.row is None or self.row.verdict is Verdict.MODELLED else self.row

    def find(self, name: str) -> Place | None:
        """Returns the place of a field by its name, or None if no verdict covers the field."""
        found = self.names.get(name)
        if found is None:
            found = next((each for start, each in self.prefixes.items() if name.startswith(start)), self.free)
        return found

    def _make(self, step: str) -> Place:
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
        """Returns the place at a path below this place, and creates it if necessary."""
        place = self
        for step in STEP.findall(path):
            place = place._make(step)
        return place

    def findings(self, value: Any) -> list[Finding]:
        """Returns one finding for each field that harness doesn't model.

        In the paths, `[]` means list items.
        """
        found: list[Finding] = []
        self.look(value, [], None, found)
        return found

    def look(self, value: Any, steps: list[str], above: Finding | None, found: list[Finding]) -> None:
        """Collect the findings of one place.

        `steps` is the path of this place. The method changes the list, but restores it before it returns.
        `above` is the finding that covers the place, or None if only fields with a row are allowed here.
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
        """Collects the findings for the value of a field that the coverage does not list."""
        if above is None:
            found.append(Finding("".join(steps), None, tuple(self.names)))
        else:
            _covered(above, value, found)


def _covered(above: Finding, value: Any, found: list[Finding]) -> None:
    if above.row is not None and above.row.verdict is Verdict.ASSUMED and value not in (None, "", [], {}):
        found.append(above)


@final
class Coverage:
    """The verdicts on every field of a kind.

    Args:
        rows: the verdicts, at most one for each path.
        strict: whether a manifest with an unknown field is rejected, as the real component does.
    """

    def __init__(self, *rows: Iterable[Row], strict: bool = False) -> None:
        self.rows = tuple(row for several in rows for row in several)
        self.strict = strict
        self._places: dict[str, Place] = {}

    def of(self, version: str) -> Place:
        """Returns the tree of fields for an API version."""
        place = self._places.get(version)
        if place is None:
            place = self._places[version] = Place()
            for row in self.rows:
                if not row.versions or version in row.versions:
                    _put(place, row)
            _settle(place, set())
        return place


def _settle(place: Place, known: set[int]) -> None:
    """Marks the quiet places of a tree. Branches of the tree may lead back to their ancestors."""
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
        assert not last, "only a list can repeat the fields of a mapping above it"
        root.at(above).item = root.at(row.why)
        return
    place = root.at(row.path)
    if place.row is not None:
        raise ValueError(f"two rows have the path {row.path}")
    place.row = row

"""Verdicts on fields of manifests, and tables with a verdict for every field of a kind.

A path is written as `spec.taints[].key`: `[]` is each item of a list, `{}` each value of a mapping with free
names. `{name}` is the value of one name, and `{prefix*}` the values of all names with this prefix. A row
about a path applies to all paths below it that have no row of their own. Rows of `modelled` are the
exception: a modelled mapping has only the fields with a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple, final

from harness.base.values import Value, fixed

STEP = re.compile(r"\{[^}]*\}|\[\]|[^.\[\]{}]+")


class Verdict(Enum):
    """The treatment of a field in a replay."""

    MODELLED = "modelled"
    HARMLESS = "cannot change a decision here"
    ASSUMED = "not modelled"
    SAME = "the same as another place"


@fixed()
class Row(Value):
    """The verdict on a field.

    Attributes:
        path: the field's path.
        verdict: how a replay treats the field.
        why: the reason why the field cannot change a decision, or the assumption made instead; for `SAME`,
            the other place.
        usual: values that agree with the assumption, so that they cause no warning.
        versions: the API versions with the field; all if empty.
    """

    path: str
    verdict: Verdict
    why: str = ""
    usual: tuple[Any, ...] = ()
    versions: tuple[str, ...] = ()


def modelled(*paths: str) -> list[Row]:
    """Returns rows for fields that harness reads and models."""
    return [Row(path, Verdict.MODELLED) for path in paths]


def harmless(why: str, *paths: str) -> list[Row]:
    """Returns rows for fields that cannot change a decision here, with the reason."""
    return [Row(path, Verdict.HARMLESS, why) for path in paths]


def assumed(what: str, *paths: str, usual: tuple[Any, ...] = ()) -> list[Row]:
    """Returns rows for fields that harness does not model, with the assumption made instead."""
    return [Row(path, Verdict.ASSUMED, what, usual) for path in paths]


def same(path: str, other: str) -> list[Row]:
    """Returns a row for a place with the same fields as a place above it, such as the children of a tree."""
    return [Row(path, Verdict.SAME, other)]


def below(path: str, rows: Iterable[Row]) -> list[Row]:
    """Returns the rows, moved one mapping deeper."""
    return [replace(row, path=f"{path}.{row.path}") for row in rows]


def only(versions: Iterable[str], rows: Iterable[Row]) -> list[Row]:
    """Returns the rows, limited to some API versions."""
    return [replace(row, versions=tuple(versions)) for row in rows]


class Finding(NamedTuple):
    """A field of a manifest that is not modelled.

    Attributes:
        path: the field's path.
        row: the verdict on the field; None if the field is unknown.
        known: for an unknown name, the known names at its place.
        wanted: the required type of the value; "" if the type is right.
    """

    path: str
    row: Row | None
    known: tuple[str, ...] = ()
    wanted: str = ""


@final
@dataclass(slots=True)
class Place:
    """A place in a kind's tree of fields.

    Attributes:
        row: the verdict on the place; None if it only leads to other places.
        names: the fields of the place.
        prefixes: prefixes of names -> their places, the longest first.
        free: the place of any other name; None if other names are unknown.
        item: the place of a list's items.
        quiet: whether no value can cause a finding here; set when the tree is complete.
    """

    row: Row | None = None
    names: dict[str, Place] = field(default_factory=dict)
    prefixes: dict[str, Place] = field(default_factory=dict)
    free: Place | None = None
    item: Place | None = None
    quiet: bool = False

    @property
    def ends(self) -> bool:
        """True if no place below this one has a verdict."""
        return not (self.names or self.prefixes) and self.free is None and self.item is None

    @property
    def covers(self) -> Row | None:
        """The verdict that applies to all fields below without a row of their own."""
        return None if self.row is None or self.row.verdict is Verdict.MODELLED else self.row

    def find(self, name: str) -> Place | None:
        """Returns the place of a field by its name; None if no verdict covers the field."""
        found = self.names.get(name)
        if found is None:
            found = next((each for start, each in self.prefixes.items() if name.startswith(start)), self.free)
        return found

    def _make(self, step: str) -> Place:
        """Returns the place one step deeper, and creates it if necessary."""
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
        """Returns the place of a path below this one, and creates it if necessary."""
        place = self
        for step in STEP.findall(path):
            place = place._make(step)
        return place

    def findings(self, value: Any) -> list[Finding]:
        """Returns each field of a value that harness does not model once; `[]` stands for list items."""
        found: list[Finding] = []
        self.look(value, [], None, found)
        return found

    def look(self, value: Any, steps: list[str], above: Finding | None, found: list[Finding]) -> None:
        """Collect the findings of one place.

        Args:
            value: the manifest's value at this place.
            steps: the path of this place; unchanged when the method returns.
            above: the finding that covers the place; None if only fields with a row may be here.
            found: findings are added here.
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
        """Collect the findings of a value in this place without a row."""
        if above is None:
            found.append(Finding("".join(steps), None, tuple(self.names)))
        else:
            _covered(above, value, found)


def _covered(above: Finding, value: Any, found: list[Finding]) -> None:
    """Add the covering finding if it is an assumption and the value is not empty."""
    if above.row is not None and above.row.verdict is Verdict.ASSUMED and value not in (None, "", [], {}):
        found.append(above)


@final
class Coverage:
    """The verdicts on every field of a kind.

    Args:
        rows: the verdicts, with each path once.
        strict: whether to refuse a manifest with an unknown field, as the real component does.
    """

    def __init__(self, *rows: Iterable[Row], strict: bool = False) -> None:
        self.rows = tuple(row for several in rows for row in several)
        self.strict = strict
        self._places: dict[str, Place] = {}

    def of(self, version: str) -> Place:
        """Returns the tree of fields of an API version."""
        place = self._places.get(version)
        if place is None:
            place = self._places[version] = Place()
            for row in self.rows:
                if not row.versions or version in row.versions:
                    _put(place, row)
            _settle(place, set())
        return place


def _settle(place: Place, known: set[int]) -> None:
    """Mark the quiet places of a tree whose branches may lead back to their ancestors."""
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

"""Converts an event table to the documents of a patch, with the times in their annotations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, final

from harness.base.errors import Fault, InputError
from harness.base.options import did_you_mean
from harness.cluster.changes.edits import name_of
from harness.cluster.changes.event_nodes import Nodes, Part
from harness.cluster.changes.event_periods import Period, ends_of, in_order, period_of
from harness.cluster.changes.event_table import MOST_ROWS, Row
from harness.cluster.changes.knob_values import multiplied
from harness.cluster.changes.knobs import KNOBS, Place, like, turned_places
from harness.cluster.changes.timed import FROM, KINDS, UNTIL, Moment
from harness.cluster.kinds.elastic import is_koordinators
from harness.cluster.model import Cluster
from harness.cluster.yaml.documents import Document
from harness.cluster.yaml.fields import shown

_REMOVE = "remove"
_RENAMED = {"cohort": "cohortName", "parent": "parentName"}
"""Maps v1beta1 field names to their v1beta2 names. A row may use either name."""

_WORD = re.compile(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)*")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_CONSTANTS: Mapping[str, object] = {"": None, "true": True, "false": False}
_NAMES = ("name", "key")  # the fields by which a merge finds the items of a list


def event_documents(cluster: Cluster, table: Iterable[Row], faults: list[Fault]) -> list[Document]:
    """Converts the rows of an event table to patch documents for a cluster.

    Faults are added to `faults`, each with its row and column.
    """
    rows = {row.number: row for row in table}
    rules = _Rules(cluster, faults)
    when: dict[int, Period] = {}
    parts: dict[int, list[Part]] = {}
    for number, row in rows.items():
        period = period_of(row, next(iter(when.values()), None), faults)
        found = list(rules.parts(row))
        if period is not None:
            when[number], parts[number] = period, found
    if sum(map(len, parts.values())) > MOST_ROWS:
        faults.append(Fault("", f"changes more than {MOST_ROWS:,} objects"))
        return []
    said = {number: [field for part in found for field in part.said] for number, found in parts.items()}
    ends = ends_of(said, when, rows, faults)
    if faults:  # converting faulty rows would report the same faults again
        return []
    return [
        _document(rows[number], part, when[number].starts, ends[number])
        for number in in_order(when)
        for part in parts[number]
        if not _is_empty(part, when[number].starts, ends[number])
    ]


def _is_empty(part: Part, starts: Moment, ends: Moment | None) -> bool:
    """Returns True if a part would end before it starts. This happens to the taints of a short partition."""
    return ends is not None and ends.time + part.until_delay <= starts.time + part.delay


def _document(row: Row, part: Part, starts: Moment, ends: Moment | None) -> Document:
    times = {FROM: (starts, part.delay), UNTIL: (ends, part.until_delay)}
    annotations = dict(part.annotations) | {
        name: str(moment._replace(time=moment.time + delay))
        for name, (moment, delay) in times.items()
        if moment is not None
    }
    metadata = {**part.target["metadata"], "annotations": annotations}
    return Document(f"row {row.number:,}", {**part.target, "metadata": metadata, **part.fields})


@final
class _Rules:
    """Converts rows to parts of documents that change the objects of a cluster."""

    def __init__(self, cluster: Cluster, faults: list[Fault]) -> None:
        self._cluster, self._faults = cluster, faults
        self._nodes = Nodes(cluster.manifests)
        self._turned: dict[tuple[str, str], Sequence[Part]] = {}  # (knob path, value) -> parts

    def parts(self, row: Row) -> Iterator[Part]:
        kind, name, field = (row.cells[column] for column in ("kind", "name", "field"))
        if not (kind and name and field):
            return
        if kind not in KINDS:
            what = f"{shown(kind)} cannot change over time; {did_you_mean(kind, KINDS)}"
            self._faults.append(Fault(row.where("kind"), what))
        elif kind == "Node":
            yield from self._nodes.parts(row, self._faults)
        elif any(field.partition("[")[0] == knob.name for knob in KNOBS.get(kind, ())):
            in_trees = self._cluster.elastic_quotas if kind == "ElasticQuota" else ()
            if self._named(row, [*self._objects(kind), *in_trees]):
                yield from self._of_knob(row, f"{kind}/{name}.{field}")
        else:
            yield from self._of_field(row, field)

    def _objects(self, kind: str) -> dict[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        for content in self._cluster.manifests:
            if content.get("kind") == kind:
                found.setdefault(_called(content), content)
        return found

    def _named(self, row: Row, names: Iterable[str]) -> list[str]:
        """Returns the names that match a row's pattern. If no name matches, a fault is added."""
        text = row.cells["name"]
        found = [name for name in names if like(text, name)]
        if not found:
            what = f"there is no {row.cells['kind']} {shown(text)}; {did_you_mean(text, names)}"
            self._faults.append(Fault(row.where("name"), what))
        return found

    def _of_knob(self, row: Row, path: str) -> Sequence[Part]:
        value = row.cells["value"]
        if (path, value) not in self._turned:
            column = "field"
            try:
                self._cluster.knobs(path)
                column = "value"
                turned = turned_places(self._cluster, multiplied(self._cluster, {path: value or None}))
            except InputError as error:
                what = "; ".join(filter(None, (error.message, error.hint)))
                self._faults.append(Fault(row.where(column), what))
                return ()
            contents = self._cluster.manifests
            self._turned[path, value] = [
                _part(contents[number], place, _patch(contents[number], place, written))
                for (number, place), written in turned.items()
            ]
        return self._turned[path, value]

    def _of_field(self, row: Row, field: str) -> Iterator[Part]:
        """Yields the parts of a row that sets a field in the spec of objects, or that removes the objects."""
        there = self._objects(row.cells["kind"])
        named = self._named(row, there)
        value = row.cells["value"]
        if not _WORD.fullmatch(field):
            what = (
                f"{shown(field)} is not a field; write {_REMOVE!r}, 'stopPolicy' or a knob like 'quota[cpu]'"
            )
            self._faults.append(Fault(row.where("field"), what))
            return
        if field == _REMOVE and value:
            self._faults.append(
                Fault(row.where("value"), f"must be empty, because {_REMOVE!r} takes no value")
            )
        for name in named:
            place = _place(field, there[name])
            whole = int(value) if _WHOLE.fullmatch(value) else value
            fields = _patch({}, place, _CONSTANTS.get(value, whole))
            yield _part(there[name], place, {"$patch": "delete"} if field == _REMOVE else fields)


def _place(field: str, content: Mapping[str, Any]) -> Place:
    """Returns the path of a field in a spec, which depends on the object's API version."""
    names = _RENAMED
    if not str(content.get("apiVersion")).endswith("v1beta2"):
        names = {later: name for name, later in _RENAMED.items()}
    kueue = content.get("kind") in ("ClusterQueue", "Cohort")
    return ("spec", *(names.get(field, field) if kueue else field).split("."))


def _called(content: Mapping[str, Any]) -> str:
    """Returns the name that rows and knob paths use for an object.

    For an ElasticQuota that belongs to a namespace, this is the name of the namespace.
    """
    metadata = content.get("metadata") or {}
    if content.get("kind") == "ElasticQuota" and not is_koordinators(metadata):
        return str(metadata.get("namespace") or "default")
    return name_of(content)


def _part(content: Mapping[str, Any], place: Place, fields: Mapping[str, Any]) -> Part:
    metadata = content.get("metadata") or {}
    names = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    target = {"apiVersion": content.get("apiVersion"), "kind": content.get("kind"), "metadata": names}
    return Part(target, fields, ((str(content.get("kind")), _called(content), *map(str, place)),))


def _patch(content: Any, place: Place, value: object) -> Any:
    if not place:
        return value
    step, *rest = place
    if isinstance(step, int):
        item = content[step]
        names = {name: item[name] for name in _NAMES if name in item}
        return [{**names, **_patch(item, tuple(rest), value)}]
    inner = content.get(step) if isinstance(content, Mapping) else None
    return {step: _patch(inner, tuple(rest), value)}

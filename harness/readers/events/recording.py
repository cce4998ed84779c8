"""Creates events from the changes of quotas and nodes between versions of objects in a recording."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from harness.base.json_text import mapping_of
from harness.base.units import SECOND, format_duration
from harness.cluster.changes.event_nodes import CORDONED
from harness.cluster.kinds.elastic import is_koordinators
from harness.readers.events.watched import Field, Object, Watched
from harness.readers.recordings import GAP, STANDING, Row, read_rows

_QUOTAS = {"nominalQuota": "quota", "borrowingLimit": "borrowingLimit", "lendingLimit": "lendingLimit"}
_GONE = ("DELETED", "GONE")
_LISTED = "LISTED"


class Told(NamedTuple):
    """The content of one version of an object, as rows of an event table can express it.

    Attributes:
        which: the object.
        values: the fields that always have exactly one value, such as a quota.
        states: the states of the object that are currently true, such as a cordon or a taint.
        rest: the content that no row can express.
        alone: whether a row can express that the object appears or disappears.
    """

    which: Object
    values: Mapping[Field, str]
    states: tuple[tuple[Field, str], ...] = ()
    rest: object = None
    alone: bool = True


def of_recording(folder: Path) -> Watched:
    """Returns the changes of quotas and nodes in a recording.

    Raises:
        TraceError: the recording is damaged, or the folder is not a recording.
    """
    watched = Watched()
    rests: dict[Object, str] = {}
    listed: set[str] = set()
    for row in sorted(read_rows(folder), key=lambda row: row.seen):
        if row.kind not in STANDING:
            continue
        if row.event == GAP:
            watched.lacks(_gap(row))
            listed.add(row.kind)
            continue
        for told in _TELL[row.kind](row.content):
            kind, name = told.which
            if row.event in _GONE:
                if told.alone:
                    watched.gone(told.which, row.seen)
                else:
                    watched.lacks(f"{row.kind} {row.name} was deleted, which a row cannot express")
                continue
            new = told.alone and (row.event != _LISTED or row.kind in listed)
            watched.seen(told.which, row.seen, told.values, told.states, new=new)
            rest = json.dumps(told.rest, sort_keys=True)
            if rests.setdefault(told.which, rest) != rest:
                rests[told.which] = rest
                watched.lacks(
                    f"{kind} {name} changed in a field that a row cannot express: use a patch with a time"
                )
        if row.event != _LISTED:
            listed.add(row.kind)
    if not watched.objects:
        watched.lacks("no object of these kinds was recorded: " + ", ".join(STANDING))
    return watched


def _gap(row: Row) -> str:
    since = row.content.get("since")
    try:
        begin = int(datetime.fromisoformat(str(since)).timestamp()) * SECOND
    except ValueError:
        return (
            f"{row.kind}: the recording has a gap, so changes in the gap have the time when harness saw them"
        )
    span = format_duration(row.seen - begin)
    return f"{row.kind}: changes in the recording's gap of {span} from {since} have the time of the gap's end"


def _kueue(manifest: Mapping[str, Any]) -> Iterator[Told]:
    kind, metadata = str(manifest.get("kind")), mapping_of(manifest, "metadata")
    name = str(metadata.get("name"))
    if kind == "LocalQueue":
        name = f"{metadata.get('namespace') or 'default'}/{name}"
    spec = dict(mapping_of(manifest, "spec"))
    groups = spec.pop("resourceGroups", None) or ()
    values: dict[Field, str] = {}
    shape = []
    for group in groups:
        for flavor in group.get("flavors") or ():
            for quota in flavor.get("resources") or ():
                key = f"{flavor.get('name')}/{quota.get('name')}"
                shape.append(key)
                for field, knob in _QUOTAS.items():
                    value = quota.get(field)
                    of = Field(f"{knob}[{key}]", missing=None if knob == "quota" else "")
                    values[of] = "" if value is None else str(value)
    scalars, rest = _scalars(spec)
    yield Told(Object(kind, name), values | scalars, rest=[shape, rest])


def _elastic(manifest: Mapping[str, Any]) -> Iterator[Told]:
    """Read an ElasticQuota, and name it as the paths of knobs do."""
    metadata, spec = mapping_of(manifest, "metadata"), mapping_of(manifest, "spec")
    named = is_koordinators(metadata)
    name = metadata.get("name") if named else metadata.get("namespace") or "default"
    of_koordinator = {key: value for key, value in mapping_of(metadata, "labels").items() if named}
    yield Told(Object("ElasticQuota", str(name)), _bounds(spec), rest=of_koordinator)


def _tree(manifest: Mapping[str, Any]) -> Iterator[Told]:
    def below(quota: Mapping[str, Any]) -> Iterator[Told]:
        children = [each for each in quota.get("children") or () if isinstance(each, Mapping)]
        rest = {key: value for key, value in quota.items() if key not in ("min", "max", "children")}
        names = [each.get("name") for each in children]
        quota_of = Object("ElasticQuota", str(quota.get("name")))
        yield Told(quota_of, _bounds(quota), rest=[names, rest], alone=False)
        for child in children:
            yield from below(child)

    yield from below(mapping_of(mapping_of(manifest, "spec"), "root"))


def _node(manifest: Mapping[str, Any]) -> Iterator[Told]:
    """Read a Node with its quantities, its cordon, and its taints other than the taint of a cordon."""
    spec, status = mapping_of(manifest, "spec"), mapping_of(manifest, "status")
    amounts = mapping_of(status, "allocatable") or mapping_of(status, "capacity")
    values = {Field("resize", f"{resource}=", "0"): str(amount) for resource, amount in amounts.items()}
    states = [(Field("cordon"), "")] if spec.get("unschedulable") is True else []
    taints = spec.get("taints")
    for taint in taints if isinstance(taints, list) else ():
        if taint.get("key") != CORDONED:
            value = f"={taint['value']}" if taint.get("value") else ""
            states.append((Field("taint"), f"{taint.get('key')}{value}:{taint.get('effect')}"))
    labels = mapping_of(mapping_of(manifest, "metadata"), "labels")
    name = str(mapping_of(manifest, "metadata").get("name"))
    yield Told(Object("Node", name), values, tuple(states), dict(labels))


_TELL: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Told]]] = {
    "ClusterQueue": _kueue, "Cohort": _kueue, "LocalQueue": _kueue, "ElasticQuota": _elastic,
    "ElasticQuotaTree": _tree, "Node": _node,
}  # fmt: skip


def _bounds(quota: Mapping[str, Any]) -> dict[Field, str]:
    return {
        Field(f"{bound}[{resource}]"): str(amount)
        for bound in ("min", "max")
        for resource, amount in mapping_of(quota, bound).items()
    }


def _scalars(spec: Mapping[str, Any], above: str = "") -> tuple[dict[Field, str], dict[str, Any]]:
    """Returns the fields of a spec that have a single value, and the remaining fields, both by path."""
    found: dict[Field, str] = {}
    rest: dict[str, Any] = {}
    for name, value in spec.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping) and name != "namespaceSelector":
            inner, others = _scalars(value, f"{path}.")
            found |= inner
            rest |= others
        elif isinstance(value, (str, int, float, bool)):
            found[Field(path)] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            rest[path] = value
    return found, rest

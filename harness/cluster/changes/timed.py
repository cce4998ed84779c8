"""Reads manifests with times: objects that appear at a given time, and patches that apply for some time.

The `metadata.annotations` of a document can contain `harness/from` and `harness/until`. At time t, the
cluster consists of the objects that exist at t, with all patches that apply at t, in the given order. A
document with a time is a patch if an earlier document describes the same object. Otherwise, it describes a
new object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, final

from harness.base.errors import Fault, InputError
from harness.base.json_text import mapping_of
from harness.base.options import did_you_mean
from harness.base.units import moment_at, parse_duration, since_1970
from harness.cluster.changes.strategic_merge import DIRECTIVE, Merge
from harness.cluster.kinds.core import DRAIN, resized
from harness.cluster.yaml.documents import Document
from harness.cluster.yaml.fields import shown

FROM, UNTIL, ANNOUNCED = "harness/from", "harness/until", "harness/announced"
"""The annotations with the start and the end of a document, and with whether they are known in advance."""

_ANNOUNCED_KINDS = ("Node", "NodePool")

KINDS = (
    "ClusterQueue", "Cohort", "ElasticQuota", "ElasticQuotaTree", "LocalQueue", "Node", "NodePool",
    "PriorityClass", "WorkloadPriorityClass",
)  # fmt: skip
"""The kinds whose objects can change during a replay."""

_OURS = "harness/"
_KNOWN = (FROM, UNTIL, ANNOUNCED, DRAIN)


class Moment(NamedTuple):
    """A time in a document.

    A date is in microseconds since 1970, and any other time counts from the trace's origin.
    """

    dated: bool
    time: int

    def __str__(self) -> str:
        """Returns the time in the format of annotations."""
        if not self.dated:
            return f"{self.time}us"
        return moment_at(self.time).isoformat()


class Timed(NamedTuple):
    """A document, and the time during which it applies.

    Attributes:
        document: the document without its times.
        starts: when it begins to apply, or None if it applies from the beginning.
        ends: when it ceases to apply, or None if it has no end.
        announced: whether a planning policy knows both times in advance.
    """

    document: Document
    starts: Moment | None
    ends: Moment | None
    announced: bool = False

    @property
    def has_time(self) -> bool:
        """True if the document has a start or an end."""
        return self.starts is not None or self.ends is not None

    @property
    def at_first(self) -> bool:
        """True if the document applies from the beginning, no matter when the trace starts."""
        return self.starts is None or (not self.starts.dated and self.starts.time <= 0)


def has_times(content: Any) -> bool:
    """Returns True if a document specifies times during which it applies."""
    annotations = mapping_of(mapping_of(content, "metadata"), "annotations")
    return FROM in annotations or UNTIL in annotations


def check_objects(documents: Sequence[Document], faults: list[Fault]) -> None:
    """Check that each patch among the manifests has a time and comes after its object.

    A patch without a time would be read as an object.
    """
    contents = [each.content if isinstance(each.content, Mapping) else {} for each in documents]
    if not any(DIRECTIVE in content for content in contents):
        return
    known: set[_Key] = set()
    for document, content in zip(documents, contents, strict=True):
        key = _key(content)
        if DIRECTIVE in content and not (has_times(content) and key in known):
            where = ", ".join(filter(None, (document.where, f"{key.kind} {key.name}")))
            what = (
                f"has {DIRECTIVE}, so it is a patch: add {FROM} and write it after its object, or pass it "
                "with --patch"
            )
            faults.append(Fault(where, what))
        known.add(key)


def check_names(document: Document, faults: list[Fault]) -> None:
    """Check that the annotations for times aren't misspelled. Otherwise, the document would always apply."""
    content = document.content
    annotations = mapping_of(mapping_of(content, "metadata"), "annotations")
    if not annotations or content.get("kind") not in KINDS:
        return
    for name in annotations:
        where = ", ".join(filter(None, (document.where, _called(content))))
        if str(name).startswith(_OURS) and name not in _KNOWN:
            what = f"there is no annotation {shown(name)}; {did_you_mean(str(name), _KNOWN)}"
            faults.append(Fault(where, what))
        elif name == DRAIN and not (content["kind"] == "Node" and FROM in annotations):
            faults.append(Fault(where, f"{DRAIN} drains a Node at a given time; add {FROM}"))
        elif name == ANNOUNCED and not has_times(content):
            faults.append(Fault(where, f"{ANNOUNCED} says that a change is known in advance; add {FROM}"))


def timed(document: Document, faults: list[Fault]) -> Timed:
    """Returns a document and its times. Invalid times are faults."""
    content = document.content
    if not has_times(content):
        return Timed(document, None, None)
    metadata = dict(content["metadata"])
    annotations = dict(metadata["annotations"])
    own: list[Fault] = []  # their names come last, because few documents have faults
    starts, ends = (moment_of(annotations.pop(name, None), f": {name}", own) for name in (FROM, UNTIL))
    announced = str(annotations.pop(ANNOUNCED, "false")).lower()
    if announced not in ("true", "false"):
        own.append(Fault(f": {ANNOUNCED}", f"{shown(announced)} is neither true nor false"))
    metadata["annotations"] = annotations
    if not annotations:
        del metadata["annotations"]
    kind = content.get("kind")
    if kind not in KINDS:
        own.append(Fault("", f"{shown(kind)} cannot have a time; only {', '.join(KINDS)} can have one"))
    if starts and ends and starts.dated == ends.dated and ends.time <= starts.time:
        own.append(Fault("", f"{UNTIL} must be later than {FROM}"))
    if announced == "true" and kind not in _ANNOUNCED_KINDS:
        what = f"{ANNOUNCED} is for {' and '.join(_ANNOUNCED_KINDS)}: no policy plans ahead with a {kind}"
        own.append(Fault("", what))
    if own:
        where = ", ".join(filter(None, (document.where, _called(content))))
        faults += (Fault(where + fault.where, fault.what) for fault in own)
    bare = Document(document.where, {**content, "metadata": metadata})
    return Timed(bare, starts, ends, announced == "true")


def is_dated(content: Mapping[str, Any]) -> bool:
    """Returns True if every time in a document is a date."""
    made = timed(Document("", content), [])
    return all(time.dated for time in (made.starts, made.ends) if time is not None)


def _called(content: Mapping[str, Any]) -> str:
    name = content["metadata"].get("name")
    return f"{content.get('kind')} {name}" if isinstance(name, str) else str(content.get("kind"))


def moment_of(value: Any, where: str, faults: list[Fault]) -> Moment | None:
    """Returns a time, which is a duration since the origin (`3d2h`) or a date (`2025-01-31T08:00:00Z`)."""
    if value is None:
        return None
    found = _moment(value.isoformat() if isinstance(value, datetime) else str(value))
    if found is None:
        wanted = "a date such as 2025-01-31T08:00:00Z, or a time since the trace's origin such as 3d2h"
        faults.append(Fault(where, f"{shown(value)} is not a time; write {wanted}"))
    return found


@lru_cache(maxsize=1 << 14)  # each time of an event table is read several times
def _moment(text: str) -> Moment | None:
    try:
        return Moment(dated=False, time=parse_duration(text))
    except InputError:
        pass
    try:
        return Moment(dated=True, time=since_1970(datetime.fromisoformat(text)))
    except ValueError:
        return None


class _Key(NamedTuple):
    group: str
    kind: str
    namespace: str
    name: str


def _key(content: Any) -> _Key:
    given = mapping_of(content, "metadata")
    group = str(content.get("apiVersion")).rpartition("/")[0] if isinstance(content, Mapping) else ""
    return _Key(
        group, str(content.get("kind")), str(given.get("namespace") or "default"), str(given.get("name"))
    )


@final
class OverTime:
    """A list of manifests, where some documents have times.

    Args:
        documents: objects, and patches that come after their objects.

    Attributes:
        timed: the documents with a time, in order.
        of: the number of the object for each document in `timed`.
    """

    def __init__(self, documents: Iterable[Document], faults: list[Fault]) -> None:
        self._faults = faults
        self._objects: list[list[Timed]] = []  # each entry is an object, followed by its patches
        self.timed: list[Timed] = []
        self.of: list[int] = []
        known: dict[_Key, int] = {}
        for document in documents:
            found, key = timed(document, faults), _key(document.content)
            over = known.get(key) if found.has_time else None
            if over is None:
                over = len(self._objects)
                self._objects.append([])
                known.setdefault(key, over)
            self._objects[over].append(found)
            if found.has_time:
                self.timed.append(found)
                self.of.append(over)

    @property
    def count(self) -> int:
        """The number of objects."""
        return len(self._objects)

    def at_first(self) -> Iterator[Document]:
        """Yields the objects that exist from the beginning, with the patches that apply then."""
        for number, several in enumerate(self._objects):
            yield from self.object(number, [each for each in several if each.has_time and each.at_first])

    def object(self, number: int, holding: Sequence[Timed]) -> Iterator[Document]:
        """Yields one object with the patches that apply.

        If the object does not exist at this time, the method yields nothing. If the object is a NodePool that
        has grown, the method yields several documents.
        """
        first = self._objects[number][0]
        if first.has_time and not (holding and holding[0] is first):
            return
        where, content = first.document.where, first.document.content
        if len(holding) == first.has_time:
            yield first.document
            return
        for patch in holding[first.has_time :]:
            if content is None:
                break
            where = patch.document.where or where
            content = Merge(where, self._faults).merged(content, patch.document.content)
        if content is not None:
            before = first.document.content
            parts = [content] if content is before else resized(content, before)
            yield from (Document(where, part) for part in parts)

"""Manifests with a time: objects that are there from then on, and patches that hold for a while.

`metadata.annotations` of a document may have `harness/from` and `harness/until`. At t the cluster is its
objects that are there at t, with all patches over them that hold at t, in the order in which they are given.
A document with a time is a patch where its object was given before it, else it is an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, final

from harness.base.errors import Fault, InputError
from harness.base.options import did_you_mean
from harness.base.units import parse_duration
from harness.cluster.changes.strategic_merge import Merge
from harness.cluster.kinds.core import resized
from harness.cluster.yaml.documents import Document
from harness.cluster.yaml.fields import shown

FROM, UNTIL, ANNOUNCED = "harness/from", "harness/until", "harness/announced"
"""The annotations: when a document begins to hold, when it ceases to, and whether that is known before."""

_ANNOUNCED_KINDS = ("Node", "NodePool")

KINDS = (
    "ClusterQueue",
    "Cohort",
    "ElasticQuota",
    "ElasticQuotaTree",
    "LocalQueue",
    "Node",
    "NodePool",
    "PriorityClass",
    "WorkloadPriorityClass",
)
"""The kinds whose objects may change in a replay."""

_OURS = "harness/"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(NamedTuple):
    """A time of a document: microseconds since 1970 where it has a date, else since the trace's origin."""

    dated: bool
    time: int

    def __str__(self) -> str:
        """As an annotation has it."""
        if not self.dated:
            return f"{self.time}us"
        return (_EPOCH + timedelta(microseconds=self.time)).isoformat()


class Timed(NamedTuple):
    """A document, and when it holds.

    Attributes:
        document: the document without its times.
        starts: when it begins to hold; None where it has held all the time.
        ends: when it ceases to; None where it never does.
        announced: whether both are known before, to a policy that plans.
    """

    document: Document
    starts: Moment | None
    ends: Moment | None
    announced: bool = False

    @property
    def has_time(self) -> bool:
        """Whether it does not hold all the time."""
        return self.starts is not None or self.ends is not None

    @property
    def at_first(self) -> bool:
        """Whether it holds when nothing has happened yet, whatever the origin is."""
        return self.starts is None or (not self.starts.dated and self.starts.time <= 0)


def has_times(content: Any) -> bool:
    """Whether a document says when it holds."""
    metadata = content.get("metadata") if isinstance(content, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return isinstance(annotations, Mapping) and (FROM in annotations or UNTIL in annotations)


def check_names(document: Document, faults: list[Fault]) -> None:
    """Check that a document of a kind that may have a time misspells none: it would hold all the time."""
    content = document.content
    metadata = content.get("metadata") if isinstance(content, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(annotations, Mapping) or content.get("kind") not in KINDS:
        return
    for name in annotations:
        where = ", ".join(filter(None, (document.where, _called(content))))
        if str(name).startswith(_OURS) and name not in (FROM, UNTIL, ANNOUNCED):
            what = (
                f"no annotation is called {shown(name)}; {did_you_mean(str(name), (FROM, UNTIL, ANNOUNCED))}"
            )
            faults.append(Fault(where, what))
        elif name == ANNOUNCED and not has_times(content):
            faults.append(
                Fault(where, f"{ANNOUNCED} says that a change is known before; give {FROM} as well")
            )


def timed(document: Document, faults: list[Fault]) -> Timed:
    """A document and its times; those that cannot be are faults."""
    content = document.content
    if not has_times(content):
        return Timed(document, None, None)
    metadata = dict(content["metadata"])
    annotations = dict(metadata["annotations"])
    where = ", ".join(filter(None, (document.where, _called(content))))
    starts, ends = (
        moment_of(annotations.pop(name, None), f"{where}: {name}", faults) for name in (FROM, UNTIL)
    )
    announced = str(annotations.pop(ANNOUNCED, "false")).lower()
    if announced not in ("true", "false"):
        faults.append(Fault(f"{where}: {ANNOUNCED}", f"{shown(announced)} is neither true nor false"))
    metadata["annotations"] = annotations
    if not annotations:
        del metadata["annotations"]
    kind = content.get("kind")
    if kind not in KINDS:
        faults.append(Fault(where, f"{shown(kind)} cannot have a time; {', '.join(KINDS)} can"))
    if starts and ends and starts.dated == ends.dated and ends.time <= starts.time:
        faults.append(Fault(where, f"{UNTIL} must be later than {FROM}"))
    if announced == "true" and kind not in _ANNOUNCED_KINDS:
        faults.append(
            Fault(where, f"{ANNOUNCED} is for {' and '.join(_ANNOUNCED_KINDS)}: no policy plans {kind}s")
        )
    bare = Document(document.where, {**content, "metadata": metadata})
    return Timed(bare, starts, ends, announced == "true")


def is_dated(content: Mapping[str, Any]) -> bool:
    """Whether all times of a document are dates."""
    made = timed(Document("", content), [])
    return all(time.dated for time in (made.starts, made.ends) if time is not None)


def _called(content: Mapping[str, Any]) -> str:
    name = content["metadata"].get("name")
    return f"{content.get('kind')} {name}" if isinstance(name, str) else str(content.get("kind"))


def moment_of(value: Any, where: str, faults: list[Fault]) -> Moment | None:
    """A time: a duration since the origin such as `3d2h`, or a date such as `2025-01-31T08:00:00Z`."""
    if value is None:
        return None
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    try:
        return Moment(dated=False, time=parse_duration(text))
    except InputError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        what = f"{shown(value)} is no time; write one since the trace's origin such as 3d2h, or a date"
        faults.append(Fault(where, f"{what} such as 2025-01-31T08:00:00Z"))
        return None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return Moment(dated=True, time=(since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds)


class _Key(NamedTuple):
    """What tells objects apart."""

    group: str
    kind: str
    namespace: str
    name: str


def _key(content: Any) -> _Key:
    metadata = content.get("metadata") if isinstance(content, Mapping) else None
    given = metadata if isinstance(metadata, Mapping) else {}
    group = str(content.get("apiVersion")).rpartition("/")[0] if isinstance(content, Mapping) else ""
    return _Key(
        group, str(content.get("kind")), str(given.get("namespace") or "default"), str(given.get("name"))
    )


@final
class OverTime:
    """Manifests where some have a time.

    Args:
        documents: objects, one each, and patches over those before them.
        faults: where faults are added.

    Attributes:
        timed: those with a time, in order.
        of: of each of these, the number of the object that it is, or is over.
    """

    def __init__(self, documents: Iterable[Document], faults: list[Fault]) -> None:
        self._faults = faults
        self._objects: list[list[Timed]] = []  # each an object, and the patches over it
        self.timed: list[Timed] = []
        self.of: list[int] = []
        known: dict[_Key, int] = {}
        for document in documents:
            found = timed(document, faults)
            over = known.get(_key(document.content)) if found.has_time else None
            if over is None:
                over = len(self._objects)
                self._objects.append([])
                known.setdefault(_key(document.content), over)
            self._objects[over].append(found)
            if found.has_time:
                self.timed.append(found)
                self.of.append(over)

    @property
    def count(self) -> int:
        """How many objects there are."""
        return len(self._objects)

    def documents(self, holds: Callable[[Timed], bool]) -> Iterator[Document]:
        """The objects that are there, with the patches that hold."""
        for number in range(self.count):
            yield from self.object(number, holds)

    def object(self, number: int, holds: Callable[[Timed], bool]) -> Iterator[Document]:
        """One object with the patches that hold: none where it is not there, several of a pool that grew."""
        first, *patches = self._objects[number]
        if first.has_time and not holds(first):
            return
        where, content = first.document.where, first.document.content
        for patch in patches:
            if content is None or not holds(patch):
                continue
            where = patch.document.where or where
            content = Merge(where, self._faults).merged(content, patch.document.content)
        if content is not None:
            before = first.document.content
            parts = [content] if content is before else resized(content, before)
            yield from (Document(where, part) for part in parts)

"""Computes how a cluster with times in its manifests changes over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.base.errors import ClusterError, Fault
from harness.base.options import factor_text
from harness.base.units import date_text, format_duration
from harness.cluster.changes.edits import PLACES, Edit, Instant, State, name_of, specs
from harness.cluster.changes.timed import FROM, Moment, OverTime, Timed
from harness.cluster.kinds.core import node_names
from harness.cluster.model import Cluster, Node
from harness.cluster.yaml.documents import Document

if TYPE_CHECKING:
    from harness.cluster.changes.states import States

_CHECKED = "checked_states"  # the name under which a cluster keeps the states that were checked

_ELASTIC, _TREE = "ElasticQuota", "ElasticQuotaTree"
_NODE, _POOL = "Node", "NodePool"


def unrolled(cluster: Cluster, origin: int | None, begin: int = 0) -> Cluster:
    """Returns the cluster at the trace's origin. The times in its manifests become its `changes`.

    `changes` has an entry for each time at which a manifest begins or ceases to apply, even if no object
    changes.

    `origin` is the trace's origin, in microseconds since 1970, or None if the times in the trace are not
    dates. The replay begins at `begin`, in microseconds since the origin. Durations in the manifests, such as
    3d2h, count from this time. It is 0 except for a window of a trace without dates.

    Raises:
        ClusterError: the manifests are faulty at some time, or contain a date although the trace has none.
    """
    if not cluster.timed:
        return cluster
    known = cluster.__dict__.get(_CHECKED)
    walk = known.counted_from(origin, begin) if known is not None else None
    if walk is None:
        walk = _walk_of(cluster, origin, begin)
    warnings = (*walk.first.warnings, *(_left_out(cluster, name, at) for name, at in walk.lacking.items()))
    return replace(
        walk.first, source=cluster.source, files=cluster.files, changes=walk.instants, warnings=warnings
    )


def named_like(made: Cluster, cluster: Cluster) -> Cluster:
    """Returns a copy of `made` with the source and the files of `cluster`.

    The copy keeps the states that `check_states` has stored in `made`.
    """
    named = replace(made, source=cluster.source, files=cluster.files)
    if _CHECKED in made.__dict__:
        named.__dict__[_CHECKED] = made.__dict__[_CHECKED]
    return named


def _walk_of(cluster: Cluster, origin: int | None, begin: int) -> _Walk:
    from harness.cluster.changes.states import Span, States

    faults: list[Fault] = []
    over = OverTime([Document("", content) for content in cluster.manifests], faults)
    dated = [each for each in over.timed for at in (each.starts, each.ends) if at is not None and at.dated]
    if origin is None and dated:
        faults.append(Fault(_called(dated[0]), f"{FROM} has a date, but the trace's times are not dates"))
    if faults:
        raise ClusterError(cluster.source, faults, hint="write times since the trace's origin, such as 3d2h")

    def since(moment: Moment | None) -> int | None:
        if moment is None:
            return None
        return moment.time - ((origin or 0) if moment.dated else begin)

    def called(at: int) -> str:
        return f"{cluster.source}, {format_duration(at)} after the origin"

    spans = [Span(since(each.starts), since(each.ends)) for each in over.timed]
    return _walked(States(cluster, over, spans, faults), 0, cluster.source, called)


class _Walk(NamedTuple):
    """The states of a cluster.

    `lacking` maps the nodes that documents change but the cluster does not have to the first such time. If
    the states are `dated`, times are microseconds since 1970.
    """

    first: Cluster
    instants: tuple[Instant, ...]
    lacking: Mapping[str, int]
    dated: bool = False

    def counted_from(self, origin: int | None, begin: int) -> _Walk | None:
        """Returns the states with times since the origin, or None if it is unknown or too late."""
        zero = origin if self.dated else begin
        if zero is None or not self.instants or self.instants[0].at <= zero:
            return None
        if zero == 0:
            return self
        instants = tuple(each._replace(at=each.at - zero) for each in self.instants)
        return _Walk(self.first, instants, {name: at - zero for name, at in self.lacking.items()})


def _walked(
    states: States,
    begin: int,
    source: str,
    called: Callable[[int], str],
    *,
    at_first: Cluster | None = None,
    dated: bool = False,
) -> _Walk:
    """Returns the states of a cluster from a given time on.

    `called` returns the name that the cluster has at a later time. `at_first` is `States.first`.
    """
    first = before = states.first(begin, source, at_first)
    instants = []
    lacking: dict[str, int] = {}
    for at, turned, after in states.after(begin, first, called):
        contents = [each.document.content for each in turned]
        announced = [each.announced for each in turned]
        instants.append(Instant(at, tuple(_edits(before, after, zip(contents, announced, strict=True)))))
        for name in _lacking(before.cluster, after.cluster, contents):
            lacking.setdefault(name, at)
        before = after
    return _Walk(first.cluster, tuple(instants), lacking, dated)


def _lacking(before: Cluster, after: Cluster, turned: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the named nodes and pools that a cluster lacks because it has a different size."""
    for each in turned:
        kind, name = each.get("kind"), name_of(each)
        if kind in (_NODE, _POOL) and name not in before.nodes and name not in after.nodes:
            nodes = node_names(turned).get(name, ())
            if not any(node in before.nodes or node in after.nodes for node in nodes):
                yield f"{kind} {name}"


def _left_out(cluster: Cluster, name: str, at: int) -> str:
    size = f", scaled by {factor_text(str(cluster.scale))}," if cluster.scale != 1 else ""
    return (
        f"{name} changes {format_duration(at)} after the origin, but the cluster{size} does not have this "
        "object, so nothing changes"
    )


def replaced(
    documents: Sequence[Mapping[str, Any]],
    then: Iterable[tuple[int, Mapping[str, Any]]],
    make: Callable[[Sequence[Mapping[str, Any]]], Cluster],
) -> Cluster:
    """Returns a cluster in which manifests replace some objects at given times.

    `documents` are the manifests at the beginning. `then` has pairs of a time, in microseconds since the
    origin, and a manifest, sorted by time. At that time, the manifest replaces the object of the same kind
    and name.

    Raises:
        ClusterError: the manifests are faulty at some time.
    """

    def state(contents: Sequence[Mapping[str, Any]]) -> State:
        return State(make(contents), specs(contents))

    present = list(documents)
    first = before = state(present)
    instants: list[Instant] = []
    for at, manifest in then:
        key = manifest.get("kind"), name_of(manifest)
        present = [manifest if (each.get("kind"), name_of(each)) == key else each for each in present]
        after = state(present)
        if not instants or instants[-1].at != at:
            instants.append(Instant(at, ()))
        instants[-1] = Instant(at, (*instants[-1].edits, *_edits(before, after, [(manifest, False)])))
        before = after
    return replace(first.cluster, changes=tuple(instants))


def nodes_replaced(
    nodes: Mapping[str, Node],
    then: Iterable[tuple[int, Mapping[str, Any] | str]],
    make: Callable[[Sequence[Mapping[str, Any]]], Cluster],
) -> Iterator[Instant]:
    """Yields an `Instant` for each given time, even if no node changes at that time.

    `then` has pairs of a time, in microseconds since the origin, and an event, sorted by time. An event is
    the manifest of a new or changed Node, or the name of a removed node.
    """
    nodes = dict(nodes)
    for at, events in groupby(then, key=itemgetter(0)):
        edits = []
        for _, event in events:
            there = {event: None} if isinstance(event, str) else make([event]).nodes
            ((name, after),) = there.items()
            before = nodes.pop(name, None)
            if after is not None:
                nodes[name] = after
            if before != after:
                edits.append(Edit("Node", name, before, after))
        yield Instant(at, tuple(edits))


def check_states(cluster: Cluster, documents: Sequence[Document]) -> None:
    """Check, as far as possible, that manifests with times form a valid cluster at every time.

    The cluster keeps the states that it has at these times, because `unrolled` needs them later.

    Dates are checked separately from times that are relative to the origin, because their relative order is
    known only together with a trace.

    Raises:
        ClusterError: the manifests are faulty at some time.
    """
    if not cluster.timed:
        return
    from harness.cluster.changes.states import Span, States

    def span(each: Timed, *, dated: bool) -> Span:
        """Returns when a document applies. Times in the other form (dates or durations) count as unknown."""
        starts, ends = (
            at.time if at is not None and at.dated == dated else None for at in (each.starts, each.ends)
        )
        never = each.starts is not None and each.starts.dated != dated and not each.at_first
        return Span(0, 0) if never else Span(starts, ends)

    faults: list[Fault] = []
    over = OverTime(documents, faults)
    if faults:
        raise ClusterError(cluster.source, faults)
    forms = {at.dated for each in over.timed for at in (each.starts, each.ends) if at is not None}
    for dated in sorted(forms):
        spans = [span(each, dated=dated) for each in over.timed]
        text = date_text if dated else format_duration
        states = States(cluster, over, spans, faults)
        begin = min((at for each in spans for at in each if at is not None), default=0) - 1
        called = partial(_called_at, cluster.source, text)
        walk = _walked(states, begin, cluster.source, called, at_first=cluster, dated=dated)
        if len(forms) == 1:  # otherwise, the order of all changes is not known yet
            cluster.__dict__[_CHECKED] = walk


def _called_at(source: str, text: Callable[[int], str], at: int) -> str:
    return f"{source}, at {text(at)}"


def _edits(before: State, after: State, turned: Iterable[tuple[Mapping[str, Any], bool]]) -> Iterator[Edit]:
    """Yields the changes of objects, in the order of the documents that begin or cease to apply.

    Each document in `turned` has a flag that says whether it is announced. An object's change is announced if
    all of its documents are announced.
    """
    named: dict[tuple[str, str], bool] = {}
    for content, announced in turned:
        key = str(content.get("kind")), name_of(content)
        named[key] = announced and named.get(key, True)
    known: set[tuple[str, str]] = set()
    for (kind, name), announced in named.items():
        if kind in (_TREE, _ELASTIC):  # a quota outside a tree is identified by its namespace
            quotas = (*before.cluster.elastic_quotas, *after.cluster.elastic_quotas)
            objects = [(_ELASTIC, quota) for quota in dict.fromkeys(quotas)]
        elif kind == _POOL:
            nodes = (*before.cluster.nodes, *after.cluster.nodes)
            objects = [(_NODE, node) for node in dict.fromkeys(nodes)]
        else:
            objects = [(kind, name)]
        for each in objects:
            if each in known:
                continue
            known.add(each)
            was, becomes = _object(before, each), _object(after, each)
            if was != becomes or before.specs.get(each) != after.specs.get(each):
                yield Edit(*each, was, becomes, announced)
    queues = before.cluster.cluster_queues
    for name, queue in () if after.cluster.cluster_queues is queues else after.cluster.cluster_queues.items():
        why = queue.inactive or (queues[name].inactive if name in queues else "")
        if name in queues and queue.inactive != queues[name].inactive and ("ClusterQueue", name) not in known:
            what = f"would become active or inactive during the replay, which is not modelled: {why}"
            raise ClusterError(after.cluster.source, [Fault(f"ClusterQueue {name}", what)])


def _object(state: State, key: tuple[str, str]) -> Any:
    """Returns an object, or None if it does not exist or is a cohort without a manifest."""
    kind, name = key
    if kind not in (_ELASTIC, _NODE) and key not in state.specs:
        return None
    found: Any = getattr(state.cluster, PLACES[kind])
    return found.get(tuple(name.split("/", 1)) if kind == "LocalQueue" else name)


def _called(each: Timed) -> str:
    return f"{each.document.content.get('kind')} {name_of(each.document.content)}"

"""What changes of a cluster whose manifests have times, instant by instant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from harness.base.errors import ClusterError, Fault
from harness.base.frozen import Frozen
from harness.base.options import factor_text
from harness.base.units import INT64_MAX, date_text, format_duration, parse_quantity
from harness.cluster.changes.edits import PLACES, Edit, Instant
from harness.cluster.changes.remake import remade
from harness.cluster.changes.timed import FROM, Moment, OverTime, Timed
from harness.cluster.kinds.core import node_names
from harness.cluster.model import Cluster, Node
from harness.cluster.yaml.documents import Document

_KUEUE = ("ClusterQueue", "Cohort")
_QUOTAS = ("nominalQuota", "borrowingLimit", "lendingLimit")
_ELASTIC, _TREE = "ElasticQuota", "ElasticQuotaTree"
_POOL, _NODE = "NodePool", "Node"


class _State(NamedTuple):
    """A cluster while nothing changes.

    Attributes:
        cluster: what there is.
        specs: the objects that have a manifest -> what tells two specs apart that Kueue treats alike.
    """

    cluster: Cluster
    specs: Mapping[tuple[str, str], object]

    def with_nodes(self, nodes: Mapping[str, Node | None]) -> _State:
        """The same with some other nodes; None where there is none."""
        there = {name: node for name, node in self.cluster.nodes.items() if name not in nodes}
        there |= {name: node for name, node in nodes.items() if node is not None}
        return self._replace(cluster=replace(self.cluster, nodes=Frozen(there)))


class _Nodes:
    """Reads nodes alone where nothing else turns: no rule of manifests is between nodes and other objects.

    Args:
        cluster: what the manifests say, with their times.
        over: the same manifests.
    """

    def __init__(self, cluster: Cluster, over: OverTime) -> None:
        self._cluster = cluster
        self._over = over
        self._known: dict[tuple[str, tuple[int, ...]], Node | None] = {}

    def are(self, contents: Iterable[Mapping[str, Any]]) -> bool:
        """Whether all of these documents are of nodes."""
        return self._cluster.scale == 1 and all(each.get("kind") == _NODE for each in contents)

    def of(
        self, contents: Iterable[Mapping[str, Any]], holds: Callable[[Timed], bool], source: str
    ) -> dict[str, Node | None]:
        """The nodes that documents are of; None where there is none.

        Raises:
            ClusterError: one is faulty.
        """
        found = {}
        for content in contents:
            parts: list[int] = []

            def holds_too(each: Timed, parts: list[int] = parts) -> bool:
                if held := holds(each):
                    parts.append(id(each))
                return held

            documents = list(self._over.one(content, holds_too))
            key = _name(content), tuple(parts)
            if key not in self._known:
                made = remade(self._cluster, documents, source) if documents else None
                self._known[key] = None if made is None else made.nodes.get(key[0])
            found[key[0]] = self._known[key]
        return found


def unrolled(cluster: Cluster, origin: int | None, begin: int = 0) -> Cluster:
    """The cluster at the trace's origin, without times, and with what changes of it from then on.

    An instant at which everything stays as it is is one all the same.

    Args:
        cluster: what the manifests say, with their times.
        origin: of the trace, microseconds since 1970; None where its times are no dates.
        begin: when the replay begins, microseconds since the origin that durations count from: not 0 in a
            window of a trace without dates.

    Raises:
        ClusterError: manifests are faulty at some time, or have a date where the trace has none.
    """
    if not cluster.timed:
        return cluster
    faults: list[Fault] = []
    over = OverTime([Document("", content) for content in cluster.manifests], faults)
    dated = [each for each in over.timed for at in (each.starts, each.ends) if at is not None and at.dated]
    if origin is None and dated:
        faults.append(Fault(_called(dated[0]), f"{FROM} has a date, and the trace's times are no dates"))
    if faults:
        raise ClusterError(cluster.source, faults, hint="write times since the trace's origin, such as 3d2h")

    def since(moment: Moment) -> int:
        return moment.time - ((origin or 0) if moment.dated else begin)

    def holds_at(now: int) -> Callable[[Timed], bool]:
        def holds(each: Timed) -> bool:
            begun = each.starts is None or since(each.starts) <= now
            return begun and (each.ends is None or now < since(each.ends))

        return holds

    turning: dict[int, dict[int, Timed]] = {}
    for number, each in enumerate(over.timed):
        for moment in (each.starts, each.ends):
            if moment is not None:
                turning.setdefault(since(moment), {})[number] = each
    nodes = _Nodes(cluster, over)
    states: dict[tuple[bool, ...], _State] = {}

    def state(now: int) -> _State:
        holds = holds_at(now)
        held = tuple(map(holds, over.timed))
        if held not in states:
            documents = list(over.documents(holds))
            at = f"{cluster.source}, {format_duration(now)} after the origin" if now else cluster.source
            states[held] = _state(cluster, documents, at)
        return states[held]

    first = before = state(0)
    total = dict(first.cluster.capacity) if first.cluster.nodes else {}
    instants = []
    lacking: dict[str, int] = {}
    for at in sorted(each for each in turning if each > 0):
        holds, held = holds_at(at), holds_at(at - 1)
        turned = [
            (each.document.content, each.announced)
            for _, each in sorted(turning[at].items())
            if holds(each) != held(each)
        ]
        if nodes.are(content for content, _ in turned):
            after = before.with_nodes(nodes.of((content for content, _ in turned), holds, cluster.source))
        else:
            after = state(at)
        instants.append(Instant(at, tuple(_edits(before, after, turned))))
        for edit in instants[-1].edits:
            faults += _uncountable(edit, total)
        for name in _lacking(before.cluster, after.cluster, [content for content, _ in turned]):
            lacking.setdefault(name, at)
        before = after
    if faults:
        raise ClusterError(cluster.source, faults)
    warnings = (*first.cluster.warnings, *(_left_out(cluster, name, at) for name, at in lacking.items()))
    changes = tuple(instants)
    return replace(
        first.cluster, source=cluster.source, files=cluster.files, changes=changes, warnings=warnings
    )


def _lacking(before: Cluster, after: Cluster, turned: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The nodes that documents name, where a cluster of another size has none of them."""
    pools = node_names(turned)
    for each in turned:
        name = _name(each)
        nodes = pools.get(name, [name]) if each.get("kind") in (_NODE, _POOL) else []
        if nodes and not any(node in before.nodes or node in after.nodes for node in nodes):
            yield f"{each.get('kind')} {name}"


def _left_out(cluster: Cluster, name: str, at: int) -> str:
    """That a change concerns what the cluster lacks."""
    size = f" at {factor_text(str(cluster.scale))} times its size" if cluster.scale != 1 else ""
    return (
        f"{name} changes {format_duration(at)} after the origin, and is not there: the cluster does not have "
        f"it{size}, so that nothing changes by it"
    )


def _uncountable(edit: Edit, total: dict[str, int]) -> Iterator[Fault]:
    """What all nodes together have too much of once one is another; brings the total up to date."""
    if edit.kind == _NODE:
        for node, sign in ((edit.before, -1), (edit.after, 1)):
            for resource, amount in () if node is None else node.allocatable.items():
                total[resource] = total.get(resource, 0) + sign * amount
        for resource in () if edit.after is None else edit.after.allocatable:
            if total[resource] > INT64_MAX:
                yield Fault(str(edit), f"{resource} of all nodes is more than 64 bits can count then")


def replaced(
    documents: Sequence[Mapping[str, Any]],
    then: Iterable[tuple[int, Mapping[str, Any]]],
    make: Callable[[Sequence[Mapping[str, Any]]], Cluster],
) -> Cluster:
    """A cluster of manifests whose objects are others from some times on.

    Args:
        documents: manifests.
        then: in order of time, microseconds since the origin, and a manifest: from then on the object of that
            kind and name is what it says, all of it.
        make: makes a cluster of manifests.

    Raises:
        ClusterError: manifests are faulty at some time.
    """

    def state(contents: Sequence[Mapping[str, Any]]) -> _State:
        return _State(make(contents), _specs(contents))

    present = list(documents)
    first = before = state(present)
    instants: list[Instant] = []
    for at, manifest in then:
        key = manifest.get("kind"), _name(manifest)
        present = [manifest if (each.get("kind"), _name(each)) == key else each for each in present]
        after = state(present)
        if not instants or instants[-1].at != at:
            instants.append(Instant(at, ()))
        instants[-1] = Instant(at, (*instants[-1].edits, *_edits(before, after, [(manifest, False)])))
        before = after
    return replace(first.cluster, changes=tuple(instants))


def check_states(cluster: Cluster) -> None:
    """That the manifests of a cluster with times make a cluster at each of them, as far as that is known.

    Dates and times since the origin are held apart: how they lie to each other is known with a trace.

    Raises:
        ClusterError: manifests are faulty at some time.
    """
    if not cluster.timed:
        return
    faults: list[Fault] = []
    over = OverTime([Document("", content) for content in cluster.manifests], faults)
    if faults:
        raise ClusterError(cluster.source, faults)
    known: set[tuple[bool, ...]] = set()
    nodes = _Nodes(cluster, over)
    turning: dict[Moment, list[Any]] = {}
    for each in over.timed:
        for at in (each.starts, each.ends):
            if at is not None:
                turning.setdefault(at, []).append(each.document.content)
    for moment in sorted(turning):

        def holds(each: Timed, moment: Moment = moment) -> bool:
            begun = each.at_first or (each.starts is not None and _passed(each.starts, moment))
            return begun and not (each.ends is not None and _passed(each.ends, moment))

        time = date_text(moment.time) if moment.dated else format_duration(moment.time)
        source = f"{cluster.source}, at {time}"
        if known and nodes.are(turning[moment]):
            nodes.of(turning[moment], holds, source)
            continue
        held = tuple(map(holds, over.timed))
        if held not in known:
            known.add(held)
            remade(cluster, over.documents(holds), source)


def _passed(moment: Moment, now: Moment) -> bool:
    return moment.dated == now.dated and moment.time <= now.time


def _state(cluster: Cluster, documents: Sequence[Document], source: str) -> _State:
    contents = [each.content for each in documents]
    return _State(remade(cluster, documents, source), _specs(contents))


def _specs(contents: Iterable[Mapping[str, Any]]) -> Mapping[tuple[str, str], object]:
    return {(str(each.get("kind")), _name(each)): _exact(each) for each in contents}


def _exact(content: Mapping[str, Any]) -> object:
    """What a spec of Kueue says beyond what is modelled: whether it has a weight, and amounts not rounded."""
    spec = content.get("spec")
    if content.get("kind") not in _KUEUE or not isinstance(spec, Mapping):
        return None
    quotas = [
        (quota.get("name"), *(_quantity(quota.get(name)) for name in _QUOTAS))
        for group in spec.get("resourceGroups") or ()
        for flavor in group.get("flavors") or ()
        for quota in flavor.get("resources") or ()
    ]
    return spec.get("fairSharing") is not None, quotas


def _quantity(value: Any) -> Fraction | None:
    return None if value is None else parse_quantity(value)


def _edits(before: _State, after: _State, turned: Sequence[tuple[Mapping[str, Any], bool]]) -> Iterator[Edit]:
    """The objects that change, in the order of the documents that begin or cease to hold.

    Args:
        before: what was.
        after: what is then.
        turned: these documents, with whether they are announced; all of one object have to be.
    """
    named: dict[tuple[str, str], bool] = {}
    for content, announced in turned:
        key = str(content.get("kind")), _name(content)
        named[key] = announced and named.get(key, True)
    known: set[tuple[str, str]] = set()
    for (kind, name), announced in named.items():
        if kind in (_TREE, _ELASTIC):  # a flat quota is called by its namespace
            quotas = (*before.cluster.elastic_quotas, *after.cluster.elastic_quotas)
            objects = [(_ELASTIC, quota) for quota in dict.fromkeys(quotas)]
        elif kind == _POOL:
            nodes = (*before.cluster.nodes, *after.cluster.nodes)
            objects = [("Node", node) for node in dict.fromkeys(nodes)]
        else:
            objects = [(kind, name)]
        for each in objects:
            if each in known:
                continue
            known.add(each)
            was, becomes = _object(before, each), _object(after, each)
            if was != becomes or before.specs.get(each) != after.specs.get(each):
                yield Edit(*each, was, becomes, announced)


def _object(state: _State, key: tuple[str, str]) -> Any:
    """An object; None where there is none, or a cohort is only named."""
    kind, name = key
    if kind not in (_ELASTIC, "Node") and key not in state.specs:
        return None
    found: Any = getattr(state.cluster, PLACES[kind])
    return found.get(tuple(name.split("/", 1)) if kind == "LocalQueue" else name)


def _name(content: Mapping[str, Any]) -> str:
    metadata = content.get("metadata") or {}
    name = str(metadata.get("name"))
    return f"{metadata.get('namespace') or 'default'}/{name}" if content.get("kind") == "LocalQueue" else name


def _called(each: Timed) -> str:
    return f"{each.document.content.get('kind')} {_name(each.document.content)}"

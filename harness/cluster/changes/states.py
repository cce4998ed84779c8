"""The states of a cluster whose manifests have times, from one change to the next.

Most changes concern one object. Therefore only changed objects are merged again, and known states are not
read again. If only nodes change, only nodes are read.
"""

from __future__ import annotations

import json
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, final

from harness.base.errors import ClusterError, Fault
from harness.base.units import INT64_MAX
from harness.cluster.changes.edits import State, specs, with_objects
from harness.cluster.changes.remake import remade
from harness.cluster.changes.timed import OverTime, Timed
from harness.cluster.draft import Draft
from harness.cluster.load import read_object
from harness.cluster.model import Cluster, Node
from harness.cluster.yaml.documents import Document


class Span(NamedTuple):
    """The time during which a document applies; None means from the beginning, or without an end."""

    starts: int | None
    ends: int | None

    def holds(self, now: int) -> bool:
        """Returns True if the document applies at an instant."""
        return (self.starts is None or self.starts <= now) and (self.ends is None or now < self.ends)


class Step(NamedTuple):
    """An instant at which documents begin or cease to apply.

    Attributes:
        at: the instant.
        turned: the documents that begin or cease to apply, in order.
        state: the state after the instant.
    """

    at: int
    turned: Sequence[Timed]
    state: State


@final
class States:
    """The states of a cluster whose manifests have times, one after the other.

    Args:
        cluster: the cluster; its scale and assumptions apply at all times.
        over: the cluster's manifests.
        spans: when each manifest with a time applies.
        faults: `over` adds faults here.
    """

    def __init__(self, cluster: Cluster, over: OverTime, spans: Sequence[Span], faults: list[Fault]) -> None:
        self._cluster, self._over, self._spans, self._faults = cluster, over, spans, faults
        # Number of an object -> those of its documents with a time that apply now, by their numbers.
        self._holding: dict[int, list[int]] = {}
        self._present: list[tuple[Document, ...]] = []
        self._texts: dict[int, str] = {}  # number of an object that may change -> its present text
        # Identity of a manifest -> the manifest, and the Node that was read from it.
        self._nodes_read: dict[int, tuple[Mapping[str, Any], Node]] = {}
        self._read: dict[tuple[tuple[int, str], ...], State] = {}
        kinds = {each.document.content.get("kind") for each in over.timed}
        # Other parts of such a cluster depend on its nodes, so that all of it must be read.
        beside = cluster.pods or cluster.topologies or cluster.custom_resources or cluster.scale != 1
        self._nodes_alone = not beside and "NodePool" not in kinds

    def first(self, now: int, source: str) -> State:
        """Returns the state at an instant.

        Raises:
            ClusterError: the manifests are faulty at that instant.
        """
        self._holding = {}
        for number, (over, span) in enumerate(zip(self._over.of, self._spans, strict=True)):
            if span.holds(now):
                self._holding.setdefault(over, []).append(number)
        self._present = [self._object(number) for number in range(self._over.count)]
        return self._whole(source)

    def after(self, now: int, state: State, called: Mapping[int, str]) -> Iterator[Step]:
        """Yields the changes that follow a state, instant by instant.

        Args:
            now: the instant of this state, the last one that was requested.
            state: the state.
            called: instant -> the cluster's name at that time, for messages.

        Raises:
            ClusterError: the manifests are faulty at an instant.
        """
        due: dict[int, set[int]] = {}
        for number, span in enumerate(self._spans):
            for at in (span.starts, span.ends):
                if at is not None and at > now:
                    due.setdefault(at, set()).add(number)
        for at, numbers in sorted(due.items()):
            turned = []
            for number in sorted(numbers):
                holding = self._holding.setdefault(self._over.of[number], [])
                holds, held = self._spans[number].holds(at), number in holding
                if holds and not held:
                    insort(holding, number)
                elif held and not holds:
                    holding.remove(number)
                if holds != held:
                    turned.append(number)
            state = self._turned(state, [self._over.of[number] for number in turned], called[at])
            yield Step(at, [self._over.timed[number] for number in turned], state)

    def _object(self, number: int) -> tuple[Document, ...]:
        holding = [self._over.timed[each] for each in self._holding.get(number, ())]
        return tuple(self._over.object(number, holding))

    def _turned(self, state: State, numbers: Iterable[int], source: str) -> State:
        """Returns the state after some objects changed."""
        before, after = list[Document](), list[Document]()
        for number in dict.fromkeys(numbers):
            before += self._present[number]
            self._present[number] = self._object(number)
            self._texts.pop(number, None)
            after += self._present[number]
        if self._nodes_alone and all(each.content.get("kind") == "Node" for each in (*before, *after)):
            nodes = self._nodes(state.cluster, before, after, source)
            if nodes is not None:
                return State(with_objects(state.cluster, "nodes", nodes), state.specs)
        return self._whole(source)

    def _nodes(
        self, cluster: Cluster, before: Iterable[Document], after: Iterable[Document], source: str
    ) -> dict[str, Node] | None:
        """Returns the nodes of a cluster after some changed; None if pools hide which nodes changed.

        Raises:
            ClusterError: a changed node is faulty.
        """
        there = {_name(each): each.content for each in after}
        new = [each for each in after if id(each.content) not in self._nodes_read]
        if new or self._faults:  # else all nodes have returned to earlier forms
            draft = Draft(faults=list(self._faults))
            for each in new:
                read_object(each, draft, Counter())
            if draft.faults:
                raise ClusterError(source, draft.faults)
            for each in new:
                self._nodes_read[id(each.content)] = each.content, draft.nodes[_name(each)]
        nodes = dict(cluster.nodes)
        for name in {_name(each) for each in before} - there.keys():
            nodes.pop(name, None)
        nodes |= {name: self._nodes_read[id(content)][1] for name, content in there.items()}
        named = {resource for name in there for resource in nodes[name].allocatable}
        sums = (sum(node.allocatable.get(resource, 0) for node in nodes.values()) for resource in named)
        return nodes if all(amount <= INT64_MAX for amount in sums) else None

    def _whole(self, source: str) -> State:
        """Returns the state of all present objects."""
        if self._faults:
            raise ClusterError(source, self._faults)
        for number in self._over.of:
            if number not in self._texts:
                self._texts[number] = _text(self._present[number])
        key = tuple(sorted(self._texts.items()))
        if key not in self._read:
            documents = list(chain.from_iterable(self._present))
            self._read[key] = State(
                remade(self._cluster, documents, source), specs([each.content for each in documents])
            )
        return self._read[key]


def _name(document: Document) -> str:
    return str(document.content["metadata"]["name"])


def _text(documents: Sequence[Document]) -> str:
    return json.dumps([each.content for each in documents], default=str)

"""The states of a cluster whose manifests have times, from one change to the next.

Most changes concern one object. Only changed objects are merged again, and known states are not read again.
If only nodes change, nothing else is read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, final

from harness.base.errors import ClusterError, Fault
from harness.base.frozen import Frozen
from harness.base.units import INT64_MAX
from harness.cluster.changes.edits import State, specs
from harness.cluster.changes.remake import remade
from harness.cluster.changes.timed import OverTime, Timed
from harness.cluster.draft import Draft
from harness.cluster.load import read_object
from harness.cluster.model import Cluster, Node
from harness.cluster.yaml.documents import Document


class Span(NamedTuple):
    """The time during which a document holds; None means from the beginning, or for ever."""

    starts: int | None
    ends: int | None

    def holds(self, now: int) -> bool:
        """Returns True if the document holds at an instant."""
        return (self.starts is None or self.starts <= now) and (self.ends is None or now < self.ends)


class Step(NamedTuple):
    """An instant at which documents begin or cease to hold.

    Attributes:
        at: the instant.
        turned: these documents, in order.
        state: the state from then on.
    """

    at: int
    turned: Sequence[Timed]
    state: State


@final
class States:
    """The states of a cluster whose manifests have times, one after the other.

    Args:
        cluster: its scale and assumptions hold at all times.
        over: its manifests.
        spans: when each manifest with a time holds.
        faults: `over` adds faults here.
    """

    def __init__(self, cluster: Cluster, over: OverTime, spans: Sequence[Span], faults: list[Fault]) -> None:
        self._cluster, self._over, self._spans, self._faults = cluster, over, spans, faults
        self._holding: set[int] = set()  # identities of documents with a time
        self._present: list[tuple[Document, ...]] = []
        self._texts: dict[int, str] = {}  # objects that may change -> what they are
        self._nodes_read: dict[str, tuple[Mapping[str, Any], Node]] = {}  # a manifest, and what it says
        self._read: dict[tuple[tuple[int, str], ...], State] = {}
        kinds = {each.document.content.get("kind") for each in over.timed}
        # What else there may be of a cluster goes by its nodes: then all of it is read.
        beside = cluster.pods or cluster.topologies or cluster.custom_resources or cluster.scale != 1
        self._nodes_alone = not beside and "NodePool" not in kinds

    def first(self, now: int, source: str) -> State:
        """Returns the state at an instant.

        Raises:
            ClusterError: the manifests are faulty then.
        """
        those = zip(self._over.timed, self._spans, strict=True)
        self._holding = {id(each) for each, span in those if span.holds(now)}
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
                each = self._over.timed[number]
                if self._spans[number].holds(at) != (id(each) in self._holding):
                    self._holding ^= {id(each)}
                    turned.append((each, self._over.of[number]))
            state = self._turned(state, [number for _, number in turned], called[at])
            yield Step(at, [each for each, _ in turned], state)

    def _object(self, number: int) -> tuple[Document, ...]:
        return tuple(self._over.object(number, lambda each: id(each) in self._holding))

    def _turned(self, state: State, numbers: Iterable[int], source: str) -> State:
        """Returns the state after some objects took their present form."""
        before, after = list[Document](), list[Document]()
        for number in dict.fromkeys(numbers):
            before += self._present[number]
            self._present[number] = self._object(number)
            self._texts.pop(number, None)
            after += self._present[number]
        if self._nodes_alone and all(each.content.get("kind") == "Node" for each in (*before, *after)):
            nodes = self._nodes(state.cluster, before, after, source)
            if nodes is not None:
                return State(replace(state.cluster, nodes=Frozen(nodes)), state.specs)
        return self._whole(source)

    def _nodes(
        self, cluster: Cluster, before: Iterable[Document], after: Iterable[Document], source: str
    ) -> dict[str, Node] | None:
        """Returns the nodes of a cluster after some changed; None if pools make them impossible to tell.

        Raises:
            ClusterError: one of the changed nodes is faulty.
        """
        draft = Draft(faults=list(self._faults))
        for each in after:
            name = str(each.content["metadata"]["name"])
            content, node = self._nodes_read.get(name, (None, None))
            if node is None or content is not each.content:
                read_object(each, draft, Counter())
            else:  # it is back as it was
                draft.nodes[name] = node
        if draft.faults:
            raise ClusterError(source, draft.faults)
        for each in after:
            name = str(each.content["metadata"]["name"])
            self._nodes_read[name] = each.content, draft.nodes[name]
        gone = {str(each.content["metadata"]["name"]) for each in before} - draft.nodes.keys()
        nodes = {name: node for name, node in cluster.nodes.items() if name not in gone} | draft.nodes
        named = {resource for node in draft.nodes.values() for resource in node.allocatable}
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


def _text(documents: Sequence[Document]) -> str:
    return json.dumps([each.content for each in documents], default=str)

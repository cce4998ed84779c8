"""Computes the sequence of states of a cluster with times in its manifests.

Most changes concern a single object. To save time, only changed objects are merged again, and a state that
occurred before is not read again. If only nodes change, only nodes are read.
"""

from __future__ import annotations

import json
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, final

from harness.base.errors import ClusterError, Fault
from harness.base.frozen import Frozen, changed
from harness.base.grouping import grouped
from harness.base.units import INT64_MAX
from harness.cluster.changes.edits import State, specs, with_objects
from harness.cluster.changes.remake import remade
from harness.cluster.changes.timed import OverTime, Timed
from harness.cluster.draft import Draft
from harness.cluster.load import read_object
from harness.cluster.model import Cluster, Node
from harness.cluster.yaml.documents import Document


class Span(NamedTuple):
    """The time during which a document applies. None means that there is no start or no end."""

    starts: int | None
    ends: int | None

    def holds(self, now: int) -> bool:
        """Returns True if the document applies at the given time."""
        return (self.starts is None or self.starts <= now) and (self.ends is None or now < self.ends)


class Step(NamedTuple):
    """A time at which documents begin or cease to apply.

    Attributes:
        turned: the documents that begin or cease to apply, in order.
    """

    at: int
    turned: Sequence[Timed]
    state: State


@final
class States:
    """The sequence of states of a cluster with times in its manifests.

    Args:
        cluster: the cluster. Its scale and assumptions apply at all times.
        spans: when each manifest with a time applies.
        faults: the list to which `over` adds faults.
    """

    def __init__(self, cluster: Cluster, over: OverTime, spans: Sequence[Span], faults: list[Fault]) -> None:
        self._cluster, self._over, self._spans, self._faults = cluster, over, spans, faults
        # This maps each object to the numbers of its timed documents that currently apply.
        self._holding: dict[int, list[int]] = {}
        self._present: list[tuple[Document, ...]] = []
        self._texts: dict[int, str] = {}  # number of a changeable object -> its current text
        # This maps the identity of a manifest to the manifest and to the Node that was read from it.
        self._nodes_read: dict[int, tuple[Mapping[str, Any], Node]] = {}
        self._amounts: Counter[str] = Counter()  # at least the sum of each resource over nodes at any time
        self._read: dict[tuple[tuple[int, str], ...], State] = {}
        kinds = {each.document.content.get("kind") for each in over.timed}
        # In such a cluster, other parts depend on the nodes, so the whole cluster must be read.
        beside = cluster.pods or cluster.topologies or cluster.custom_resources or cluster.scale != 1
        self._nodes_alone = not beside and "NodePool" not in kinds

    def first(self, now: int, source: str, at_first: Cluster | None = None) -> State:
        """Returns the state at a given time.

        Messages call the cluster `source`. `at_first` is the cluster at the very beginning, if it was just
        read. The method returns it if the same manifests apply at the given time.

        Raises:
            ClusterError: the manifests are faulty at that time.
        """
        self._holding = {}
        for number, (over, span) in enumerate(zip(self._over.of, self._spans, strict=True)):
            if span.holds(now):
                self._holding.setdefault(over, []).append(number)
        self._present = [self._object(number) for number in range(self._over.count)]
        contents = tuple([each.content for each in chain.from_iterable(self._present)])
        same = [id(each.content) for each in self._over.at_first()] == [*map(id, contents)]
        if same and at_first is not None:
            state = State(replace(at_first, manifests=contents, timed=()), specs(contents))
        else:
            state = self._whole(source)
        for node in state.cluster.nodes.values():
            self._amounts.update(node.allocatable)
        for content in contents if self._nodes_alone else ():
            if content.get("kind") == "Node":
                self._nodes_read[id(content)] = content, state.cluster.nodes[str(content["metadata"]["name"])]
        return state

    def after(self, now: int, state: State, called: Callable[[int], str]) -> Iterator[Step]:
        """Yields the changes that come after a state, sorted by time.

        `now` is the time of the state that the last call of `first` returned. `called` returns the name of
        the cluster at a time, for messages.

        Raises:
            ClusterError: the manifests are faulty at some time.
        """
        of, timed, spans = self._over.of, self._over.timed, self._spans
        due = grouped((at, number) for number, span in enumerate(spans) for at in span if at is not None)
        for at in sorted(at for at in due if at > now):
            turned = []
            for number in dict.fromkeys(due[at]):
                holding = self._holding.setdefault(of[number], [])
                holds, held = spans[number].holds(at), number in holding
                if holds and not held:
                    insort(holding, number)
                elif held and not holds:
                    holding.remove(number)
                if holds != held:
                    turned.append(number)
            state = self._turned(state, [of[number] for number in turned], partial(called, at))
            yield Step(at, [timed[number] for number in turned], state)

    def _object(self, number: int) -> tuple[Document, ...]:
        holding = [self._over.timed[each] for each in self._holding.get(number, ())]
        return tuple(self._over.object(number, holding))

    def _turned(self, state: State, numbers: Iterable[int], source: Callable[[], str]) -> State:
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
        return self._whole(source())

    def _nodes(
        self,
        cluster: Cluster,
        before: Sequence[Document],
        after: Sequence[Document],
        source: Callable[[], str],
    ) -> Frozen[str, Node] | None:
        """Returns the nodes after some of them changed, or None if their sums may be too large."""
        new = [each for each in after if id(each.content) not in self._nodes_read]
        if new or self._faults:  # otherwise, all nodes have returned to earlier forms
            draft = Draft(faults=list(self._faults))
            for each in new:
                read_object(each, draft, Counter())
            if draft.faults:
                raise ClusterError(source(), draft.faults)
            for each in new:
                node = draft.nodes[_name(each)]
                self._nodes_read[id(each.content)] = each.content, node
                self._amounts.update(node.allocatable)
        if max(self._amounts.values(), default=0) > INT64_MAX:
            return None
        nodes: dict[str, Node | None] = {_name(each): None for each in before}
        nodes |= {_name(each): self._nodes_read[id(each.content)][1] for each in after}
        return changed(cluster.nodes, nodes)

    def _whole(self, source: str) -> State:
        if self._faults:
            raise ClusterError(source, self._faults)
        for number in self._over.of:
            if number not in self._texts:
                self._texts[number] = json.dumps(
                    [each.content for each in self._present[number]], default=str
                )
        key = tuple(sorted(self._texts.items()))
        if key not in self._read:
            documents = list(chain.from_iterable(self._present))
            cluster = remade(self._cluster, documents, source, at_once=True)
            self._read[key] = State(cluster, specs([each.content for each in documents]))
        return self._read[key]


def _name(document: Document) -> str:
    return str(document.content["metadata"]["name"])

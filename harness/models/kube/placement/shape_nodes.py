"""Keeps the results of one shape on every node. Updates examine only nodes that have changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from operator import le
from typing import Any, Final, final

from harness.models.kube.cache import Cache
from harness.models.kube.moves import follow
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.filters import oversized, ports_taken, resources_short
from harness.models.kube.placement.fit_scores import FitScore
from harness.models.kube.placement.node_rules import NodeRules, ruled_out_by
from harness.models.kube.placement.scores import HIGHEST_LOCAL, balanced_allocation, least_allocated
from harness.models.kube.placement.status import NODE_PORTS, NODE_RESOURCES_FIT, PORT_TAKEN, Status
from harness.models.kube.pod import Shape

FITS: Final = 0
TAKEN: Final = 1
SHORT: Final = 2
FIXED: Final = 3
"""The states of a node: it fits, a port is in use, resources are short, or the node is excluded."""

_UNLESS_CLOSED = bytes.maketrans(bytes((False, True)), bytes((SHORT, FIXED)))

_RANK_BITS: Final = 24
_RANK: Final = (1 << _RANK_BITS) - 1
NO_KEY: Final = 1 << 62
"""The key of a node that does not fit."""

_SPARSE: Final = 8
"""If more than one of this many nodes fits, reading all keys costs less than finding the nodes that fit."""

_UNSCORED: Final = -1
"""The key of a node that fits and has no score yet. It is lower than all other keys."""


@final
class ShapeNodes:
    """The feasibility and scores of one shape on all nodes, by position.

    Each feasible node has a key. The key is lower if the node's own score is better, or if scores are equal
    and the node's name sorts first. The scheduler chooses the node with the lowest key, unless nodes differ
    in scores that depend on other nodes. Keys are computed when they are needed, because a search on a large
    cluster compares only some nodes.

    Attributes:
        rules: the results of the shape's rules about nodes, regardless of its requests.
        kinds: for each node, whether the shape fits, or why not (`FITS`, `SHORT` and so on).
        moves: the number of moves of nodes that are already applied.
        balances: whether NodeResourcesBalancedAllocation scores nodes.
        said: the last recorded figures. See `refusal.py`.
    """

    def __init__(
        self,
        shape: Shape,
        cache: Cache,
        fit_score: FitScore = least_allocated,
        rules: NodeRules | None = None,
        *,
        balances: bool = True,
    ) -> None:
        self._fit_score = fit_score
        self.balances = balances
        self.shape = shape
        self.rules = rules or NodeRules(shape, cache)
        self._cache = cache
        self.moves = self._rankings = -1
        self._seen = -1
        self.kinds = bytearray()
        self._keys: list[int] = []
        self.follow()

    def follow(self) -> None:
        """Evaluates the nodes that are new or changed, after nodes or their order have changed."""
        self.rules.follow()
        moves, nodes = self._cache.moves, self._cache.nodes
        missed = moves.since(self.moves) if min(len(self._keys), len(nodes)) > 1 else None
        self.moves = moves.count
        if missed is None:  # a single node needs no score, and some moves may be unknown
            self.kinds = bytearray(self.rules.closed.translate(_UNLESS_CLOSED))
            self._keys = [NO_KEY] * len(nodes)
            changed: Iterable[NodeInfo] = nodes if self.shape.ports else ()
            kinds, keys = self.kinds, self._keys
            for place in () if self.shape.ports else self._large_enough():
                kinds[place], keys[place] = FITS, _UNSCORED
        else:
            follow(missed, (self.kinds, FIXED), (self._keys, NO_KEY))
            changed = self._cache.changed_nodes_since(self._seen)
            if self._rankings != self._cache.rankings:
                self._keys = [
                    key if key in (NO_KEY, _UNSCORED) else key & ~_RANK | node.rank
                    for key, node in zip(self._keys, nodes, strict=True)
                ]
        self._rankings = self._cache.rankings
        self._fixed = self.rules.fixed
        self._rejecting: dict[tuple[bool, bool], frozenset[str]] = {}
        self._helpful: list[int] | None = None
        self.said: tuple[object, object, dict[str, Any]] = (None, None, {})
        for node in changed:
            self._evaluate(node)
        self._seen = self._cache.version

    def _large_enough(self) -> Sequence[int]:
        """Returns the positions of the nodes with enough free resources, resource by resource."""
        cache, shape = self._cache, self.shape
        places: Sequence[int] = () if shape.missing else self.rules.open
        columns = [(1, cache.slots()), *[(amount, cache.free_of(which)) for which, amount in shape.requests]]
        for amount, column in columns:
            places = list(compress(places, map(le, repeat(amount), map(column.__getitem__, places))))
        return places

    # --- keeping up ---------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Recomputes the results of all changed nodes, even if their positions have changed, too."""
        cache = self._cache
        if self.moves != cache.moves.count:
            self.follow()
        seen, version = self._seen, cache.version
        if seen == version:
            return
        nodes = cache.nodes
        if seen == version - 1 or len(nodes) == 1:  # the case after most events, and with a single node
            self._evaluate(nodes[cache.last_changed])
        else:
            for node in cache.changed_nodes_since(seen):
                self._evaluate(node)
        self._seen = version

    def _evaluate(self, node: NodeInfo) -> None:
        position, shape = node.position, self.shape
        if self._fixed[position] is not None:
            return
        kind, key = SHORT, NO_KEY
        if shape.ports and ports_taken(shape.ports, node.ports):
            kind = TAKEN
        elif node.slots > 0 and not shape.missing:
            free = node.free
            for resource, amount in shape.requests:
                if amount > free[resource]:
                    break
            else:
                kind, key = FITS, _UNSCORED
        self.kinds[position] = kind
        self._keys[position] = key

    def _key(self, node: NodeInfo) -> int:
        """Returns the key of a node that fits."""
        if len(self.kinds) == 1:  # a single node needs no score
            return node.rank
        score = self._fit_score(self.shape, node)
        if self.balances:
            score += balanced_allocation(self.shape, node)
        return (HIGHEST_LOCAL - score) << _RANK_BITS | node.rank

    # --- answers ------------------------------------------------------------------------------------------

    @property
    def moment(self) -> tuple[int, int]:
        """The version of the state. If two versions are equal, the results are the same."""
        return self._seen, self._cache.version

    def any_fits(self) -> bool:
        """Returns True if any node fits now."""
        cache, kinds = self._cache, self.kinds
        if self.moves == cache.moves.count:
            while (position := kinds.find(FITS)) >= 0:  # most often, this node still fits
                self._evaluate(cache.nodes[position])
                if kinds[position] == FITS:
                    return True
        self.refresh()
        return FITS in self.kinds

    def still_none(self) -> bool:
        """Returns True if no node fits now."""
        if FITS not in self.kinds and self._seen >= self._cache.freed_at:
            return True  # nodes have only become fuller since the last check
        self.refresh()
        return FITS not in self.kinds

    def reach(self, start: int, wanted: int) -> int:
        """Returns how many nodes a search for `wanted` feasible nodes visits.

        The search begins at `start`, and continues at the first node after the last one. When it has found
        enough nodes, it ends before the next feasible node. If there is none, it covers all nodes.
        """
        kinds, total = self.kinds, len(self.kinds)
        if wanted >= total or kinds.count(FITS) <= wanted:
            return total
        turned = kinds[start:] + kinds[:start]
        low, high = wanted, total
        while low < high:
            middle = (low + high) // 2
            if turned.count(FITS, 0, middle + 1) > wanted:
                high = middle
            else:
                low = middle + 1
        return low

    def best(self, start: int, count: int) -> int:
        """Returns the lowest key of `count` consecutive nodes from `start` on, or `NO_KEY` if none fits.

        The first node follows the last one.
        """
        found, more = self.keys(start, start + count), start + count - len(self._keys)
        if more > 0:
            found += self.keys(0, more)
        return min(found, default=NO_KEY)

    def keys(self, start: int, stop: int) -> list[int]:
        """Returns the keys of the nodes between two positions. It may leave out nodes that do not fit."""
        kinds, keys, nodes = self.kinds, self._keys, self._cache.nodes
        if kinds.count(FITS, start, stop) > (stop - start) // _SPARSE:
            place = start
            for _ in range(keys[start:stop].count(_UNSCORED)):
                place = keys.index(_UNSCORED, place)
                keys[place] = self._key(nodes[place])
            return keys[start:stop]
        found = []
        place = kinds.find(FITS, start, stop)
        while place >= 0:  # as on most clusters in which pods wait
            if keys[place] == _UNSCORED:
                keys[place] = self._key(nodes[place])
            found.append(keys[place])
            place = kinds.find(FITS, place + 1, stop)
        return found

    def hide(self, positions: Iterable[int]) -> list[tuple[int, int, int]]:
        """Marks nodes as infeasible for now. Pass the result to `restore` afterwards."""
        hidden = [(position, self.kinds[position], self._keys[position]) for position in positions]
        for position, _, _ in hidden:
            self.kinds[position] = SHORT
            self._keys[position] = NO_KEY
        return hidden

    def restore(self, hidden: Iterable[tuple[int, int, int]]) -> None:
        """Reverts `hide`."""
        for position, kind, key in hidden:
            self.kinds[position] = kind
            self._keys[position] = key

    def fits(self, position: int) -> bool:
        """Returns True if a node is feasible, apart from affinity to other pods and topology spread."""
        return self.kinds[position] == FITS

    def ruled_out(self, position: int) -> Status | None:
        """Returns the rejection if a node can never run the shape, whatever it requests, or None."""
        return self._fixed[position]

    def status(self, node: NodeInfo) -> Status | None:
        """Returns the rejection by a node, with all of its reasons, or None if the pod fits."""
        kind = self.kinds[node.position]
        if kind == FITS:
            return None
        if kind == FIXED:
            return self._fixed[node.position]
        if kind == TAKEN:
            return PORT_TAKEN
        return resources_short(self.shape, node, node.free, node.slots, self._cache.names)

    def tally(self) -> tuple[dict[str, int], dict[str, int]]:
        """Returns the number of rejecting nodes for each reason, and the largest free quantities.

        The second result has an entry for each resource that is insufficient on some node: the largest free
        quantity of this resource on any node. Nodes that can never run the shape are ignored there.
        """
        cache, kinds, names = self._cache, self.kinds, self._cache.names
        reasons: dict[str, int] = {}
        among: list[int] | None = None  # None for all nodes
        if FIXED in kinds or TAKEN in kinds:
            for position, kind in enumerate(bytes(kinds)):  # mypyc does not compile loops over a bytearray
                status = self._fixed[position] if kind == FIXED else PORT_TAKEN if kind == TAKEN else None
                if status is not None:
                    count(reasons, status)
            among = [place for place, kind in enumerate(bytes(kinds)) if kind in (SHORT, FITS)]
        most: dict[str, int] = {}
        for resource, amount in self.shape.requests:
            free = _some(cache.free_of(resource), among)
            most_free = max(free, default=0)
            short = len(free) if most_free < amount else len([left for left in free if left < amount])
            if short:
                reasons[f"Insufficient {names[resource]}"] = short
                most[names[resource]] = max(0, most_free)
        for name in self.shape.missing:
            reasons[f"Insufficient {name}"] = len(kinds) if among is None else len(among)
            most[name] = 0
        slots = _some(cache.slots(), among)
        if min(slots, default=1) < 1:
            reasons["Too many pods"] = sum(left < 1 for left in slots)
        return reasons, most

    def unschedulable(self) -> list[int]:
        """If no node fits, returns the positions of the nodes on which preemption may help, in order."""
        if self._helpful is None:
            shape, nodes = self.shape, self._cache.nodes
            self._helpful = [place for place in self.rules.open if not oversized(shape, nodes[place])]
        if TAKEN in self.kinds:  # the node's size is not checked then
            taken = [place for place, kind in enumerate(bytes(self.kinds)) if kind == TAKEN]
            return sorted({*self._helpful, *taken})
        return self._helpful

    def rejecting(self) -> frozenset[str]:
        """Returns the plugins that reject any node. Equal sets are the same object."""
        taken, short = TAKEN in self.kinds, SHORT in self.kinds
        found = self._rejecting.get((taken, short))
        if found is None:
            names = {NODE_PORTS: taken, NODE_RESOURCES_FIT: short}
            found = self.rules.ruled_out_by.union([name for name, rejects in names.items() if rejects])
            self._rejecting[taken, short] = found
        return found


def never(shape: Shape, node: NodeInfo, names: Sequence[str]) -> tuple[str, ...]:
    """Returns the reasons why a node could not run a shape even if the node were empty, or () if it could.

    Args:
        shape: the shape.
        node: the node.
        names: the names of the resources.
    """
    status = ruled_out_by(shape, node)
    if status is not None:
        return status.reasons
    large = [names[resource] for resource, amount in shape.requests if amount > node.allocatable[resource]]
    return tuple(f"Insufficient {name}" for name in (*large, *shape.missing))


def _some(column: Sequence[int], among: Sequence[int] | None) -> Sequence[int]:
    return column if among is None else [column[place] for place in among]


def count(reasons: dict[str, int], status: Status, by: int = 1) -> None:
    """Adds 1 to the count of each reason in the rejection by a node. If `by` is -1, subtracts 1."""
    for reason in status.reasons:
        reasons[reason] = reasons.get(reason, 0) + by


def rank_of(key: int) -> int:
    """Returns the rank of a node, which is part of its key."""
    return key & _RANK

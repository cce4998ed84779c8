"""Kueue's quotas, shares and preemption targets once more, as plainly as they can be said.

Nothing is kept, pruned or known in advance: what follows from the manifests and from who holds quota is
worked out anew whenever it is asked for. Tests compare the plugin with it. Quotas without end are not known
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from harness.base.units import parse_quantity

Cell = tuple[str, str]
Amounts = Mapping[Cell, int]
Share = tuple[bool, float]
Targets = list[tuple["Holder", str]]

FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"


def amount(resource: str, quantity: str | int) -> int:
    """A quantity as an integer: cpu in thousandths."""
    exact = parse_quantity(str(quantity)) * (1000 if resource == "cpu" else 1)
    return -(-exact.numerator // exact.denominator)


class Node:
    """A ClusterQueue or a Cohort; nodes are compared by identity."""

    def __init__(self, name: str, spec: Mapping[str, Any], *, is_queue: bool) -> None:
        self.name = name
        self.spec = spec
        self.is_queue = is_queue
        self.parent: Node | None = None
        self.children: list[Node] = []
        self.weight = float(parse_quantity(str((spec.get("fairSharing") or {}).get("weight", "1"))))
        self.usable = spec.get("stopPolicy", "None") == "None"
        self.preemption: Mapping[str, Any] = spec.get("preemption") or {}
        self.nominal: dict[Cell, int] = {}
        self.borrowing_limit: dict[Cell, int] = {}
        self.lending_limit: dict[Cell, int] = {}
        for group in spec.get("resourceGroups") or ():
            for flavor in group["flavors"]:
                for each in flavor["resources"]:
                    resource = each["name"]
                    cell = flavor["name"], resource
                    self.nominal[cell] = amount(resource, each["nominalQuota"])
                    if each.get("borrowingLimit") is not None:
                        self.borrowing_limit[cell] = amount(resource, each["borrowingLimit"])
                    if each.get("lendingLimit") is not None:
                        self.lending_limit[cell] = amount(resource, each["lendingLimit"])

    def __repr__(self) -> str:
        return self.name

    @property
    def path(self) -> list[Node]:
        """The cohorts above, nearest first."""
        return [] if self.parent is None else [self.parent, *self.parent.path]

    @property
    def root(self) -> Node:
        """The top of the tree."""
        return self.path[-1] if self.parent is not None else self

    def all_queues(self) -> list[Node]:
        """The ClusterQueues here and below."""
        return [self] if self.is_queue else [each for child in self.children for each in child.all_queues()]

    def declared(self) -> frozenset[Cell]:
        """What the node itself or anything below has a quota for."""
        return frozenset(self.nominal).union(*(child.declared() for child in self.children))

    def subtree(self, cell: Cell) -> int:
        """What the node has with everything below it."""
        lent = sum(child.subtree(cell) - child.kept(cell) for child in self.children)
        return self.nominal.get(cell, 0) + lent

    def kept(self, cell: Cell) -> int:
        """What the parent never sees."""
        return max(0, self.subtree(cell) - self.lending_limit[cell]) if cell in self.lending_limit else 0

    def capacity(self, cell: Cell) -> int:
        """The most it could ever have."""
        if self.parent is None:
            return self.subtree(cell)
        most = self.kept(cell) + self.parent.capacity(cell)
        if cell in self.borrowing_limit:
            most = min(most, self.subtree(cell) + self.borrowing_limit[cell])
        return most


def nodes_of(objects: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Node]:
    """The nodes of manifests, by kind and name; cohorts that are only named are there too."""
    found: dict[tuple[str, str], Node] = {}
    for each in objects:
        if each["kind"] in ("ClusterQueue", "Cohort"):
            key = each["kind"], each["metadata"]["name"]
            found[key] = Node(key[1], each.get("spec") or {}, is_queue=key[0] == "ClusterQueue")
    for node in list(found.values()):
        above = node.spec.get("cohortName" if node.is_queue else "parentName")
        if above:
            node.parent = found.setdefault(("Cohort", above), Node(above, {}, is_queue=False))
            node.parent.children.append(node)
    return found


class Holder:
    """A workload that holds quota, or asks for it."""

    def __init__(self, name: str, uid: str, priority: int, timestamp: float) -> None:
        self.name = name
        self.uid = uid
        self.priority = priority
        self.timestamp = timestamp
        self.queue: Node | None = None
        self.usage: dict[Cell, int] = {}
        self.uses: set[Cell] = set()
        self.reserved = 0.0
        self.evicted = False


class Snapshot:
    """Who uses how much: all workloads that hold quota, and what a cycle has added."""

    def __init__(self, holders: Iterable[Holder] = ()) -> None:
        self.holders = list(holders)
        self.usage: dict[tuple[Node, Cell], int] = {}
        for holder in self.holders:
            self.add(holder.queue, holder.usage)

    def copy(self) -> Snapshot:
        """An independent one."""
        twin = Snapshot()
        twin.holders = list(self.holders)
        twin.usage = dict(self.usage)
        return twin

    def used(self, node: Node, cell: Cell) -> int:
        """What a node uses."""
        return self.usage.get((node, cell), 0)

    def add(self, node: Node | None, amounts: Amounts) -> None:
        """Add amounts at a node, and above what it has no room for in the part that it keeps."""
        if node is None:
            return
        for cell, value in amounts.items():
            free = max(0, node.kept(cell) - self.used(node, cell))
            self.usage[node, cell] = self.used(node, cell) + value
            if value > free:
                self.add(node.parent, {cell: value - free})

    def remove(self, node: Node | None, amounts: Amounts) -> None:
        """Undo `add`."""
        if node is None:
            return
        for cell, value in amounts.items():
            above = self.used(node, cell) - node.kept(cell)
            self.usage[node, cell] = self.used(node, cell) - value
            if above > 0:
                self.remove(node.parent, {cell: min(value, above)})

    def available(self, node: Node, cell: Cell) -> int:
        """What a node could still use."""
        used, subtree, kept = self.used(node, cell), node.subtree(cell), node.kept(cell)
        if node.parent is None:
            return subtree - used
        reachable = self.available(node.parent, cell)
        if cell in node.borrowing_limit:
            reachable = min(reachable, subtree - kept - max(0, used - kept) + node.borrowing_limit[cell])
        return max(0, kept - used) + reachable

    def fits(self, queue: Node, amounts: Amounts, *, borrowing: bool = True) -> bool:
        """Whether a queue has room."""
        return all(
            value <= max(0, self.available(queue, cell))
            and (borrowing or self.used(queue, cell) + value <= queue.nominal.get(cell, 0))
            for cell, value in amounts.items()
        )

    def borrows(self, node: Node, cells: Iterable[Cell]) -> bool:
        """Whether a node uses more than it has of anything."""
        return any(self.used(node, cell) > node.subtree(cell) for cell in cells)

    def share(self, node: Node) -> tuple[bool, Share]:
        """Whether a node borrows, and its dominant resource share."""
        if node.parent is None:
            return False, (False, 0.0)
        over: dict[str, int] = {}
        for cell in node.declared():
            if self.used(node, cell) > node.subtree(cell):
                over[cell[1]] = over.get(cell[1], 0) + self.used(node, cell) - node.subtree(cell)
        ratio = 0.0
        for resource, borrowed in over.items():
            cells = [cell for cell in node.root.declared() if cell[1] == resource]
            lendable = sum(node.parent.capacity(cell) for cell in cells)
            if lendable > 0:
                ratio = max(ratio, float(borrowed) * 1000.0 / float(lendable))
        if ratio == 0.0:
            return bool(over), (False, 0.0)
        return True, ((True, ratio) if node.weight == 0.0 else (False, ratio / node.weight))


class Incoming(NamedTuple):
    """Who asks, and for what; `need` is what only preemption can give."""

    workload: Holder
    queue: Node
    requests: Amounts
    need: frozenset[Cell]


class Search(NamedTuple):
    """How targets are chosen; no strategies for classic preemption."""

    strategies: tuple[str, ...] | None
    within_nominal: bool = True

    def targets(self, snapshot: Snapshot, incoming: Incoming) -> Targets:
        """Whom to preempt, and why."""
        if self.strategies is None:
            return classic(snapshot.copy(), incoming)
        return fair(snapshot.copy(), incoming, self.strategies, within_nominal=self.within_nominal)


def _permits(policy: str, incoming: Incoming, candidate: Holder) -> bool:
    preemptor = incoming.workload
    if not candidate.uses & incoming.need:
        return False
    if policy == "Any":
        return True
    if policy not in ("LowerPriority", "LowerOrNewerEqualPriority"):
        return False
    newer = candidate.priority == preemptor.priority and preemptor.timestamp < candidate.timestamp
    return candidate.priority < preemptor.priority or (policy == "LowerOrNewerEqualPriority" and newer)


def _order(incoming: Incoming) -> Callable[[Holder], tuple[Any, ...]]:
    return lambda each: (
        not each.evicted,
        each.queue is incoming.queue,
        each.priority,
        -each.reserved,
        each.uid,
    )


def _fill_back(snapshot: Snapshot, incoming: Incoming, targets: Targets, *, borrowing: bool) -> Targets:
    for at in range(len(targets) - 2, -1, -1):
        holder = targets[at][0]
        snapshot.add(holder.queue, holder.usage)
        if snapshot.fits(incoming.queue, incoming.requests, borrowing=borrowing):
            targets[at] = targets[-1]
            del targets[-1]
        else:
            snapshot.remove(holder.queue, holder.usage)
    return targets


# --- classic -----------------------------------------------------------------------------------------------


class _Candidate(NamedTuple):
    holder: Holder
    ancestor: Node | None
    reason: str
    only_without_borrowing: bool = False


def classic(snapshot: Snapshot, incoming: Incoming) -> Targets:
    """Classic preemption; the snapshot is used up."""
    queue, need, requests = incoming.queue, incoming.need, incoming.requests
    policies = queue.preemption
    while_borrowing = policies.get("borrowWithinCohort") or {}
    may_borrow = while_borrowing.get("policy", "Never") != "Never"
    reclaim = policies.get("reclaimWithinCohort", "Never")

    same = [
        _Candidate(each, None, "InClusterQueue")
        for each in snapshot.holders
        if each.queue is queue and _permits(policies.get("withinClusterQueue", "Never"), incoming, each)
    ]

    def collect(cohort: Node, visited: Node) -> list[Holder]:
        found = []
        for child in cohort.children:
            if child is visited or not snapshot.borrows(child, need):
                continue
            if not child.is_queue:
                found += collect(child, visited)
            elif child.usable:
                found += [
                    each
                    for each in snapshot.holders
                    if each.queue is child and _permits(reclaim, incoming, each)
                ]
        return found

    def by_priority(holder: Holder, ancestor: Node) -> _Candidate:
        if not may_borrow:
            return _Candidate(holder, ancestor, "InCohortReclamation", only_without_borrowing=True)
        threshold = while_borrowing.get("maxPriorityThreshold")
        if holder.priority >= incoming.workload.priority or (
            threshold is not None and holder.priority > threshold
        ):
            return _Candidate(holder, ancestor, "InCohortReclamation", only_without_borrowing=True)
        return _Candidate(holder, ancestor, "InCohortReclaimWhileBorrowing")

    hierarchy: list[_Candidate] = []
    priority: list[_Candidate] = []
    if queue.parent is not None and reclaim != "Never":
        advantage = all(
            snapshot.used(queue, cell) + value <= queue.nominal.get(cell, 0)
            for cell, value in requests.items()
        )
        rest = dict(requests)
        below = queue
        for ancestor in [queue, *queue.path]:
            if ancestor is not queue:
                found = collect(ancestor, below)
                if advantage:
                    hierarchy += [_Candidate(each, ancestor, "InCohortReclamation") for each in found]
                else:
                    priority += [by_priority(each, ancestor) for each in found]
                if all(
                    snapshot.used(ancestor, cell) + value <= ancestor.subtree(cell)
                    for cell, value in rest.items()
                ):
                    advantage = True
            rest = {
                cell: max(0, value - max(0, ancestor.kept(cell) - snapshot.used(ancestor, cell)))
                for cell, value in rest.items()
            }
            below = ancestor

    order = _order(incoming)
    lists = [sorted(each, key=lambda one: order(one.holder)) for each in (hierarchy, priority, same)]
    sequence = [one for each in lists for one in each if one.holder.evicted]
    sequence += [one for each in lists for one in each if not one.holder.evicted]
    under = all(snapshot.used(queue, cell) < queue.nominal.get(cell, 0) for cell in need)
    if not (hierarchy or priority) or (not may_borrow and not under):
        attempts = [True]
    elif not may_borrow and not hierarchy:
        attempts = [False, True]
    else:
        attempts = [True, False]
    for borrowing in attempts:
        found = _attempt(snapshot.copy(), incoming, sequence, borrowing=borrowing)
        if found:
            return found
    return []


def _attempt(
    snapshot: Snapshot, incoming: Incoming, sequence: list[_Candidate], *, borrowing: bool
) -> Targets:
    targets: Targets = []
    for holder, ancestor, reason, only_without_borrowing in sequence:
        queue = holder.queue
        assert queue is not None
        if queue is not incoming.queue:
            between = queue.path[: queue.path.index(ancestor)]
            if borrowing and only_without_borrowing:
                continue
            if not all(snapshot.borrows(node, incoming.need) for node in (queue, *between)):
                continue
        snapshot.remove(queue, holder.usage)
        targets.append((holder, reason))
        if snapshot.fits(incoming.queue, incoming.requests, borrowing=borrowing):
            return _fill_back(snapshot, incoming, targets, borrowing=borrowing)
    return []


# --- fair --------------------------------------------------------------------------------------------------


def fair(
    snapshot: Snapshot, incoming: Incoming, strategies: tuple[str, ...], *, within_nominal: bool
) -> Targets:
    """Fair sharing's preemption; the snapshot is used up."""
    queue, need = incoming.queue, incoming.need
    policies = queue.preemption
    within = policies.get("withinClusterQueue", "Never")
    reclaim = policies.get("reclaimWithinCohort", "Never")
    others = [
        each
        for each in queue.root.all_queues()
        if each is not queue and each.usable and snapshot.borrows(each, need)
    ]
    candidates = sorted(
        (
            each
            for each in snapshot.holders
            if (each.queue is queue and _permits(within, incoming, each))
            or (each.queue in others and _permits(reclaim, incoming, each))
        ),
        key=_order(incoming),
    )
    if not candidates:
        return []
    left: dict[Node, list[Holder]] = {}
    for each in candidates:
        assert each.queue is not None
        left.setdefault(each.queue, []).append(each)
    targets: Targets = []

    def take(holder: Holder, reason: str) -> bool:
        snapshot.remove(holder.queue, holder.usage)
        targets.append((holder, reason))
        snapshot.remove(queue, incoming.requests)
        enough = snapshot.fits(queue, incoming.requests)
        snapshot.add(queue, incoming.requests)
        return enough

    def first_pass() -> bool:
        pruned: set[Node] = set()
        while (other := _next_queue(snapshot, incoming, left, pruned)) is not None:
            waiting = left[other]
            if other is queue:
                if take(waiting.pop(0), "InClusterQueue"):
                    return True
                continue
            if takes_back:
                if take(waiting.pop(0), "InCohortReclamation"):
                    return True
                continue
            mine, theirs = _sides(queue, other)
            share, initial = snapshot.share(mine)[1], snapshot.share(theirs)[1]
            while waiting:
                holder = waiting.pop(0)
                snapshot.remove(other, holder.usage)
                final = snapshot.share(theirs)[1]
                snapshot.add(other, holder.usage)
                if share <= final if strategies[0] == FINAL else share < initial:
                    if take(holder, "InCohortFairSharing"):
                        return True
                    break
                retry.setdefault(other, []).append(holder)
        return False

    def second_pass() -> bool:
        pruned: set[Node] = set()
        while (other := _next_queue(snapshot, incoming, retry, pruned)) is not None:
            mine, theirs = _sides(queue, other)
            holder = retry[other].pop(0)
            passes = snapshot.share(mine)[1] < snapshot.share(theirs)[1]
            if passes and take(holder, "InCohortFairSharing"):
                return True
            pruned.add(other)
        return False

    snapshot.add(queue, incoming.requests)
    takes_back = within_nominal and not snapshot.borrows(queue, need)
    retry: dict[Node, list[Holder]] = {}
    done = first_pass() or (len(strategies) > 1 and second_pass())
    snapshot.remove(queue, incoming.requests)
    return _fill_back(snapshot, incoming, targets, borrowing=True) if done else []


def _sides(queue: Node, other: Node) -> tuple[Node, Node]:
    """The nodes right below the lowest common ancestor."""
    mine, theirs = [queue, *queue.path], [other, *other.path]
    common = next(node for node in mine if node in theirs)
    return mine[mine.index(common) - 1], theirs[theirs.index(common) - 1]


def _next_queue(
    snapshot: Snapshot, incoming: Incoming, left: Mapping[Node, list[Holder]], pruned: set[Node]
) -> Node | None:
    """The tournament over all the tree; what it prunes stays pruned."""
    own, order = incoming.queue, _order(incoming)
    root = own.root
    if root.is_queue:
        return own if left.get(own) and own not in pruned else None

    def enter(cohort: Node) -> Node | None:
        best: Node | None = None
        for child in cohort.children:
            if child.is_queue and child not in pruned:
                if not left.get(child) or not (snapshot.share(child)[0] or child is own):
                    pruned.add(child)
                elif best is None or (
                    snapshot.share(child)[1] > snapshot.share(best)[1]
                    or (
                        snapshot.share(child)[1] == snapshot.share(best)[1]
                        and order(left[child][0]) < order(left[best][0])
                    )
                ):
                    best = child
        below: Node | None = None
        for child in cohort.children:
            if not child.is_queue and child not in pruned:
                if not snapshot.share(child)[0] and child not in own.path:
                    pruned.add(child)
                elif below is None or (
                    (snapshot.share(child)[1], child.name) > (snapshot.share(below)[1], below.name)
                ):
                    below = child
        if below is not None and (best is None or snapshot.share(below)[1] >= snapshot.share(best)[1]):
            return enter(below)
        if best is None:
            pruned.add(cohort)
        return best

    while root not in pruned:
        found = enter(root)
        if found is not None:
            return found
    return None

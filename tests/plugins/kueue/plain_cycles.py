"""Kueue's scheduling over time once more, as plainly as it can be said: cases of `kueue/cycles`.

Every cycle starts from a snapshot that is made anew, tries every head, and compares every entry with every
other. Nothing is known from the cycle before but what Kueue itself remembers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from plain_quotas import Cell, Holder, Incoming, Node, Search, Snapshot, amount, nodes_of

NO_FIT, PREEMPT, FIT, DEFERRED_FIT = "NoFit", "Preempt", "Fit", "DeferredFit"
_RANK = {"noFit": 0, "noCandidates": 1, "preempt": 2, "reclaim": 3, "fit": 4}
_ORIGIN = datetime.fromisoformat("2025-01-01T00:00:00Z").timestamp()
_LOOPS = 200

Quality = tuple[str, int]


class LoopError(Exception):
    """Workloads preempt each other for ever at one instant."""


@dataclass
class PodSet:
    name: str
    count: int
    least: int
    requests: dict[str, int]
    selector: Mapping[str, str]
    tolerations: list[Mapping[str, Any]]


@dataclass
class Assignment:
    mode: str
    borrowing: int
    usage: dict[Cell, int]
    need: frozenset[Cell]
    counts: list[int]
    chosen: list[dict[str, str]]
    tried: list[dict[str, int]]
    targets: list[tuple[Holder, str]] = field(default_factory=list)

    @property
    def works(self) -> bool:
        return self.mode == FIT or (self.mode == PREEMPT and bool(self.targets))

    @property
    def untried(self) -> bool:
        return any(flavor != -1 for pod_set in self.tried for flavor in pod_set.values())


class Workload(Holder):
    """A workload that waits, or holds quota."""

    def __init__(self, manifest: Mapping[str, Any], duration: float) -> None:
        meta, spec = manifest["metadata"], manifest["spec"]
        self.created = _seconds(meta["creationTimestamp"])
        super().__init__(meta["name"], meta["uid"], spec.get("priority", 0), self.created)
        self.duration = duration
        self.local_queue = meta["namespace"], spec["queueName"]
        self.pod_sets = [_pod_set(each) for each in spec["podSets"]]
        described = [
            (each["name"], each["count"], each.get("minCount"), each["template"]) for each in spec["podSets"]
        ]
        self.hash = json.dumps([self.priority, described], sort_keys=True)
        self.home: Queue | None = None
        self.memory: tuple[list[dict[str, int]], int, int] | None = None  # tried, cycle, generation
        self.due = -1.0


class Queue:
    """A ClusterQueue with what is pending in it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.name = node.name
        self.strict = node.spec.get("queueingStrategy") == "StrictFIFO"
        self.active: list[Workload] = []
        self.inadmissible: list[Workload] = []
        self.hashes: set[str] = set()
        self.preemptor: Workload | None = None
        self.generation = 0

    def pop(self) -> Workload | None:
        if not self.active or not self.node.usable:
            return None
        sticky = None if self.strict else self.preemptor
        head = min(
            self.active, key=lambda each: (each is not sticky, -each.priority, each.timestamp, each.uid)
        )
        self.active.remove(head)
        return head

    def arrive(self, workload: Workload) -> None:
        parked = not self.strict and workload.hash in self.hashes
        (self.inadmissible if parked else self.active).append(workload)

    def wake(self) -> None:
        self.hashes.clear()
        self.active += self.inadmissible
        self.inadmissible.clear()


@dataclass
class Entry:
    workload: Workload
    assignment: Assignment
    reason: str = ""


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp() - _ORIGIN


def _pod_set(manifest: Mapping[str, Any]) -> PodSet:
    spec = manifest["template"]["spec"]
    requests: dict[str, int] = {}
    for container in spec["containers"]:
        for resource, quantity in (container.get("resources") or {}).get("requests", {}).items():
            requests[resource] = requests.get(resource, 0) + amount(resource, quantity)
    count = manifest["count"]
    least = manifest.get("minCount") or count
    return PodSet(
        manifest["name"],
        count,
        least,
        requests,
        spec.get("nodeSelector") or {},
        spec.get("tolerations") or [],
    )


class Plain:
    """The scheduler with its queues, driven as the recordings were."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        config, objects = case.get("config") or {}, case["objects"]
        self.gates = config.get("featureGates") or {}
        sharing = config.get("fairSharing")
        strategies = None if sharing is None else tuple(sharing["preemptionStrategies"])
        self.fair = strategies is not None
        self.search = Search(strategies, self.gate("FairSharingPreemptWithinNominal"))
        self.nodes = nodes_of(objects)
        self.flavors = {
            each["metadata"]["name"]: each.get("spec") or {}
            for each in objects
            if each["kind"] == "ResourceFlavor"
        }
        self.queues = {name: Queue(node) for (kind, name), node in self.nodes.items() if node.is_queue}
        self.doors = {
            (each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"]["clusterQueue"]
            for each in objects
            if each["kind"] == "LocalQueue"
        }
        self.waiting = [Workload(each["workload"], each["duration"]) for each in case["given"]["workloads"]]
        self.until = case["given"]["until"]
        self.holders: list[Workload] = []
        self.decisions: list[dict[str, Any]] = []
        self.cycles = 0
        self.now = 0.0
        self.snapshot = Snapshot()

    def gate(self, name: str, *, default: bool = True) -> bool:
        return self.gates.get(name, default)

    # --- time -------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        instants = {each.created for each in self.waiting}
        self.instants = instants
        while any(each <= self.until for each in instants):
            self.now = min(instants)
            instants.discard(self.now)
            ended = [each for each in self.holders if each.due == self.now]
            for workload in sorted(ended, key=lambda each: each.name):
                self.decisions.append({"t": _number(self.now), "finish": workload.name})
                self._release(workload)
            for workload in [each for each in self.waiting if each.created == self.now]:
                self.waiting.remove(workload)
                workload.home = self.queues[self.doors[workload.local_queue]]
                workload.home.arrive(workload)
            idle = cycles = 0
            while idle < 3 and any(each.active and each.node.usable for each in self.queues.values()):
                idle = 0 if self._cycle() else idle + 1
                cycles += 1
                if cycles > _LOOPS:
                    raise LoopError
        pending = [
            each.name for queue in self.queues.values() for each in (*queue.active, *queue.inadmissible)
        ]
        return {
            "decisions": self.decisions,
            "final": {
                "admitted": sorted(each.name for each in self.holders),
                "pending": sorted(pending),
            },
            "cycles": self.cycles,
        }

    def _release(self, workload: Workload) -> None:
        assert workload.home is not None
        self.holders.remove(workload)
        workload.queue = None
        workload.home.generation += 1
        for node in workload.home.node.root.all_queues():
            self.queues[node.name].wake()

    # --- a cycle ----------------------------------------------------------------------------------------

    def _cycle(self) -> bool:
        """Run one; answers whether anything came of it."""
        heads = [head for queue in self.queues.values() if (head := queue.pop()) is not None]
        self.cycles += 1
        self.snapshot = Snapshot(self.holders)
        entries = [Entry(head, self._nominate(head)) for head in heads]
        victims: list[Holder] = []
        admitted: list[Entry] = []
        evicted: list[tuple[Holder, str]] = []
        left = list(entries)
        while left:
            entry = self._draw(left)
            left.remove(entry)
            self._process(entry, victims, admitted, evicted)
        parked = False
        for entry in entries:
            if entry.reason:
                parked |= self._put_back(entry)
        for entry in admitted:
            self._admitted(entry)
        for victim, reason in evicted:
            assert isinstance(victim, Workload)
            assert victim.home is not None
            if reason == "InCohortReclaimWhileBorrowing" and not self.gate("PrioritySortingWithinCohort"):
                victim.timestamp = self.now + 0.001
            victim.home.generation += 1
            self._release(victim)
            victim.home.arrive(victim)
        return bool(admitted or evicted or parked)

    def _admitted(self, entry: Entry) -> None:
        workload, assignment = entry.workload, entry.assignment
        queue = workload.home
        assert queue is not None
        if queue.preemptor is workload:
            queue.preemptor = None
        workload.queue = queue.node
        workload.usage = assignment.usage
        workload.uses = {
            (flavor, resource) for chosen in assignment.chosen for resource, flavor in chosen.items()
        }
        workload.reserved = float(int(self.now))
        workload.timestamp = workload.created
        workload.memory = None
        workload.due = self.now + workload.duration
        self.instants.add(workload.due)
        self.holders.append(workload)
        queue.generation += 1

    def _put_back(self, entry: Entry) -> bool:
        """Whether the head is parked."""
        workload, reason = entry.workload, entry.reason
        queue = workload.home
        assert queue is not None
        if reason == "PendingPreemption":
            queue.preemptor = workload
        untried = workload.memory is not None and any(
            flavor != -1 for pod_set in workload.memory[0] for flavor in pod_set.values()
        )
        if queue.strict or reason in ("FailedAfterNomination", "PendingPreemption") or untried:
            queue.active.append(workload)
            return False
        queue.inadmissible.append(workload)
        if self.gate("SchedulingEquivalenceHashing"):
            queue.hashes.add(workload.hash)
            alike = [each for each in queue.active if each.hash == workload.hash]
            for each in alike:
                queue.active.remove(each)
                queue.inadmissible.append(each)
        return True

    # --- order ------------------------------------------------------------------------------------------

    def _draw(self, left: list[Entry]) -> Entry:
        """The next entry, as the snapshot is now."""
        if not self.fair:
            return min(left, key=self._classic_key)
        entry = min(left, key=lambda each: _node(each).name)
        if _node(entry).parent is None:
            return entry
        winner = self._winner(_node(entry).root, left)
        assert winner is not None
        return winner

    def _marked(self, entry: Entry) -> bool:
        home = entry.workload.home
        marked = home is not None and home.preemptor is entry.workload
        return marked and self.gate("PrioritizePreemptorWorkloads", default=False)

    def _classic_key(self, entry: Entry) -> tuple[Any, ...]:
        workload = entry.workload
        priority = -workload.priority if self.gate("PrioritySortingWithinCohort") else 0
        marked = self._marked(entry)
        return (not marked, entry.assignment.borrowing, priority, workload.timestamp, workload.uid)

    def _winner(self, node: Node, left: list[Entry]) -> Entry | None:
        """Who comes out of the tournament below a node."""
        if node.is_queue:
            return next((each for each in left if _node(each) is node), None)
        met = [(self._winner(child, left), child) for child in node.children]
        keyed = [(self._fair_key(entry, child), entry) for entry, child in met if entry is not None]
        return min(keyed, key=lambda each: each[0])[1] if keyed else None

    def _fair_key(self, entry: Entry, child: Node) -> tuple[Any, ...]:
        """How an entry compares where `child` meets its siblings."""
        workload, usage = entry.workload, entry.assignment.usage
        self.snapshot.add(_node(entry), usage)
        share = self.snapshot.share(child)[1]
        borrows = self.snapshot.borrows(child, [cell for cell, value in usage.items() if value > 0])
        self.snapshot.remove(_node(entry), usage)
        return (
            not self._marked(entry),
            borrows and self.gate("FairSharingPrioritizeNonBorrowing"),
            share,
            -workload.priority if self.gate("PrioritySortingWithinCohort") else 0,
            workload.timestamp,
            workload.uid,
        )

    # --- one entry --------------------------------------------------------------------------------------

    def _process(
        self,
        entry: Entry,
        victims: list[Holder],
        admitted: list[Entry],
        evicted: list[tuple[Holder, str]],
    ) -> None:
        workload, node = entry.workload, _node(entry)
        if self.gate("RecomputeAssignmentUponPreemptionTargetsOverlap") and any(
            target in victims for target, _ in entry.assignment.targets
        ):
            entry.assignment = self._assign_again(workload, entry.assignment, victims)
        assignment = entry.assignment
        usage = assignment.usage
        targets = [target for target, _ in assignment.targets]
        if assignment.mode == NO_FIT:
            entry.reason = "NoFit"
        elif assignment.mode == PREEMPT and not targets:
            entry.reason = "PreemptionNoCandidates"
            if node.preemption.get("reclaimWithinCohort", "Never") != "Any" or self._marked(entry):
                self.snapshot.add(node, self._reservation(node, assignment))
        elif assignment.mode == DEFERRED_FIT:
            entry.reason = "PendingPreemption"
            workload.memory = None
            self.snapshot.add(node, usage)
        elif any(target in victims for target in targets) or not self._fits(
            node, usage, [*victims, *targets]
        ):
            entry.reason = "FailedAfterNomination"
            if not self.gate("FlavorFungibilityPreserveScanProgress"):
                workload.memory = None
        else:
            victims += targets
            self.snapshot.add(node, usage)
            if assignment.mode == PREEMPT:
                entry.reason = "PendingPreemption"
                workload.memory = None
                evicted += assignment.targets
                self.decisions += [
                    {**self._at(), "preempt": target.name, "by": workload.name, "reason": reason}
                    for target, reason in sorted(assignment.targets, key=lambda each: each[0].name)
                ]
            else:
                admitted.append(entry)
                self.decisions.append(self._admission(workload, assignment))

    def _at(self) -> dict[str, Any]:
        return {"t": _number(self.now), "cycle": self.cycles}

    def _admission(self, workload: Workload, assignment: Assignment) -> dict[str, Any]:
        named = zip(workload.pod_sets, assignment.chosen, strict=True)
        decision: dict[str, Any] = {
            **self._at(),
            "admit": workload.name,
            "flavors": {pod_set.name: chosen for pod_set, chosen in named},
            "borrowing": assignment.borrowing > 0,
        }
        fewer = {
            pod_set.name: count
            for pod_set, count in zip(workload.pod_sets, assignment.counts, strict=True)
            if count != pod_set.count
        }
        return {**decision, "counts": fewer} if fewer else decision

    def _fits(self, node: Node, usage: Mapping[Cell, int], gone: list[Holder]) -> bool:
        without = self.snapshot.copy()
        for holder in gone:
            without.remove(holder.queue, holder.usage)
        return without.fits(node, usage)

    def _reservation(self, node: Node, assignment: Assignment) -> dict[Cell, int]:
        """What is kept for an entry that waits without preempting; it may be negative."""
        kept = {}
        for cell, value in assignment.usage.items():
            left = node.nominal.get(cell, 0) - self.snapshot.used(node, cell)
            if assignment.borrowing == 0:
                kept[cell] = max(0, min(value, left))
            elif cell in node.borrowing_limit:
                kept[cell] = min(value, left + node.borrowing_limit[cell])
            else:
                kept[cell] = value
        return kept

    def _assign_again(self, workload: Workload, first: Assignment, victims: list[Holder]) -> Assignment:
        """As if the victims were gone, among the flavors chosen before."""
        whole = self.snapshot
        self.snapshot = whole.copy()
        for victim in victims:
            self.snapshot.holders.remove(victim)
            self.snapshot.remove(victim.queue, victim.usage)
        workload.memory = None
        assignment = self._assign_any(workload, [], first.chosen)
        self._remember(workload, assignment)
        if assignment.mode == FIT:
            assignment.mode = DEFERRED_FIT
        self.snapshot = whole
        return assignment

    # --- nomination -------------------------------------------------------------------------------------

    def _nominate(self, workload: Workload) -> Assignment:
        tried: list[dict[str, int]] = []
        home = workload.home
        assert home is not None
        if workload.memory is not None:
            known, cycle, generation = workload.memory
            recent = self.gate("FlavorFungibilityPreserveScanProgress") and self.cycles - cycle <= 1
            if recent or home.generation <= generation:
                tried = known
        assignment = self._assign_any(workload, tried, None)
        self._remember(workload, assignment)
        return assignment

    def _remember(self, workload: Workload, assignment: Assignment) -> None:
        assert workload.home is not None
        workload.memory = assignment.tried, self.cycles, workload.home.generation

    def _assign_any(
        self, workload: Workload, tried: list[dict[str, int]], allowed: list[dict[str, str]] | None
    ) -> Assignment:
        """With all pods, or else with as many as bisection says."""
        counts = [each.count for each in workload.pod_sets]
        whole = self._assign(workload, counts, tried, allowed)
        deltas = [each.count - each.least for each in workload.pod_sets]
        total = sum(deltas)
        if whole.works or not total or not self.gate("PartialAdmission"):
            return whole
        low, high = 0, total + 1
        found: tuple[int, Assignment] | None = None
        while low < high:
            step = (low + high) // 2
            fewer = [count - delta * step // total for count, delta in zip(counts, deltas, strict=True)]
            assignment = self._assign(workload, fewer, tried, allowed)
            if assignment.works:
                found = step, assignment
                high = step
            else:
                low = step + 1
        return found[1] if found is not None and found[0] == low else whole

    def _assign(
        self,
        workload: Workload,
        counts: list[int],
        tried: list[dict[str, int]],
        allowed: list[dict[str, str]] | None,
    ) -> Assignment:
        """Flavors for a number of pods, and targets for all of them together."""
        assert workload.home is not None
        node = workload.home.node
        result = Assignment(FIT, 0, {}, frozenset(), counts, [], [])
        need: set[Cell] = set()
        for at, (pod_set, count) in enumerate(zip(workload.pod_sets, counts, strict=True)):
            found = self._assign_pod_set(
                workload,
                pod_set,
                count,
                result.usage,
                tried[at] if at < len(tried) else {},
                None if allowed is None else allowed[at],
            )
            if found is None:
                result.mode = NO_FIT
                break
            chosen, looked, qualities, fits = found
            if not fits:
                result.mode = PREEMPT
            for resource, flavor in chosen.items():
                cell = flavor, resource
                mode, borrowing = qualities[resource]
                result.borrowing = max(result.borrowing, borrowing)
                result.usage[cell] = result.usage.get(cell, 0) + pod_set.requests[resource] * count
                if mode != "fit":
                    need.add(cell)
            result.chosen.append(chosen)
            result.tried.append(looked)
        result.usage = {cell: value for cell, value in result.usage.items() if value}
        result.need = frozenset(need)
        if result.mode == PREEMPT:
            incoming = Incoming(workload, node, result.usage, result.need)
            result.targets = self.search.targets(self.snapshot, incoming)
        return result

    def _assign_pod_set(
        self,
        workload: Workload,
        pod_set: PodSet,
        count: int,
        assumed: Mapping[Cell, int],
        tried: Mapping[str, int],
        allowed: Mapping[str, str] | None,
    ) -> tuple[dict[str, str], dict[str, int], dict[str, Quality], bool] | None:
        assert workload.home is not None
        node = workload.home.node
        groups = node.spec.get("resourceGroups") or []
        covered = {resource for group in groups for resource in group["coveredResources"]}
        if any(value and resource not in covered for resource, value in pod_set.requests.items()):
            return None
        chosen: dict[str, str] = {}
        looked: dict[str, int] = {}
        qualities: dict[str, Quality] = {}
        fits = True
        for group in groups:
            resources = [each for each in pod_set.requests if each in group["coveredResources"]]
            if not resources:
                continue
            choice = self._scan(
                workload,
                pod_set,
                {each: pod_set.requests[each] * count for each in resources},
                [each["name"] for each in group["flavors"]],
                assumed,
                tried.get(resources[0], -1) + 1,
                None if allowed is None else allowed[resources[0]],
            )
            if choice is None:
                return None
            flavor, last, worst, each = choice
            fits = fits and worst[0] == "fit"
            for resource in resources:
                chosen[resource] = flavor
                looked[resource] = last
                qualities[resource] = each[resource]
        return chosen, looked, qualities, fits

    def _scan(
        self,
        workload: Workload,
        pod_set: PodSet,
        requests: Mapping[str, int],
        flavors: list[str],
        assumed: Mapping[Cell, int],
        start: int,
        only: str | None,
    ) -> tuple[str, int, Quality, dict[str, Quality]] | None:
        assert workload.home is not None
        fungibility = workload.home.node.spec.get("flavorFungibility") or {}
        best: tuple[str, int, Quality, dict[str, Quality]] | None = None
        for at, flavor in enumerate(flavors):
            if at < start or (only is not None and flavor != only) or not self._suits(pod_set, flavor):
                continue
            each: dict[str, Quality] = {}
            worst: Quality = "none", 0
            for resource, value in requests.items():
                cell = flavor, resource
                quality = self._quality(workload, cell, assumed.get(cell, 0) + value)
                each[resource] = quality
                if worst[0] == "none" or _preferred(worst, quality, fungibility):
                    worst = quality
                if quality[0] == "noFit":
                    break
            mode, borrowing = worst
            go_on = (
                mode in ("noFit", "noCandidates")
                or (mode != "fit" and fungibility.get("whenCanPreempt", "TryNextFlavor") == "TryNextFlavor")
                or (borrowing > 0 and fungibility.get("whenCanBorrow") == "TryNextFlavor")
            )
            if not go_on:
                return flavor, -1 if at == len(flavors) - 1 else at, worst, each
            if mode != "noFit" and (best is None or _preferred(worst, best[2], fungibility)):
                best = flavor, -1, worst, each
        return best

    def _suits(self, pod_set: PodSet, flavor: str) -> bool:
        spec = self.flavors[flavor]
        tolerations = [*pod_set.tolerations, *(spec.get("tolerations") or ())]
        for taint in spec.get("nodeTaints") or ():
            if taint["effect"] == "PreferNoSchedule":
                continue
            if not any(_tolerates(each, taint) for each in tolerations):
                return False
        labels = spec.get("nodeLabels") or {}
        return all(labels[key] == value for key, value in pod_set.selector.items() if key in labels)

    def _quality(self, workload: Workload, cell: Cell, value: int) -> Quality:
        assert workload.home is not None
        node, snapshot = workload.home.node, self.snapshot
        if value > node.capacity(cell):
            return "noFit", 0
        height, smaller = _height(snapshot, node, cell, value)
        if value <= max(0, snapshot.available(node, cell)):
            return "fit", height
        preemption = node.preemption
        while_borrowing = (preemption.get("borrowWithinCohort") or {}).get("policy", "Never") != "Never"
        fairly = self.fair and preemption.get("reclaimWithinCohort", "Never") != "Never"
        if not (value <= node.nominal.get(cell, 0) or smaller or while_borrowing or fairly):
            return "noFit", height
        incoming = Incoming(workload, node, {cell: value}, frozenset([cell]))
        targets = self.search.targets(snapshot, incoming)
        if not targets:
            return "noCandidates", height
        without = snapshot.copy()
        for target, _ in targets:
            without.remove(target.queue, target.usage)
        own = any(target.queue is node for target, _ in targets)
        return ("preempt" if own else "reclaim"), _height(without, node, cell, value)[0]


def _node(entry: Entry) -> Node:
    assert entry.workload.home is not None
    return entry.workload.home.node


def _level(cohort: Node) -> int:
    """How many levels of usable nodes a node has below it."""
    return max((1 + _level(each) for each in cohort.children if not each.is_queue or each.usable), default=0)


def _height(snapshot: Snapshot, queue: Node, cell: Cell, value: int) -> tuple[int, bool]:
    """How high the lowest subtree is that holds an amount, and whether it is smaller than the tree."""
    if queue.parent is None:
        return 0, False
    if snapshot.used(queue, cell) + value <= queue.nominal.get(cell, 0):
        return 0, True
    rest = value - max(0, queue.kept(cell) - snapshot.used(queue, cell))
    for cohort in queue.path:
        if snapshot.used(cohort, cell) + rest <= cohort.subtree(cell):
            return _level(cohort), cohort.parent is not None
        rest -= max(0, cohort.kept(cell) - snapshot.used(cohort, cell))
    return _level(queue.root), False


def _preferred(left: Quality, right: Quality, fungibility: Mapping[str, Any]) -> bool:
    """Whether one way to get a flavor is strictly preferred to another."""
    modes = _RANK[left[0]], _RANK[right[0]]
    if modes[0] != modes[1] and min(modes) <= _RANK["noCandidates"]:
        return modes[0] > modes[1]
    by_mode, by_borrowing = (-modes[0], -modes[1]), (left[1], right[1])
    order = (by_mode, by_borrowing)
    if fungibility.get("preference") == "PreemptionOverBorrowing":
        order = (by_borrowing, by_mode)
    return tuple(each[0] for each in order) < tuple(each[1] for each in order)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator", "Equal") == "Exists" or (
        toleration.get("value", "") == taint.get("value", "")
    )


def _number(time: float) -> int | float:
    return int(time) if time == int(time) else time


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a case; a `LoopError` where it never comes to rest."""
    return Plain(case).run()

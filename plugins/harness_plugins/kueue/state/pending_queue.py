"""Models the pending workloads of a ClusterQueue, its head, and the inadmissible workloads.

Workloads that the scheduler treats alike form an equivalence class. A class becomes inadmissible or is
requeued as a whole, so the cost does not grow with the length of the queue. The head stays in the queue
during an attempt, and leaves the queue when it is admitted.

If a queue orders its workloads by the usage of their LocalQueues, each LocalQueue has its own line.
Otherwise, all workloads are in one line. The usage determines which line comes first, and it can change at
any time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import final

from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.line import Block, Line, Place
from harness_plugins.kueue.state.local_queue_usage import LocalQueueUsage
from harness_plugins.kueue.state.workload import EquivalenceClass, SchedulingHash, Workload

_CLASS = itemgetter(5)

_Lines = dict[LocalQueueUsage | None, list[Place]]
"""The workloads of each LocalQueue in order."""


@final
class PendingQueue:
    """The pending workloads of one ClusterQueue.

    Args:
        sticky: whether the preemptor comes before all other workloads. In a StrictFIFO queue, this has no
            effect (PR 7157).

    Attributes:
        preemptor: the workload that issued the last preemptions and has not been admitted yet. The queueing
            strategy at that time determines whether it is sticky.
        present: the classes that have workloads, or that are inadmissible.
        requeued: whether inadmissible workloads were ever requeued.
    """

    def __init__(self, queue: ClusterQueueState, *, sticky: bool = True) -> None:
        self.queue = queue
        self._may_stick = sticky
        self.preemptor: Workload | None = None
        self._sticky = False
        self.present: dict[SchedulingHash, EquivalenceClass] = {}
        self._lines: dict[EquivalenceClass, _Lines] = {}
        self._inadmissible_classes: set[EquivalenceClass] = set()
        self._line = Line(self._inadmissible_classes)
        self._firsts: dict[LocalQueueUsage | None, Line] = {None: self._line}
        self._emptied: list[EquivalenceClass] = []  # inadmissible classes that lost all their workloads
        self._inadmissible: dict[Workload, None] = {}
        self._moved: set[SchedulingHash] = set()  # inadmissible classes, some of whose workloads are tried
        self._namespace_mismatch: list[Workload] = []
        self._tickets = 0
        self.requeued = False

    def follow(self, mismatches: Callable[[str], bool]) -> None:
        """Switches to the current namespace selector of the queue.

        `mismatches` returns True if the queue refuses workloads from a namespace.
        """
        set_aside, self._namespace_mismatch = self._namespace_mismatch, []
        for workload in (*self.active(), *self._waiting(inadmissible=True), *self._inadmissible, *set_aside):
            workload.namespace_mismatch = mismatches(workload.job.namespace)
        for workload in set_aside:
            if workload.namespace_mismatch:
                self._namespace_mismatch.append(workload)
            else:
                self.add(workload)

    def become(self, other: PendingQueue) -> None:
        """Copies the content of another queue. Both queues contain the same workloads and classes."""
        self.preemptor, self._sticky = other.preemptor, other._sticky
        self._tickets, self.requeued = other._tickets, other.requeued
        self.present = other.present.copy()
        self._lines = {
            each: {local_queue: line.copy() for local_queue, line in lines.items()}
            for each, lines in other._lines.items()
        }
        self._firsts = {}
        for local_queue, line in other._firsts.items():
            self._firsts[local_queue] = Line(self._inadmissible_classes)
            self._firsts[local_queue].become(line)
        self._line = self._firsts[None]
        self._inadmissible_classes.clear()  # the classes and lines refer to this set
        self._inadmissible_classes.update(other._inadmissible_classes)
        self._emptied = other._emptied.copy()
        self._inadmissible = other._inadmissible.copy()
        self._moved = other._moved.copy()
        self._namespace_mismatch = other._namespace_mismatch.copy()

    @property
    def has_inadmissible(self) -> bool:
        """True if the queue has inadmissible workloads that would be tried again after a requeue."""
        return bool(self._inadmissible_classes or self._inadmissible)

    # --- waiting ------------------------------------------------------------------------------------------

    def add(self, workload: Workload) -> bool:
        """Adds a workload that arrived or returned. Returns True if a cycle can try it.

        If its class is inadmissible, the workload is inadmissible, too.
        """
        if self._moved and _hash_of(workload) in self._moved:
            self._inadmissible[workload] = None
            return False
        self._push(workload)
        return not workload.equivalence_class.inadmissible

    def _push(self, workload: Workload) -> None:
        self._tickets += 1
        local_queue = workload.local_queue
        workload.ticket = self._tickets
        workload.equivalence_class = self._class_of(workload)
        line = self._lines[workload.equivalence_class].setdefault(local_queue, [])
        entry = _place_of(workload)
        at = bisect_left(line, entry)
        line.insert(at, entry)
        if at:
            return
        firsts = self._firsts.get(local_queue)
        if firsts is None:
            firsts = self._firsts[local_queue] = Line(self._inadmissible_classes)
        if len(line) > 1:
            firsts.leave(line[1])
        firsts.enter(entry)

    def add_to_be_tried(self, workload: Workload) -> bool:
        """Adds a workload whose LocalQueue is active again. It is tried even if its class is inadmissible.

        The other workloads of the class stay inadmissible. Workloads of the class that arrive before the next
        requeue are inadmissible, too. Upstream: `AddFromLocalQueue` in pkg/cache/queue.
        """
        equal = self._class_of(workload)
        if equal.inadmissible:
            for entry in [entry for line in self._lines[equal].values() for entry in line]:
                self.set_inadmissible(entry[4])
            self._moved.add(equal.scheduling_hash)
            self._inadmissible_classes.remove(equal)
        self._push(workload)
        return True

    def remove(self, workload: Workload) -> None:
        """Removes a workload that was admitted, or that becomes inadmissible without its class."""
        lines = self._lines[workload.equivalence_class]
        line, entry = lines[workload.local_queue], _place_of(workload)
        at = bisect_left(line, entry)
        del line[at]
        workload.ticket = 0
        if at:
            return
        firsts = self._firsts[workload.local_queue]
        firsts.leave(entry)
        if line:
            firsts.enter(line[0])
        elif not any(lines.values()):
            self._forget(workload.equivalence_class)

    def withdraw(self, workload: Workload) -> bool:
        """Removes a workload, and returns whether it was pending here."""
        if self.preemptor is workload:
            self.preemptor = None
        if workload.ticket:
            self.remove(workload)
            return True
        if workload in self._namespace_mismatch:
            self._namespace_mismatch.remove(workload)
            return True
        return self._inadmissible.pop(workload, self) is None

    def _class_of(self, workload: Workload) -> EquivalenceClass:
        scheduling_hash = _hash_of(workload)
        found = self.present.get(scheduling_hash)
        if found is None:
            found = EquivalenceClass(self.queue.name, scheduling_hash, self._inadmissible_classes)
            self.present[scheduling_hash] = found
            self._lines[found] = {}
        return found

    def _forget(self, equivalence_class: EquivalenceClass) -> None:
        """Removes an empty class. An inadmissible class stays, because equal workloads may still join it."""
        if equivalence_class.inadmissible:
            self._lines[equivalence_class].clear()
            self._emptied.append(equivalence_class)
            return
        del self.present[equivalence_class.scheduling_hash], self._lines[equivalence_class]

    # --- the next head ------------------------------------------------------------------------------------

    def preempts(self, workload: Workload) -> None:
        """Records that a workload issued preemptions, or waits for its victims to be gone."""
        self.preemptor = workload
        self._sticky = self._may_stick and not self.queue.strict

    def first(self) -> Workload | None:
        """Returns the first workload that is not inadmissible. The workload stays in its place."""
        if self.queue.spec.by_usage:
            rank = self._by_usage_first
            return min((head for _, head in self._heads()), key=rank, default=None)
        return self._line.first() if self.preemptor is None else self._first_of(None)

    def next_local_queue(self, local_queue: LocalQueueUsage) -> LocalQueueUsage | None:
        """Returns the LocalQueue with the lowest usage among the others with a workload to try, or None."""
        others = [each for each, _ in self._heads() if each is not None and each is not local_queue]
        return min(others, key=_by_usage, default=None)

    def _heads(self) -> Iterator[tuple[LocalQueueUsage | None, Workload]]:
        """Yields the LocalQueues with a workload to try, each with its first workload."""
        for local_queue in self._firsts:
            head = self._first_of(local_queue)
            if head is not None:
                yield local_queue, head

    def _by_usage_first(self, head: Workload) -> tuple[float, bool, Place]:
        """Returns a sort key: LocalQueue usage, then preemptor, then queue order."""
        usage = 0.0 if head.local_queue is None else head.local_queue.usage
        return usage, head is not self.preemptor or not self._sticky, _place_of(head)

    def _first_of(self, local_queue: LocalQueueUsage | None) -> Workload | None:
        """Returns the first workload in a line: the sticky preemptor, or else the first in queue order."""
        preemptor = self.preemptor
        if (
            preemptor is not None
            and self._sticky
            and preemptor.ticket
            and not preemptor.equivalence_class.inadmissible
            and preemptor.local_queue is local_queue
        ):
            return preemptor
        return self._firsts[local_queue].first()

    def untried_up_to(self, workload: Workload) -> int | None:
        """Returns the highest priority at which a workload would certainly never have been first, or None.

        With this priority or a lower one, an older workload would have been before it ever since it was
        added. None means that no such priority is known.
        """
        ticket = workload.ticket
        first = None if self.queue.spec.by_usage or self.requeued else self._line.first()
        if first is None or first.ticket >= ticket:
            return None
        earlier = (first.timestamp, first.uid) <= (workload.timestamp, workload.uid)
        most = first.priority if earlier else first.priority - 1
        return most if most >= workload.priority else None

    # --- inadmissible workloads ---------------------------------------------------------------------------

    def set_inadmissible(self, workload: Workload) -> None:
        """Marks one head as inadmissible until inadmissible workloads are requeued."""
        self.remove(workload)
        self._inadmissible[workload] = None

    def set_class_inadmissible(self, equivalence_class: EquivalenceClass) -> None:
        """Marks all workloads of a class as inadmissible until inadmissible workloads are requeued."""
        self._line.becomes_inadmissible(equivalence_class)
        self._inadmissible_classes.add(equivalence_class)

    def ahead(self) -> tuple[Block, int] | None:
        """Returns the block and index of the first workload, or None if the order is not that of the line.

        Call this method directly after `first` has found a workload.
        """
        preemptor = self.preemptor
        if self.queue.strict or self.queue.spec.by_usage or self._line.scattered:
            return None
        if preemptor is not None and not self._sticky:
            return None
        if preemptor is None or not preemptor.ticket:
            return self._line.ahead()
        return self._line.ahead() if preemptor.equivalence_class.inadmissible else None

    def find(self, workload: Workload) -> tuple[Block, int] | None:
        """Returns the block and index of a workload, or None if it is not the first of its class."""
        if not workload.ticket or self.queue.spec.by_usage:
            return None
        entry = self._lines[workload.equivalence_class][workload.local_queue][0]
        if entry[4] is not workload:
            return None
        return self._firsts[workload.local_queue].find(entry)

    def set_ahead_inadmissible(self, places: Sequence[Place]) -> None:
        """Marks consecutive workloads and their classes as inadmissible, from the result of `ahead` on."""
        self._inadmissible_classes.update(map(_CLASS, places))
        self._line.pass_over(len(places))

    def requeue_inadmissible(self) -> None:
        """Requeues all inadmissible workloads."""
        self.requeued = self.requeued or self.has_inadmissible
        self._inadmissible_classes.clear()
        for equivalence_class in self._emptied:
            if self._lines.get(equivalence_class) == {}:
                self._forget(equivalence_class)
        self._emptied.clear()
        self._moved.clear()
        for line in self._firsts.values():
            line.start_over()
        if self._inadmissible:
            for workload in self._inadmissible:
                self.add(workload)
            self._inadmissible.clear()

    def set_namespace_mismatch(self, workload: Workload) -> None:
        """Sets aside a head if the queue does not admit its namespace. A requeue does not try it again."""
        self.remove(workload)
        self._namespace_mismatch.append(workload)

    def active(self) -> list[Workload]:
        """Returns the workloads that are not inadmissible, in no particular order."""
        return self._waiting(inadmissible=False)

    def inadmissible(self) -> list[Workload]:
        """Returns the inadmissible workloads, in no particular order."""
        return [*self._waiting(inadmissible=True), *self._inadmissible, *self._namespace_mismatch]

    def _waiting(self, *, inadmissible: bool) -> list[Workload]:
        return [
            entry[4]
            for equivalence_class, lines in self._lines.items()
            if equivalence_class.inadmissible is inadmissible
            for line in lines.values()
            for entry in line
        ]


def _hash_of(workload: Workload) -> SchedulingHash:
    return workload.priority, workload.asks.number, workload.counts


def _place_of(workload: Workload) -> Place:
    """Returns the entry of a workload, which stays the same while the workload is queued."""
    equal = workload.equivalence_class
    return -workload.priority, workload.timestamp, workload.uid, workload.ticket, workload, equal


def _by_usage(local_queue: LocalQueueUsage) -> tuple[float, str]:
    return local_queue.usage, local_queue.name

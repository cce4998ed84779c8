"""Skips resting heads, which are heads that the next cycle would handle in the same way as the last one.

Trees of cohorts do not affect each other. Trees that share the capacity of topologies count as one tree here.

Suppose that a cycle makes some heads of a tree inadmissible and has no other effect. The next cycle would
then handle the remaining heads in the same way, so they rest. Resting heads count as tried in every cycle,
without any work. This ends when their tree changes or another head of the tree must be considered. Futile
heads (see `in_vain`) also become inadmissible without being considered, over many cycles in one step.

A head that fits can fail because futile heads reserve quota before it is served. Such a head fails again if
the next futile heads also reserve this quota. These cycles are skipped as well.

Results are valid for one version of a tree, because every change to a tree reactivates its heads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import final

from harness_plugins.kueue.rules.admission import reserves
from harness_plugins.kueue.rules.entry import NO_PREEMPTION_CANDIDATES, PENDING_PREEMPTION, Entry
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.shortcuts.bystanders import Bystander
from harness_plugins.kueue.shortcuts.heads import CycleHeads
from harness_plugins.kueue.shortcuts.in_vain import Run
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload

_NONE = CycleHeads([], inadmissible=False, cycles=0, number=0)


@final
class RestingHeads:
    """Finds the heads that a cycle must consider.

    Args:
        futile: returns the first heads of a queue if they are futile, otherwise None (see `InVain.run`).
        kept_out: returns the number of next cycles in which futile heads block a head that fits, or 0 if it
            is not known.
        stirred: the heads of the current cycle that the next cycle may handle differently (see
            `KeptNominations`).
        bystanders: receives the futile heads that may influence the order of the other heads.
        by_name: True for fair sharing, in which the order of trees depends on the names of all heads' queues.
            In a tree with cohorts below its root, the order of heads also depends on the shares of all heads.
        room: the roots of the trees that share the capacity of topologies.

    Attributes:
        resting: the number of resting heads. They count as tried in every cycle.
        reason_changed: called with each workload whose reason for waiting may have changed.
    """

    def __init__(
        self,
        pending: Sequence[PendingQueue],
        futile: Callable[[PendingQueue, Workload], Run | None],
        reason_changed: Callable[[Workload], None],
        kept_out: Callable[[Collection[Run], Workload], int],
        stirred: Collection[Workload],
        bystanders: list[Bystander],
        gates: Gates,
        *,
        by_name: bool,
        room: Collection[int],
    ) -> None:
        self._pending = pending
        self._futile = futile
        self.reason_changed = reason_changed
        self._cycles_kept_out = kept_out
        self._by_name = by_name
        self._stirred = stirred
        self._bystanders = bystanders
        self._gates = gates
        self._by_class = gates.scheduling_equivalence_hashing
        # For each root, the root that represents all trees that share the capacity of topologies.
        self._one = {each.queue.root: each.queue.root for each in pending} | dict.fromkeys(
            room, min(room, default=-1)
        )
        # Of these roots, those with trees in which futile heads can change the order of other heads.
        self._layered: set[int] = set()
        if by_name:
            self._layered.update(self._one[each.queue.root] for each in pending if len(each.queue.path) > 1)
            self._layered.update([min(room)] if len(room) > 1 else ())
        # For each root, the queues in its tree that have inadmissible workloads.
        self._inadmissible: dict[int, dict[int, None]] = {each.queue.root: {} for each in pending}
        self._active: set[int] = set()
        self._at_rest: dict[int, dict[int, Workload]] = {}  # by root and by `ClusterQueue.number`
        self._to_requeue: dict[int, None] = {}
        self._looked_at: list[Workload] = []
        self.resting = 0

    def add(self, pending: PendingQueue) -> None:
        """Activates a queue that has a head to try. If its head rests, the queue stays inactive."""
        root, number = pending.queue.root, pending.queue.number
        resting = self._at_rest.get(self._one[root], {}).get(number)
        if resting is not None:
            if pending.first() is resting:
                return
            self.reactivate(root)
        self._active.add(number)

    def join(self, pending: PendingQueue) -> None:
        """Takes over a queue with its head and inadmissible workloads from another object of this kind."""
        if pending.has_inadmissible:
            self._inadmissible[pending.queue.root][pending.queue.number] = None
        if pending.first() is not None:
            self._active.add(pending.queue.number)

    def requeue(self) -> None:
        """Requeues the inadmissible workloads that the next cycle must try again."""
        for root in self._to_requeue:
            for number in self._inadmissible[root]:
                self._pending[number].requeue_inadmissible()
                self._active.add(number)
            self._inadmissible[root].clear()
        self._to_requeue.clear()

    def reactivate(self, root: int) -> None:
        """Reactivates the heads of a tree after a change, because they could be handled differently now."""
        at_rest = self._at_rest.pop(self._one[root], None)
        if at_rest is not None:
            self._active.update(at_rest)
            self.resting -= len(at_rest)

    def requeue_inadmissible(self, root: int) -> None:
        """Makes the next cycle requeue the inadmissible workloads of a tree in which quota was freed."""
        self.reactivate(root)
        if self._inadmissible[root]:
            self._to_requeue[root] = None

    def waits(self, root: int) -> bool:
        """Returns True if a tree has heads, including resting heads."""
        with_heads = self._active.union(self._at_rest.get(self._one[root], ()))
        return any(self._pending[each].queue.root == root for each in with_heads)

    def only(self, root: int) -> None:
        """Keeps only the heads of one tree. The heads of other trees are no longer considered."""
        self._active = {each for each in self._active if self._pending[each].queue.root == root}

    @property
    def stirs(self) -> bool:
        """True if the next cycle may have to consider a head."""
        return bool(self._active or self._to_requeue)

    def take(self) -> CycleHeads:
        """Returns the first workload of every queue that is not empty. The workloads stay in their queues.

        If a cycle has no head to consider, its only effect is that workloads become inadmissible. Such cycles
        are skipped in one step, up to the first cycle in which some queue has a head to consider.
        """
        if self._to_requeue:
            self.requeue()
        self._bystanders.clear()
        self._looked_at = []
        if not self._active:
            return _NONE
        runs: dict[int, Run] = {}
        cycles = number = 0
        while True:
            looked_at = self._find(runs)
            if not runs:
                if looked_at:
                    return self._look_at(looked_at, inadmissible=False, cycles=cycles + 1, number=number)
                return CycleHeads([], inadmissible=True, cycles=cycles, number=number) if cycles else _NONE
            several = min([run.number for run in runs.values()])
            if looked_at:
                keepers = [run for run in runs.values() if run.reserves]
                kept_out = self._kept_out(keepers, looked_at) if keepers else 0
                if not kept_out:
                    looked_at += self._with_those(looked_at, runs, keepers)
                    number += len(runs)
                    inadmissible = bool(runs)
                    self._pass_over(runs, 1)
                    return self._look_at(looked_at, inadmissible, cycles + 1, number)
                several = min(several, kept_out)
            cycles += several
            number += several * (len(runs) + len(looked_at))
            self._pass_over(runs, several)

    def _find(self, runs: dict[int, Run]) -> list[Workload]:
        """Returns the heads to consider, and adds the futile heads of other queues to `runs`."""
        looked_at: list[Workload] = []
        for number in sorted(self._active - runs.keys() if runs else self._active):
            pending = self._pending[number]
            head = pending.first()
            if head is None:
                self._active.remove(number)
                continue
            run = self._futile(pending, head)
            if run is None or (self._at_rest and self._disturbs(run, pending.queue.root)):
                looked_at.append(head)
            else:
                runs[number] = run
        return looked_at

    def _disturbs(self, run: Run, root: int) -> bool:
        """Returns True if futile heads may change the turns of the resting heads of a tree."""
        one = self._one[root]
        resting = self._at_rest.get(one, ())
        return bool(resting) and (run.reserves or (one in self._layered and len(resting) > 1))

    def _kept_out(self, keepers: Collection[Run], looked_at: list[Workload]) -> int:
        """Returns for how many cycles futile heads block all heads that would have to be considered.

        `keepers` contains the futile heads that may reserve quota.
        """
        cycles = 0
        for head in looked_at:
            rests = self._one[head.cluster_queue.root] in self._at_rest
            kept_out = 0 if rests else self._cycles_kept_out(keepers, head)
            if not kept_out:
                return 0
            cycles = min(cycles or kept_out, kept_out)
        return cycles

    def _with_those(
        self, looked_at: list[Workload], runs: dict[int, Run], keepers: Collection[Run]
    ) -> list[Workload]:
        """Removes from `runs` and returns the futile heads that must be considered together with other heads.

        These futile heads reserve quota that the other heads then cannot use. Futile heads that reserve
        nothing may still influence the order of the other heads.
        """
        trees = {self._one[head.cluster_queue.root] for head in looked_at} if keepers else ()
        found = []
        for run in keepers:
            queue = run.pending.queue
            if self._one[queue.root] in trees:
                found.append(run.head)
                del runs[queue.number]
        if self._by_name and self._meet(looked_at):
            self._bystanders += [(run.head, run.assignment) for run in runs.values()]
        return found

    def _pass_over(self, runs: dict[int, Run], number: int) -> None:
        for at, run in list(runs.items()):
            self._inadmissible[run.pending.queue.root][at] = None
            run.pass_over(number)
            if run.told is not None:
                self.reason_changed(run.head)
            if not run.number:
                del runs[at]
                if len(run.pending.present) == 1:
                    self._active.remove(at)  # its only class is inadmissible now

    def take_all(self) -> list[Workload]:
        """Returns the first workload of every queue that is not empty. Afterwards, no heads are resting."""
        self.requeue()
        self._at_rest.clear()
        self._active.clear()
        self._bystanders.clear()
        self._looked_at = []
        self.resting = 0
        for pending in self._pending:
            self._inadmissible[pending.queue.root].pop(pending.queue.number, None)
            if pending.queue.usable:
                self.join(pending)
        return [head for each in sorted(self._active) if (head := self._pending[each].first()) is not None]

    def settle(self, entries: Sequence[Entry], left_out: Collection[Workload]) -> None:
        """Ends a cycle. If the next cycle would handle a tree's heads in the same way, these heads rest."""
        crowded = self._crowded(entries) if self._layered else self._layered
        by = self._bystanders
        restless = {self._one[head.cluster_queue.root] for head, _ in by} & crowded if by else set()
        for workload in left_out:
            queue = workload.cluster_queue
            self._inadmissible[queue.root][queue.number] = None
            restless.add(self._one[queue.root])
        for entry in entries:
            queue = entry.workload.cluster_queue
            if entry.reason:
                self.reason_changed(entry.workload)
                if entry.inadmissible:
                    self._inadmissible[queue.root][queue.number] = None
            elif self._pending[queue.number].first() is None:
                self._active.discard(queue.number)  # its last head was admitted
            one = self._one[queue.root]
            if one not in restless and self._matters(entry, crowded):
                restless.add(one)
        for head in self._looked_at:
            queue = head.cluster_queue
            one = self._one[queue.root]
            if one not in restless and not head.equivalence_class.inadmissible:
                self._active.remove(queue.number)
                self._at_rest.setdefault(one, {})[queue.number] = head
                self.resting += 1

    def _crowded(self, entries: Sequence[Entry]) -> set[int]:
        """Returns the roots of the trees in which futile heads may change the order of other heads."""
        of = self._one
        ones = Counter(of[each.workload.cluster_queue.root] for each in entries if not each.inadmissible)
        return {one for one, number in ones.items() if number > 1 and one in self._layered}

    def _matters(self, entry: Entry, crowded: Collection[int]) -> bool:
        """Returns True if the outcome of a head would change the next cycle."""
        workload, reason = entry.workload, entry.reason
        if not reason or workload in self._stirred or workload.last_assignment is not None:
            return True
        if reason == PENDING_PREEMPTION and not entry.marked:
            return True  # it has just become the preemptor of its queue
        if not entry.inadmissible:
            return False
        # The reservation or the share of this head may have affected other heads.
        queue = workload.cluster_queue
        reserved = reason == NO_PREEMPTION_CANDIDATES and reserves(queue, self._gates, marked=entry.marked)
        return reserved or not self._by_class or self._one[queue.root] in crowded

    def _look_at(self, looked_at: list[Workload], inadmissible: bool, cycles: int, number: int) -> CycleHeads:
        """Returns the heads of a cycle in which the heads `looked_at` must be considered.

        `inadmissible` says whether other heads become inadmissible in this cycle, and `number` counts the
        heads that do so in all `cycles` up to this one.
        """
        number += len(looked_at)
        if self._at_rest:
            for one in {self._one[head.cluster_queue.root] for head in looked_at} & self._at_rest.keys():
                heads = [self._pending[each].first() for each in self._at_rest[one]]
                looked_at += [head for head in heads if head is not None]
                number += len(heads) * cycles
                self.reactivate(one)
        if len(looked_at) > 1:
            looked_at.sort(key=_number)
        self._looked_at = looked_at
        return CycleHeads(looked_at, inadmissible, cycles, number)

    def _meet(self, looked_at: list[Workload]) -> bool:
        """Returns True if heads that have no other effect influence the order of the heads to consider."""
        roots = {head.cluster_queue.root for head in looked_at}
        return len(roots) > 1 or not self._layered.isdisjoint(map(self._one.__getitem__, roots))


def _number(head: Workload) -> int:
    return head.cluster_queue.number

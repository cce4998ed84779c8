"""Models Kueue's scheduler over time, which manages queues, runs cycles, and requeues workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import attrgetter, sub
from typing import final

from harness.base.memo import Memo
from harness.models.cluster import AdmissionFairSharing, Cluster, ResourceFlavor
from harness.models.quota import FlavorResource
from harness.models.told import NOTHING_TOLD, Told
from harness.policy import Change, Edit, Job
from harness_plugins.kueue.machinery import Machinery, Settings, topologies_of
from harness_plugins.kueue.manifests.as_read import as_read
from harness_plugins.kueue.manifests.beginning import Beginning, Start
from harness_plugins.kueue.manifests.imported import hold, workload_of
from harness_plugins.kueue.manifests.places import places_of
from harness_plugins.kueue.previews.preemption_rate import PreemptionRate
from harness_plugins.kueue.record.crashes import Crashes
from harness_plugins.kueue.record.refusals import Refused
from harness_plugins.kueue.rules.changes import KINDS, Removed, alike, changed, queues_ever, tree_of
from harness_plugins.kueue.rules.device_claims import asking_of
from harness_plugins.kueue.rules.entry import NAMESPACE_MISMATCH, Admitted, Outcome
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_offers import PODS, PodSetOffer
from harness_plugins.kueue.rules.preemption import IN_COHORT_RECLAIM_WHILE_BORROWING, Target
from harness_plugins.kueue.rules.second_pass import looked_at
from harness_plugins.kueue.rules.wait_for_pods_ready import TIMED_OUT, whole_seconds
from harness_plugins.kueue.shortcuts.heads import CycleHeads
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.asks import Asking
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.local_queue_usage import LocalQueueUsages
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.saved import SavedTree
from harness_plugins.kueue.state.second_passes import SecondPass, SecondPasses
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Admission, Workload

_MILLISECOND = 1000
_OVERLOOKED = Told(known=frozenset({"overlooked"}))


@final
class Scheduler:
    """The scheduler with its queues and its cache.

    Args:
        strategies: the preemption strategies of fair sharing, or None for classic preemption.
        admission: how the usage of LocalQueues is counted, or None if usage orders no queue.
        by_namespace: whether LocalQueues with the same name in different namespaces count as different when
            candidates are ordered.
        evicted_last: see `manifests.imported.workload_of`. It applies until the workload is admitted again.
        also: flavor-resources that are in use although no queue has quota for them.
        asking: finds the requests of jobs. Objects with the same cluster and gates can share it.

    Attributes:
        topologies: the flavors with a topology and their free capacity, or None if no flavor has a topology.
        local_queues: the usage of LocalQueues, or None if usage orders no queue.
        within_quota: a function that returns whether there is quota for a workload without preemption.
        heads: how many heads all cycles so far have considered.
        idle: whether the last cycle changed nothing.
    """

    def __init__(
        self,
        cluster: Cluster,
        gates: Gates,
        strategies: tuple[str, ...] | None,
        *,
        weights: Mapping[str, float] | None = None,
        admission: AdmissionFairSharing | None = None,
        by_namespace: bool = False,
        evicted_last: bool = True,
        also: set[FlavorResource] | None = None,
        rate: PreemptionRate | None = None,
        shortcuts: Shortcuts | None = None,
        asking: Asking | None = None,
    ) -> None:
        shortcuts = shortcuts or Shortcuts()
        self._gates = gates
        self._evicted_last = evicted_last
        self.fair = strategies is not None
        topologies = topologies_of(cluster, gates, shortcuts)
        crashes = None if gates.rules.cohorts_end_searches else Crashes(gates.release)
        self._settings = Settings(
            gates, strategies, weights or {}, also or (), shortcuts, *topologies, crashes, rate
        )
        self.second_passes = SecondPasses()
        self._use(cluster, Machinery(cluster, self._settings))
        self.local_queues: LocalQueueUsages | None = None
        by_usage = gates.admission_fair_sharing and any(queue.by_usage for queue in queues_ever(cluster))
        if admission is not None and by_usage:
            self.local_queues = LocalQueueUsages(
                cluster, admission, self.cache.tree, self._usable(), by_namespace=by_namespace
            )
        self._removed = Removed()
        self._asking = asking or asking_of(cluster, gates)
        self._parks_any_class = (
            gates.scheduling_equivalence_hashing and not gates.rules.parks_classes_for_quota_alone
        )
        self._saved: SavedTree | None = None
        self.cycles = 0
        self.heads = 0
        self.idle = False

    def _use(self, cluster: Cluster, machinery: Machinery) -> None:
        self._cluster = cluster
        self._machinery = machinery
        self.topologies = self._settings.topologies
        self.cache = machinery.cache
        self.pending = machinery.pending
        self.shares = machinery.shares
        self.within_quota = machinery.within_quota
        self._by_number = machinery.by_number
        self._heads = machinery.heads
        self._cycle = machinery.cycle
        self._refusals = machinery.refusals
        self._mismatches: Memo[tuple[str, str], bool] = Memo()  # keyed by content

    def _usable(self) -> list[str]:
        return [name for name, queue in self.cache.queues.items() if queue.usable]

    # --- what changes ---------------------------------------------------------------------------------------

    def change(self, edit: Edit, cluster: Cluster) -> None:
        """Changes an object, and rebuilds all parts that depend on quotas, weights and policies."""
        cluster = as_read(cluster, self._gates)
        self._removed.edit(edit, self.cache)
        if edit.kind in KINDS:
            self._rebuild(self._removed.among(cluster), edit)
            return
        self._cluster = self._removed.among(cluster)
        if self.local_queues is not None:
            self.local_queues.follow(self._cluster, self.cache.tree, self._usable())

    def change_nodes(self, cluster: Cluster) -> None:
        """Adds, removes or changes nodes. Admitted workloads stay admitted, and pending ones keep waiting."""
        settings = self._settings
        topologies, asked = topologies_of(cluster, self._gates, settings.shortcuts)
        if topologies is None:
            return
        for workload in self.cache.everybody():
            workload.placed = topologies.now(workload.placed)
            topologies.hold(workload.placed)
        self._settings = replace(settings, topologies=topologies, asked=asked)
        self._machinery.heads.requeue()
        self._renew(replace(self._cluster, nodes=cluster.nodes))

    def _renew(self, cluster: Cluster) -> None:
        self._use(cluster, Machinery(cluster, self._settings, self._machinery))
        self._join()

    def requeue_all(self) -> None:
        """Requeues the inadmissible workloads in all trees."""
        for pending in self._by_number:
            if pending.queue.usable:
                self._heads.requeue_inadmissible(pending.queue.root)

    def _rebuild(self, cluster: Cluster, edit: Edit) -> None:
        before = self._machinery
        concerned = tree_of(edit, before.cache)
        before.heads.requeue()
        others = before.other_flavors(cluster)
        after = Machinery(cluster, self._settings, before)
        for workload, flavors in others:
            after.number_again(workload, flavors)
        self._use(cluster, after)
        if self.local_queues is not None:
            self.local_queues.follow(cluster, self.cache.tree, self._usable())
        changed(edit, self.cache, self.pending, concerned)
        for pending in self._by_number:
            if edit.kind == "ClusterQueue" and pending.queue.name == edit.name:
                pending.follow(partial(self._namespace_mismatch, pending.queue))
        self._join()

    def _join(self) -> None:
        for pending in self._by_number:
            if pending.queue.usable:
                self._heads.join(pending)

    # --- what happens ---------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Advances to `now` before any other event. If a sample is due, samples the usage of LocalQueues.

        If the order of LocalQueues changes, the order of heads and of candidates can change, too.
        """
        if self.local_queues is None:
            return
        for name in self.local_queues.advance(now):
            queue = self.cache.queues[name]
            self.cache.reorder(queue)
            self._heads.reactivate(queue.root)

    def next_sample(self) -> int | None:
        """Returns the time of the next sample of LocalQueue usage that could affect a waiting head.

        Returns None if there is no such sample.
        """
        if self.local_queues is None:
            return None
        due = [
            self.local_queues.next_sample(queue.name)
            for queue in self.cache.queues.values()
            if queue.spec.by_usage and self._heads.waits(queue.root)
        ]
        return min((each for each in due if each is not None), default=None)

    def workload_of(self, job: Job, pending: PendingQueue) -> Workload:
        """Returns a new workload for a job. Kueue stores its creation time in whole seconds."""
        workload = Workload(job.id, job.uid, job.priority, whole_seconds(job.submit))
        self.submit(workload, job, pending)
        return workload

    def take_over(self, start: Start, job: Job, beginning: Beginning) -> Workload:
        """Returns a workload that existed before the replay started, with the quota that it holds."""
        manifest, gates = start.manifest, self._gates
        workload = workload_of(manifest, gates, evicted_last=self._evicted_last)
        workload.created = beginning.moment(workload.created, job.submit)
        workload.timestamp = beginning.moment(workload.timestamp, job.submit)
        self.submit(workload, job, self.pending[start.queue])
        if manifest.holds_quota:
            reserved = beginning.moment(manifest.conditions["QuotaReserved"].since, job.submit)
            hold(self.cache, workload.cluster_queue, workload, manifest, gates, reserved)
            if self.topologies is not None:
                workload.placed = places_of(start, self.topologies, self._cluster.nodes)
                self.topologies.hold(workload.placed)
            self._count(workload)
            workload.admissions = 1
            workload.wanted = tuple(start.counts.get(each.name, each.count) for each in start.pod_sets)
        return workload

    def submit(self, workload: Workload, job: Job, pending: PendingQueue) -> None:
        """Connects a workload to its job and its queue."""
        workload.job = job
        asks = workload.asks = self._asking.of(job)
        if asks.claimed is not None and asks.claimed.refused:
            workload.held_back = asks.claimed.refused
        workload.counts = asks.counts
        workload.cluster_queue = pending.queue
        workload.namespace_mismatch = self._namespace_mismatch(pending.queue, job.namespace)
        if self.local_queues is not None:
            workload.local_queue = self.local_queues.of(job, pending.queue.name)

    def enqueue(self, workload: Workload, *, restarts: bool = False) -> None:
        """Adds a workload to its queue. In a stopped queue, the workload is not tried.

        Args:
            workload: the workload.
            restarts: whether the workload was pending while its LocalQueue was stopped or did not exist.
        """
        pending = self._queue_of(workload)
        tried = (pending.add_to_be_tried if restarts else pending.add)(workload)
        if tried and pending.queue.usable:
            self._heads.add(pending)

    def withdraw(self, workload: Workload) -> bool:
        """Removes a workload from its queue, and returns whether it was there."""
        self._heads.reactivate(workload.cluster_queue.root)
        return self._queue_of(workload).withdraw(workload)

    def reserve(self, admitted: Admitted, now: int) -> None:
        """Charges the quota of an admitted head, which has already left its queue."""
        workload, assignment = admitted
        pending = self._queue_of(workload)
        if pending.preemptor is workload:
            pending.preemptor = None
        workload.last_assignment = None
        workload.told = NOTHING_TOLD
        workload.admission = Admission(assignment.chosen, assignment.counts)
        workload.wanted = workload.running(assignment.counts)
        workload.admissions += 1
        workload.timestamp = workload.created
        usage = assignment.usage
        if assignment.counts != workload.counts:
            usage = self._needed(workload, workload.admission)
        self.cache.hold(workload, pending.queue, usage, assignment.uses, whole_seconds(now))
        if self.topologies is not None:
            workload.placed = self.topologies.now(assignment.placed)  # nodes may have changed in the meantime
            self.topologies.hold(workload.placed)
        self._count(workload)
        if self.local_queues is not None and workload.local_queue is not None:
            self.local_queues.charge(workload.local_queue, self._requests(workload))

    def evict(self, target: Target, now: int) -> None:
        """Marks a workload as evicted. The workload holds its quota until it is gone."""
        if self._saved is not None:
            self._saved.keep(target.workload)
        workload = target.workload
        before = workload.timestamp
        if target.reason == TIMED_OUT and self._evicted_last:
            workload.timestamp = whole_seconds(now)
        elif (
            not self._gates.priority_sorting_within_cohort
            and target.reason == IN_COHORT_RECLAIM_WHILE_BORROWING
        ):
            workload.timestamp = whole_seconds(now) + _MILLISECOND
        if workload.timestamp != before:
            self.cache.reorder(workload.cluster_queue)  # policies can depend on the time
        self.second_passes.cancel(target.workload)
        target.workload.unhealthy = ""
        self.cache.evict(target.workload)
        self._heads.reactivate(target.workload.cluster_queue.root)

    def mark(self, workload: Workload, node: str) -> None:
        """Marks a workload that lost pods because a node failed. An empty node name removes the mark.

        A marked workload is tried again one second later, with its state at the time of the mark.
        """
        workload.unhealthy = node
        workload.cluster_queue.generation += 1
        if node:
            self.second_passes.add(SecondPass(workload, workload.placed, node))

    def move(self, workload: Workload, placed: tuple[Placed, ...]) -> None:
        """Moves a workload to other places. The places that become free don't requeue any workload."""
        assert self.topologies is not None
        self.topologies.drop(workload.placed)
        workload.placed = self.topologies.now(placed)
        self.topologies.hold(workload.placed)
        workload.unhealthy = ""
        workload.cluster_queue.generation += 1
        self._heads.reactivate(workload.cluster_queue.root)

    def free(self, workload: Workload, *, wakes: bool = True) -> None:
        """Releases a workload's quota, and requeues the inadmissible workloads of its tree.

        Args:
            workload: the workload.
            wakes: False if no workload is requeued, because the LocalQueue is stopped or deleted.
        """
        queue = workload.cluster_queue
        self._wake(queue.root, wakes=wakes)
        self._uncount(workload)
        self.cache.drop(workload)
        if self.topologies is not None:
            self.second_passes.cancel(workload)
            workload.unhealthy = ""
            self.topologies.drop(workload.placed)
            workload.placed = ()
        if self._removed and self._removed.gone(self.cache, queue):
            edit = Edit("ClusterQueue", queue.name, queue.spec, None)
            self._rebuild(self._removed.among(self._cluster), edit)

    def spare(self, workload: Workload, *, spared: bool) -> None:
        """Excludes a workload with quota from the preemption candidates, or includes it (see `previews`).

        When a workload is included again, the inadmissible workloads of its tree are requeued.
        """
        root = workload.cluster_queue.root
        if spared:
            self._heads.reactivate(root)
        else:
            self._heads.requeue_inadmissible(root)
        self.cache.spare(workload, spared=spared)

    def try_again(self, workload: Workload) -> None:
        """Tries a head again because it can now preempt, although nothing changed in its tree."""
        self._heads.reactivate(workload.cluster_queue.root)

    def untried_up_to(self, workload: Workload) -> int | None:
        """Returns a bound for the priorities at which a workload never became a head. See `PendingQueue`."""
        return self._queue_of(workload).untried_up_to(workload)

    def root_of(self, queue: str) -> int:
        """Returns the root of the tree of a ClusterQueue."""
        return self.pending[queue].queue.root

    def can_try_out(self, changes: Sequence[Change]) -> bool:
        """Returns True if `trial` can try out these changes. It must be able to undo all of their effects."""
        settings = self._settings
        others = settings.topologies, settings.crashes, settings.rate, self.local_queues
        return not (self._removed or any(each is not None for each in others)) and all(
            each.edit.kind == "ClusterQueue" and alike(each.edit) for each in changes
        )

    @contextmanager
    def trial(self, root: int, changes: Sequence[Change]) -> Iterator[None]:
        """Tries out changes of the queues of one tree. When the context ends, undoes all effects.

        The parts that depend on quotas are built again, so that no cached result is used after the trial.
        During the trial, only this tree is considered, and no refusals are recorded.

        Args:
            root: the root of the tree.
            changes: changes of ClusterQueues, which must keep the fields that `rules.changes.alike` compares.
        """
        before, cluster, counts = self._machinery, self._cluster, (self.cycles, self.heads, self.idle)
        before.heads.requeue()
        own = [each for each in self._by_number if each.queue.root == root]
        saved = self._saved = SavedTree(self.cache, own)
        try:
            for change in changes:
                self.change(change.edit, change.cluster)
            if not changes:
                self._renew(cluster)
            self._heads.only(root)
            self._refusals.records = False
            yield
        finally:
            self._use(cluster, before)
            self._saved = None
            saved.restore()
            self.cycles, self.heads, self.idle = counts

    def anybody_waits(self) -> bool:
        """Returns True if a workload is pending in any queue."""
        return any(each.first() is not None or each.has_inadmissible for each in self._by_number)

    def overlooked(self, queue: ClusterQueueState) -> Iterator[Workload]:
        """Yields the inadmissible workloads in a queue's tree for which quota became free without a requeue.

        A workload is yielded only once. After an attempt to admit it, it can be yielded again.
        """
        for pending in self._by_number:
            if pending.queue.root != queue.root or not pending.queue.usable:
                continue
            for workload in sorted(pending.inadmissible(), key=attrgetter("name")):
                if (
                    workload.told != _OVERLOOKED
                    and not workload.namespace_mismatch
                    and self.within_quota(workload)
                ):
                    workload.told = _OVERLOOKED
                    self._heads.reason_changed(workload)
                    yield workload

    def _wake(self, root: int, *, wakes: bool) -> None:
        (self._heads.requeue_inadmissible if wakes else self._heads.reactivate)(root)

    def reclaim(self, workload: Workload, ended: tuple[int, ...], *, wakes: bool = True) -> None:
        """Releases the quota of a workload's finished pods.

        Args:
            workload: the workload. It continues with its other pods.
            ended: the number of pods of each pod set that have finished so far.
            wakes: see `free`.
        """
        workload.ended = ended
        if not self._gates.reclaimable_pods:
            return
        asks = workload.asks
        workload.counts = tuple(map(sub, asks.counts, ended))
        if not workload.has_quota or workload.admission is None:
            return
        self._wake(workload.cluster_queue.root, wakes=wakes)
        self._uncount(workload)
        self.cache.reclaim(workload, self._needed(workload, workload.admission))
        self._count(workload)

    def _needed(self, workload: Workload, admission: Admission) -> Amounts:
        """Returns the usage that a workload still needs from an admission, without its finished pods."""
        usage: dict[int, int] = {}
        for pod_set, count, left, chosen in zip(
            self.offers(workload), admission.counts, workload.counts, admission.chosen, strict=True
        ):
            for group, flavor in zip(pod_set.groups, chosen, strict=True):
                for cell, amount in zip(group.cells[flavor] or (), group.amounts, strict=True):
                    usage[cell] = usage.get(cell, 0) + amount * min(count, left)
        return tuple(sorted((cell, amount) for cell, amount in usage.items() if amount))

    def _count(self, workload: Workload) -> None:
        if self.local_queues is not None and workload.local_queue is not None:
            self.local_queues.hold(workload.local_queue, workload.usage)

    def _uncount(self, workload: Workload) -> None:
        if self.local_queues is not None and workload.local_queue is not None:
            self.local_queues.give_back(workload.local_queue, workload.usage)

    def _requests(self, workload: Workload) -> dict[str, int]:
        """Returns the request of all pods of a workload by resource, even if fewer pods were admitted.

        The number of pods is not part of it (`SumTotalRequests`), although pods that run count as usage.
        """
        total: dict[str, int] = {}
        for pod_set, count in zip(self.offers(workload), workload.counts, strict=True):
            for group in pod_set.groups:
                for resource, amount in zip(group.resources, group.amounts, strict=True):
                    if resource != PODS:
                        total[resource] = total.get(resource, 0) + amount * count
        return total

    def standing(self) -> tuple[object, ...]:
        """Returns the heads of the next cycle and the flavors they tried. See `harness.policy.Standing`.

        Without events, these heads determine the next cycles, because only heads change. Inadmissible
        workloads stay inadmissible, and no workload except a head becomes inadmissible.
        """
        queues = []
        for pending in self._by_number:
            first = pending.first()
            last = None if first is None else first.last_assignment
            tried = None if last is None else (last.tried, last.generation, self.cycles - last.cycle)
            queues.append((first, tried, pending.preemptor))
        return tuple(queues)

    def skip(self, cycles: int, heads: int) -> None:
        """Increases the numbers of cycles and heads, without any other change of the state."""
        self.cycles += cycles
        self.heads += heads

    # --- cycles ---------------------------------------------------------------------------------------------

    def cycle(self) -> Iterable[Outcome]:
        """Starts a cycle if any queue has a head. The cycle runs while the caller iterates over its outcomes.

        The method first runs the cycles in which heads only become inadmissible. Then it starts the next
        cycle. A cycle without an effect counts as idle. If all targets of a preemptor are already evicted,
        the preemptor waits, and the cycle does not report it again.
        """
        if self.second_passes.ready:
            workloads = self._heads.take_all()
            self._tally(1, len(workloads))
            self.idle = False
            return self._run(CycleHeads(workloads, inadmissible=False, cycles=1, number=0))
        heads = self._heads.take()
        if not heads.cycles:
            return ()
        self._tally(heads.cycles, heads.number)
        self.idle = False
        return self._run(heads) if heads.workloads else ()

    def _run(self, heads: CycleHeads) -> Iterator[Outcome]:
        """Runs a cycle with the given heads and with the workloads whose second pass is due."""
        taken: list[Workload] = []
        left_out: list[Workload] = []
        for workload in heads.workloads:
            if workload.namespace_mismatch:
                pending = self._queue_of(workload)
                if self._parks_any_class and not pending.queue.strict:
                    pending.set_class_inadmissible(workload.equivalence_class)
                pending.set_namespace_mismatch(workload)
                left_out.append(workload)
                self._refusals.leave_out(workload, NAMESPACE_MISMATCH)
            elif not workload.asks.invalid:
                taken.append(workload)
            else:
                self._refusals.leave_out(workload, workload.asks.invalid)
                if not (pending := self._queue_of(workload)).queue.strict:
                    if self._parks_any_class:
                        pending.set_class_inadmissible(workload.equivalence_class)
                    else:
                        pending.set_inadmissible(workload)
                    left_out.append(workload)
        busy = bool(left_out)
        ready = self.second_passes.take() if self.second_passes.ready else []
        second = list(looked_at(ready, taken, fair=self.fair)) if ready else []
        for outcome in self._cycle.run(taken, self.cycles, second):
            busy = True
            yield outcome
        for one in ready:
            if one not in second or one in self._cycle.in_vain:
                self.second_passes.put_back(one)
        entries = self._cycle.entries
        self.idle = not (busy or heads.inadmissible or [each for each in entries if each.inadmissible])
        self._heads.settle(entries, left_out)

    @property
    def refused(self) -> list[Refused]:
        """The heads whose reason for waiting is new in this cycle. The caller clears the list."""
        return self._refusals.refused

    def passes(self, cycles: int) -> bool:
        """If the next cycles would have no effect, counts `cycles` of them and returns True.

        Returns False if there is a head to consider, or if a second pass is due.
        """
        if self._heads.stirs or self.second_passes.ready:
            return False
        self.rest(cycles)
        return True

    def rest(self, cycles: int) -> None:
        """Counts cycles in which all heads are resting. These cycles have the same outcome as the last."""
        if self._heads.resting:
            self._tally(cycles, 0)

    def _tally(self, cycles: int, heads: int) -> None:
        self.cycles += cycles
        self.heads += heads + cycles * self._heads.resting

    def _namespace_mismatch(self, queue: ClusterQueueState, namespace: str) -> bool:
        mismatch = self._mismatches.get((queue.name, namespace))
        if mismatch is None:
            selector = queue.spec.namespace_selector
            labels = self._cluster.namespace_labels(namespace)
            mismatch = selector is None or not selector.matches(labels)
            self._mismatches[queue.name, namespace] = mismatch
        return mismatch

    def _queue_of(self, workload: Workload) -> PendingQueue:
        return self._by_number[workload.cluster_queue.number]

    def flavors(self, workload: Workload, pod_set: str) -> Iterator[ResourceFlavor]:
        """Yields the flavors to which a pod set of a workload was admitted."""
        if workload.admission is None:
            return
        for offer, chosen in zip(self.offers(workload), workload.admission.chosen, strict=True):
            if offer.pod_set.name == pod_set:
                for group, flavor in zip(offer.groups, chosen, strict=True):
                    yield self._cluster.flavor(group.flavors[flavor])

    def offers(self, workload: Workload) -> tuple[PodSetOffer, ...]:
        """Returns the flavors of the ClusterQueue that each pod set of a workload could use."""
        return self._machinery.offers(workload)

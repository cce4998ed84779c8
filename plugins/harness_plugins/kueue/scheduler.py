"""Kueue's scheduler over time: queues that fill, cycles until they are quiet, and what wakes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import sub
from typing import final

from harness.cluster.kueue_configuration import AdmissionFairSharing
from harness.cluster.model import Cluster, ClusterQueue
from harness.models.quota import FlavorResource
from harness.policy import Job
from harness.units import SECOND
from harness_plugins.kueue.admission import AdmissionCycle, Admitted, Preempted, Refused
from harness_plugins.kueue.asks import Asking
from harness_plugins.kueue.assignment import Assigner, Assignment
from harness_plugins.kueue.beginning import Beginning, Start
from harness_plugins.kueue.cache import Cache
from harness_plugins.kueue.classical import ClassicPreemption
from harness_plugins.kueue.configuration import Gates
from harness_plugins.kueue.entries import ClassicOrder, FairOrder, Order
from harness_plugins.kueue.fair_sharing import FairSharing
from harness_plugins.kueue.heads import Heads, Taken
from harness_plugins.kueue.imported import hold, workload_of
from harness_plugins.kueue.ledger import Ledger
from harness_plugins.kueue.nomination import Nominator
from harness_plugins.kueue.pending import Pending
from harness_plugins.kueue.pods_ready import TIMED_OUT
from harness_plugins.kueue.search import IN_COHORT_RECLAIM_WHILE_BORROWING, Search, Target
from harness_plugins.kueue.shares import Shares, weights_of
from harness_plugins.kueue.topology.explaining import room_in_words
from harness_plugins.kueue.topology.flavors import TopologyFlavors
from harness_plugins.kueue.topology.workload import WorkloadTopologies
from harness_plugins.kueue.workload import Amounts, Workload

_MILLISECOND = 1000


@final
class Scheduler:
    """The scheduler with its queues and its cache.

    Args:
        cluster: queues, cohorts, flavors and namespaces.
        gates: the feature gates.
        strategies: the preemption strategies of fair sharing; None for classic preemption.
        weights: fair-sharing weights that replace those of the manifests.
        admission: how usage of LocalQueues is counted; None where it orders no queue.
        by_namespace: whether LocalQueues of one name in two namespaces are told apart among candidates, too.
        evicted_last: whether a workload whose pods were not ready in time queues by its eviction, until it is
            admitted again.
        also: flavor-resources that are used although nobody has a quota for them.

    Attributes:
        cache: who holds which quota.
        pending: the pending workloads, by ClusterQueue.
        shares: the shares of all nodes.
        topologies: the flavors with a topology, and the room in them; None where there is none.
        ledger: the usage of LocalQueues; None where it orders no queue.
        fair: whether fair sharing is on.
        cycles: how many cycles were run.
        heads: how many heads were looked at in them.
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
    ) -> None:
        self._cluster = cluster
        self._gates = gates
        self._evicted_last = evicted_last
        cache = self.cache = Cache(cluster, also=also or ())
        self.shares = Shares(cache.tree, weights_of(cache.tree, cluster, weights or {}))
        self.ledger: Ledger | None = None
        by_usage = [queue for queue in cache.queues.values() if queue.spec.by_usage]
        if admission is not None and gates.admission_fair_sharing and by_usage:
            usable = [queue.name for queue in by_usage if queue.usable]
            self.ledger = Ledger(cluster, admission, cache.tree, usable, by_namespace=by_namespace)
        fair = self.fair = strategies is not None
        search: Search = ClassicPreemption(cache)
        order: Order = ClassicOrder(gates)
        if strategies is not None:
            within_nominal = gates.fair_sharing_preempt_within_nominal
            search = FairSharing(cache, self.shares, strategies, within_nominal=within_nominal)
            order = FairOrder(cache, self.shares, gates)
        self.topologies: TopologyFlavors | None = None
        self._asked: WorkloadTopologies | None = None
        if any(flavor.topology for flavor in cluster.flavors.values()):
            self.topologies = TopologyFlavors(cluster, overlapping=gates.tas_handle_overlapping_flavors)
            self._asked = WorkloadTopologies(self.topologies, mixed=gates.tas_profile_mixed)
        assigner = Assigner(cache, search, fair=fair, gates=gates, topologies=self._asked)
        self.nominator = Nominator(cluster, cache, assigner, search, gates, self.topologies)
        self._cycle = AdmissionCycle(cache, self.nominator, order, gates)
        self.pending: Mapping[str, Pending] = {
            name: Pending(queue, number) for number, (name, queue) in enumerate(cache.queues.items())
        }
        self._heads = Heads(list(self.pending.values()), by_name=fair)
        self._asking = Asking(reclaims=gates.reclaimable_pods)
        self._welcome: dict[tuple[str, str], bool] = {}
        self.cycles = 0
        self.heads = 0
        self.idle = False

    # --- what happens -------------------------------------------------------------------------------------

    def hear(self, now: int) -> None:
        """It is that late, and nothing else happened yet: usage of LocalQueues is sampled where that is due.

        Where LocalQueues change places, other heads may come first, and other candidates.
        """
        if self.ledger is None:
            return
        for name in self.ledger.advance(now):
            queue = self.cache.queues[name]
            self.cache.reorder(queue)
            self._heads.stir(queue.root)

    def next_sample(self) -> int | None:
        """When samples of usage could next change what heads come to; None if they cannot."""
        if self.ledger is None:
            return None
        due = [
            self.ledger.next_sample(queue.name)
            for queue in self.cache.queues.values()
            if queue.spec.by_usage and self._heads.waits(queue.root)
        ]
        return min((each for each in due if each is not None), default=None)

    def workload_of(self, job: Job, pending: Pending) -> Workload:
        """A job as a workload of a queue. Kueue knows its creation in whole seconds."""
        workload = Workload(job.id, job.uid, job.priority, _whole_seconds(job.submit))
        self.house(workload, job, pending)
        return workload

    def take_over(self, start: Start, job: Job, beginning: Beginning) -> Workload:
        """A workload that was there before the replay began, with the quota that it holds."""
        manifest, gates = start.manifest, self._gates
        workload = workload_of(manifest, gates, evicted_last=self._evicted_last)
        workload.created = beginning.moment(workload.created, job.submit)
        workload.timestamp = beginning.moment(workload.timestamp, job.submit)
        self.house(workload, job, self.pending[start.queue])
        if manifest.holds_quota:
            reserved = beginning.moment(manifest.conditions["QuotaReserved"].since, job.submit)
            hold(self.cache, workload.home.queue, workload, manifest, gates, reserved)
            self._count(workload)
            workload.admissions = 1
            workload.wanted = tuple(start.counts.get(each.name, each.count) for each in start.pod_sets)
        return workload

    def house(self, workload: Workload, job: Job, pending: Pending) -> None:
        """Tell a workload which job it is, and which queue it belongs to."""
        workload.job = job
        asks = workload.asks = self._asking.of(job)
        workload.counts = asks.counts
        workload.home = pending
        workload.kin = pending.kin_of(workload.priority, asks, asks.counts)
        workload.welcome = self._takes(pending.queue.spec, job.namespace)
        if self.ledger is not None:
            workload.account = self.ledger.account_of(job, pending.queue.name)

    def enqueue(self, workload: Workload) -> None:
        """A workload waits in its queue; in one that is stopped, for good."""
        pending = workload.home
        pending.add(workload)
        if pending.queue.usable and not workload.kin.parked:
            self._heads.add(pending)

    def reserve(self, admitted: Admitted, now: int) -> None:
        """A head was admitted: it holds its quota from now on, and has left its queue."""
        workload, assignment = admitted
        pending = workload.home
        if pending.preemptor is workload:
            pending.preemptor = None
        workload.memory = None
        workload.nomination = None
        workload.refused = ()
        workload.assignment = assignment
        workload.wanted = workload.running(assignment.counts)
        workload.admissions += 1
        workload.timestamp = workload.created
        usage = assignment.usage
        if assignment.counts != workload.counts:
            usage = self._needed(workload, assignment)
        self.cache.hold(workload, pending.queue, usage, assignment.uses, _whole_seconds(now))
        if self.topologies is not None:
            workload.placed = assignment.placed
            self.topologies.hold(workload.placed)
        self._count(workload)
        if self.ledger is not None and workload.account is not None:
            self.ledger.charge(workload.account, self._requests(workload))

    def evict(self, target: Target, now: int) -> None:
        """A workload was told to go; until it is gone it holds its quota."""
        if target.reason == TIMED_OUT and self._evicted_last:
            target.workload.timestamp = _whole_seconds(now)
        elif (
            not self._gates.priority_sorting_within_cohort
            and target.reason == IN_COHORT_RECLAIM_WHILE_BORROWING
        ):
            target.workload.timestamp = _whole_seconds(now) + _MILLISECOND
        self.cache.evict(target.workload)
        self._heads.stir(target.workload.home.queue.root)

    def free(self, workload: Workload) -> None:
        """A workload gives its quota back, which wakes everything in its tree that is parked."""
        assert workload.queue is not None
        self._heads.wake(workload.queue.root)
        self._uncount(workload)
        self.cache.drop(workload)
        if self.topologies is not None:
            self.topologies.drop(workload.placed)
            workload.placed = ()

    def reclaim(self, workload: Workload, ended: tuple[int, ...]) -> None:
        """Some of a workload's pods have ended: what it does not need any more is free.

        Args:
            workload: it goes on with its other pods.
            ended: how many pods of each pod set have ended so far.
        """
        workload.ended = ended
        if not self._gates.reclaimable_pods:
            return
        asks = workload.asks
        workload.counts = tuple(map(sub, asks.counts, ended))
        workload.kin = workload.home.kin_of(workload.priority, asks, workload.counts)
        if workload.queue is None or workload.assignment is None:
            return
        self._heads.wake(workload.queue.root)
        self._uncount(workload)
        self.cache.reclaim(workload, self._needed(workload, workload.assignment))
        self._count(workload)

    def _needed(self, workload: Workload, assignment: Assignment) -> Amounts:
        """What a workload needs of an assignment: nothing for pods that have ended."""
        usage: dict[int, int] = {}
        for pod_set, count, left, chosen in zip(
            self.nominator.offers(workload),
            assignment.counts,
            workload.counts,
            assignment.chosen,
            strict=True,
        ):
            for group, flavor in zip(pod_set.groups, chosen, strict=True):
                for cell, amount in zip(group.cells[flavor] or (), group.amounts, strict=True):
                    usage[cell] = usage.get(cell, 0) + amount * min(count, left)
        return tuple(sorted((cell, amount) for cell, amount in usage.items() if amount))

    def _count(self, workload: Workload) -> None:
        """What a workload holds counts for its LocalQueue from now on."""
        if self.ledger is not None and workload.account is not None:
            self.ledger.hold(workload.account, workload.usage)

    def _uncount(self, workload: Workload) -> None:
        if self.ledger is not None and workload.account is not None:
            self.ledger.give_back(workload.account, workload.usage)

    def _requests(self, workload: Workload) -> dict[str, int]:
        """Resource -> what all pods of a workload ask for, also where fewer were admitted."""
        total: dict[str, int] = {}
        for pod_set, count in zip(self.nominator.offers(workload), workload.counts, strict=True):
            for group in pod_set.groups:
                for resource, amount in zip(group.resources, group.amounts, strict=True):
                    total[resource] = total.get(resource, 0) + amount * count
        return total

    # --- cycles -------------------------------------------------------------------------------------------

    def cycle(self) -> Iterable[Admitted | Preempted]:
        """Begin a cycle, if there is any head; it runs while its outcomes are gone through.

        It counts as idle when nothing came of it. Cycles in which heads are only parked, and that leave all
        else as it is, are run before it. A preemptor whose targets are all going already waits for them, and
        is not told of again.
        """
        self._cycle.refused.clear()
        heads = self._heads.take(self._cycle.in_vain)
        if not heads.cycles:
            return ()
        self._tally(heads.cycles, heads.number)
        self.idle = False
        return self._run(heads) if heads.workloads else ()

    def _run(self, heads: Taken) -> Iterator[Admitted | Preempted]:
        """Run the cycle of some heads."""
        welcome = []
        restless: set[int] = set()
        for workload in heads.workloads:
            pending = workload.home
            if not workload.welcome:
                pending.park_for_good(workload)
                restless.add(pending.queue.root)
            elif workload.asks.valid:
                welcome.append(workload)
            elif not pending.strict:
                pending.park(workload)
                restless.add(pending.queue.root)
        busy = bool(restless)
        for outcome in self._cycle.run(welcome, self.cycles):
            busy = True
            yield outcome
        self.idle = not (busy or self._cycle.parked or heads.parked)
        restless |= self._cycle.restless
        if self.topologies is not None:  # whoever takes room takes it from all trees
            restless.update(workload.home.queue.root for workload in heads.workloads)
        self._heads.settle(restless)

    @property
    def refused(self) -> Sequence[Refused]:
        """The heads of the last cycle that nothing helps, see `AdmissionCycle`."""
        return self._cycle.refused

    def room_for(self, refused: Refused) -> str:
        """Where topologies have how much room for a head that has no place now; "" if that is not why.

        A head without flavors lacks more than a place.
        """
        workload, assignment, _ = refused
        offers = self.nominator.offers(workload)
        if self._asked is None or len(assignment.chosen) != len(offers):
            return ""
        asked = self._asked.asked(offers, assignment.chosen, assignment.counts)
        return "" if asked is None else room_in_words(asked, mixed=self._gates.tas_profile_mixed)

    def rest(self, cycles: int) -> None:
        """Count cycles in which all trees that have heads would do the same as in the last one: nothing."""
        if self._heads.resting:
            self._tally(cycles, 0)

    def _tally(self, cycles: int, heads: int) -> None:
        self.cycles += cycles
        self.heads += heads + cycles * self._heads.resting

    def _takes(self, queue: ClusterQueue, namespace: str) -> bool:
        """Whether a queue takes workloads from a namespace."""
        welcome = self._welcome.get((queue.name, namespace))
        if welcome is None:
            selector = queue.namespace_selector
            labels = self._cluster.namespace_labels(namespace)
            welcome = selector is not None and selector.matches(labels)
            self._welcome[queue.name, namespace] = welcome
        return welcome


def _whole_seconds(time: int) -> int:
    return time // SECOND * SECOND

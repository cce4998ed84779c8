"""The policy `backfill`.

It processes simultaneous events one by one. In a cluster without nodes, it does so separately for each quota
tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness import Cluster, Decision, Job, Never, Possible, Preempt, Reject, Wake, Why
from harness.base.units import SECOND
from harness.models.kube.drains import EVICTED_BY_API
from harness.models.kube.policy import NODE
from harness.models.kube.taint_evictions import DELETED_BY_TAINT
from harness.models.never import OverTime
from harness.policy import Change
from harness_plugins.backfill.conservative import Conservative
from harness_plugins.backfill.easy import Easy
from harness_plugins.backfill.expected import Expected
from harness_plugins.backfill.jobs import Key, Running, Waiting
from harness_plugins.backfill.on_nodes import OnNodes
from harness_plugins.backfill.on_quotas import OnQuotas

NODE_FAILED = "NodeFail"
"""The reason code for an evicted job that lost a pod, as in Slurm, which requeues such a job."""


def capacity_of(cluster: Cluster, options: Mapping[str, Any]) -> OnNodes | OnQuotas:
    """Returns the capacity that jobs share, which is nodes if the cluster ever has any, or else quotas."""
    return OnNodes(cluster) if cluster.nodes or cluster.nodes_change else OnQuotas(cluster, options)


def possible(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Finds the jobs that can never start, neither now nor after any change of the cluster."""
    on_nodes = isinstance(capacity_of(cluster, options), OnNodes)

    def judge(state: Cluster) -> Possible:
        capacity: Any = OnNodes(state) if on_nodes else OnQuotas(state, options)
        return lambda job: capacity.request(job).never

    return OverTime(cluster, judge).first


class Backfill:
    """Backfilling of whole jobs on nodes or within quotas. Jobs in different quota trees never interact.

    The engine delivers all events of one time before it requests decisions, whereas a batch scheduler decides
    after each event. This policy therefore keeps the events and processes them one by one, in the order that
    the option `ties` sets. Completions and submissions are both processed in the order in which their jobs
    arrived.
    """

    def __init__(self, cluster: Cluster, options: Mapping[str, Any]) -> None:
        self._capacity: Any = capacity_of(cluster, options)
        self._expected = Expected(options)
        self._algorithm: type[Any] = Easy if options["algorithm"] == "easy" else Conservative
        self._order = options["order"]
        self._ties = options["ties"]
        self._trees: dict[int, Easy[Any, Any, Any] | Conservative[Any, Any, Any]] = {}
        self._running: dict[int, Running[Any]] = {}
        self._ended: list[Running[Any]] = []
        self._arrived: list[Job] = []
        self._rejected: list[tuple[Job, Never]] = []
        self._there: list[tuple[Job, Any]] = []
        self._never = possible(cluster, options) if cluster.changes else None
        self._aside: list[Job] = []  # jobs that can start only after a change
        self._changed = False
        self._hit: list[Running[Any]] = []  # jobs that lost a pod
        self._drained: list[Running[Any]] = []  # jobs with a pod on a node that is now drained
        self._gone: list[Running[Any]] = []  # evicted jobs that have left their nodes
        self._away: dict[int, int] = {}  # for each evicted job, the number of pods that are not queued again
        self._limited = False  # whether a job has ever been on a node whose taints limit its time
        self._woken = -1

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Adds a job that arrived, or pods of an evicted job.

        An evicted job waits again when all of its pods have been submitted again.
        """
        if job.index in self._away:
            self._away[job.index] -= len(pods)
            if self._away[job.index]:
                return
            del self._away[job.index]
            possible = self._capacity.request(job).never is None
            (self._arrived if possible else self._aside).append(job)
            return
        never = self._capacity.request(job).never
        if never is not None and self._never is not None and self._never(job) is None:
            self._aside.append(job)
        elif never is None:
            held = self._capacity.held(job)
            if held is None:
                self._arrived.append(job)
            else:
                self._there.append((job, held))
        else:
            self._rejected.append((job, never))

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Handles pods of a job that have finished or left their nodes.

        If pods have finished, all other pods of the job finish at the same time. If a pod was evicted, or
        lost with its node, the whole job is evicted.
        """
        running = self._running[job.index]
        ended = why is Why.ENDED
        if ended:
            running.ending = True
        elif job.index not in self._away:
            self._away[job.index] = running.pods
        if not (ended or running.going):
            running.going = True
            self._hit.append(running)
        running.pods -= len(pods)
        if not running.pods:
            (self._ended if ended else self._gone).append(self._running.pop(job.index))

    def changed(self, change: Change, now: int) -> Iterable[Decision]:
        """See `harness.policy.Policy`.

        All reservations are made again, and running jobs keep their resources. On nodes, quotas have no
        effect.
        """
        capacity = self._capacity
        if isinstance(capacity, OnNodes) != (change.edit.kind == NODE):
            return ()
        running = [*self._running.values(), *self._ended]
        self._gone.clear()  # the new trees do not contain these jobs
        held = capacity.follow(change.cluster, {each.job.index: each.assignment for each in running})
        waiting = [each.job for tree in self._trees.values() for each in tree.waiting]
        self._trees = {}
        for each in running:
            each.assignment = held[each.job.index]
            self._tree(each.assignment.home).resume(each, now)
            self._heed(each, now)
            if isinstance(capacity, OnNodes) and capacity.is_drained(each.assignment):
                self._drained.append(each)
        jobs, self._aside = sorted([*waiting, *self._aside], key=lambda job: job.index), []
        for job in jobs:
            if capacity.request(job).never is None:
                self._arrive(job)
            else:
                self._aside.append(job)
        self._changed = True
        return ()

    def cycle(self, now: int) -> Iterator[Decision]:
        """Processes the events at this time, and decides after each event or after all of them."""
        for job, never in self._rejected:
            yield Reject(job, never.why)
        self._rejected.clear()
        if self._there:
            yield from self._take_over(now)
        if self._hit or self._drained or self._limited:
            yield from self._evict(now)
        ended, self._ended = sorted(self._ended, key=lambda running: running.job.index), []
        for each in self._gone:
            self._trees[each.assignment.home].end(each, now)
            self._changed = True
        self._gone.clear()
        arrived, self._arrived = self._arrived, []
        if self._ties == "together":
            homes = dict.fromkeys(self._changed_homes())
            homes |= dict.fromkeys([self._end(each, now) for each in ended])
            homes |= dict.fromkeys([self._arrive(job) for job in arrived])
            for home in homes:
                yield from self._decide(home, now)
            return
        if self._ties == "submissions-first":
            yield from self._submissions_first(arrived, ended, now)
        else:
            for each in ended:
                yield from self._decide(self._end(each, now), now)
        for home in self._changed_homes():
            yield from self._decide(home, now)
        if self._ties == "ends-first":
            for job in arrived:
                yield from self._decide(self._arrive(job), now)

    def _submissions_first(
        self, arrived: list[Job], ended: list[Running[Any]], now: int
    ) -> Iterator[Decision]:
        """Processes submissions and then completions, sorted by the starts of their jobs, like pyss.

        Jobs that end exactly when expected release their processors before the submissions. A submission
        leads to a decision only if the job might fit. For pyss, see dinesh121991/pyss 44a2423,
        `src/base/prototype.py`.
        """
        ended.sort(key=lambda running: (running.began, running.job.index))
        due = [each for each in ended if each.is_due(self._expected, now)]
        for each in due:
            self._trees[each.assignment.home].end(each, now)
        for job in arrived:
            home = self._arrive(job)
            if self._capacity.has_room(self._capacity.request(job)):
                yield from self._decide(home, now)
        for each in ended:
            self._learn(each, now)
            if each not in due:
                self._trees[each.assignment.home].end(each, now)
            yield from self._decide(each.assignment.home, now)

    def _evict(self, now: int) -> Iterator[Decision]:
        """Evicts jobs that lost a pod, have a pod on a drained node, or no longer tolerate a taint."""
        while self._hit:
            hit = self._hit.pop(0)
            if hit.pods:
                yield Preempt(hit.job, None, NODE_FAILED)
        for each in self._drained:
            if each.pods and not (each.going or each.ending):
                each.going = True
                self._away[each.job.index] = each.pods
                yield Preempt(each.job, None, EVICTED_BY_API)
        self._drained.clear()
        stays = [each for each in self._running.values() if each.stays is not None and not each.going]
        for each in stays:
            if each.stays is not None and each.stays <= now and not each.ending:
                each.going = True
                self._away[each.job.index] = each.pods
                yield Preempt(each.job, None, DELETED_BY_TAINT)
        later = min((each.stays for each in stays if each.stays is not None and not each.going), default=now)
        if later > now and not now < self._woken <= later:
            self._woken = later
            yield Wake(later)

    def _heed(self, running: Running[Any], now: int) -> None:
        """Sets the time until which a job can stay in its place. A timer that is already running is kept."""
        seconds = self._capacity.stays(running.assignment)
        if seconds is None:
            running.stays = None
            return
        self._limited = True
        if running.stays is None or seconds <= 0:
            running.stays = now + seconds * SECOND

    def _changed_homes(self) -> list[int]:
        changed, self._changed = self._changed, False
        return list(self._trees) if changed else []

    def within_quota(self, job: Job, pods: Sequence[int]) -> bool:
        """See `harness.policy.Policy`. On nodes, quotas have no effect, so the result is True."""
        capacity = self._capacity
        return isinstance(capacity, OnNodes) or bool(capacity.has_room(capacity.request(job)))

    def _take_over(self, now: int) -> Iterator[Decision]:
        """Takes over the jobs that are already running, in their places, before any other decision."""
        there, self._there = self._there, []
        for job, held in there:
            tree = self._tree(self._capacity.request(job).home)
            for decision, running in tree.take_over(job, held, max(1, self._expected.of(job)), now):
                self._running[job.index] = running
                self._heed(running, now)
                yield decision

    def _tree(self, home: int) -> Easy[Any, Any, Any] | Conservative[Any, Any, Any]:
        if home not in self._trees:
            self._trees[home] = self._algorithm(self._capacity, self._expected)
        return self._trees[home]

    def _end(self, running: Running[Any], now: int) -> int:
        home: int = running.assignment.home
        self._learn(running, now)
        self._trees[home].end(running, now)
        return home

    def _learn(self, running: Running[Any], now: int) -> None:
        self._expected.ended(running.job, now - running.began)

    def _arrive(self, job: Job) -> int:
        request = self._capacity.request(job)
        home: int = request.home
        expected = max(1, self._expected.of(job))
        self._tree(home).add(Waiting(self._key(job, expected), job, request, expected))
        return home

    def _key(self, job: Job, expected: int) -> Key:
        match self._order:
            case "sjf":
                return expected, job.index
            case "priority":
                return -job.priority, job.index
            case _:
                return 0, job.index

    def _decide(self, home: int, now: int) -> Iterator[Decision]:
        """Makes the decisions for one tree, and repeats this while a start could allow another one."""
        again = True
        while again:
            again = False
            for decision, started in self._trees[home].decide(now):
                if started is not None:
                    self._running[started.job.index] = started
                    self._heed(started, now)
                    again = self._capacity.others_matter
                yield decision

"""The policy `backfill`: what happens at one instant, event by event, for each quota tree or all nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import Cluster, Decision, Job, Never, Reject, Why
from harness_plugins.backfill.conservative import Conservative
from harness_plugins.backfill.easy import Easy
from harness_plugins.backfill.expected import Expected
from harness_plugins.backfill.jobs import Key, Running, Waiting
from harness_plugins.backfill.on_nodes import OnNodes
from harness_plugins.backfill.on_quotas import OnQuotas


def capacity_of(cluster: Cluster, options: Mapping[str, Any]) -> OnNodes | OnQuotas:
    """What jobs share: nodes where there are any, else quotas."""
    return OnNodes(cluster) if cluster.nodes else OnQuotas(cluster, options)


class Backfill:
    """Whole jobs, on nodes or within quotas. No tree of quotas delays jobs of another one.

    The engine delivers what happens at an instant before it asks once. A batch scheduler decides after each
    event, so events are kept and played here one by one, in the order that `ties` says: ends in the order in
    which their jobs had arrived, and submissions in the order of arrival.
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

    def submit(self, job: Job, pods: range, now: int) -> None:
        """A job arrived."""
        never = self._capacity.request(job).never
        if never is None:
            held = self._capacity.held(job)
            if held is None:
                self._arrived.append(job)
            else:
                self._there.append((job, held))
        else:
            self._rejected.append((job, never))

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """A job ended, or some of its pods did; the others end at this very instant."""
        running = self._running[job.index]
        running.ending = True
        running.pods -= len(pods)
        if not running.pods:
            self._ended.append(self._running.pop(job.index))

    def cycle(self, now: int) -> Iterator[Decision]:
        """Play the events of the instant, and decide after each, or after all of them."""
        for job, never in self._rejected:
            yield Reject(job, never.why)
        self._rejected.clear()
        if self._there:
            yield from self._take_over(now)
        ended, self._ended = sorted(self._ended, key=_arrival), []
        arrived, self._arrived = self._arrived, []
        if self._ties == "together":
            homes = dict.fromkeys([self._end(each, now) for each in ended])
            homes |= dict.fromkeys([self._arrive(job) for job in arrived])
            for home in homes:
                yield from self._decide(home, now)
            return
        if self._ties == "submissions-first":
            for job in arrived:
                yield from self._decide(self._arrive(job), now)
        for each in ended:
            yield from self._decide(self._end(each, now), now)
        if self._ties == "ends-first":
            for job in arrived:
                yield from self._decide(self._arrive(job), now)

    def within_quota(self, job: Job, pods: Sequence[int]) -> bool:
        """See `harness.policy.Policy`; nodes have no quotas."""
        capacity = self._capacity
        return isinstance(capacity, OnNodes) or bool(capacity.has_room(capacity.request(job)))

    def _take_over(self, now: int) -> Iterator[Decision]:
        """Leave what runs already where it is, before anything is decided."""
        there, self._there = self._there, []
        for job, held in there:
            tree = self._tree(self._capacity.request(job).home)
            for decision, running in tree.take_over(job, held, max(1, self._expected.of(job)), now):
                self._running[job.index] = running
                yield decision

    def _tree(self, home: int) -> Easy[Any, Any, Any] | Conservative[Any, Any, Any]:
        """The jobs of one quota tree, or of all nodes."""
        if home not in self._trees:
            self._trees[home] = self._algorithm(self._capacity, self._expected)
        return self._trees[home]

    def _end(self, running: Running[Any], now: int) -> int:
        """A job ends; answers the tree that it ran in."""
        home: int = running.assignment.home
        self._expected.ended(running.job, now - running.began)
        self._trees[home].end(running, now)
        return home

    def _arrive(self, job: Job) -> int:
        """A job waits; answers the tree that it waits in."""
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
        """Decide; and again while jobs start that others may have waited for."""
        again = True
        while again:
            again = False
            for decision, started in self._trees[home].decide(now):
                if started is not None:
                    self._running[started.job.index] = started
                    again = self._capacity.others_matter
                yield decision


def _arrival(running: Running[Any]) -> int:
    return running.job.index

"""The pending workloads of a ClusterQueue: who is next, who is parked as inadmissible, and what wakes them.

Workloads that the scheduler cannot tell apart are of one kin. A kin is parked and woken as a whole, so
neither costs more the longer the queue is. A head stays in its queue while it is tried, and leaves it when it
is admitted.

Where a queue orders its workloads by the usage of their LocalQueues, those of each LocalQueue stand in a line
of their own; else all are in one line. Usage decides between the heads of lines, and can change at any time.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from typing import TYPE_CHECKING, final

from harness_plugins.kueue.asks import Asks
from harness_plugins.kueue.cache import Queue
from harness_plugins.kueue.flavors import PodSetOffer
from harness_plugins.kueue.ledger import Account
from harness_plugins.kueue.workload import Workload

if TYPE_CHECKING:
    from harness_plugins.kueue.hopeless import Hopeless

_Entry = tuple[int, int, str, int, Workload]
"""Negated priority, queue order time, UID, ticket; the ticket ends every comparison."""


@final
class Kin:
    """Workloads of a queue with one priority that ask for the same, and of which as many pods are left.

    Attributes:
        lines: those that are pending, by account, each a heap; an entry whose workload has another ticket is
            stale.
        parked: whether all of them wait for quota to become free.
        hopeless: what was in vain for one of them, and why.
    """

    __slots__ = ("hopeless", "lines", "parked")

    def __init__(self) -> None:
        self.lines: dict[Account | None, list[_Entry]] = {}
        self.parked = False
        self.hopeless: Hopeless | None = None

    def first(self, account: Account | None) -> _Entry | None:
        """The entry of the one that comes first in a line."""
        entries = self.lines.get(account)
        while entries:
            entry = entries[0]
            if entry[4].ticket == entry[3]:
                return entry
            heappop(entries)
        return None


@final
class _Firsts:
    """The first of every kin in one line, parked or not, in their order.

    What comes before `at` is parked, so that neither to park a kin nor to wake all moves any of them.
    """

    __slots__ = ("at", "entries")

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.at = 0

    def enter(self, entry: _Entry) -> None:
        """One has become the first of its kin."""
        at = bisect_left(self.entries, entry)
        self.entries.insert(at, entry)
        if at < self.at:
            self.at = self.at + 1 if entry[4].kin.parked else at

    def leave(self, entry: _Entry) -> None:
        """One is not the first of its kin any more."""
        at = bisect_left(self.entries, entry)
        del self.entries[at]
        if at < self.at:
            self.at -= 1

    def first(self) -> Workload | None:
        """The one that comes first among those that are not parked."""
        entries, at = self.entries, self.at
        while at < len(entries):
            workload = entries[at][4]
            if not workload.kin.parked:
                self.at = at
                return workload
            at += 1
        self.at = at
        return None


@final
class Pending:
    """The pending workloads of one ClusterQueue.

    Attributes:
        queue: the ClusterQueue.
        strict: StrictFIFO: the first one blocks the others until it is admitted.
        preemptor: the workload that last issued preemptions and was not admitted yet.
        number: its place among the queues.
        offers: what the queue can offer, by the number of what is asked for.
        asleep: the queues of the tree in which something is parked.
    """

    __slots__ = (
        "_aside",
        "_by_usage",
        "_firsts",
        "_kins",
        "_line",
        "_misplaced",
        "_parked",
        "_tickets",
        "asleep",
        "number",
        "offers",
        "preemptor",
        "queue",
        "strict",
    )

    def __init__(self, queue: Queue, number: int) -> None:
        self.queue = queue
        self.number = number
        self.strict = queue.spec.queueing_strategy == "StrictFIFO"
        self.preemptor: Workload | None = None
        self.offers: dict[int, tuple[PodSetOffer, ...]] = {}
        self.asleep: dict[Pending, None] = {}
        self._by_usage = queue.spec.by_usage
        self._kins: dict[tuple[int, int, tuple[int, ...]], Kin] = {}
        self._line = _Firsts()
        self._firsts: dict[Account | None, _Firsts] = {None: self._line}
        self._parked: list[Kin] = []
        self._aside: dict[Workload, None] = {}
        self._misplaced: list[Workload] = []
        self._tickets = 0

    def kin_of(self, priority: int, asks: Asks, counts: tuple[int, ...]) -> Kin:
        """The kin of workloads with a priority that ask for the same, for so many pods of each pod set."""
        key = (priority, asks.number, counts)
        kin = self._kins.get(key)
        if kin is None:
            kin = self._kins[key] = Kin()
        return kin

    def add(self, workload: Workload) -> None:
        """A workload waits: it arrived, or is back. Where its kin is parked, it is too."""
        self._tickets += 1
        workload.ticket = self._tickets
        entry = (-workload.priority, workload.timestamp, workload.uid, self._tickets, workload)
        kin, account = workload.kin, workload.account
        former = kin.first(account)
        heappush(kin.lines.setdefault(account, []), entry)
        if former is not None and former < entry:
            return
        firsts = self._firsts.setdefault(account, _Firsts())
        if former is not None:
            firsts.leave(former)
        firsts.enter(entry)

    def remove(self, workload: Workload) -> None:
        """A workload waits here no longer: it was admitted, or is put aside."""
        kin, account = workload.kin, workload.account
        former = kin.first(account)
        workload.ticket = 0
        if former is None or former[4] is not workload:
            return  # it stood further back in its line
        firsts = self._firsts[account]
        firsts.leave(former)
        following = kin.first(account)
        if following is not None:
            firsts.enter(following)

    def first(self) -> Workload | None:
        """The one that comes first among those that are not parked; it stays where it is."""
        if self._by_usage:
            return self._first_by_usage()
        return self._line.first() if self.preemptor is None else self._first_of(None)

    def next_account(self, account: Account) -> Account | None:
        """Of the other LocalQueues that have something to try, the one with the lowest usage."""
        others = [
            each
            for each in self._firsts
            if each is not None and each is not account and self._first_of(each) is not None
        ]
        return min(others, key=_by_usage, default=None)

    def _first_by_usage(self) -> Workload | None:
        """Lower usage of the LocalQueue, then the preemptor, then the order of the queue."""
        best: tuple[tuple[float, bool, int, int, str, int], Workload] | None = None
        for account in self._firsts:
            first = self._first_of(account)
            if first is not None:
                usage = 0.0 if account is None else account.usage
                order = (-first.priority, first.timestamp, first.uid, first.ticket)
                rank = (usage, first is not self.preemptor or self.strict, *order)
                if best is None or rank < best[0]:
                    best = rank, first
        return best[1] if best is not None else None

    def _first_of(self, account: Account | None) -> Workload | None:
        """The first of a line: the preemptor, unless the queue is strict, else by the order of the queue."""
        preemptor = self.preemptor
        if (
            preemptor is not None
            and not self.strict
            and preemptor.ticket
            and not preemptor.kin.parked
            and preemptor.account is account
        ):
            return preemptor
        return self._firsts[account].first()

    def park(self, workload: Workload) -> None:
        """Put a head aside, alone, until something wakes the queue."""
        self.remove(workload)
        self._aside[workload] = None
        self.asleep[self] = None

    def park_kin(self, kin: Kin) -> None:
        """Put everything aside that is of one kin, until something wakes the queue."""
        kin.parked = True
        self._parked.append(kin)
        self.asleep[self] = None

    def unpark(self, kins: int) -> None:
        """Take back that the last so many kins were parked."""
        if kins:
            for _ in range(kins):
                self._parked.pop().parked = False
            self._start_over()

    def wake(self) -> None:
        """Let everything that is parked try again."""
        for kin in self._parked:
            kin.parked = False
        self._parked.clear()
        self._start_over()
        for workload in self._aside:
            self.add(workload)
        self._aside.clear()

    def park_for_good(self, workload: Workload) -> None:
        """Put a head aside whose namespace the queue does not take; nothing wakes it."""
        self.remove(workload)
        self._misplaced.append(workload)

    def active(self) -> list[Workload]:
        """The workloads that will be head in time, in no particular order."""
        return [workload for kin in self._kins.values() if not kin.parked for workload in _valid(kin)]

    def inadmissible(self) -> list[Workload]:
        """The workloads that are parked, in no particular order."""
        parked = [workload for kin in self._kins.values() if kin.parked for workload in _valid(kin)]
        return [*parked, *self._aside, *self._misplaced]

    def _start_over(self) -> None:
        for firsts in self._firsts.values():
            firsts.at = 0


def _by_usage(account: Account) -> tuple[float, str]:
    return account.usage, account.name


def _valid(kin: Kin) -> list[Workload]:
    return [entry[4] for line in kin.lines.values() for entry in line if entry[4].ticket == entry[3]]

"""Where instants come from: every source says when something of it is due, and delivers it.

The engine looks at all of them for the next instant, and has those deliver that are due at it, in order.
`due` is a number that each source keeps right, not a method: to look at six of them costs less than a call.
One more source is one more object with these two names, in `Lifecycle.sources` or in those of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush, heapreplace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, final

from harness.cluster.changes.edits import Change
from harness.cluster.model import Cluster
from harness.policy import Arrival, Decision

FAR = 2**63 - 1
"""Later than anything that is ever due."""


class Source(Protocol):
    """Something that makes instants happen."""

    @property
    def due(self) -> int:
        """When it has something to deliver next; `FAR` while it has nothing."""

    def deliver(self, now: int) -> None:
        """Deliver all that is due at this instant; called when `due` is now."""


T = TypeVar("T")

Ticket: TypeAlias = list[Any]
"""An entry of an `Agenda`, for whoever may call it off."""


@final
class Agenda(Generic[T]):
    """Things that are due at times; those of one instant are delivered by name, as plain text.

    Args:
        tell: hears of each thing when it is due.
    """

    def __init__(self, tell: Callable[[T], None]) -> None:
        self.due = FAR
        self._tell = tell
        self._entries: list[Ticket] = []  # time, name, serial, thing
        self._serial = 0  # decides ties of time and name before things are compared

    def add(self, at: int, name: str, thing: T) -> Ticket:
        """Have something delivered at a time."""
        self._serial += 1
        ticket = [at, name, self._serial, thing]
        heappush(self._entries, ticket)
        if at < self.due:
            self.due = at
        return ticket

    def call_off(self, ticket: Ticket) -> None:
        """It is not to be delivered, and makes no instant happen; it stays in the heap until it is first."""
        ticket[3] = None
        if ticket[0] == self.due:
            self._settle()

    def deliver(self, now: int) -> None:
        """See `Source`."""
        entries, tell = self._entries, self._tell
        while entries and entries[0][0] == now:
            thing = heappop(entries)[3]
            if thing is not None:
                tell(thing)
        if entries and entries[0][3] is not None:  # as after nearly all of them
            self.due = entries[0][0]
        else:
            self._settle()

    def _settle(self) -> None:
        entries = self._entries
        while entries and entries[0][3] is None:
            heappop(entries)
        self.due = entries[0][0] if entries else FAR


@final
class Arrivals:
    """The jobs of a trace: a cursor, not a heap of future events.

    Args:
        chunks: jobs in order of arrival; a chunk is taken when the one before it is used up.
        arrive: hears of each job, with what `Arrival` says of it.

    Attributes:
        arrived: how many jobs have arrived.
    """

    def __init__(self, chunks: Iterable[list[Arrival]], arrive: Callable[..., None]) -> None:
        self.arrived = 0
        self._arrive = arrive
        self._chunks: Iterator[list[Arrival]] = iter(chunks)
        self._chunk: list[Arrival] = []
        self._cursor = 0
        self.due = self._next_chunk()

    def deliver(self, now: int) -> None:
        """All jobs that are submitted now, by their place in the trace."""
        chunk, at = self._chunk, self._cursor
        while self.due == now:
            arrival = chunk[at]
            if len(arrival) == 3:  # as nearly all have: to spread them out costs twice the call
                self._arrive(arrival[0], arrival[1], arrival[2])
            else:
                self._arrive(*arrival)
            self.arrived += 1
            at += 1
            if at < len(chunk):
                self.due = chunk[at][0].submit
            else:
                self.due = self._next_chunk()
                chunk, at = self._chunk, 0
        self._cursor = at

    def _next_chunk(self) -> int:
        """Take the next chunk; answers when its first job arrives."""
        self._chunk = next(self._chunks, [])
        return self._chunk[0][0].submit if self._chunk else FAR


@final
class ChangesAhead:
    """What changes of a cluster.

    Args:
        cluster: what there is before, and what changes of it.
        tell: hears of each change, with the cluster from then on.
        over: whether nobody is alive or to arrive, so that no change matters any more.
    """

    def __init__(self, cluster: Cluster, tell: Callable[[Change], None], over: Callable[[], bool]) -> None:
        self._left = list(reversed(cluster.changes))
        self._cluster = cluster
        self._tell = tell
        self._over = over
        self.due = self._left[-1].at if self._left else FAR

    def deliver(self, now: int) -> None:
        """Tell of all that changes now, one change with all that follows from it after the other."""
        for edit in self._left.pop().edits:
            self._cluster = edit.on(self._cluster)
            self._tell(Change(edit, self._cluster))
        self.due = self._left[-1].at if self._left and not self._over() else FAR


class PolicyTimers(Protocol):
    """What a policy has as `timers`, see `harness.policy.Policy`."""

    @property
    def due(self) -> int:
        """When something of it ends next; `FAR` while nothing does."""

    def deliver(self, now: int) -> Iterable[Decision]:
        """Decisions about all that ends now."""


@final
class ObservedTimers:
    """The timers of a policy, for whoever stands between it and the engine.

    Args:
        timers: the policy's.
        pass_on: passes on what the policy decides at a time.
    """

    def __init__(
        self, timers: PolicyTimers, pass_on: Callable[[int, Iterable[Decision]], Iterable[Decision]]
    ) -> None:
        self._timers = timers
        self._pass_on = pass_on

    @property
    def due(self) -> int:
        """See `PolicyTimers`."""
        return self._timers.due

    def deliver(self, now: int) -> Iterable[Decision]:
        """See `PolicyTimers`."""
        return self._pass_on(now, self._timers.deliver(now))


@final
class Alarms:
    """The timers of a policy whose ends come before changes and arrivals of their instant.

    Args:
        timers: the policy's.
        decide: applies decisions.
    """

    def __init__(self, timers: PolicyTimers, decide: Callable[[Iterable[Decision]], None]) -> None:
        self._timers = timers
        self._decide = decide

    @property
    def due(self) -> int:
        """See `Source`."""
        return self._timers.due

    def deliver(self, now: int) -> None:
        """See `Source`."""
        self._decide(self._timers.deliver(now))


@final
class Wakes:
    """Times at which a policy wants to be asked; nothing is delivered but its cycle, which follows anyway.

    Args:
        tell: hears of each instant that happens for it.
    """

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.due = FAR
        self._tell = tell
        self._times: list[int] = []

    def add(self, at: int) -> None:
        """Make an instant happen."""
        heappush(self._times, at)
        self.due = self._times[0]

    def put_off(self, at: int) -> None:
        """The first instant happens at a later time instead, and nobody hears of it before."""
        heapreplace(self._times, at)
        self.due = self._times[0]

    def after(self, now: int) -> tuple[int, ...]:
        """How long it is until each of them, the next one first."""
        return tuple([each - now for each in sorted(self._times)])

    def skip(self, span: int) -> None:
        """All of them happen so much later."""
        self._times = [each + span for each in self._times]
        if self._times:
            self.due = self._times[0]

    @property
    def is_one(self) -> bool:
        """Whether there is one such time."""
        return len(self._times) == 1

    def deliver(self, now: int) -> None:
        """The instant happens."""
        times = self._times
        while times and times[0] == now:
            heappop(times)
        self.due = times[0] if times else FAR
        self._tell(now)

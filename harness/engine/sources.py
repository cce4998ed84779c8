"""Defines the sources of events, which know when events are due and deliver them.

To find the next simulated time, the engine looks at all sources. The sources that are due at this time then
deliver their events in order. `due` is an attribute that each source keeps up to date rather than a method,
because reading six attributes costs less than one call. To add a source, add a class with `due` and `deliver`
to `Source`, and put its object into `Lifecycle.sources` or into the engine's tuple. Sources deliver in the
order of these tuples.

A replay continues until `due` is `FAR` for every source, or until only idle wakes are due. A source that
repeats must therefore stop by itself, even if jobs still wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar, final

from harness.cluster.changes.edits import Change, Instant
from harness.cluster.model import Cluster
from harness.policy import Arrival, Decision

if TYPE_CHECKING:
    from harness.engine.starts import Starts

FAR: Final = 2**62 - 1
"""A time that is later than any event. The compiled build handles larger numbers much more slowly."""


T = TypeVar("T")

Ticket: TypeAlias = list[Any]
"""An entry of an `Agenda`, which can be cancelled."""


@final
class Agenda(Generic[T]):
    """Entries that are delivered at given times, and in the order of their names if the times are equal.

    Args:
        tell: receives each entry when it is due.
    """

    def __init__(self, tell: Callable[[T], None]) -> None:
        self.due = FAR
        self._tell = tell
        self._entries: list[Ticket] = []  # time, name, serial, thing
        self._serial = 0  # a tie-breaker for time and name, so that entries are never compared

    def add(self, at: int, name: str, thing: T) -> Ticket:
        """Add an entry to be delivered at a given time."""
        self._serial += 1
        ticket = [at, name, self._serial, thing]
        heappush(self._entries, ticket)
        if at < self.due:
            self.due = at
        return ticket

    def call_off(self, ticket: Ticket) -> None:
        """Cancel an entry, which stays in the heap until it is the first one but is never delivered."""
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
        if not entries:
            self.due = FAR
        elif entries[0][3] is not None:  # as after nearly all deliveries
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
    """The jobs of a trace, read with a cursor instead of a heap of future events.

    Args:
        chunks: jobs in order of arrival. The next chunk is taken when the previous one is used up.
        arrive: receives each job, with the other values of its `Arrival`.
    """

    def __init__(self, chunks: Iterable[list[Arrival]], arrive: Callable[..., None]) -> None:
        self.arrived = 0
        self._arrive = arrive
        self._chunks: Iterator[list[Arrival]] = iter(chunks)
        self._chunk: list[Arrival] = []
        self._cursor = 0
        self.due = self._next_chunk()

    def deliver(self, now: int) -> None:
        """Deliver all jobs that are submitted now, in the order of the trace."""
        chunk, at = self._chunk, self._cursor
        while self.due == now:
            arrival = chunk[at]
            if len(arrival) == 3:  # nearly all have three; unpacking with `*` would take twice as long
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
        self._chunk = next(self._chunks, [])
        return self._chunk[0][0].submit if self._chunk else FAR


@final
class ChangesAhead:
    """The future changes of a cluster.

    Args:
        cluster: the cluster before its changes, which contains the list of changes.
        tell: receives each change with the changed cluster.
        over: returns True if no job is alive or will arrive, so that changes no longer matter.
    """

    def __init__(self, cluster: Cluster, tell: Callable[[Change], None], over: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._tell = tell
        self._over = over
        self.expect(cluster.changes)

    def expect(self, changes: Sequence[Instant]) -> None:
        """Replace the future changes."""
        self._left = list(reversed(changes))
        self.due: int = self._left[-1].at if self._left else FAR

    def deliver(self, now: int) -> None:
        """Deliver all changes that are due now. The consequences of each change precede the next change."""
        for edit in self._left.pop().edits:
            self._cluster = edit.on(self._cluster)
            self._tell(Change(edit, self._cluster))
        self.due = self._left[-1].at if self._left and not self._over() else FAR


class PolicyTimers(Protocol):
    """The `timers` of a policy; see `harness.policy.Policy`."""

    @property
    def due(self) -> int:
        """When the next timer expires, or `FAR` if there is no timer."""

    def deliver(self, now: int) -> Iterable[Decision]:
        """Yields decisions about all timers that expire now."""


@final
class ObservedTimers:
    """The timers of a policy, wrapped by an observer that sees all decisions before the engine gets them.

    Args:
        pass_on: receives the time and the policy's decisions, and returns the decisions for the engine.
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
    """The timers of a policy as a source of events.

    If a timer expires at the time of a change or an arrival, the timer comes first.
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
    """Times at which a policy wants to be called. The engine runs a cycle at each of these times.

    Args:
        look: receives a time at which a wake is due, and returns after how many such times it must be called
            again.
    """

    def __init__(self, look: Callable[[int], int]) -> None:
        self.due = FAR
        self._look = look
        self._left = 1  # the number of times until the next call of `look`
        self._times: list[int] = []

    def add(self, at: int) -> None:
        """Add a time."""
        heappush(self._times, at)
        self.due = self._times[0]

    def after(self, now: int) -> tuple[int, ...]:
        """Returns the durations from `now` until each wake, in ascending order."""
        return tuple([each - now for each in sorted(self._times)])

    def skip(self, span: int) -> None:
        """Delay all wakes by `span`."""
        self._times = [each + span for each in self._times]
        if self._times:
            self.due = self._times[0]

    def deliver(self, now: int) -> None:
        """Remove the wakes that are due now. The engine then calls the policy."""
        times = self._times
        while times and times[0] == now:
            heappop(times)
        self.due = times[0] if times else FAR
        self._left -= 1
        if not self._left:
            self._left = self._look(now)


Source: TypeAlias = "Agenda[Any] | Alarms | Arrivals | ChangesAhead | Starts | Wakes"
"""A source of events. Its `due` is the time of the next delivery, or `FAR` if there is none.

The engine calls `deliver` with this time, and the source then delivers all events that are due. The compiled
build reads `due` much faster if the classes are known than for a protocol.
"""

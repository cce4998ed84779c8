"""The event loop: a virtual clock that delivers events and applies the decisions of the policy.

At each simulated time, the engine performs these steps in order:

1. Work completes.
2. Pods become ready, if the policy listens for this event.
3. Evicted pods or jobs are gone, and each returns to the queue.
4. Jobs that were admitted earlier start.
5. The cluster changes. After each change, the policy's immediate decisions are applied.
6. Jobs arrive.
7. The policy runs its cycle.

Completions, ready pods and departures are sorted by name, and arrivals by their position in the trace. There
is one cycle at each time, and another cycle only if the first one has caused an event at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, Final, TypeAlias

from harness.base.errors import PolicyError, blamed_on
from harness.base.units import format_duration
from harness.base.values import Value, fixed
from harness.cluster.changes.edits import AT_ARRIVAL, Change, Instant
from harness.cluster.model import Cluster
from harness.engine.blame import blamed
from harness.engine.events import Recorder
from harness.engine.lifecycle import HalfBound, Lifecycle
from harness.engine.livelock import Livelock
from harness.engine.losses import Losses
from harness.engine.recurrence import LONG, Recurrence, Skip, Stand
from harness.engine.referee import Referee
from harness.engine.sources import FAR, Alarms, Arrivals, ChangesAhead, PolicyTimers, Source
from harness.policy import Arrival, Decision, Job, Policy, View

_WATCH_EVERY: Final = 256  # simulated times between two progress reports

Hear: TypeAlias = Callable[[Change, int], Iterable[Decision] | None]
"""See `Policy`."""


@fixed()
class Outcome(Value):
    """The result of a replay.

    Attributes:
        start: the first arrival, in microseconds since the origin, or `until` if that is earlier.
        end: the last completion, release, arrival or decision, or `until` if the replay ended there.
        cycles: how often the policy was called.
        half_bound: gangs that held resources at the end of the replay, although not all of their pods were
            bound.
        stopped: the livelock that ended the replay early, or None.
        asleep: jobs that were still waiting after the last event, although the resources for their whole
            request were free. They are in order of arrival.
    """

    start: int
    end: int
    cycles: int
    jobs: int
    half_bound: tuple[HalfBound, ...]
    stopped: Livelock | None
    asleep: tuple[str, ...] = ()


class Engine:
    """A single replay.

    Create the engine, create the policy with the engine's `view`, and then call `run` once.

    Args:
        arrivals: chunks of jobs in order of arrival. The next chunk is taken when the previous one is used
            up.
        cluster: the cluster to schedule on, with its changes.
        recorder: receives everything that happens.
        losses: the rules for the work and time that an eviction costs.
        until: the last simulated time, in microseconds since the origin, or None to simulate everything.
        enough: a function that is called after each simulated time. If it returns True, the replay ends.
    """

    def __init__(
        self,
        arrivals: Iterable[list[Arrival]],
        cluster: Cluster,
        recorder: Recorder,
        *,
        losses: Losses | None = None,
        until: int | None = None,
        enough: Callable[[], bool] | None = None,
    ) -> None:
        self._chunks = arrivals
        self._enough = enough
        self._recorder = recorder
        self._cluster = cluster
        edits = (edit for instant in cluster.changes for edit in instant.edits)
        added = (edit.name for edit in edits if edit.kind in ("ClusterQueue", "ElasticQuota"))
        self._quotas = frozenset((*cluster.cluster_queues, *cluster.elastic_quotas, *added))
        self._until = FAR if until is None else until
        self._lifecycle = Lifecycle(cluster, recorder, losses or Losses())

    @property
    def view(self) -> View:
        """The engine's record of capacity, for use by the policy."""
        return self._lifecycle.books

    def run(
        self, policy: Policy, *, name: str = "policy", watch: Callable[[int, int], None] | None = None
    ) -> Outcome:
        """Simulate the whole replay.

        Args:
            policy: the policy, which was made for this engine's cluster and view.
            name: the name of the policy in messages.
            watch: called regularly with the simulated time and the number of jobs that have arrived.

        Raises:
            DecisionError: the policy made an impossible decision.
            PolicyError: the policy itself raised an error, or can't be notified of changes.
        """
        self.begin(policy, name=name)
        self.play(watch)
        return self.finish()

    # --- in parts -----------------------------------------------------------------------------------------

    def finish(self) -> Outcome:
        """Complete the records at the end of the replay; see `run`."""
        lifecycle, sources = self._lifecycle, self._sources
        stopped, start = self._referee.stopped, self._start
        alive = any(source.due < FAR for source in sources)
        seen = self._enough is not None and self._enough()
        cut = self._until != FAR and alive and stopped is None and not seen
        end = self._until if cut else max(lifecycle.last, start)
        whole = not (alive or seen or stopped is not None)
        asleep = _asleep(lifecycle) if whole else ()
        return Outcome(
            min(start, end),
            end,
            lifecycle.cycles,
            self._arrivals.arrived,
            lifecycle.close(end),
            stopped,
            asleep,
        )

    def begin(self, policy: Policy, *, name: str = "policy") -> None:
        """Prepare for `play`. `run` calls `begin`, `play` and `finish` in turn."""
        lifecycle = self._lifecycle
        _check_methods(policy, name)
        self._policy, self._name = policy, name
        lifecycle.policy = policy
        tell_ready: Callable[[Job, range, int], None] | None = _further(policy, "ready", name)
        stand: Stand | None = _further(policy, "standing", name)
        skip: Skip | None = _further(policy, "skip", name)
        if callable(stand) is not callable(skip):
            raise PolicyError(
                f"policy {name} has only one of the methods 'standing' and 'skip'",
                hint="define both or neither: together, they let the engine skip idle wakes",
            )
        if tell_ready is not None:
            lifecycle.listen(tell_ready)
        arrivals = self._arrivals = Arrivals(self._chunks, lifecycle.arrive)
        self._start = 0 if arrivals.due == FAR else arrivals.due
        ends = self._until != FAR
        self._changes = () if not self._cluster.changes else (self._ahead(policy, name, arrivals),)
        timers: PolicyTimers | None = _further(policy, "timers", name)
        alarms = () if timers is None else (Alarms(timers, self._decide),)
        others = (*lifecycle.sources, *alarms, *self._changes, arrivals)
        referee = Referee(lifecycle, self._recorder, name, self._quotas, arrivals, others, ends=ends)
        self._referee = referee
        self.blamed = partial(blamed, name, lifecycle, referee)
        self._handlers = referee.handlers, referee.unknown
        self._sources: tuple[Source, ...] = (*others, referee.wakes)
        self._recurrence = None
        if stand is not None and skip is not None:
            self._recurrence = Recurrence(stand, skip, referee.idle_wakes, lifecycle)

    def play(self, watch: Callable[[int, int], None] | None = None) -> None:
        """Simulate until the end, or as far as currently possible. See `run` for arguments and errors."""
        with self.blamed():
            for now in self._play(self._policy, self._recurrence, self._referee, self._sources):
                if watch is not None:
                    watch(now, self._arrivals.arrived)

    def go_on(self, changes: Sequence[Instant], until: int) -> None:
        """Continue the simulation until a later time, and replace the future changes of the cluster.

        `changes` replaces all changes after the last simulated time. This has no effect if the engine was
        made for a cluster without changes.
        """
        self._until = until
        for ahead in self._changes:
            ahead.expect([each for each in changes if each.at > self._lifecycle.now])
        self.play()

    def submit(self, arrivals: list[Arrival]) -> None:
        """Let more jobs arrive at the last simulated time. No cycle follows before the next `play`."""
        with self.blamed():
            for arrival in arrivals:
                self._lifecycle.arrive(*arrival)
        self._arrivals.arrived += len(arrivals)

    def change(self, change: Change) -> None:
        """Change the cluster at the last simulated time.

        Raises:
            PolicyError: the policy can't be notified of changes.
        """
        hear: Hear | None = _further(self._policy, "changed", self._name)
        instant = Instant(self._lifecycle.now, (change.edit,))
        if hear is None and to_be_heard((instant,)):
            raise deaf(self._name, [instant])
        with self.blamed():
            self._tell(hear, change)

    def wake(self, at: int) -> None:
        """Schedule a cycle of the policy at a given time, which may be the last simulated time."""
        self._referee.wakes.add(at)

    def _decide(self, decisions: Iterable[Decision]) -> None:
        handlers, unknown = self._handlers
        for decision in decisions:
            handlers.get(type(decision), unknown)(decision)

    def _ahead(self, policy: Policy, name: str, arrivals: Arrivals) -> ChangesAhead:
        """Returns the source of cluster changes, which applies the policy's decisions after each change."""
        lifecycle = self._lifecycle
        hear: Hear | None = _further(policy, "changed", name)
        if hear is None and to_be_heard(self._cluster.changes):
            raise deaf(name, self._cluster.changes)

        def over() -> bool:
            return arrivals.due == FAR and not lifecycle.lives

        return ChangesAhead(self._cluster, partial(self._tell, hear), over)

    def _tell(self, hear: Hear | None, change: Change) -> None:
        if hear is None or change.edit.kind in AT_ARRIVAL:
            return
        lifecycle = self._lifecycle
        lifecycle.change(change)
        self._decide(hear(change, lifecycle.now) or ())
        if change.edit.kind == "Node" and change.edit.after is None:
            lifecycle.lose_node(change.edit.name)

    def _play(
        self, policy: Policy, recurrence: Recurrence | None, referee: Referee, sources: tuple[Source, ...]
    ) -> Iterator[int]:
        """Loop over the simulated times with their events and decisions, and yield the time regularly."""
        lifecycle, until, enough = self._lifecycle, self._until, self._enough
        before, cycles = lifecycle.now, lifecycle.cycles
        told = cycles + _WATCH_EVERY
        idle, handler, unknown = referee.idle_wakes, dict(referee.handlers).get, referee.unknown
        while True:
            now = FAR
            for source in sources:
                due = source.due
                if due < now:
                    now = due
            if now == FAR:
                return
            due = idle.due
            if now - due > LONG and recurrence is not None:
                ahead = min(now, until)
                if ahead - due > LONG and recurrence.leap(ahead):
                    before, cycles, due = lifecycle.now, lifecycle.cycles, idle.due
            if due < now:  # only the policy's cycle is due
                if due > until:
                    return
                before = lifecycle.now = due
                referee.idle = 0
                idle.deliver(due)
                now = due
            else:
                if now > until:
                    return
                if now != before:
                    before = lifecycle.now = now
                    referee.idle = 0
                for source in sources:
                    if source.due == now:
                        source.deliver(now)
                if due == now:
                    idle.deliver(now)
            lifecycle.cycles = cycles = cycles + 1
            for decision in policy.cycle(now):
                handler(type(decision), unknown)(decision)
            if cycles >= told:
                told = cycles + _WATCH_EVERY
                yield now
            if referee.stopped is not None or (enough is not None and enough()):
                return


def to_be_heard(changes: Iterable[Instant]) -> bool:
    """Returns True if the policy must be notified of at least one of the changes.

    It need not be notified of objects that matter only at the moment when a job arrives.
    """
    return any(edit.kind not in AT_ARRIVAL for instant in changes for edit in instant.edits)


def deaf(name: str, changes: Sequence[Instant]) -> PolicyError:
    """Returns the error for a policy that has no method `changed` although the cluster changes."""
    first = next(instant for instant in changes if to_be_heard((instant,)))
    what = ", ".join(str(edit) for edit in first.edits if edit.kind not in AT_ARRIVAL)
    return PolicyError(
        f"policy {name} is not notified of changes, but {what} changes {format_duration(first.at)} after the "
        "origin",
        hint="give the policy a method changed(change, now); --ignore-events ignores all changes",
    )


def _asleep(lifecycle: Lifecycle) -> tuple[str, ...]:
    waiting = (life.job for life in lifecycle.lives.values() if not (life.admitted or life.holding))
    return tuple(job.id for job in waiting if lifecycle.books.fits(job))


def _check_methods(policy: Policy, name: str) -> None:
    """Check that a policy has the methods that the engine calls, and that only `cycle` is a generator.

    The engine ignores what `submit` and `release` return. A generator or coroutine would therefore never run.

    Raises:
        PolicyError: a method is missing or asynchronous, or is a generator although it can't decide anything.
    """
    methods = {method: _further(policy, method, name) for method in ("submit", "release", "cycle")}
    if missing := [method for method, found in methods.items() if not callable(found)]:
        raise PolicyError(
            f"policy {name} has no method {' and no method '.join(missing)}",
            hint="a policy has submit(job, pods, now), release(job, pods, now, why) and cycle(now)",
        )
    for method, found in methods.items():
        if iscoroutinefunction(found) or isasyncgenfunction(found):
            raise PolicyError(
                f"policy {name} has an asynchronous method {method!r}, which would never run",
                hint="the engine calls a policy's methods directly, so write 'def' instead of 'async def'",
            )
        if method != "cycle" and isgeneratorfunction(found):
            raise PolicyError(
                f"policy {name} yields in its method {method!r}, but only 'cycle' can decide",
                hint=f"keep the job in {method!r}, and yield the decision in 'cycle'",
            )


def _further(policy: Policy, method: str, name: str) -> Any:
    """Returns a method of a policy (see `Policy`), or None if the policy doesn't have it."""
    with blamed_on(f"policy {name} failed when the engine looked up its method {method!r}", kind=PolicyError):
        return getattr(policy, method, None)

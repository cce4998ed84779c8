"""Models the scheduling queue, with pods to try now, pods that back off, and pods that wait for an event.

Events are ordered by stamps, which are consecutive numbers. Pods that have failed often are kept in blocks,
which the queue handles like single pods (see `_blocks.py`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias, final

from harness.base.units import MINUTE, SECOND
from harness.models.kube._blocks import Block, Waiting, joined
from harness.models.kube._equal_pods import BY_BINDINGS
from harness.models.kube._queued import Queued
from harness.models.kube.hints import Hints
from harness.models.kube.placement.status import NODE_RESOURCES_FIT
from harness.models.kube.pod import Peers, PodInfo, Template

_LONGEST_BACKOFF: Final = 10
_BACKOFFS: Final = (0, 1, 2, 4, 8)
"""The backoff in seconds for each number of failures or errors. Higher numbers have the longest backoff."""

NEVER: Final = 2**62 - 1  # the compiled build compares larger numbers more slowly

_FLUSH_EVERY: Final = 30 * SECOND
_LONGEST_IN_POOL: Final = 5 * MINUTE
"""The time after which the timer moves an entry again, if the entry is the only one and always fails."""


_Entry: TypeAlias = tuple[int, int, int, Waiting]
"""The negated end of the backoff, the priority, the negated stamp, and the entry itself."""


@final
class SchedulingQueue:
    """The scheduling queue.

    Backoff only orders retries, so if no other pod can be tried, the next pod in backoff is tried.

    Attributes:
        now: the current time.
        attempts: how many pods were tried.
        failed_alike: the pods that failed without an attempt because an equal pod had failed, if the
            rejecting plugins are new for them. The scheduler removes the pods from this list.
        error_due: the time of the next retry of a pod whose last attempt ended with an error.
    """

    def __init__(self, hints: Hints) -> None:
        self.now = -1
        self.attempts = 0
        self.failed_alike: list[PodInfo] = []
        self._hints = hints
        self._began = 0  # the time from which the timers count
        self._last_stamp = 0
        # Pods in backoff are sorted by its end, then priority and age. Active pods count as if their backoffs
        # were equal. The next entry of each list is last.
        self._active: list[_Entry] = []
        self._backoff: list[_Entry] = []
        # The unschedulable pool is sorted by stamps. The first part has pods that NodeResourcesFit rejected,
        # so any deletion may help them. The second part has all other pods.
        self._short: dict[Waiting, None] = {}
        self._others: dict[PodInfo, None] = {}
        self._by_bindings: dict[PodInfo, None] = {}  # pods in both pools that a binding may help
        self._passed: Block | None = None  # a block with pods that may have failed since it was moved
        self._late: Waiting | None = None  # the entry that the timer moved, while it is first in `_short`
        self._erring: dict[PodInfo, None] = {}  # pods whose attempt ended with an error
        self.error_due = NEVER
        self._parted_at = -1  # the last time at which a node moved only some pods
        self._some_loose = False  # whether a pod has failed whose priority may change, see `Peers.loose`

    def advance(self, now: int) -> None:
        """Advances to `now`. If time has passed, all timers that expire now are handled first.

        The periodic timer starts at the first time that the queue sees, rounded down to a whole second.
        """
        if now != self.now:
            if self._passed is not None or self._late is not None:
                self._settle()
            if self.now < 0:
                self._began = now // SECOND * SECOND
            self.now = now
            if now >= self.error_due:
                self._end_error_backoffs()
            if (now - self._began) % _FLUSH_EVERY == 0:
                self._flush(now)

    def standing(self) -> tuple[object, ...]:
        """Returns the state of the waiting pods after a cycle. Times are relative to now. See `Standing`.

        If attempts fail in the same way as before, they change only the stamps of pods. The new stamps depend
        only on this state.
        """
        self._settle()
        pools = (self._short, self._others, self._by_bindings)
        return (
            (self.now - self._began) % _FLUSH_EVERY,
            tuple([tuple([self._place_of(each) for each in pool]) for pool in pools]),
            len(self._active) + len(self._backoff),  # 0 if all entries are in the pool
        )

    def _place_of(self, waiting: Waiting) -> tuple[object, ...]:
        """Returns everything that determines when and how an entry is tried again."""
        backoff = waiting.backoff - self.now // SECOND
        waited = self._last_stamp - waiting.stamp, self.now - waiting.since
        if isinstance(waiting, Block):
            waiting.settle()
            groups = [(peers, len(group.pods), group.rejected_by) for peers, group in waiting.groups.items()]
            return waiting, *waited, backoff, *groups
        failures = min(waiting.failures, len(_BACKOFFS))  # more failures have no effect
        return waiting, *waited, backoff, failures, waiting.rejected_by, waiting.nominated, waiting.told

    def skip(self, span: int, attempts: int) -> None:
        """Advances the time by `span`, in which `attempts` attempts failed. The waiting pods don't change."""
        self.now += span
        self.attempts += attempts
        for waiting in (*self._short, *self._others):
            waiting.since += span
            waiting.backoff += span // SECOND

    def stamp(self) -> int:
        """Returns a stamp that is later than all earlier stamps."""
        self._last_stamp += 1
        return self._last_stamp

    # --- pods that are tried ------------------------------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """Adds a new pod."""
        self._last_stamp = stamp = pod.stamp = self._last_stamp + 1
        insort(self._active, (0, pod.priority, -stamp, pod))

    def pop(self, version: int) -> PodInfo | None:
        """Returns the next pod to try, or None if all pods wait for events.

        A pod fails without an attempt if an equal pod has failed and nothing has changed since then.

        Args:
            version: the version of the cache. See `Peers.failed_at`.
        """
        if self._late is not None and self._late_fails(self._late, version):
            return None
        while pending := self._active or self._backoff:
            waiting = pending[-1][3]
            if self._passed is not None and waiting is not self._passed:
                self._settle()
            if isinstance(waiting, Block):
                failing = waiting.fails(version, self.failed_alike) if self._passed is None else 0
                if failing:  # like most entries that are retried
                    pending.pop()
                    self.attempts += failing
                    self._stamp(waiting, _LONGEST_BACKOFF, failing)
                    self._short[waiting] = None
                    continue
                self._passed = waiting
                pod = waiting.take(version, self.failed_alike)
                if pod is None:
                    pending.pop()
                    self._settle()
                    continue
            else:
                pending.pop()
                pod = waiting
            self.attempts += 1
            peers = pod.peers
            if (pod.nominated or pod.gang is not None) and pod.expects_room:  # nearly always neither
                return pod
            if peers.failed_at != version and (
                not pod.failures or pod is not waiting or not _fails_again(pod, peers, version)
            ):
                return pod
            if pod.note_rejection(peers.rejected_by):
                self.failed_alike.append(pod)
            if pod is waiting:  # it is in no block
                self._wait(pod, peers.rejected_by)
            else:
                self.add_unschedulable(pod, peers.rejected_by)
        return None

    def _late_fails(self, late: Waiting, version: int) -> bool:
        """Returns True if the entry that the timer moved fails again immediately, and nothing else is due.

        The entry then waits from now on, as if it had been moved and tried. This is the most common case,
        because the timer moves entries that no event has helped. In all other cases, the entry is moved.
        """
        if not self._active:
            short = self._short
            if isinstance(late, Block):
                failing = late.fails(version, self.failed_alike)
                if failing:
                    self._late = None
                    self.attempts += failing
                    self._stamp(late, _LONGEST_BACKOFF, failing)
                    if len(short) > 1:
                        del short[late]
                        short[late] = None
                    return True
            elif not late.expects_room and late.is_told and _fails_again(late, late.peers, version):
                self._late = None
                self.attempts += 1
                del short[late]
                self._wait(late, late.rejected_by)
                return True
        self._settle()
        return False

    def add_unschedulable(self, pod: PodInfo, rejected_by: frozenset[str]) -> None:
        """Moves a pod that has failed to the unschedulable pool, to wait for an event that may help it."""
        passed = self._passed
        if passed is not None and passed.taken is pod:
            pod.rejected_by = rejected_by
            if passed.put_back(pod):
                return
        self._settle()
        self._wait(pod, rejected_by)

    def _wait(self, pod: PodInfo, rejected_by: frozenset[str]) -> None:
        pod.rejected_by = rejected_by
        pod.failures += 1
        pod.errors = 0
        self._some_loose |= pod.peers.loose
        self._stamp(pod, _BACKOFFS[pod.failures] if pod.failures < len(_BACKOFFS) else _LONGEST_BACKOFF)
        if NODE_RESOURCES_FIT in rejected_by:
            self._short[pod] = None
        else:
            self._others[pod] = None
        if not BY_BINDINGS.isdisjoint(rejected_by):
            self._by_bindings[pod] = None

    def _stamp(self, waiting: Queued, backoff: int, pods: int = 1) -> None:
        """Stamps an entry that failed now and backs off for some seconds. A block uses one stamp per pod."""
        waiting.stamp = self._last_stamp + 1
        waiting.since = self.now
        self._last_stamp += pods
        waiting.backoff = self.now // SECOND + backoff

    def _settle(self) -> None:
        """Ends or interrupts the pass over a block, so that its failed pods return to the pool.

        If the timer has selected an entry, this entry is moved before anything else happens.
        """
        if self._late is not None:
            late, self._late = self._late, None
            self._move((late,))
        block = self._passed
        if block is None:
            return
        self._passed = None
        tried = block.tried
        failed = block.split()
        self.attempts += len(failed) - tried
        if failed.groups:
            self._stamp(failed, _LONGEST_BACKOFF, len(failed))
            self._short[failed] = None

    def discard(self, pod: PodInfo) -> None:
        """Removes a pending pod, which will not be scheduled."""
        self._settle()
        for pool in (self._short, self._others, self._by_bindings):
            pool.pop(pod, None)
        every = [*self._short, *self._pending()]
        for block in [each for each in every if isinstance(each, Block)]:
            if block.remove(pod) and not block:
                self._short.pop(block, None)
        if pod in self._erring:
            del self._erring[pod]
            self._set_error_due()
        self._active = [entry for entry in self._active if entry[3] is not pod]
        self._backoff = [entry for entry in self._backoff if entry[3] is not pod]

    def _pending(self) -> list[Waiting]:
        return [entry[3] for entry in chain(self._active, self._backoff)]

    def activate(self, pod: PodInfo) -> None:
        """Makes a pending pod ready to be tried when it is next in order, without backoff."""
        self.discard(pod)
        insort(self._active, (0, pod.priority, -pod.stamp, pod))

    # --- attempts without nodes ---------------------------------------------------------------------------

    def pop_any(self) -> PodInfo | None:
        """Returns the next pod to try in a cluster without nodes, or None.

        In such a cluster, every pod needs an attempt of its own. Therefore, this method replaces `pop`.
        """
        self._settle()
        while pending := self._active or self._backoff:
            _, _, stamp, waiting = pending.pop()
            if isinstance(waiting, PodInfo):
                self.attempts += 1
                return waiting
            for pod in waiting.pods(-stamp, 0):  # the others are tried at the same time
                insort(self._active, (0, pod.priority, -pod.stamp, pod))
        return None

    def add_erring(self, pod: PodInfo) -> None:
        """Adds a pod whose attempt ended with an error. No event makes it return before its backoff ends."""
        pod.rejected_by = frozenset()
        pod.errors += 1
        self._stamp(pod, _LONGEST_BACKOFF if pod.errors >= len(_BACKOFFS) else _BACKOFFS[pod.errors])
        self._erring[pod] = None
        self._set_error_due()

    def _set_error_due(self) -> None:
        soonest = min((pod.backoff for pod in self._erring), default=None)
        self.error_due = NEVER if soonest is None else (soonest + 1) * SECOND

    def _end_error_backoffs(self) -> None:
        second = self.now // SECOND
        for pod in [each for each in self._erring if each.backoff < second]:
            del self._erring[pod]
            insort(self._active, (0, pod.priority, -pod.stamp, pod))
        self._set_error_due()

    # --- events -------------------------------------------------------------------------------------------

    @property
    def tries_some(self) -> bool:
        """True if any pod can be tried now."""
        return bool(self._active or self._backoff) or self._late is not None

    def forget_refusals(self) -> None:
        """After a change of nodes, drops the lasting refusals of pending pods that may now be invalid."""
        self._settle()
        every: list[Waiting] = [*self._short, *self._others, *self._pending()]
        for waiting in every:
            for peers in waiting.groups if isinstance(waiting, Block) else (waiting.peers,):
                lasting = peers.lasting
                if lasting is not None and not lasting.outlives_nodes():
                    peers.lasting = None
            if isinstance(waiting, Block):
                waiting.wake()

    def part(self) -> None:
        """Replaces each block by its single pods, because different pods are about to become equal."""
        self._settle()
        alone = (pod for each in self._short for pod in _pods(each, each.stamp, each.backoff))
        self._short = dict.fromkeys(alone)
        self._active, self._backoff = _alone(self._active), _alone(self._backoff)

    def changed(self, helps: Callable[[Template, frozenset[str]], bool]) -> None:
        """Requeues the pods that a change of the cluster may help.

        Args:
            helps: a function that returns True if the change may help a pod. It receives the pod's template
                and the plugins that rejected the pod.
        """
        self._settle()
        if any(isinstance(each, Block) for each in self._short):
            self._short = {part: None for each in self._short for part in _parted(each, helps)}
        helped: list[Waiting] = []
        for waiting in self._short:
            if isinstance(waiting, Block):
                if any(helps(*kind) for kind in waiting.kinds()):
                    helped.append(waiting)
            elif helps(waiting.template, waiting.rejected_by):
                helped.append(waiting)
        if len(helped) < len(self._short):
            self._parted_at = self.now
        helped += [pod for pod in self._others if helps(pod.template, pod.rejected_by)]
        self._move(helped)

    def pod_deleted(self, gone: PodInfo) -> None:
        """Requeues the pods that the end of a bound pod may help."""
        if self._passed is not None or self._late is not None:
            self._settle()
        if not self._short and not self._others:
            return
        helped = list(self._short)
        self._short.clear()
        if self._others:
            hints = self._hints
            helped += [pod for pod in self._others if hints.after_deletion(pod, gone)]
        if helped:
            self._move(helped)

    def nomination_withdrawn(self, other: PodInfo) -> None:
        """Requeues the equally or less important pods that a withdrawn nomination may help."""
        self._settle()
        hints, most = self._hints, other.priority
        helped = [pod for pod in self._short if pod.priority <= most]
        helped += [pod for pod in self._others if pod.priority <= most and hints.after_deletion(pod, other)]
        self._move(helped)

    def pod_bound(self, bound: PodInfo) -> None:
        """Requeues the pods that a binding may help."""
        if self._by_bindings:
            self._settle()
            hints = self._hints
            self._move([pod for pod in self._by_bindings if hints.after_binding(pod, bound)])

    def next_flush(self) -> int | None:
        """Returns the time at which the periodic timer next requeues a pod, or None if no pod waits.

        Every 30 s, the timer requeues pods that have waited for an event for more than 5 minutes.
        """
        short, others = self._short, self._others
        if short:
            oldest = next(iter(short)).since
            if others:
                oldest = min(oldest, next(iter(others)).since)
        elif others:
            oldest = next(iter(others)).since
        else:
            return None
        late = oldest + _LONGEST_IN_POOL
        return late + _FLUSH_EVERY - (late - self._began) % _FLUSH_EVERY

    def _flush(self, now: int) -> None:
        late = now - _LONGEST_IN_POOL
        moved: list[Waiting] = []
        for waiting in self._short:
            if waiting.since >= late:
                break
            moved.append(waiting)
        for pod in self._others:
            if pod.since >= late:
                break
            moved.append(pod)
        if len(moved) == 1 and not (self._others or self._active or self._backoff):
            self._late = moved[0]  # tried alone, unless something else happens first
        elif moved:
            self._move(moved)

    def _move(self, moved: Sequence[Waiting]) -> None:
        """Moves pods out of the pool, so that they are tried now or after their backoff."""
        pools: tuple[dict[Any, None], ...] = (self._short, self._others, self._by_bindings)
        for pool in pools:
            if pool:
                for each in moved:
                    pool.pop(each, None)
        second, active, backoff = self.now // SECOND, self._active, self._backoff
        ready, not_ready = len(active), len(backoff)
        for each in moved:
            if each.backoff < second:
                active.append((0, each.priority, -each.stamp, each))
            else:
                backoff.append((-each.backoff, each.priority, -each.stamp, each))
        if 1 < len(active) > ready:
            active.sort()
            self._join(active)
        if 1 < len(backoff) > not_ready:
            backoff.sort()
            self._join(backoff)

    def _join(self, pending: list[_Entry]) -> None:
        """Joins neighbors that would be tried consecutively into one block."""
        kept: list[_Entry] = []
        loose = self._loose() if self._some_loose else ()
        for entry in pending:
            after = kept[-1] if kept else None
            if after is not None and entry[0] == after[0] and entry[1] == after[1]:
                some_stay = self._others or self._parted_at == self.now
                start, end = -entry[2], -after[2]
                alone = not (some_stay and self._between(start, end))
                alone = alone and not any(start < stamp < end for stamp in loose)
                block = joined(entry[3], after[3]) if alone else None
                if block is not None:
                    kept[-1] = (entry[0], entry[1], entry[2], block)
                    continue
            kept.append(entry)
        pending[:] = kept

    def _loose(self) -> list[int]:
        """Returns the stamps of pods that may get another priority, and then come between other pods."""
        every = [*self._short, *self._others, *self._erring, *self._pending()]
        return [each.stamp for each in every if isinstance(each, PodInfo) and each.peers.loose]

    def _between(self, start: int, end: int) -> bool:
        return any(start < each.stamp < end for pool in (self._others, self._short) for each in pool)


def _parted(waiting: Waiting, helps: Callable[[Template, frozenset[str]], bool]) -> Sequence[Waiting]:
    """Returns the entry, or the individual pods of a block if the event helps only some of them."""
    if isinstance(waiting, PodInfo) or len({helps(*kind) for kind in waiting.kinds()}) < 2:
        return (waiting,)
    return _pods(waiting, waiting.stamp, waiting.backoff)


def _alone(entries: list[_Entry]) -> list[_Entry]:
    return [
        (second, priority, -pod.stamp, pod)
        for second, priority, stamp, each in entries
        for pod in _pods(each, -stamp, each.backoff)[::-1]
    ]


def _pods(waiting: Waiting, stamp: int, backoff: int) -> list[PodInfo]:
    return [waiting] if isinstance(waiting, PodInfo) else waiting.pods(stamp, backoff)


def _fails_again(pod: PodInfo, peers: Peers, version: int) -> bool:
    """Returns True if a pod outside of blocks, and therefore each peer, fails now as in the last attempt."""
    if pod.rejected_by != peers.rejected_by:
        return False
    if peers.failed_at == version:
        return True
    # If a pod has lost its nomination, the record needs the figures of an attempt.
    return pod.is_told and peers.fail_again(pod, version)

"""Reports the calls to a policy and its decisions during a replay, cycle by cycle.

An `Observer` wraps a policy. It forwards every call and every decision unchanged, so it does not affect the
replay. A replay has an observer only if a user or a program requests one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.base.text import counted
from harness.base.units import exact_duration, format_amount, format_duration
from harness.engine.sources import ObservedTimers
from harness.policy import (
    Admit,
    Bind,
    Change,
    Decision,
    Job,
    Nominate,
    Note,
    Policy,
    Preempt,
    QueueShare,
    Refuse,
    Reject,
    Standing,
    Unnominate,
    Wake,
    Why,
)


class Said(NamedTuple):
    """A call to a policy, or a decision of the policy.

    Attributes:
        told: True for a call to the policy, False for a decision of the policy.
        what: the kind of the call or decision, in one word.
        text: a sentence that describes the call or decision.
        jobs: the ids of the jobs that the call or decision concerns.
    """

    told: bool
    what: str
    text: str
    jobs: tuple[str, ...]


@dataclass(slots=True)
class Cycle:
    """A cycle of the engine, with the calls and decisions since the previous cycle.

    Attributes:
        number: the number of the cycle, which is also its number in `decisions.parquet`.
        at: the time of the cycle, in microseconds: the policy's time plus the observer's `origin`.
        said: the calls and decisions, in order.
        over: whether the cycle is complete. It is incomplete if the replay ended before all decisions were
            made.
    """

    number: int
    at: int
    said: list[Said] = field(default_factory=list)
    over: bool = False

    def concerns(self, jobs: Collection[str]) -> bool:
        """Returns True if any call or decision of the cycle concerns one of these jobs."""
        return any(name in jobs for each in self.said for name in each.jobs)

    def text(self, jobs: Collection[str] = ()) -> str:
        """Describes the cycle in several lines.

        If `jobs` are given, calls and decisions that concern only other jobs are just counted.
        """
        shown: list[Said] = []
        besides: Counter[str] = Counter()
        for each in self.said:
            if not jobs or any(name in jobs for name in each.jobs):
                shown.append(each)
            else:
                besides[each.what] += 1
        lines = [f"cycle {self.number} at {_time(self.at)}"]
        side = ""
        for each in shown:
            now = "told" if each.told else "decided"
            for number, line in enumerate(each.text.split("\n")):
                lines.append(f"  {now if now != side and not number else '':<8} {line}")
            side = now
        if self.over and all(each.told for each in self.said):
            lines.append(f"  {'decided':<8} nothing")
        if besides:
            lines.append(f"  besides  {', '.join(f'{count:,} {what}' for what, count in besides.items())}")
        if not self.over:
            lines.append("  (the replay ended before this cycle did)")
        return "\n".join(lines)


def _time(at: int) -> str:
    short, exact = format_duration(at), exact_duration(at)
    return short if short == exact else f"{short} ({exact})"


class Observer:
    """A policy that delegates all decisions to another policy and reports every cycle.

    Args:
        policy: the policy that decides.
        report: a function that receives each cycle after the policy has decided. An exception from this
            function ends the replay.
        origin: the time in microseconds that corresponds to 0 on the policy's clock.
        leaps: whether the engine may skip cycles in which nothing happens, if the policy supports this. The
            observer only counts skipped cycles.
    """

    def __init__(
        self, policy: Policy, report: Callable[[Cycle], None], *, origin: int = 0, leaps: bool = False
    ) -> None:
        self._policy = policy
        self._report = report
        self._origin = origin
        self._arrived: set[int] = set()
        self._wakes: set[int] = set()
        self._idle_wakes: set[int] = set()
        self._cycles = 0
        self._said: list[Said] = []
        self._now = 0
        ready = getattr(policy, "ready", None)
        if ready is not None:  # an optional method, which the engine calls only if the policy has it
            self._tell_ready = ready
            self.ready = self._be_ready
        changed = getattr(policy, "changed", None)
        if changed is not None:
            self._tell_changed = changed
            self.changed = self._change
        timers = getattr(policy, "timers", None)
        if timers is not None:
            self.timers = ObservedTimers(timers, self._decided_at)
        stand, skip = getattr(policy, "standing", None), getattr(policy, "skip", None)
        if leaps and stand is not None and skip is not None:
            self._stand, self._have_skip = stand, skip
            self.standing, self.skip = self._standing, self._skip

    @property
    def unfinished(self) -> Cycle | None:
        """The calls and decisions since the last reported cycle, or None if there are none."""
        return Cycle(self._cycles + 1, self._origin + self._now, self._said) if self._said else None

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Records that pods arrive or wait again, and forwards the call to the policy."""
        first = job.index not in self._arrived
        self._arrived.add(job.index)
        about = f"{_pods(job, pods)} of queue {job.queue}, priority {job.priority}, {_amounts(job, pods)}"
        if first:
            self._hear(now, "arrivals", f"arrives: {about}", job)
        else:
            self._hear(now, "returns", f"waits again: {about}", job)
        self._policy.submit(job, pods, now)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Records that pods ended, or are gone after an eviction, and forwards the call to the policy."""
        ended = why is Why.ENDED
        text = f"{'ended' if ended else 'was evicted and is gone'}: {_pods(job, pods)}, {_amounts(job, pods)}"
        self._hear(now, "ends" if ended else "departures", text, job)
        self._policy.release(job, pods, now, why)

    def _be_ready(self, job: Job, pods: range, now: int) -> None:
        self._hear(now, "ready", f"is ready: {_pods(job, pods)}", job)
        self._tell_ready(job, pods, now)

    def _change(self, change: Change, now: int) -> Iterator[Decision]:
        self._now = now
        edit = change.edit
        how = "is gone" if edit.after is None else "is new" if edit.before is None else "changes"
        self._said.append(Said(True, "changes", f"{edit} {how}", ()))
        yield from self._decided_at(now, self._tell_changed(change, now) or ())

    def _decided_at(self, now: int, decisions: Iterable[Decision]) -> Iterator[Decision]:
        self._now = now
        for decision in decisions:
            self._said.append(_decided(decision, self._origin))
            yield decision

    def cycle(self, now: int) -> Iterator[Decision]:
        """Yields the policy's decisions unchanged, and reports the cycle."""
        self._now = now
        if now in self._wakes or now in self._idle_wakes:
            self._wakes.discard(now)
            self._idle_wakes.discard(now)
            self._said.append(Said(True, "wakes", "the policy asked to be woken at this time", ()))
        for decision in self._policy.cycle(now):
            self._said.append(_decided(decision, self._origin))
            if isinstance(decision, Wake):
                (self._idle_wakes if decision.idle else self._wakes).add(decision.at)
            yield decision
        self._cycles += 1
        said, self._said = self._said, []
        self._report(Cycle(self._cycles, self._origin + now, said, over=True))

    def _standing(self, now: int) -> Standing | None:
        inner: Standing | None = self._stand(now)
        return None if inner is None else Standing(inner.state, (*inner.counts, self._cycles))

    def _skip(self, span: int, counts: Sequence[int]) -> None:
        *inner, cycles = counts
        self._have_skip(span, inner)
        self._cycles += cycles
        self._idle_wakes = {at + span for at in self._idle_wakes}

    def _hear(self, now: int, what: str, text: str, job: Job) -> None:
        self._now = now
        self._said.append(Said(True, what, f"{job.id} {text}", (job.id,)))


def _pods(job: Job, pods: range) -> str:
    count = counted(len(pods), "pod")
    if len(pods) == job.pods:
        return count
    return f"{count} ({pods.start}{f' to {pods.stop - 1}' if len(pods) > 1 else ''} of {job.pods})"


def _amounts(job: Job, pods: range) -> str:
    amounts = job.requests_of(pods).items()
    return ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in amounts) or "nothing"


def _decided(decision: Decision, origin: int) -> Said:
    """Describes a decision. An unknown object is shown as it is, because the engine rejects it afterwards."""
    match decision:
        case Admit(job):
            flavors = "".join(
                f"; {name}: " + ", ".join(f"{resource} of {flavor}" for resource, flavor in chosen.items())
                for name, chosen in decision.flavors.items()
            )
            counts = "".join(f"; {count} pods of {name}" for name, count in decision.counts.items())
            delay = f"; to start after {_time(decision.delay)}" if decision.delay else ""
            return _about("admit", f"admit {job.id}{counts}{flavors}{delay}", decision.detail, job)
        case Bind(job, pods, node):
            return _about("bind", f"bind {job.id} to node {node}: {_pods(job, pods)}", decision.detail, job)
        case Preempt(job, by, reason, pods):
            which = "" if pods is None else f", {_pods(job, pods)},"
            if by is None:
                what = "preempt" if decision.unnamed else "evict"
                return _about(what, f"{what} {job.id}{which}: {reason}", decision.detail, job)
            text = f"preempt {job.id}{which} for {by.id}: {reason}"
            return _about("preempt", text, decision.detail, job, by)
        case Note(job, what, node):
            return _about(what, f"{what} {job.id}: node {node}", decision.detail, job)
        case Nominate(job, pod, node):
            return _about("nominate", f"nominate pod {pod} of {job.id} for node {node}", decision.detail, job)
        case Unnominate(job, pod):
            return _about("unnominate", f"withdraw the nomination of pod {pod} of {job.id}", {}, job)
        case Reject(job, reason):
            return _about("reject", f"reject {job.id} for good: {reason}", decision.detail, job)
        case Refuse(job, reason):
            return _about("refuse", f"let {job.id} wait: {reason}", decision.detail, job)
        case Wake(at, idle):
            alive = ", if the replay has other work by then" if idle else ""
            return _about("wake", f"wake at {_time(origin + at)}{alive}", {})
        case QueueShare(queue, share, weighted):
            return _about("share", f"record the share of queue {queue}: {share:g}, weighted {weighted}", {})
    return Said(False, "unknown", repr(decision), ())


def _about(what: str, text: str, detail: Mapping[str, Any], *jobs: Job) -> Said:
    if detail:
        text += "\n  " + json.dumps(dict(detail), default=str, ensure_ascii=False)
    return Said(False, what, text, tuple(job.id for job in jobs))

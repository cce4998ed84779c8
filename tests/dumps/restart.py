"""A replay in which the scheduler restarts at some second, while the cluster goes on.

A new scheduler is made, and learns of the jobs that are alive from the engine, and from the one before it
only what API objects say: who holds which quota since when, who was told to go, who waits since when, who
stays away from its queue until when and how often that was, which pods are where, and which are nominated.
It goes neither through manifests nor through what reads them. docs/cluster.md lists what is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dumps.observed import Observed
from harness.base.units import SECOND
from harness.engine.life import Hold, Life, Unit
from harness.engine.lifecycle import Lifecycle
from harness.models.kube.pod import PodInfo
from harness.models.kube.policy import PodPolicy
from harness.policy import Decision, Job, Policy, Wake, Why
from harness_plugins.kueue.executions import _Execution
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.rules.wait_for_pods_ready import PodsReady, _Admission
from harness_plugins.kueue.state.workload import Workload


class Restarting:
    """A policy that is replaced by a new one at some instant, when all else of that instant has happened.

    Args:
        make: makes the policy.
        lifecycle: the engine's jobs.
        at: when, microseconds since the origin.
        observed: what has happened.
        told: is called right before it is replaced, with the policy as it is.

    Attributes:
        inner: the policy that decides now.
        restarted: whether it is a new one.
    """

    def __init__(
        self,
        make: Callable[[], Policy],
        lifecycle: Lifecycle,
        at: int,
        observed: Observed,
        told: Callable[[Any], None],
    ) -> None:
        self.inner: Any = make()
        self.restarted = False
        self._make = make
        self._lifecycle = lifecycle
        self._at = at
        self._observed = observed
        self._told = told
        self._heard = -1
        self._wakes: set[int] = set()  # which the policy asked for that decides now
        self._stale: set[int] = set()  # and those that the one before it did
        self._going: set[tuple[int, int]] = set()
        self.ready = None if getattr(self.inner, "ready", None) is None else self._ready

    def submit(self, job: Job, pods: range, now: int) -> None:
        """See `Policy`."""
        self._heard = now
        if (job.index, pods.start) not in self._going:
            self.inner.submit(job, pods, now)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """See `Policy`."""
        self._heard = now
        self.inner.release(job, pods, now, Why.ENDED if (job.index, pods.start) in self._going else why)

    def _ready(self, job: Job, pods: range, now: int) -> None:
        self._heard = now
        self.inner.ready(job, pods, now)

    def cycle(self, now: int) -> Iterator[Decision]:
        """See `Policy`; a cycle of the new policy follows the last one of the old.

        At an instant for which only the old one had asked, nothing happens.
        """
        if now < self._at and self._at not in self._wakes:
            yield from self._noted([Wake(self._at)])
        facts = self._observed.facts
        happened = self._heard == now or (facts and facts[-1].time == now) or now in self._wakes
        if happened or now not in self._stale:
            yield from self._noted(self.inner.cycle(now))
        if now == self._at and not self.restarted and all(each.due > now for each in self._lifecycle.sources):
            yield from self._restart(now)

    def _noted(self, decisions: Iterable[Decision]) -> Iterator[Decision]:
        for decision in decisions:
            if type(decision) is Wake:
                self._wakes.add(decision.at)
            yield decision

    def _restart(self, now: int) -> Iterator[Decision]:
        settled(self.inner)
        self._told(self.inner)
        before, self.inner = self.inner, self._make()
        self._stale, self._wakes = self._wakes, set()
        self.restarted = True
        lives = dict(sorted(self._lifecycle.lives.items()))
        if isinstance(before, KueuePolicy):
            learn_workloads(before, self.inner, lives, now)
        else:
            self._going = learn_pods(before, self.inner, lives, now, self._observed.bound_at)
        yield from self._noted(self.inner.cycle(now))
        if self.ready is not None and any(_is_ready(unit, now) for unit in _units(lives)):
            yield from self._noted(self.inner.cycle(now))  # a new controller hears again of who is ready


def _units(lives: Mapping[int, Life]) -> Iterator[Unit]:
    return (unit for life in lives.values() for unit in life.all_units())


def _is_ready(unit: Unit, now: int) -> bool:
    """Whether pods hold what they ask for and have started up."""
    return unit.due >= 0 and unit.ready <= now


def settled(policy: Any) -> None:
    """Let a scheduler know of all that has happened, also where its cycle stands still."""
    if isinstance(policy, KueuePolicy) and policy._after.cycling:
        policy._after.end()


# --- Kueue --------------------------------------------------------------------------------------------------


def learn_workloads(before: KueuePolicy, fresh: KueuePolicy, lives: Mapping[int, Life], now: int) -> None:
    """A new Kueue hears of all workloads, and where there are nodes kube-scheduler of their pods."""
    fresh._advance(now)
    fresh._over = set(before._over)
    known = sorted(before._workloads.items(), key=lambda each: each[1].name)
    copies = {old: _copied(old, fresh) for _, old in known}
    for index, old in known:
        fresh._workloads[index] = copies[old]
    # As those of a Pod, the times of a Workload are whole seconds: in one of them the name decides.
    for index, old in sorted(known, key=lambda each: (each[1].reserved, each[1].name)):
        if before._executions.holds(old):
            _hold(old, copies[old], before, fresh, lives[index], now)
    if before.pods_ready is not None:
        assert fresh.pods_ready is not None
        _learn_readiness(before.pods_ready, fresh.pods_ready, copies)
    backoffs = before._limits.backoffs
    for _, old in known:
        given_up = before.pods_ready is not None and before.pods_ready.gives_up(old)
        if old in backoffs:
            fresh._limits.stay_out(copies[old], backoffs._at[old])
        elif not before._executions.holds(old) and not given_up:
            fresh._queue_up(copies[old])


def _copied(old: Workload, fresh: KueuePolicy) -> Workload:
    """What a Workload says of itself, whether it holds quota or not."""
    workload = Workload(old.name, old.uid, old.priority, old.created)
    scheduler = fresh.scheduler
    scheduler.submit(workload, old.job, scheduler.pending[old.cluster_queue.name])
    workload.timestamp = old.timestamp
    workload.held_back = old.held_back
    workload.counts, workload.ended = old.counts, old.ended
    return workload


def _hold(
    old: Workload, copy: Workload, before: KueuePolicy, fresh: KueuePolicy, life: Life, now: int
) -> None:
    """A workload holds the quota of its admission; one that goes holds it until the scheduler knows.

    One that was deactivated holds no quota, but its pods go on for a while.
    """
    copy.admission, copy.wanted, copy.admissions = old.admission, old.wanted, 1
    copy.evicted = old.evicted
    if old.has_quota:
        fresh.scheduler.cache.hold(copy, copy.cluster_queue, old.usage, old.uses, old.reserved)
    execution = fresh._executions._known[copy] = _Execution()
    execution.holding = True
    if before._executions._known[old].leaving:
        execution.leaving = fresh._evictions.leave(copy, copy.name, None, now) > now
    elif fresh._binder is not None:
        _learn_bound(old, fresh, before, life)


def _learn_bound(old: Workload, fresh: KueuePolicy, before: KueuePolicy, life: Life) -> None:
    """Pods that are bound stay where they are; the others of a job that was not told to go wait."""
    binder, job = fresh._binder, life.job
    assert binder is not None
    assert old.admission is not None
    if life.ended:
        binder._ended[job.index] = set(life.ended)
    flavors = before._admissions.flavors_of(old, old.admission)  # type: ignore[arg-type]  # it has `chosen`
    binder.start(job, flavors, life.counts or {})
    scheduler = binder._scheduler
    for pod, info in list(binder._pods[job.index].items()):
        hold = life.holds.get(pod)
        if hold is not None:
            scheduler.queue.discard(info)
            scheduler.cache.add_pod(info, scheduler.cache.by_name[hold.node])
        elif old.evicted or not old.has_quota:
            scheduler.delete(binder._pods[job.index].pop(pod))


def _learn_readiness(before: PodsReady, fresh: PodsReady, copies: Mapping[Workload, Workload]) -> None:
    """Who is ready, who has to be until when, who stays away until when, and how often pods were late."""
    for old, copy in copies.items():
        was = before._admissions.get(old)
        if was is not None:
            admission = fresh._admissions[copy] = _Admission(was.left, was.left)
            admission.missing, admission.seen = was.missing, set(was.seen)
            admission.ready, admission.going = was.ready, was.going
        if old in before.deadlines:
            fresh.deadlines.set(copy, before.deadlines._at[old])
        if old in before._counts:
            fresh._counts[copy] = before._counts[old]
        if old in before._given_up:
            fresh._given_up.add(copy)


# --- kube-scheduler -----------------------------------------------------------------------------------------


def learn_pods(
    before: PodPolicy,
    fresh: PodPolicy,
    lives: Mapping[int, Life],
    now: int,
    bound_at: Mapping[tuple[int, int], int],
) -> set[tuple[int, int]]:
    """A new scheduler hears of all pods: first of those that are bound, by their start.

    Answers those that are terminating. Nobody knows whether one comes back: they are gone for good.
    """
    fresh._now = now
    scheduler: Any = fresh.scheduler
    scheduler.advance(now)
    waiting: list[tuple[PodInfo, str]] = []
    bound: list[tuple[int, str, PodInfo, Hold]] = []
    for life in lives.values():
        job = life.job
        for pod in life.every_pod:
            key = job.index, pod
            if pod in life.ended:
                continue
            kind = fresh._kinds.of(job, job.pod_set_of(pod))
            successor = life.successor(pod)
            name = job.pod_name(pod, successor)
            info = PodInfo(name, kind.template, job.priority, job.preempts, job, pod, kind.group)
            fresh._pods[key] = info
            if successor:
                fresh._successors[key] = successor
            hold = life.holds.get(pod)
            if hold is None:
                waiting.append((info, before._pods[key].nominated if _waits(before, key) else ""))
            else:
                bound.append((bound_at[key] // SECOND * SECOND, name, info, hold))
    for start, _, info, hold in sorted(bound, key=lambda each: each[:2]):
        info.terminating = info.preempted = hold.terminating
        scheduler.add_running(info, hold.node, start)
    kube = getattr(scheduler, "_kube", scheduler)
    assert len(list(kube.bind_running())) == len(bound), "the engine has them there already"
    for info, nominated in sorted(waiting, key=lambda each: each[0].key):
        if nominated:
            scheduler.cache.nominate(info, nominated)
        scheduler.add(info)
    return {(info.job.index, info.pod) for *_, info, hold in bound if hold.terminating and info.job}


def _waits(policy: PodPolicy, key: tuple[int, int]) -> bool:
    """Whether a scheduler knows a pod that waits: of one that was evicted it may know later."""
    return key in policy._pods and policy._pods[key].node < 0

"""Implements the life cycle of jobs, from their arrival to their completion.

This module makes no decisions, and it checks nothing, because `referee.py` has already checked the decisions.
All events result from these decisions, from the run times of jobs, and from how long evicted pods keep their
resources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from harness.base.errors import InputError
from harness.cluster.changes.edits import Change
from harness.cluster.model import Cluster, Node
from harness.engine.books import Books
from harness.engine.events import (
    BIND,
    EVICT,
    FINISH,
    FINISHED,
    GONE,
    NEVER,
    REQUEUE,
    START,
    SUBMIT,
    TERMINATING,
    WAITING,
    Fact,
    Recorder,
    new_fact,
)
from harness.engine.life import Hold, Life, Unit, runs
from harness.engine.losses import Losses
from harness.engine.progress import Progress
from harness.engine.sources import FAR, Agenda, Source
from harness.engine.starts import Starts
from harness.policy import LOST_WITH_NODE, Job, Policy, Startup, Why

_ENDED: Final = Why.ENDED  # looking this up in the enumeration each time costs as much as a call


class HalfBound(NamedTuple):
    """A gang that holds resources without making progress, because only some of its pods are bound.

    Attributes:
        bound: how many of its pods are bound.
        pods: how many pods must be bound before the gang makes progress.
        held: the quantities that the bound pods hold, by resource.
    """

    job: str
    bound: int
    pods: int
    held: Mapping[str, int]


class Lifecycle:
    """All live jobs, with their future completions and the future ends of their evictions.

    Attributes:
        now: the current time, which the engine sets.
        cycles: how many cycles of the policy have begun, which the engine sets.
        last: the time of the last event other than a wake.
        progressed: the number of arrivals, first starts and completions.
        lives: the live jobs, by index.
        policy: the policy, which is notified of waiting pods and free resources. The engine sets it.
    """

    policy: Policy

    def __init__(self, cluster: Cluster, recorder: Recorder, losses: Losses) -> None:
        self.now = NEVER
        self.cycles = 0
        self.last = NEVER
        self.progressed = 0
        self.lives: dict[int, Life] = {}
        self.books = Books(cluster)
        self.on_nodes = bool(cluster.nodes) or cluster.nodes_change
        self._recorder = recorder
        self._progress = Progress(recorder, losses)
        self._ends: Agenda[Unit] = Agenda(self._end)
        self._ready: Agenda[Unit] | None = None
        self._tell_ready: Callable[[Job, range, int], None] | None = None
        self._departures: Agenda[tuple[Life, int]] = Agenda(self._leave)
        self._delays: Agenda[Life] = Agenda(self._delay_is_over)
        self._starts = Starts(self._start_if_free)
        self._leave_as = Why.EVICTED
        # For each node, the pods on it; None if the replay never loses a node.
        self._on_node: dict[str, dict[tuple[Life, int], None]] | None = {} if cluster.nodes_change else None

    def listen(self, tell: Callable[[Job, range, int], None]) -> None:
        """Call `tell` whenever pods become ready, with the job, the numbers of these pods, and the time."""
        self._tell_ready = tell
        self._ready = Agenda(self._be_ready)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of events for live jobs, in the order in which they deliver simultaneous events."""
        ready = () if self._ready is None else (self._ready,)
        starts = () if self.on_nodes else (self._delays, self._starts)
        return (self._ends, *ready, self._departures, *starts)

    @property
    def kept(self) -> int:
        """The progress that survived evictions, in microseconds, summed over units."""
        return self._progress.kept

    def change(self, change: Change) -> None:
        """Apply a change of the cluster, and start the waiting jobs that now fit."""
        self.books.change(change)
        if isinstance(change.edit.after, Node):
            there = (self._on_node or {}).get(change.edit.name, ())
            self.books.put_node(change.edit.after, len(there))
        self._starts.deliver(self.now)

    # --- arrival and start --------------------------------------------------------------------------------

    def arrive(
        self, job: Job, work: int, interval: int | None, startup: Startup | None = None, done: int = 0
    ) -> None:
        """Let a job arrive and wait. Progress before its arrival is taken into account at its first start."""
        now = self.last = self.now
        self.progressed += 1
        life = self.lives[job.index] = Life(job, work, interval, startup, done)
        fact = new_fact(Fact, (
            now, self.cycles, SUBMIT, job, job.pods, 1, 0, 0, None, NEVER, 0, None, None,
            None, None, None, None, None,
        ))  # fmt: skip
        self._recorder.record(fact)
        self.policy.submit(job, life.every_pod, now)

    def admit(self, life: Life) -> bool | str:
        """Allocate or promise the request of a job that is being admitted to a cluster without nodes.

        The job starts when evicted jobs have released its resources, and all jobs that waited before it have
        started. If the job can only start later (`Life.startable`), it joins the waiting jobs at that time.

        Returns:
            True if the job starts now, and False if it must wait. If a resource is insufficient, the result
            is a text about this resource.
        """
        delayed = life.startable > self.now
        starts = self.books.admit(life.asked, at_once=not (delayed or self._starts.waiting))
        if starts is False:
            if delayed:
                life.delay = self._delays.add(life.startable, life.job.id, life)
            else:
                self._starts.join(life)
        return starts

    def _delay_is_over(self, life: Life) -> None:
        life.delay = None
        self._starts.join(life)
        self._starts.freed(self.now)

    def _start_if_free(self, life: Life) -> bool:
        if not self.books.start(life.asked):
            return False
        self._recorder.record(
            Fact(self.now, self.cycles, START, life.job, life.wanted, holding=1, amounts=life.amounts)
        )
        self.start_whole(life)
        return True

    def start_whole(self, life: Life) -> None:
        """Start a job as a whole in a cluster without nodes, after its resources were allocated."""
        unit = life.unit
        if unit is None:
            unit = life.unit = Unit(life, life.wanted, life.amounts)
            unit.name = life.job.id
        else:
            unit.pods, unit.amounts = life.wanted, life.amounts
        unit.bound = unit.pods
        self._start(unit)

    def bind(self, life: Life, pod: int, node: str, detail: Mapping[str, Any] | None) -> None:
        """Give a pod its resources on a node. When all pods of a unit are bound, the unit starts."""
        job, now, holds = life.job, self.now, life.holds
        holds[pod] = Hold(node, now)
        unit = life.unit_of(pod)
        unit.bound += 1
        if self._on_node is not None:
            self._on_node.setdefault(node, {})[life, pod] = None
        amounts = life.amounts_of(pod) if unit.pod == NEVER else unit.amounts
        fact = new_fact(Fact, (
            now, self.cycles, BIND, job, 1, 0, 1 if len(holds) == 1 else 0, 0,
            amounts, pod, life.successors.get(pod, 0), node, detail,
            None, None, None, None, None,
        ))  # fmt: skip
        self._recorder.record(fact)
        if unit.bound == unit.pods:
            if job.pods == 1 and not life.successors:
                unit.name = job.id
            elif unit.pod != NEVER:
                unit.name = life.current_name(pod)
            else:
                for each, hold in sorted(holds.items()):
                    self._progress.held(life, each, hold, now, WAITING)
                unit.name = job.id if life.admitted else life.current_name(0)
            self._start(unit)

    def _start(self, unit: Unit) -> None:
        if unit.life.started == NEVER and not unit.starts:
            self.progressed += 1
        self._progress.start(unit, self.now)
        if self._ready is not None:
            ready = max(unit.ready, self.now)  # now, if the pods need no time to start up
            if ready < FAR:
                unit.alarm = self._ready.add(ready, unit.name, unit)
        if unit.due < FAR:
            unit.end = self._ends.add(unit.due, unit.name, unit)
        elif unit.life.work < FAR and unit.ready < FAR:
            raise InputError(
                f"job {unit.life.job.id} would end more than 146,000 years after the origin, which is beyond "
                "the limit of simulated time",
                hint="check the unit of the durations, or stop earlier with --until",
            )

    def _be_ready(self, unit: Unit) -> None:
        unit.alarm, pod, life = None, unit.pod, unit.life
        assert self._tell_ready is not None
        self._tell_ready(life.job, life.every_pod if pod == NEVER else range(pod, pod + 1), self.now)

    # --- end ----------------------------------------------------------------------------------------------

    def _stop(self, unit: Unit) -> None:
        if unit.due == NEVER:
            self._progress.never_began(unit, self.now)
            return
        self._progress.stop(unit, self.now, evicted=True)
        if unit.end is not None:
            self._ends.call_off(unit.end)
            unit.end = None
        if unit.alarm is not None and self._ready is not None:
            self._ready.call_off(unit.alarm)
            unit.alarm = None

    def _end(self, unit: Unit) -> None:
        life, pod = unit.life, unit.pod
        job, now, books = life.job, self.now, self.books
        self.last = now
        self.progressed += 1
        self._progress.account(unit, now)
        unit.due, unit.end = NEVER, None
        if unit.alarm is not None and self._ready is not None:
            self._ready.call_off(unit.alarm)
        if pod != NEVER:
            node = life.holds.pop(pod).node
            books.unbind(job, pod, node)
            if self._on_node is not None:
                del self._on_node[node][life, pod]
            over = job.pods == 1
            if over:
                pods = life.every_pod
            else:
                life.ended.add(pod)
                over = len(life.ended) == life.wanted
                pods = range(pod, pod + 1)
        else:
            over, pods = True, life.every_pod
            if self.on_nodes:
                for each, hold in life.holds.items():
                    books.unbind(job, each, hold.node)
                    if self._on_node is not None:
                        del self._on_node[hold.node][life, each]
            else:
                books.release(life.asked, evicted=False)
                if self._starts.waiting:
                    self._starts.freed(now)
        stops = over or not life.holds
        fact = new_fact(Fact, (
            now, self.cycles, FINISH, job, unit.pods,
            -1 if over else 0, -1 if stops else 0, -1 if life.admitted else 0,
            unit.amounts, pod, life.successors.get(pod, 0), None, None,
            None, None, None, None, None,
        ))  # fmt: skip
        self._recorder.record(fact)
        if over:
            del self.lives[job.index]
            self.record_job(life, FINISHED, now)
            life.let_go()
        self.policy.release(job, pods, now, _ENDED)

    # --- eviction and return ------------------------------------------------------------------------------

    def evict_pod(self, life: Life, pod: int, action: int, note: Mapping[str, Any], grace: int) -> None:
        """Evict a pod, which is gone after its grace period; other pods of its gang stay bound and idle."""
        now, unit, hold = self.now, life.unit_of(pod), life.holds[pod]
        self._stop(unit)
        self._progress.held(life, pod, hold, now, WAITING)
        unit.bound -= 1
        hold.terminating = True
        fact = Fact(
            now, self.cycles, action, life.job, 1, amounts=life.amounts_of(pod),
            pod=pod, successor=life.successor(pod), node=hold.node, **note,
        )  # fmt: skip
        self._recorder.record(fact)
        self._depart(life, pod, life.current_name(pod), grace)

    def evict_whole(self, life: Life, action: int, note: Mapping[str, Any], grace: int) -> None:
        """Evict all pods of an admitted job, including its pods that still wait for resources."""
        now, job, holds = self.now, life.job, life.holding
        if life.done and life.unit is None and not life.units:
            life.unit = Unit(life, life.wanted, life.amounts)
        for unit in life.all_units():
            self._stop(unit)
            unit.bound = 0
            unit.began = now
        for pod, hold in sorted(life.holds.items()):
            if hold.departure is not None:  # the pod was going to leave alone, and now leaves with its job
                self._departures.call_off(hold.departure)
            self._progress.held(life, pod, hold, now, TERMINATING if hold.terminating else WAITING)
            hold.terminating = True
        life.terminating = holds
        pods = life.wanted - len(life.ended)
        self._recorder.record(Fact(now, self.cycles, action, job, pods, amounts=life.amounts, **note))
        if holds and not self.on_nodes:
            self.books.terminate(life.asked)
        self._depart(life, NEVER, job.id, grace)
        self._starts.deliver(now)

    def lose_node(self, node: str) -> None:
        """Remove a node and evict its pods, one after another, in the order of their names.

        Each pod is waiting again before the next one is evicted. Pods and whole jobs that were evicted
        earlier end now, without waiting for their grace period. An admitted job keeps its quota, and its
        pods must be bound again.
        """
        assert self._on_node is not None, "a cluster must announce that it loses nodes"
        lost = self._on_node.pop(node, {})
        self._on_node[node] = lost
        self._leave_as = Why.LOST
        for life, pod in sorted(lost, key=_name_of_pod):
            if (life, pod) not in lost:
                continue  # the pod was removed together with another pod
            departure = life.holds[pod].departure
            if departure is not None:
                leaving = departure[3]
                self._departures.call_off(departure)
                self._leave(leaving)
            else:
                life.preemptions += 1
                note = {"reason": LOST_WITH_NODE}
                self.evict_pod(life, pod, EVICT, note, 0)
        self._leave_as = Why.EVICTED
        self.books.drop_node(node)

    def _depart(self, life: Life, pod: int, name: str, grace: int) -> None:
        """Schedule the end of an eviction after the grace period, or now if no resources are held."""
        if grace == 0 or not (life.terminating or life.holds):
            self._leave((life, pod))
            return
        departure = self._departures.add(self.now + grace, name, (life, pod))
        for each in life.holds if pod == NEVER else (pod,):
            life.holds[each].departure = departure

    def _leave(self, who: tuple[Life, int]) -> None:
        """Complete an eviction: the pods release their resources, and wait for capacity again."""
        life, pod = who
        self.last = self.now
        if pod == NEVER:
            self._whole_leaves(life)
        else:
            self._pod_leaves(life, pod)

    def _pod_leaves(self, life: Life, pod: int) -> None:
        now, job, cycle = self.now, life.job, self.cycles
        self._unhold(life, pod, keeps_quota=life.admitted)
        pods, amounts = range(pod, pod + 1), life.amounts_of(pod)
        self.policy.release(job, pods, now, Why.LOST if life.admitted else self._leave_as)
        self._recorder.record(
            Fact(now, cycle, REQUEUE, job, 1, amounts=amounts, pod=pod, successor=life.successor(pod))
        )
        self.policy.submit(job, pods, now)

    def _whole_leaves(self, life: Life) -> None:
        """Complete the eviction of a whole admitted job.

        Pods that never held resources have been waiting since the eviction.
        """
        now, job, cycle = self.now, life.job, self.cycles
        if self.on_nodes:
            bound = sorted(life.holds)
            unused = life.unused(bound)
            for pod in bound:
                self._unhold(life, pod)
            back, amounts = life.returning(bound)
        elif life.terminating:
            unused = None
            unit = life.all_units()[0]
            self._progress.idle(life, unit.pods, unit, unit.began, now, TERMINATING)
            self.books.release(life.asked, evicted=True)
            self._starts.freed(now)
            back, amounts = life.wanted, life.amounts
            self._recorder.record(Fact(now, cycle, GONE, job, back, 0, -1, -1, amounts))
            if life.counts is not None:
                back, amounts = job.pods, None
        else:
            unused = life.unused([])
            self._starts.leave(life)
            if life.delay is not None:
                self._delays.call_off(life.delay)
                life.delay = None
            self.books.withdraw(life.asked)
            back, amounts = life.returning([])
        life.readmittable()
        left = (
            runs([pod for pod in life.every_pod if pod not in life.ended]) if life.ended else [life.every_pod]
        )
        for each in left:
            self.policy.release(job, each, now, Why.EVICTED)
        self._recorder.record(Fact(now, cycle, REQUEUE, job, back, amounts=amounts, unused=unused))
        for each in left:
            self.policy.submit(job, each, now)

    def _unhold(self, life: Life, pod: int, *, keeps_quota: bool = False) -> None:
        """Remove an evicted pod from its node, and give its successor a new name."""
        hold = life.holds.pop(pod)
        if self._on_node is not None:
            del self._on_node[hold.node][life, pod]
        self._progress.held(life, pod, hold, self.now, TERMINATING)
        self.books.unbind(life.job, pod, hold.node)
        successor = life.successor(pod)
        fact = Fact(
            self.now, self.cycles, GONE, life.job, 1, amounts=life.amounts_of(pod),
            pod=pod, successor=successor, node=hold.node,
            holding=0 if life.holds else -1, quota=-1 if life.admitted and not keeps_quota else 0,
        )  # fmt: skip
        self._recorder.record(fact)
        life.successors[pod] = successor + 1

    # --- the end of the replay ----------------------------------------------------------------------------

    def close(self, end: int) -> tuple[HalfBound, ...]:
        """Completes the records of jobs that hold resources at the end of the replay.

        Returns:
            The gangs that hold resources although not all of their pods are bound.
        """
        half_bound = []
        for life in self.lives.values():
            state = life.state
            for each in life.all_units():
                if each.due != NEVER:
                    self._progress.stop(each, end)
                elif life.terminating and not self.on_nodes:
                    self._progress.idle(life, each.pods, each, each.began, end, TERMINATING)
            for pod, hold in sorted(life.holds.items()):
                self._progress.held(life, pod, hold, end, TERMINATING if hold.terminating else WAITING)
            unit = life.unit
            if unit is not None and 0 < unit.bound < unit.pods:
                half_bound.append(HalfBound(life.job.id, unit.bound, unit.pods, life.held))
            self.record_job(life, state, NEVER)
        return tuple(half_bound)

    def record_job(self, life: Life, state: int, finish: int) -> None:
        """Report how a job ended, or its state at the end of the replay."""
        self._recorder.job(
            life.job, state, life.first_admitted, life.started, finish, life.preemptions, life.lost, life.idle
        )


def _name_of_pod(item: tuple[Life, int]) -> str:
    life, pod = item
    return life.current_name(pod)

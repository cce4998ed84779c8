"""The life cycle of jobs: arrival, admission, start, eviction, return to the queue, end.

Nothing is checked here; `referee.py` has done that. Nothing is decided here either: everything follows from
the decisions, from how long jobs run, and from how long evicted pods keep what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple

from harness.cluster.model import Cluster
from harness.engine.books import Books
from harness.engine.events import (
    BIND,
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
)
from harness.engine.life import Hold, Life, Unit, runs
from harness.engine.losses import Losses
from harness.engine.progress import Progress
from harness.engine.readiness import Readiness
from harness.errors import InputError
from harness.policy import ENDLESS, Job, Policy, Startup, Why


class HalfBound(NamedTuple):
    """A gang that holds resources in vain, because only some of its pods are bound.

    Attributes:
        job: its name.
        bound: how many of its pods are.
        pods: how many would have to be.
        held: resource -> what the bound ones hold.
    """

    job: str
    bound: int
    pods: int
    held: Mapping[str, int]


class Lifecycle:
    """All jobs that are alive, and the ends and departures that are due.

    Attributes:
        now: the instant that is being played; set by the engine.
        cycles: how many cycles of the policy were begun; set by the engine.
        last: when something last happened that was not a bare wake.
        progressed: how many arrivals, first starts and ends there were.
        lives: the jobs that are alive, by index.
        books: capacity and allocation.
        policy: hears what waits and what is free; set by the engine.
        readiness: tells the policy when pods are ready; None where it does not listen; set by the engine.
    """

    policy: Policy

    def __init__(self, cluster: Cluster, recorder: Recorder, losses: Losses) -> None:
        self.now = NEVER
        self.cycles = 0
        self.last = NEVER
        self.progressed = 0
        self.lives: dict[int, Life] = {}
        self.books = Books(cluster)
        self.on_nodes = bool(cluster.nodes)
        self._recorder = recorder
        self._progress = Progress(recorder, losses)
        self.readiness: Readiness | None = None
        self._ends: list[tuple[int, str, int, Unit]] = []
        self._departures: list[tuple[int, str, int, Life, int]] = []
        self._to_start: dict[
            int, Life
        ] = {}  # without nodes: who is admitted and waits for resources, in the order in which they may start
        self._put_off: list[tuple[int, str, int, Life]] = []  # the same of those who may not start yet
        self._serial = 0  # decides ties of time and name before units are compared

    @property
    def kept(self) -> int:
        """The progress that evictions have left to those whom they hit, microseconds, summed over units."""
        return self._progress.kept

    # --- what is due --------------------------------------------------------------------------------------

    def next_due(self, otherwise: int) -> int:
        """When the next end or departure is due, or pods are ready; `otherwise` if that is earlier."""
        ends = self._ends
        while ends and ends[0][3].due != ends[0][0]:
            heappop(ends)  # cancelled by an eviction: it must not make an instant happen
        due = ends[0][0] if ends and ends[0][0] < otherwise else otherwise
        if self.readiness is not None:
            due = self.readiness.next_due(due)
        put_off = self._put_off
        while put_off and not _is_put_off(put_off[0][3], put_off[0][0]):
            heappop(put_off)
        if put_off and put_off[0][0] < due:
            due = put_off[0][0]
        departures = self._departures
        return departures[0][0] if departures and departures[0][0] < due else due

    def deliver(self) -> None:
        """Deliver the ends of this instant, the pods that are ready, and the departures, each by name.

        Then those start that were admitted before and waited for what is free now.
        """
        now, ends, departures = self.now, self._ends, self._departures
        while ends and ends[0][0] == now:
            unit = heappop(ends)[3]
            if unit.due == now:
                self._end(unit)
        if self.readiness is not None:
            self.readiness.deliver(now)
        while departures and departures[0][0] == now:
            _, _, _, life, pod = heappop(departures)
            self._leave(life, pod)
        while self._put_off and self._put_off[0][0] == now:
            life = heappop(self._put_off)[3]
            if _is_put_off(life, now):
                self._to_start[life.job.index] = life
        if self._to_start:
            self._start_admitted()

    # --- arrival and start --------------------------------------------------------------------------------

    def arrive(self, job: Job, work: int, interval: int | None, startup: Startup | None = None) -> None:
        """A job arrives and waits."""
        now = self.last = self.now
        self.progressed += 1
        life = self.lives[job.index] = Life(job, work, interval, startup)
        self._recorder.record(Fact(now, self.cycles, SUBMIT, job, job.pods, alive=1))
        self.policy.submit(job, life.every_pod, now)

    def starts_at_once(self, life: Life) -> bool:
        """Without nodes: whether a job that is being admitted starts now, or has to wait for its resources.

        It waits where evicted jobs still hold them, and behind everybody who waits already; who may not start
        yet joins them when it may.
        """
        if life.startable > self.now:
            self._serial += 1
            heappush(self._put_off, (life.startable, life.job.id, self._serial, life))
            return False
        if not self._to_start and self.books.start(life.job, life.counts):
            return True
        self._to_start[life.job.index] = life
        return False

    def _start_admitted(self) -> None:
        """Start those that were admitted, in that order, until the next one's resources are not free yet."""
        while self._to_start:
            life = next(iter(self._to_start.values()))
            job = life.job
            if not self.books.start(job, life.counts):
                return
            del self._to_start[job.index]
            self._recorder.record(
                Fact(self.now, self.cycles, START, job, life.wanted, life.amounts, holding=1)
            )
            self.start_whole(life)

    def start_whole(self, life: Life) -> None:
        """Start a job as a whole, in a cluster without nodes; it has been given its resources."""
        unit = life.unit
        if unit is None:
            unit = life.unit = Unit(life, life.wanted, life.amounts)
            unit.name = life.job.id
        else:
            unit.pods, unit.amounts = life.wanted, life.amounts
        unit.bound = unit.pods
        self._start(unit)

    def bind(self, life: Life, pod: int, node: str, detail: Mapping[str, Any] | None) -> None:
        """A pod holds resources of a node from now on; the last pod of a unit sets it going."""
        job, now = life.job, self.now
        hold = life.holds[pod] = Hold(node, now)
        unit = life.unit_of(pod)
        unit.bound += 1
        self._recorder.record(
            Fact(
                now,
                self.cycles,
                BIND,
                job,
                1,
                life.amounts_of(pod),
                pod=pod,
                successor=life.successors.get(pod, 0),
                node=node,
                detail=detail,
                holding=1 if len(life.holds) == 1 else 0,
            )
        )
        if unit.bound == unit.pods:
            if unit.pod == NEVER:
                for each, hold in sorted(life.holds.items()):
                    self._progress.held(life, each, hold, now, WAITING)
                unit.name = job.id if life.admitted else life.current_name(0)
            else:
                unit.name = life.current_name(pod)
            self._start(unit)

    def _start(self, unit: Unit) -> None:
        if unit.life.started == NEVER and not unit.starts:
            self.progressed += 1
        self._progress.start(unit, self.now)
        if self.readiness is not None:
            self.readiness.expect(unit, self.now)
        if unit.due < ENDLESS:
            self._serial += 1
            heappush(self._ends, (unit.due, unit.name, self._serial, unit))
        elif unit.life.work < ENDLESS and unit.ready < ENDLESS:
            raise InputError(
                f"job {unit.life.job.id} would end more than 146,000 years after the origin, which is later "
                "than simulated time is counted",
                hint="stop before that with --until; or are durations given in the right unit?",
            )

    # --- end ----------------------------------------------------------------------------------------------

    def _end(self, unit: Unit) -> None:
        """A unit has done its work: its pods give back what they held."""
        life, pod = unit.life, unit.pod
        job, now, books = life.job, self.now, self.books
        self.last = now
        self.progressed += 1
        self._progress.stop(unit, now, evicted=False)
        if pod != NEVER:
            books.unbind(job, pod, life.holds.pop(pod).node)
            life.ended.add(pod)
            pods = range(pod, pod + 1)
        else:
            pods = life.every_pod
            if self.on_nodes:
                for each, hold in life.holds.items():
                    books.unbind(job, each, hold.node)
            else:
                books.release(job, life.counts, evicted=False)
        over = pod == NEVER or len(life.ended) == life.wanted
        stops = over or not life.holds
        self._recorder.record(
            Fact(
                now,
                self.cycles,
                FINISH,
                job,
                unit.pods,
                unit.amounts,
                pod=pod,
                successor=life.successors.get(pod, 0),
                alive=-1 if over else 0,
                holding=-1 if stops else 0,
                quota=-1 if life.admitted else 0,
            )
        )
        if over:
            del self.lives[job.index]
            self.record_job(life, FINISHED, now)
            life.let_go()
        self.policy.release(job, pods, now, Why.ENDED)

    # --- eviction and return ------------------------------------------------------------------------------

    def evict_pod(self, life: Life, pod: int, action: int, note: Mapping[str, Any]) -> None:
        """Evict one pod; the other pods of its gang stay bound and idle."""
        now, unit, hold = self.now, life.unit_of(pod), life.holds[pod]
        if unit.due != NEVER:
            self._progress.stop(unit, now, evicted=True)
        self._progress.held(life, pod, hold, now, WAITING)
        unit.bound -= 1
        hold.terminating = True
        self._recorder.record(
            Fact(
                now,
                self.cycles,
                action,
                life.job,
                1,
                life.amounts_of(pod),
                pod=pod,
                successor=life.successor(pod),
                node=hold.node,
                **note,
            )
        )
        self._depart(life, pod, life.current_name(pod))

    def evict_whole(self, life: Life, action: int, note: Mapping[str, Any]) -> None:
        """Evict a job that was admitted as a whole; pods that hold nothing yet stop waiting."""
        now, job, holds = self.now, life.job, life.holding
        for unit in life.all_units():
            if unit.due != NEVER:
                self._progress.stop(unit, now, evicted=True)
            unit.bound = 0
            unit.began = now
        for pod, hold in sorted(life.holds.items()):
            self._progress.held(life, pod, hold, now, WAITING)
            hold.terminating = True
        life.terminating = holds
        pods = life.wanted - len(life.ended)
        self._recorder.record(Fact(now, self.cycles, action, job, pods, life.amounts, **note))
        if holds and not self.on_nodes:
            self.books.terminate(job, life.counts)
        self._depart(life, NEVER, job.id)
        if self._to_start:
            self._start_admitted()

    def _depart(self, life: Life, pod: int, name: str) -> None:
        """Let what was evicted be gone when its grace period is over, or at once where it holds nothing."""
        grace = life.job.grace_period
        if grace == 0 or not (life.terminating or life.holds):
            self._leave(life, pod)
            return
        self._serial += 1
        heappush(self._departures, (self.now + grace, name, self._serial, life, pod))

    def _leave(self, life: Life, pod: int) -> None:
        """What was evicted is gone, and waits again."""
        self.last = self.now
        if pod == NEVER:
            self._whole_leaves(life)
        else:
            self._pod_leaves(life, pod)

    def _pod_leaves(self, life: Life, pod: int) -> None:
        now, job, cycle = self.now, life.job, self.cycles
        self._unhold(life, pod)
        pods, amounts = range(pod, pod + 1), life.amounts_of(pod)
        self.policy.release(job, pods, now, Why.EVICTED)
        self._recorder.record(
            Fact(now, cycle, REQUEUE, job, 1, amounts, pod=pod, successor=life.successor(pod))
        )
        self.policy.submit(job, pods, now)

    def _whole_leaves(self, life: Life) -> None:
        """All of an admitted job is gone; pods that never held anything have been waiting all the time."""
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
            self.books.release(job, life.counts, evicted=True)
            back, amounts = life.wanted, life.amounts
            self._recorder.record(Fact(now, cycle, GONE, job, back, amounts, holding=-1, quota=-1))
            if life.counts is not None:
                back, amounts = job.pods, None
        else:
            unused = life.unused([])
            self._to_start.pop(job.index, None)
            self.books.withdraw(job, life.counts)
            back, amounts = life.returning([])
        life.readmittable()
        left = (
            runs([pod for pod in life.every_pod if pod not in life.ended]) if life.ended else [life.every_pod]
        )
        for each in left:
            self.policy.release(job, each, now, Why.EVICTED)
        self._recorder.record(Fact(now, cycle, REQUEUE, job, back, amounts, unused=unused))
        for each in left:
            self.policy.submit(job, each, now)

    def _unhold(self, life: Life, pod: int) -> None:
        """An evicted pod is gone from its node; its successor has a new name."""
        hold = life.holds.pop(pod)
        self._progress.held(life, pod, hold, self.now, TERMINATING)
        self.books.unbind(life.job, pod, hold.node)
        successor = life.successor(pod)
        self._recorder.record(
            Fact(
                self.now,
                self.cycles,
                GONE,
                life.job,
                1,
                life.amounts_of(pod),
                pod=pod,
                successor=successor,
                node=hold.node,
                holding=0 if life.holds else -1,
                quota=-1 if life.admitted else 0,
            )
        )
        life.successors[pod] = successor + 1

    # --- the end of the replay ----------------------------------------------------------------------------

    def close(self, end: int) -> tuple[HalfBound, ...]:
        """Account for what still holds resources at the end; answers the gangs that are half bound."""
        half_bound = []
        for life in self.lives.values():
            state = life.state
            for each in life.all_units():
                if each.due != NEVER:
                    self._progress.stop(each, end, evicted=False)
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
        """Report how a job ended or stands."""
        self._recorder.job(
            life.job,
            state,
            life.first_admitted,
            life.started,
            finish,
            life.preemptions,
            life.lost,
            life.idle,
        )


def _is_put_off(life: Life, due: int) -> bool:
    """Whether a job still is to start when it was to; an eviction has cancelled it otherwise."""
    return life.admitted and life.startable == due

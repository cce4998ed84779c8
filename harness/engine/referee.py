"""The referee applies the decisions of a policy, and rejects those that the cluster's state does not allow.

Every rejection is a sentence that names the policy, the job, the time and the rule that was broken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import isfinite
from operator import index
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias

from harness.base.errors import DecisionError
from harness.base.text import counted
from harness.base.units import INT64_MAX, format_duration
from harness.engine.books import asked_by
from harness.engine.events import (
    ACTIONS,
    ADMIT,
    EVICT,
    MARK,
    NEVER,
    NOMINATE,
    PREEMPT,
    REFUSE,
    REJECT,
    REJECTED,
    UNNOMINATE,
    Fact,
    Recorder,
    new_fact,
)
from harness.engine.life import Life
from harness.engine.lifecycle import Lifecycle
from harness.engine.livelock import Livelock, Watch
from harness.engine.sources import FAR, Source, Wakes
from harness.engine.waking import Waking
from harness.policy import (
    Admit,
    Bind,
    Job,
    Nominate,
    Note,
    Preempt,
    QueueShare,
    Refuse,
    Reject,
    Unnominate,
    Wake,
)

_FAULT = "this is a fault in the policy, not in the trace"
_TIMELESS = (
    "let each eviction take time, by a grace period or by the plugin's option 'evictionLatency'; if neither "
    "is possible, " + _FAULT
)

Given: TypeAlias = Any
"""A decision from a policy, with fields that can have other types than the class declares.

If the code used the class of a decision as a type, compiled code would reject such a decision with a
TypeError.
"""

_WHOLE = (NEVER,)  # represents all pods of a job

_PATIENCE: Final = 250_000
_PATIENCE_A_JOB: Final = 4
"""How many consecutive decisions without an effect are allowed: `_PATIENCE`, and more for each live job.

After more such decisions, the referee concludes that the policy would continue forever.
"""


class Referee:
    """Checks and applies decisions.

    Args:
        quotas: the ClusterQueues and ElasticQuotas that have shares. If there are none, any name is valid.
        others: the sources of events other than the policy, including `arrivals`.
        ends: whether the replay ends at some time regardless of the policy.

    Attributes:
        handlers: maps the type of a decision to the function that applies it or raises `DecisionError`.
        idle: how many consecutive decisions changed nothing. It is reset when time advances.
        wakes: the times at which the policy wants to be called.
        idle_wakes: the times of the policy's idle wakes. If only idle wakes are left, the replay ends.
        stopped: the livelock that stops the replay at the current time, or None.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        recorder: Recorder,
        name: str,
        quotas: Collection[str],
        arrivals: Source,
        others: Sequence[Source],
        *,
        ends: bool,
    ) -> None:
        self._lifecycle = lifecycle
        self._recorder = recorder
        self._name = name
        self._quotas = quotas
        self._watch = Watch(lifecycle)
        self.idle = 0
        self._arrivals = arrivals
        waking = [
            Waking(lifecycle, self._watch, others, ends=each, refuse=self._refuse_wakes)
            for each in (ends, True)  # idle wakes only happen while something else is due
        ]
        self.wakes, self.idle_wakes = (Wakes(each.look) for each in waking)
        self.stopped: Livelock | None = None
        self.handlers: Mapping[type, Callable[[Any], None]] = MappingProxyType(
            {
                Admit: self._admit,
                Bind: self._bind,
                Preempt: self._preempt,
                Note: self._note,
                Nominate: self._nominate,
                Unnominate: self._unnominate,
                Reject: self._reject,
                Refuse: self._refuse,
                Wake: self._wake,
                QueueShare: self._share,
            }
        )

    def _count_idle(self) -> None:
        """Stop a policy that keeps making decisions without changing anything."""
        self.idle += 1
        if self.idle > _PATIENCE and self.idle > _PATIENCE + _PATIENCE_A_JOB * len(self._lifecycle.lives):
            self.refuse(
                None, f"the policy's decisions never end: {self.idle:,} decisions in a row changed nothing"
            )

    def unknown(self, decision: object) -> None:
        """Reject a value that is not a decision."""
        self.refuse(None, f"the policy yielded {decision!r}, which is not a decision")

    def refuse(self, job: Job | None, rule: str, *, hint: str = _FAULT) -> NoReturn:
        """Stop the replay because the policy broke a rule."""
        about = f" about job {job.id}" if job is not None else ""
        now = self._lifecycle.now
        raise DecisionError(
            f"policy {self._name} made a wrong decision{about} at {now} microseconds "
            f"({format_duration(now)} after the origin): {rule}",
            hint=hint,
        )

    def _admit(self, admit: Given) -> None:
        job, lifecycle = admit.job, self._lifecycle
        life, now = self._alive(job), lifecycle.now
        if life.admitted or life.holding:
            self.refuse(job, "the job is already admitted or running")
        if admit.counts:
            life.reduce(self._checked_counts(job, admit.counts))
        delay = self._whole(job, "the delay", admit.delay)
        if delay < 0:
            self.refuse(job, f"the job would start {-delay} microseconds before it is admitted")
        life.startable = now + delay
        starts: bool | str = False
        if not lifecycle.on_nodes:
            life.asked = asked_by(job, life.counts)
            starts = lifecycle.admit(life)
            if isinstance(starts, str):
                self.refuse(job, starts)
        self.idle = 0
        life.admitted = True
        if life.first_admitted == NEVER:
            life.first_admitted = now
        pods, amounts = life.wanted, life.amounts
        if life.ended:
            pods, amounts = pods - len(life.ended), life.unused([])
        fact = new_fact(Fact, (
            now, lifecycle.cycles, ADMIT, job, pods, 0, 1 if starts else 0, 1, amounts, NEVER, 0, None,
            admit.detail or None, None, None, admit.flavors or None,
            None if life.counts is None else life.dropped, None,
        ))  # fmt: skip
        self._recorder.record(fact)
        if starts:
            lifecycle.start_whole(life)
        elif life.unit is not None and life.unit.pod == NEVER:
            life.unit.pods, life.unit.amounts = life.wanted, life.amounts

    def _bind(self, bind: Given) -> None:
        job, node, lifecycle = bind.job, bind.node, self._lifecycle
        life, books = self._alive(job), lifecycle.books
        if not bind.pods:
            self.refuse(job, f"the decision Bind names no pod, because its pods are {bind.pods!r}")
        if life.terminating:
            self.refuse(job, "the job was evicted, but still holds its resources")
        if life.admitted and life.startable > lifecycle.now:
            self.refuse(job, f"its admission does not let the job start before {life.startable} microseconds")
        if not isinstance(node, str) or node not in books.nodes:
            self._check_node(job, node)
        for each in bind.pods:
            pod = each if type(each) is int else self._whole(job, "the number of a pod", each)
            # Nearly always, none of these conditions is true, and the pod is waiting.
            known = life.counts is None and pod in life.every_pod
            if not known or pod in life.holds or pod in life.ended:
                self._check_waiting(life, pod)
            short = books.bind(job, pod, node)
            if short is not None:
                self.refuse(job, f"pod {life.current_name(pod)}: {short}")
            lifecycle.bind(life, pod, node, bind.detail or None)
        self.idle = 0

    def _preempt(self, preempt: Given) -> None:
        job, by, lifecycle = preempt.job, preempt.by, self._lifecycle
        lifecycle.last = lifecycle.now
        life = self._life_of(job)
        if life is None or not (life.holding or life.admitted):
            self.refuse(job, "the job holds nothing that could be preempted")
        if life.terminating:
            self.refuse(job, "the job was already evicted, but still holds its resources")
        if by is not None and (self._life_of(by, "the preemptor") is None or by is job):
            self.refuse(job, f"job {by.id} cannot be the preemptor: it is the same job, or is not alive")
        reason = preempt.reason
        if type(reason) is not str or not reason.isascii():
            self._check_reason(job, reason)
        action = EVICT if by is None and not preempt.unnamed else PREEMPT
        grace, detail = job.grace_period, preempt.detail
        if preempt.grace is not None:
            grace = self._whole(job, "the grace period", preempt.grace)
            if grace < 0:
                self.refuse(job, f"the job would be gone {-grace} microseconds before it is preempted")
            detail = {**detail, "grace_us": grace}
        note = {"by": by, "reason": reason, "detail": detail or None}
        if life.admitted and not (action == EVICT and preempt.pods is not None and lifecycle.on_nodes):
            if preempt.pods is not None and preempt.pods != life.every_pod:
                self.refuse(job, "the job was admitted as a whole and can only be preempted as a whole")
            life.preemptions += 1
            lifecycle.evict_whole(life, action, note, grace)
            self._count_preemption(job, _WHOLE, by)
            return
        pods = [
            pod
            for pod in (life.every_pod if preempt.pods is None else preempt.pods)
            if pod in life.holds and not life.holds[pod].terminating
        ]
        if not pods or (preempt.pods is not None and len(pods) != len(preempt.pods)):
            which = "all of its pods" if preempt.pods is None else "some of the named pods"
            self.refuse(job, f"{which} hold nothing, or are already terminating")
        life.preemptions += 1
        for pod in pods:
            lifecycle.evict_pod(life, pod, action, note, grace)
        self._count_preemption(job, pods, by)

    def _note(self, note: Given) -> None:
        job, lifecycle = note.job, self._lifecycle
        life = self._alive(job)
        if not life.admitted:
            self.refuse(job, "the job was not admitted, so its pods have no nodes")
        if note.what not in ACTIONS[MARK:]:
            self.refuse(job, f"a note must be one of {', '.join(ACTIONS[MARK:])}, not {note.what!r}")
        self._count_idle()
        fact = Fact(
            lifecycle.now, lifecycle.cycles, ACTIONS.index(note.what), job, life.wanted - len(life.ended),
            node=note.node, detail=note.detail or None,
        )  # fmt: skip
        self._recorder.record(fact)

    def _count_preemption(self, job: Job, pods: Iterable[int], by: Job | None) -> None:
        """Stop a livelock, either after the current time or immediately if the cycle would never end."""
        self.idle = 0
        livelock = self._watch.preempted(job, pods, by)
        if livelock is None:
            return
        self.stopped = livelock
        if self._watch.endless:
            self.refuse(job, f"the policy's decisions at this time never end: {livelock}", hint=_TIMELESS)

    def _nominate(self, nominate: Given) -> None:
        job = nominate.job
        life = self._alive(job)
        pod = self._whole(job, "the number of a pod", nominate.pod)
        self._count_idle()
        self._check_node(job, nominate.node)
        self._check_waiting(life, pod)
        self._record_pod(NOMINATE, life, pod, node=nominate.node, detail=nominate.detail or None)

    def _unnominate(self, unnominate: Given) -> None:
        job = unnominate.job
        life = self._alive(job)
        self._count_idle()
        pod = self._whole(job, "the number of a pod", unnominate.pod)
        self._check_waiting(life, pod)
        self._record_pod(UNNOMINATE, life, pod)

    def _reject(self, reject: Given) -> None:
        job, lifecycle = reject.job, self._lifecycle
        life = self._alive(job)
        if life.holding or life.admitted:
            self.refuse(job, "the job is admitted or running, so it cannot be rejected")
        reason = reject.reason
        if type(reason) is not str or not reason.isascii():
            self._check_reason(job, reason)
        self.idle = 0
        fact = Fact(
            lifecycle.now, lifecycle.cycles, REJECT, job, job.pods - len(life.ended),
            reason=reason, detail=reject.detail or None, alive=-1,
        )  # fmt: skip
        self._recorder.record(fact)
        del lifecycle.lives[job.index]
        lifecycle.record_job(life, REJECTED, NEVER)
        life.let_go()

    def _refuse(self, refuse: Given) -> None:
        job, lifecycle = refuse.job, self._lifecycle
        life = self._alive(job)
        self._count_idle()
        waiting = life.wanted - len(life.ended) - len(life.holds)
        if waiting < 1 or (life.admitted and not lifecycle.on_nodes):
            self.refuse(job, "the job is admitted, or none of its pods is waiting, so nothing can be refused")
        reason = refuse.reason
        if type(reason) is not str or not reason.isascii():
            self._check_reason(job, reason)
        fact = new_fact(Fact, (
            lifecycle.now, lifecycle.cycles, REFUSE, job, waiting, 0, 0, 0, None, NEVER, 0, None,
            refuse.detail or None, None, reason, None, None, None,
        ))  # fmt: skip
        self._recorder.record(fact)

    def _wake(self, wake: Given) -> None:
        self._count_idle()
        try:
            at = index(wake.at)  # with a fraction, the clock would advance by fractions of microseconds
        except TypeError:
            rule = f"the policy requests a wake at {wake.at!r} microseconds, which is not a whole number"
            self.refuse(None, rule)
        if at <= self._lifecycle.now:
            self.refuse(None, f"the policy requests a wake at {at} microseconds, which is not later than now")
        # If no job is alive or will arrive, a wake can't start work, so it is idle whatever it says.
        idle = wake.idle or (not self._lifecycle.lives and self._arrivals.due == FAR)
        (self.idle_wakes if idle else self.wakes).add(at)

    def _refuse_wakes(self, rule: str, hint: str) -> None:
        self.refuse(None, rule, hint=hint)

    def _share(self, told: Given) -> None:
        self._count_idle()
        queue, share, weighted = told.queue, told.share, told.weighted
        if type(queue) is not str or (queue not in self._quotas and self._quotas):
            self.refuse(
                None,
                f"the policy reports a share of {queue!r}, which is not a ClusterQueue or "
                "ElasticQuota of the "
                "cluster",
            )
        try:
            known = isfinite(share) and -INT64_MAX <= index(weighted) <= INT64_MAX
        except (TypeError, OverflowError):
            known = False
        if not known:
            self.refuse(
                None,
                f"the share of {queue} must be a finite number, and its weighted share an integer, not "
                f"{share!r} and {weighted!r}",
            )
        self._recorder.share(self._lifecycle.now, queue, float(share), index(weighted))

    def _record_pod(
        self,
        action: int,
        life: Life,
        pod: int,
        node: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        lifecycle = self._lifecycle
        fact = Fact(
            lifecycle.now, lifecycle.cycles, action, life.job, 1,
            pod=pod, successor=life.successor(pod), node=node, detail=detail,
        )  # fmt: skip
        self._recorder.record(fact)

    def _alive(self, job: Job) -> Life:
        lifecycle = self._lifecycle
        lifecycle.last = lifecycle.now
        try:
            life = lifecycle.lives.get(job.index)
        except (AttributeError, TypeError):  # it is not a job
            life = None
        if life is None or life.job is not job:
            self._check_job(job)
            self.refuse(job, "the job is not waiting, because it has not arrived or is over")
        return life

    def _life_of(self, job: Job, what: str = "") -> Life | None:
        self._check_job(job, what)
        life = self._lifecycle.lives.get(job.index)
        return life if life is not None and life.job is job else None

    def _check_job(self, job: object, what: str = "") -> None:
        if not isinstance(job, Job):
            about = f"the decision names {job!r} as {what}" if what else f"the decision is about {job!r}"
            self.refuse(None, f"{about}, which is not a job")

    def _check_reason(self, job: Job, reason: object) -> None:
        if not isinstance(reason, str):
            self.refuse(job, f"the reason must be text, not {reason!r}")
        try:
            reason.encode()
        except UnicodeEncodeError as error:
            self.refuse(job, f"the reason {reason!r} cannot be written as UTF-8: {error.reason}")

    def _check_node(self, job: Job, node: object) -> None:
        if not isinstance(node, str) or node not in self._lifecycle.books.nodes:
            self.refuse(job, f"there is no node {node!r}")

    def _check_waiting(self, life: Life, pod: int) -> None:
        if not life.is_wanted(pod):
            self.refuse(
                life.job, f"pod {pod} should not run: only {counted(life.wanted, 'pod')} of the job should"
            )
        if pod in life.holds or pod in life.ended:
            self.refuse(life.job, f"pod {life.current_name(pod)} is not waiting")

    def _checked_counts(self, job: Job, counts: Mapping[Any, Any]) -> dict[str, int]:
        pod_sets = {pod_set.name: pod_set for pod_set in job.pod_sets}
        checked = {}
        for name, given in counts.items():
            pod_set = pod_sets.get(name)
            if pod_set is None:
                self.refuse(job, f"the job has no pod set {name!r}")
            checked[name] = count = self._whole(job, f"the count of pod set {name}", given)
            if not pod_set.min_count <= count <= pod_set.count:
                allowed = f"{pod_set.min_count} to {pod_set.count}"
                self.refuse(job, f"pod set {name} allows {allowed} pods, not {count}")
        return checked

    def _whole(self, job: Job, what: str, value: Any) -> int:
        try:
            return index(value)
        except TypeError:
            self.refuse(job, f"{what} is {value!r}, which is not a whole number")

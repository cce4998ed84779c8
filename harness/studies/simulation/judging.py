"""Turns the decisions of an instant into answers about jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from harness.analysis.explanation.vocabulary import Figures
from harness.base.text import first_of
from harness.cluster.kinds.workloads import REJECTED, RETRY, CheckState
from harness.engine.events import NEVER as NOT_YET
from harness.policy import Never
from harness.runs.questions import AWAY, foresight_in_dump
from harness.studies.simulation.answer import (
    CHECKS,
    NEVER,
    NODES,
    QUOTA,
    STARTS,
    TURN,
    VICTIMS,
    WAITS,
    Answer,
    Move,
)
from harness.studies.simulation.differences import without_quota, workload_of
from harness.studies.simulation.instant import Instant, Life
from harness.studies.simulation.words import Words, evicted_for_nobody

if TYPE_CHECKING:
    from harness.policy import Job, Possible
    from harness.studies.simulation.moment import Moment

_NAMED = 3
_HELD_BACK = "Inadmissible"
"""The reason for jobs that a component other than the scheduler keeps out of their queues."""

_INACTIVE = " is inactive: "
"""Occurs in the reason why a job can never start if its queue is inactive. Somebody may open the queue."""

EVICTIONS = ("AdmissionCheck", "DeactivatedDueToAdmissionCheck")
"""The reasons with which Kueue evicts a job because of its checks."""


class Judge:
    """Derives answers from the decisions at a moment.

    Args:
        waiting: the jobs that wait at the moment; see `Moment`.
        named: the waiting jobs of the question; by default, all waiting jobs.
    """

    def __init__(
        self, moment: Moment, instant: Instant, waiting: Sequence[str], named: Sequence[str] = ()
    ) -> None:
        self._moment = moment
        self._instant = instant
        self._waiting = waiting
        self._named = named or waiting
        self._words = Words(instant, moment.cluster)
        self._possible: Possible | None = None

    def answers(self) -> list[Answer]:
        """Returns the answers about submitted jobs in order or, if there are none, about waiting jobs."""
        asked = self._moment.submitted or [(name,) for name in self._named]
        moves = self._moves({name for names in asked for name in names})
        return [self._answer(names, moves) for names in asked]

    # --- one job ------------------------------------------------------------------------------------------

    def _answer(self, names: Sequence[str], moves: Sequence[Move]) -> Answer:
        lives = [self._instant.lives[name] for name in names]
        late = next((each for each in lives if each.started == NOT_YET or self._checks(each)), None)
        told = lives[0] if late is None else late
        never = None if late is None else self._never(late)
        victims = [self._words.victim(self._instant.lives[name]) for name in self._instant.victims(names)]
        verdict, waits_for = STARTS, ""
        if never is not None:
            verdict, waits_for = (WAITS, NODES) if never.where == AWAY else (NEVER, "")
            why = never.why
        elif late is not None:
            verdict = WAITS
            waits_for, why = self._why(late)
        else:
            why = self._started(*lives)
        job, admitted = told.job, told.admitted
        detail: Mapping[str, Any] = {} if admitted is None else admitted.detail or {}
        nodes = sum((each.bound for each in lives if not self._checks(each)), Counter())
        return Answer(
            _whole_name(names),
            tuple(names),
            job.queue,
            job.priority,
            sum(each.job.pods for each in lives),
            verdict,
            waits_for,
            why,
            {} if admitted is None else admitted.flavors or {},
            detail.get("counts", {}),
            {node: count for node, count in sorted(nodes.items()) if count > 0},
            detail.get("topology", {}),
            victims,
            [each for each in moves if each.name not in {victim.name for victim in victims}],
            untried_up_to=self._instant.untried_up_to(names),
        )

    def _started(self, *lives: Life) -> str:
        """Describes the admission of a job, or the nodes of its pods."""
        if lives[0].admitted is not None:
            return self._words.admission(lives[0])
        nodes = sorted({node for life in lives for node in life.bound})
        return f"bound to {', '.join(nodes)}" if nodes else "started"

    def _never(self, life: Life) -> Never | None:
        """Returns why a job can never start, or not before nodes return, or None if it may start."""
        if checks := self._checks(life):
            return Never("checks", unready(checks)) if is_final(checks) else None
        if self._possible is None:
            by, cluster = self._moment.scheduler, self._moment.cluster
            self._possible = foresight_in_dump(by.policy, cluster, by.options) or _maybe
        found = self._possible(life.job)
        if not life.rejected and self._held_back(life) and (found is None or _INACTIVE in found.why):
            return None
        if life.rejected and (found is None or found.where != AWAY):
            return Never("scheduler", life.rejected)
        if found is None or (life.admitted is not None and found.where not in ("nodes", AWAY)):
            return None  # a job that holds quota keeps it, even if its queue could no longer give it
        return found

    @staticmethod
    def _held_back(life: Life) -> bool:
        """Returns True if a component other than the scheduler currently keeps a job out of its queue."""
        return bool(life.refusals) and life.refusals[-1].reason == _HELD_BACK

    def _why(self, life: Life) -> tuple[str, str]:
        """Returns what a job waits for, and a description of the decision that shows it."""
        made = self._instant.preempted_by.get(life.job.id)
        if made:
            return VICTIMS, self._words.preempts(life.job, made)
        if checks := self._checks(life):
            return CHECKS, unready(checks)
        if life.job.id in self._moment.leaving or life.evicted:
            return VICTIMS, f"the job itself must leave: {self._words.victim(life).text}"
        refusal = self._words.refusal(life)
        if node := self._nominated(life):
            said = self._words.nomination(life.job, node, life.nominated)
            return VICTIMS, said if refusal is None else f"{said}; {refusal[1]}"
        if life.admitted is not None:
            said = self._words.admission(life)
            if self._words.figures(life.admitted).checks:
                return CHECKS, said
            if not self._moment.cluster.nodes:
                return VICTIMS, said
            return NODES, said if refusal is None else f"{said}; {refusal[1]}"
        if refusal is None and life.left is not None and life.back_at > self._instant.at:
            again = f"Kueue queues it again at {self._moment.told(life.back_at)}"
            return CHECKS, f"it is in a backoff after its eviction ({life.left.reason}), and {again}"
        if refusal is None:
            return self._beside(life)
        figures, said = refusal
        waits_for = self._waits_for(figures, life)
        if waits_for == QUOTA and (leaving := self._leaving_with(life.job, figures.short)):
            hold = "holds" if len(leaving) == 1 else "hold"
            said += (
                f"; {first_of(leaving, _NAMED)} still {hold} quota until the pods are gone, after an eviction"
            )
            if self._afterwards.lives[life.job.id].admitted is not None:
                waits_for = VICTIMS
        return waits_for, said

    def _nominated(self, life: Life) -> str:
        """Returns the node that a preemption is freeing for a pod of a job, or ""."""
        if life.nominated is not None:
            return life.nominated.node or ""
        return self._nominations.get(life.job.id, "")

    @cached_property
    def _nominations(self) -> Mapping[str, str]:
        """Maps the Pods that wait to their nominated nodes, according to the manifests."""
        there = self._moment.cluster
        waits = (pod for pod in there.pods if not pod.node and pod.nominated_node in there.nodes)
        return {pod.key: pod.nominated_node for pod in waits}

    def _leaving_with(self, job: Job, short: Collection[str]) -> list[str]:
        """Returns the jobs of the same cohorts whose eviction began before, and that hold missing quota."""
        there = ((name, self._instant.lives.get(name)) for name in sorted(self._moment.leaving))
        near = (name for name, life in there if life is not None and self._pool(life.job) == self._pool(job))
        return [name for name in near if self._holds_any(name, short)]

    def _holds_any(self, name: str, labels: Collection[str]) -> bool:
        """Returns True if a Workload holds quota of one of these labels, which are `flavor/resource`."""
        found = workload_of(self._moment.cluster, name)
        sets = () if found is None or found.admission is None else found.admission.assignments
        return any(f"{flavor}/{res}" in labels for each in sets for res, flavor in each.flavors.items())

    def _pool(self, job: Job) -> str | None:
        """Returns a name for the tree of cohorts of a job's queue, or None without a queue."""
        cluster = self._moment.cluster
        queue = cluster.cluster_queue_of(job.namespace, job.queue)
        return None if queue is None else cluster.tree_of(queue)

    @cached_property
    def _afterwards(self) -> Instant:
        """The same moment, as if the jobs that leave had released their quota."""
        return self._moment.played(partial(without_quota, names=self._moment.leaving))

    def _checks(self, life: Life) -> Sequence[CheckState]:
        """Returns the admission checks for which a job waits while it keeps its quota, or that evict it."""
        if life.admitted is None and not any(fact.reason in EVICTIONS for fact in life.evicted):
            return ()
        return self._moment.reserved.get(life.job.id, ())

    def _waits_for(self, figures: Figures, life: Life) -> str:
        """Returns what a refused job waits for, according to the figures of the refusal."""
        if figures.waits_for and not figures.ahead:
            return VICTIMS if all(map(self._goes, figures.waits_for)) else TURN
        if figures.ahead:
            return TURN
        if figures.lacks:
            return NODES
        if figures.short and (figures.queue or not self._moment.cluster.nodes):
            return QUOTA
        if figures.nodes or figures.short:
            return NODES
        return CHECKS if self._held_back(life) else TURN

    def _goes(self, name: str) -> bool:
        life = self._instant.lives.get(name)
        return name in self._moment.leaving or life is None or bool(life.evicted)

    def _beside(self, life: Life) -> tuple[str, str]:
        """Returns what an untried job waits for, based on a job of the same queue that was tried.

        The scheduler tries only one of several jobs with equal requests. If this job is refused, the reason
        applies to all of them.
        """
        said = "the scheduler did not try it at this time"
        line = self._line(life.job)
        alike = self._tried.get((*line, _asks(life.job)), ())
        for other in (*alike, *self._tried.get((*line, ""), ())):
            made = self._instant.preempted_by.get(other.job.id)
            refusal = self._words.refusal(other)
            same = any(other is each for each in alike)
            kind = "queue" if other.job.queue == life.job.queue else "ClusterQueue"
            whose = f"job {other.job.id} of the same {kind}"
            if refusal is not None and same:
                tried = f"the scheduler tried {whose} instead, which requests the same"
                return self._waits_for(refusal[0], other), f"{refusal[1]}; {tried}"
            first = f"{said}; {whose}, which was tried before it,"
            if refusal is not None:
                return TURN, f"{first} {refusal[1]}"
            if made:
                return TURN, f"{first} waits for victims: {self._words.preempts(other.job, made)}"
        return TURN, said

    @cached_property
    def _tried(self) -> Mapping[tuple[str, str, str], Sequence[Life]]:
        """Maps a queue, or a queue with a key of requests, to the first waiting job that was tried."""
        found: dict[tuple[str, str, str], list[Life]] = {}
        for life in self._instant.lives.values():
            job = life.job
            made = self._instant.preempted_by.get(job.id)
            tried = made or (life.refusals and not self._held_back(life))
            if tried and life.admitted is None and not life.evicted:
                for asks in ("", _asks(job)):
                    found.setdefault((*self._line(job), asks), [life])
        return found

    def _line(self, job: Job) -> tuple[str, str]:
        """Returns a key that is the same for jobs of one ClusterQueue, or else of one queue."""
        queue = self._moment.cluster.cluster_queue_of(job.namespace, job.queue)
        return (job.namespace, job.queue) if queue is None else ("", queue.name)

    # --- others -------------------------------------------------------------------------------------------

    def _moves(self, own: Collection[str]) -> list[Move]:
        found: list[Move] = []
        waiting = frozenset(self._waiting).difference(self._moment.reserved)
        for name, life in self._instant.lives.items():
            if name in own:
                continue
            job = life.job
            made = self._instant.preempted_by.get(name)
            if made and name not in self._moment.leaving:
                found.append(Move(name, job.queue, "preempts", self._words.preempts(job, made)))
            elif life.started == self._instant.at and name in waiting:
                found.append(Move(name, job.queue, "starts", self._started(life)))
            if life.evicted and name not in self._moment.leaving:
                what = "evicted" if evicted_for_nobody(life) else "preempted"
                found.append(Move(name, job.queue, what, self._words.victim(life).text))
        return found


def _whole_name(names: Sequence[str]) -> str:
    """Returns the name of a job or, if the job consists of several Pods, their common name."""
    return names[0] if len(names) == 1 else names[0].rpartition("-")[0]


def _asks(job: Job) -> str:
    """Returns a key that is equal for jobs that the scheduler does not try separately."""
    pods = [
        (each.count, dict(each.requests), dict(each.node_selector), each.tolerations, each.affinity)
        for each in job.pod_sets
    ]
    return repr((job.priority, pods, [each.pod_template for each in job.pod_sets]))


def _maybe(job: object) -> Never | None:
    """Returns None for any job, because no job is excluded in advance."""
    return None


def is_final(checks: Iterable[CheckState]) -> bool:
    """Returns True if one of the checks rejects the job for good."""
    return any(each.state == REJECTED for each in checks)


def unready(checks: Iterable[CheckState]) -> str:
    """Returns a sentence that names the checks that are not ready, and says how Kueue reacts to them.

    Kueue evicts a job if a check is in state `Retry`, and also deactivates the job if a check is in state
    `Rejected` (upstream's reconcileCheckBasedEviction).
    """
    checks = list(checks)
    told = [f"admission check {each.name} is {each.state}{_message(each)}" for each in checks]
    after = ""
    if is_final(checks):
        after = "; Kueue evicts and deactivates it"
    elif any(each.state == RETRY for each in checks):
        after = "; Kueue evicts it, and queues it again when it has released its quota"
    return f"it has reserved quota, but {', '.join(told)}{after}"


def _message(check: CheckState) -> str:
    return f" ({check.message})" if check.message else ""

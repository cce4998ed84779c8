"""Jobs and clusters for handwritten tests, and a replay that returns every decision.

In requests and capacities, `gpu` stands for `nvidia.com/gpu`, because an argument can't have this name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.base.errors import InputError
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.model import (
    Cluster,
    ClusterQueue,
    FlavorQuotas,
    Node,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    frozen,
)
from harness.engine import Engine, Losses
from harness.engine.engine import Outcome
from harness.engine.events import ACTIONS, NEVER, STATES, STINTS, Amounts, Fact
from harness.engine.texts import Texts
from harness.policy import ENDLESS, Arrival, Job, PodSet, PolicyFactory

_WITHOUT_DOMAIN = ("cpu", "memory", "gpu", "ephemeral-storage", "pods")
"""The resources without a domain in their names; the full name of `gpu` has a domain."""


@dataclass(frozen=True, slots=True)
class Row:
    """A decision, or an event without a decision, with names instead of objects.

    `holding` is 1 if the job begins to hold resources with this row, and -1 if the job stops holding
    resources.
    """

    time: int
    action: str
    job: str
    pods: int
    pod: str | None = None
    by: str | None = None
    reason: str | None = None
    node: str | None = None
    flavors: Mapping[str, Mapping[str, str]] | None = None
    holding: int = 0
    detail: Mapping[str, Any] | None = None
    cycle: int = 0


@dataclass(frozen=True, slots=True)
class Stint:
    """A time span in which pods held resources in one state; `amounts` is the total of the pods."""

    job: str
    pods: int
    amounts: Mapping[str, int]
    start: int
    end: int
    state: str
    lost: int
    lost_before: int = 0


@dataclass(frozen=True, slots=True)
class JobRow:
    """The final state of a job, or its state at the end of the replay."""

    state: str
    admitted: int
    start: int
    finish: int
    preemptions: int
    lost: int
    idle: int


@dataclass
class Decisions:
    """A recorder that stores all rows in lists."""

    rows: list[Row] = field(default_factory=list)
    stints: list[Stint] = field(default_factory=list)
    jobs: dict[str, JobRow] = field(default_factory=dict)
    shares: list[tuple[int, str, float, int]] = field(default_factory=list)
    outcome: Outcome | None = None
    _texts: Texts = field(default_factory=Texts, init=False, repr=False, compare=False)

    def of(self, *actions: str) -> list[Row]:
        """Returns the rows of some actions, earliest first."""
        return [row for row in self.rows if row.action in actions]

    def starts(self) -> dict[str, float]:
        """Returns the time of each job's first progress, in seconds."""
        return {name: job.start / SECOND for name, job in self.jobs.items() if job.start >= 0}

    def record(self, fact: Fact) -> None:
        """See `harness.engine.events.Recorder`."""
        if fact.detail is not None:
            self._texts.of_detail(fact)  # refuses objects that a run could not store
        if fact.flavors is not None:
            self._texts.of_flavors(fact)
        self.rows.append(
            Row(
                fact.time,
                ACTIONS[fact.action],
                fact.job.id,
                fact.pods,
                fact.pod_name,
                None if fact.by is None else fact.by.id,
                fact.reason,
                fact.node,
                fact.flavors,
                fact.holding,
                fact.detail,
                fact.cycle,
            )
        )

    def stint(
        self,
        job: Job,
        pods: int,
        amounts: Amounts | None,
        start: int,
        end: int,
        state: int,
        lost: int,
        lost_before: int = 0,
        pod: int = NEVER,
    ) -> None:
        """See `harness.engine.events.Recorder`."""
        if amounts is None:
            total = job.requests_of(range(job.pods))
            amounts = {resource: amount // job.pods * pods for resource, amount in total.items()}
            if pods == job.pods:
                amounts = total
        held = dict(amounts)
        self.stints.append(Stint(job.id, pods, held, start, end, STINTS[state], lost, lost_before))

    def share(self, time: int, queue: str, share: float, weighted: int) -> None:
        """See `harness.engine.events.Recorder`."""
        self.shares.append((time, queue, share, weighted))

    def job(
        self,
        job: Job,
        state: int,
        admitted: int,
        start: int,
        finish: int,
        preemptions: int,
        lost: int,
        idle: int,
    ) -> None:
        """See `harness.engine.events.Recorder`."""
        self.jobs[job.id] = JobRow(STATES[state], admitted, start, finish, preemptions, lost, idle)


class Script:
    """A handwritten list of jobs, with times in seconds and requests in the units of the engine."""

    def __init__(self) -> None:
        self._arrivals: list[Arrival] = []

    def job(
        self,
        name: str,
        *,
        at: float = 0,
        seconds: float = 1,
        pods: int = 1,
        gang: bool | None = None,
        queue: str = "default",
        user: str = "",
        priority: int = 0,
        priority_class: str = "",
        preempts: bool = True,
        grace: float = 0,
        requested: float | None = None,
        checkpoint: float | None = None,
        startup: float | None = 0,
        done: float = 0,
        pod_sets: tuple[PodSet, ...] = (),
        **requests: int,
    ) -> Script:
        """Add a job, which must not arrive before the job that was added last.

        Args:
            name: the id of the job.
            at: the time of arrival, in seconds.
            seconds: the run time without interruptions.
            pods: the number of equal pods, each with `requests`.
            gang: whether the job makes progress only when all of its pods run. This is the default for
                several pods.
            queue: the queue.
            user: the user.
            priority: the priority, where a larger number is more important.
            priority_class: the name of the PriorityClass.
            preempts: False for `preemptionPolicy: Never`.
            grace: how long preempted pods keep their resources, in seconds.
            requested: the longest run time that the user requested, in seconds.
            checkpoint: the job's own checkpoint interval, in seconds.
            startup: how long the pods take to become ready, in seconds. None if they never become ready.
            done: how much of the run is done before the job arrives, in seconds.
            pod_sets: several pod sets with full names of resources, instead of `pods` and `requests`.
            requests: the request of each pod for each resource.

        Raises:
            InputError: a request is for a resource with a name that Kubernetes can't have.
        """
        for resource in requests:
            if "/" not in resource and resource not in _WITHOUT_DOMAIN:
                raise InputError(
                    f"job {name}: {resource!r} is neither an argument of job() nor a resource",
                    hint=f"resources are {', '.join(_WITHOUT_DOMAIN)}, and names with a domain",
                )
        sets = pod_sets or (PodSet("main", pods, pods, _named(requests)),)
        total = sum(each.count for each in sets)
        index = len(self._arrivals)
        job = Job(
            index,
            name,
            round(at * SECOND),
            queue,
            "default",
            user,
            priority,
            priority_class,
            preempts,
            total > 1 if gang is None else gang,
            round(grace * SECOND),
            f"{index:06}",
            sets,
            total,
            requested=None if requested is None else round(requested * SECOND),
        )
        interval = None if checkpoint is None else round(checkpoint * SECOND)
        arrival = (job, round(seconds * SECOND), interval)
        pods_ready = None if startup == 0 else (ENDLESS if startup is None else round(startup * SECOND),)
        self._arrivals.append((*arrival, pods_ready, round(done * SECOND)))
        return self

    def chunks(self) -> Iterator[list[Arrival]]:
        """Yields the jobs in the form that the engine expects."""
        yield list(self._arrivals)

    def __getitem__(self, name: str) -> Job:
        return next(job for job, *_ in self._arrivals if job.id == name)


def pool(cohort: str = "", **capacity: int) -> Cluster:
    """Returns a cluster without nodes that has a ClusterQueue `default` with this quota."""
    return queues(default=capacity, cohort=cohort)


def queues(cohort: str = "", **nominal: Mapping[str, int]) -> Cluster:
    """Returns a cluster without nodes, where ClusterQueues with these quotas share a cohort and a flavor."""
    made = {}
    for name, quotas in nominal.items():
        flavor = FlavorQuotas(
            "default", frozen({each: ResourceQuota(amount) for each, amount in _named(quotas).items()})
        )
        made[name] = ClusterQueue(name, cohort, (ResourceGroup(tuple(_named(quotas)), (flavor,)),))
    return Cluster(cluster_queues=frozen(made), flavors=frozen({"default": ResourceFlavor("default")}))


def nodes(**allocatable: Mapping[str, int]) -> Cluster:
    """Returns a cluster that has nodes but no queues."""
    return Cluster(nodes=frozen({name: Node(name, _named(amounts)) for name, amounts in allocatable.items()}))


def _named(amounts: Mapping[str, int]) -> Mapping[str, int]:
    return frozen({"nvidia.com/gpu" if name == "gpu" else name: amount for name, amount in amounts.items()})


def replayed(
    policy: PolicyFactory,
    jobs: Script,
    cluster: Cluster,
    *,
    options: Mapping[str, Any] | None = None,
    losses: Losses | None = None,
    until: float | None = None,
) -> Decisions:
    """Replay jobs through a policy and return all decisions and events.

    Args:
        policy: the policy class. Options in its attribute `options` get their defaults.
        jobs: the jobs.
        cluster: the cluster to schedule on.
        options: the policy's options.
        losses: what a preempted job loses. The default is all progress.
        until: the time after which the replay ends, in seconds.

    Raises:
        DecisionError: the policy made an impossible decision.
    """
    kept = Decisions()
    limit = None if until is None else round(until * SECOND)
    engine = Engine(jobs.chunks(), cluster, kept, losses=losses, until=limit)
    declared = getattr(policy, "options", ())
    made = policy(
        cluster, engine.view, resolve(declared, options or {}, owner="policy") if declared else options or {}
    )
    kept.outcome = engine.run(made, name=getattr(policy, "__name__", "policy"))
    return kept

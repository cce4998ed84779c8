"""Describes the decisions of an instant in the words of `harness explain`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.analysis.explanation.history import Event, Other, filled_in
from harness.analysis.explanation.sentences import Sentences
from harness.analysis.explanation.vocabulary import Figures, Units, read
from harness.base.grouping import grouped, summed
from harness.cluster.model import Cluster
from harness.engine.events import ACTIONS, ADMIT, EVICT, Fact
from harness.engine.texts import Texts
from harness.policy import Job
from harness.studies.simulation.answer import Victim
from harness.studies.simulation.instant import Instant, Life, Lost


class Words:
    """Writes sentences about an instant."""

    def __init__(self, instant: Instant, cluster: Cluster) -> None:
        self._instant = instant
        self._texts = Texts()
        self._on_nodes = bool(cluster.nodes)
        self._units = Units(_resources(cluster), flavors=len(cluster.flavors) > 1)

    def figures(self, fact: Fact) -> Figures:
        """Returns the figures that were recorded with a decision."""
        return read(None if fact.detail is None else self._texts.of_detail(fact))

    def refusal(self, life: Life) -> tuple[Figures, str] | None:
        """Returns the figures and the reason of a job's last refusal, or None if the job was not refused."""
        if not life.refusals:
            return None
        told = [self._event(fact, life.job.pods) for fact in life.refusals]
        last = filled_in(told)[-1]
        return last.figures, self._sentences(life.job).refused(last)

    def admission(self, life: Life) -> str:
        """Describes a job's admission in a sentence."""
        assert life.admitted is not None
        return self._sentences(life.job).about(self._event(life.admitted, life.admitted.pods))

    def nomination(self, job: Job, node: str, fact: Fact | None) -> str:
        """Returns a sentence about the node that is nominated for a pod. `fact` is the decision, if known."""
        figures = Figures() if fact is None else self.figures(fact)
        event = Event(self._instant.at, "nominate", 1, figures=figures, nodes={node: 1})
        return self._sentences(job).about(event)

    def preempts(self, job: Job, facts: Sequence[Fact]) -> str:
        """Returns a sentence about the jobs that a job preempts."""
        victims = grouped((fact.job.id, fact) for fact in facts)
        others = tuple(
            Other(name, own[0].job.queue, own[0].job.priority, sum(each.pods for each in own))
            for name, own in sorted(victims.items())
        )
        first = facts[0]
        event = Event(
            first.time, "preempts", sum(each.pods for each in facts), first.reason or "",
            self.figures(first), others,
        )  # fmt: skip
        return self._sentences(job).about(event)

    def victim(self, life: Life) -> Victim:
        """Describes a preempted or evicted job, with the progress that it loses."""
        first, job = life.evicted[0], life.job
        others = () if first.by is None else (_other(first.by),)
        costs = life.lost
        pods = sum(fact.pods for fact in life.evicted)
        ran = max((each.ran for each in costs), default=0)
        lost = sum(each.lost * each.pods for each in costs)
        event = Event(
            first.time,
            ACTIONS[first.action],
            pods,
            first.reason or "",
            self.figures(first),
            others,
            ran=ran,
            lost=lost,
            lost_pods=sum(each.pods for each in costs if each.lost),
            lost_amounts=_amounts(job, costs),
        )
        text = self._sentences(job).about(event)
        return Victim(
            job.id, job.queue, job.priority, first.reason or "", pods, ran if costs else None, lost, text
        )

    def _event(self, fact: Fact, pods: int) -> Event:
        flavors = "" if fact.flavors is None else self._texts.of_flavors(fact)
        waits = fact.action == ADMIT and fact.holding == 0 and not self._on_nodes
        return Event(
            fact.time, ACTIONS[fact.action], pods, fact.reason or "", self.figures(fact), flavors=flavors,
            waits=waits,
        )  # fmt: skip

    def _sentences(self, job: Job) -> Sentences:
        return Sentences(self._units, job.queue, job.priority, job.pods, lambda time: "this instant")


def evicted_for_nobody(life: Life) -> bool:
    """Returns True if the job is evicted without a preemptor."""
    return life.evicted[0].action == EVICT


def _other(job: Job) -> Other:
    return Other(job.id, job.queue, job.priority, 0)


def _amounts(job: Job, costs: Iterable[Lost]) -> dict[str, int]:
    """Returns the resource-microseconds that a job loses, by resource, as if all of its pods were equal."""
    total = job.requests_of(range(job.pods)).items()
    found = summed(
        (resource, amount * each.pods * each.lost // job.pods) for each in costs for resource, amount in total
    )
    return {resource: amount for resource, amount in found.items() if amount}


def _resources(cluster: Cluster) -> set[str]:
    found = {name for group in cluster.resource_groups for name in group.covered_resources}
    found.update(name for node in cluster.nodes.values() for name in node.allocatable)
    return found | {name for quota in cluster.elastic_quotas.values() for name in quota.named}

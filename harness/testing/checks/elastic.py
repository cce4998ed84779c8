"""Checks the usage and the guarantees of elastic quotas, and the preemptions that they allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harness.cluster.kinds.elastic import ACK, CAPACITY, KOORDINATORS, ElasticQuota, leaves_of, semantics_of
from harness.testing.checks.facts import Asked, Broken, Facts, by_node
from harness.testing.checks.history import Rule, Step

_QUOTA = "quota.scheduling.koordinator.sh/name"
_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"

Used = dict[str, dict[str, int]]


class Elastic(Rule):
    """Tracks the usage of quotas, with and without terminating pods.

    Koordinator's runtime quotas are unknown here, so only `max` limits the usage of Koordinator's quotas.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._quotas = facts.cluster.elastic_quotas
        options = facts.run.info["policy"]["options"]
        self._falls_back = facts.run.info["policy"]["name"] == "auto" and options.get("autoBy") != "cluster"
        self._semantics = semantics_of(facts.ever.elastic_quotas, options.get("semantics"))
        key, _, value = options.get("protectedLabel", "").partition("=")
        self._protected = (key, value)
        self._holds: Used = {name: {} for name in self._quotas}
        self._stays: Used = {name: {} for name in self._quotas}
        self._counted: dict[str, tuple[set[int], set[int]]] = {}
        self._charged: dict[tuple[str, int], list[str]] = {}  # pod -> the quotas that it counts against

    def change(self, now: int) -> None:
        """Update the quotas, and count all pods again.

        As an exception, a quota of scheduler-plugins that is new doesn't count pods that were already bound.
        """
        before = self._quotas
        self._quotas = self.facts.cluster.elastic_quotas
        for used in (self._holds, self._stays):
            used.clear()
            used.update({name: {} for name in self._quotas})
        for name, (holds, stays) in self._counted.items():
            asked = self.facts.jobs[name]
            for pod in holds:
                key = name, pod
                if self._semantics == CAPACITY:
                    kept = [each for each in self._charged[key] if each in before and each in self._quotas]
                    self._charged[key] = kept
                else:
                    self._charged[key] = [each.name for each in self._line(asked, pod)]
            self._charge(asked, self._holds, holds, 1)
            self._charge(asked, self._stays, stays, 1)

    def _charge(self, asked: Asked, used: Used, pods: Iterable[int], sign: int) -> None:
        for pod in pods:
            for quota in self._charged[asked.name, pod]:
                for resource, amount in asked.part_of(pod).requests.items():
                    used[quota][resource] = used[quota].get(resource, 0) + sign * amount

    def turn(self, step: Step) -> Iterator[Broken]:
        """Yields violations for quotas that exceed their bounds, and for forbidden preemptions."""
        if step.row["action"] in ("preempt", "evict") and not by_node(step.row):
            yield from self._evicted(step)
        self._count(step)
        if step.row["action"] == "bind":
            yield from self._bound(step)

    def _line(self, asked: Asked, pod: int) -> list[ElasticQuota]:
        """Returns the quota of a pod by its label, namespace or queue, and the quota's ancestors."""
        leaves = leaves_of(self._quotas)
        local = self.facts.cluster.local_queues.get((asked.namespace, asked.queue))
        names = [asked.part_of(pod).labels.get(_QUOTA, "")]
        names += [name for name, quota in leaves.items() if asked.namespace in quota.namespaces]
        names += [asked.queue, local.cluster_queue if local else ""]
        name = next((name for name in names if name in leaves), "")
        found = []
        while name:
            found.append(self._quotas[name])
            name = self._quotas[name].parent
        return found

    def _count(self, step: Step) -> None:
        """Update the usage of quotas. The pods of a job can belong to different quotas."""
        life = step.life
        holds = set(life.holds)
        stays = {pod for pod, hold in life.holds.items() if hold.due is None}
        asked = life.asked
        before = self._counted.get(asked.name, (set(), set()))
        for pod in holds - before[0]:
            self._charged[asked.name, pod] = [each.name for each in self._line(asked, pod)]
        for used, old, new in ((self._holds, before[0], holds), (self._stays, before[1], stays)):
            self._charge(asked, used, old - new, -1)
            self._charge(asked, used, new - old, 1)
        self._counted[asked.name] = holds, stays

    def _bound(self, step: Step) -> Iterator[Broken]:
        (pod,) = step.pods
        line = self._line(step.life.asked, pod)
        asks = {name: amount for name, amount in step.life.asked.part_of(pod).requests.items() if amount}
        for quota in line if self._semantics == ACK else line[:1]:
            for resource in asks:
                used, most = self._holds[quota.name].get(resource, 0), quota.max_of(resource)
                if used > most:
                    what = f"quota {quota.name} uses {used} of {resource}, but may use at most {most}"
                    yield Broken("elastic.max", step.where, what)
        if line and self._semantics != KOORDINATORS:
            yield from self._together(step, asks)

    def _together(self, step: Step, asks: Mapping[str, int]) -> Iterator[Broken]:
        """Check that the usage of all quotas is within the root's guarantee, or the sum of guarantees."""
        leaves = list(leaves_of(self._quotas).values())
        tops = [quota for quota in self._quotas.values() if not quota.parent]
        for resource in asks:
            least = sum(quota.min_of(resource) for quota in (tops if self._semantics == ACK else leaves))
            used = sum(self._holds[leaf.name].get(resource, 0) for leaf in leaves)
            named = any(resource in quota.named for quota in leaves)
            if used > least and named:
                what = f"all quotas use {used} of {resource}, but their guarantees add up to {least}"
                yield Broken("elastic.together", step.where, what)

    def _evicted(self, step: Step) -> Iterator[Broken]:
        row, asked = step.row, step.life.asked
        if row["action"] == "evict" and self._semantics != KOORDINATORS:
            yield Broken("elastic.evicts", step.where, "only Koordinator evicts pods without a preemptor")
        for pod in step.pods:
            labels, (key, value) = asked.part_of(pod).labels, self._protected
            safe = labels.get(_PREEMPTIBLE) == "false" if self._semantics == KOORDINATORS else False
            if self._semantics == ACK and key:
                safe = key in labels and value in ("", labels[key])
            theirs = self._line(asked, pod)
            strange = row["action"] == "preempt" and not self._line(self.facts.jobs[row["by"]], 0)
            if safe and theirs and not strange:
                yield Broken("elastic.protected", step.where, f"its labels protect it: {labels}")
            if row["action"] == "preempt":
                by = self.facts.jobs[row["by"]]
                yield from self._preempted(step, by, self._line(by, 0), asked, theirs)

    def _preempted(
        self, step: Step, by: Asked, ours: list[ElasticQuota], asked: Asked, theirs: list[ElasticQuota]
    ) -> Iterator[Broken]:
        """Check that a preemption follows priorities in a quota, and only affects borrowers elsewhere."""
        if not by.preempts:
            yield Broken("elastic.never", step.where, f"{by.name} has preemptionPolicy Never")
        if self._falls_back and not all(self._line(each, 0) for each in self.facts.mates(by)):
            theirs = ours  # a job without quota, or with such a mate, preempts as in kube-scheduler
        elif not ours and self._semantics in (ACK, KOORDINATORS):
            yield Broken("elastic.stranger", step.where, f"{by.name} belongs to no quota")
        if ours[:1] == theirs[:1]:
            if (priority := self.facts.importance(by)) <= asked.priority:
                what = f"{by.name} has priority {priority}, its victim in the same quota has {asked.priority}"
                yield Broken("elastic.priority", step.where, what)
            return
        if not ours or not theirs:
            yield Broken(
                "elastic.stranger", step.where, "only one of victim and preemptor belongs to a quota"
            )
        if self._semantics == ACK:
            yield from self._borrows(step, ours, theirs)

    def _borrows(self, step: Step, ours: list[ElasticQuota], theirs: list[ElasticQuota]) -> Iterator[Broken]:
        """Check that the victim's quota, and each group without the preemptor, uses more than its `min`.

        With other semantics, pods that have just ended can still count for as long as an eviction takes.
        """
        for quota in theirs:
            if quota in ours:
                break
            if all(amount <= quota.min_of(name) for name, amount in self._stays[quota.name].items()):
                what = f"quota {quota.name} of the victim uses no more than its 'min'"
                yield Broken("elastic.min", step.where, what)

"""Elastic quotas: never above `max`, together within what is guaranteed, and who may lose pods to whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.cluster.kinds.elastic import ACK, KOORDINATORS, ElasticQuota, semantics_of
from harness.testing.checks.facts import Asked, Broken, Facts, by_node
from harness.testing.checks.history import Rule, Step

_QUOTA = "quota.scheduling.koordinator.sh/name"
_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"

Used = dict[str, dict[str, int]]


class Elastic(Rule):
    """What quotas use, with what is leaving and without.

    Of Koordinator's runtime only is known that it is at most `max`.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._quotas = facts.cluster.elastic_quotas
        options = facts.run.info["policy"]["options"]
        self._falls_back = facts.run.info["policy"]["name"] == "auto" and options.get("autoBy") != "cluster"
        self._semantics = semantics_of(self._quotas, options.get("semantics"))
        key, _, value = options.get("protectedLabel", "").partition("=")
        self._protected = (key, value)
        self._holds: Used = {name: {} for name in self._quotas}
        self._stays: Used = {name: {} for name in self._quotas}
        self._counted: dict[str, tuple[set[int], set[int]]] = {}

    def turn(self, step: Step) -> Iterator[Broken]:
        """Whether a quota is above its bounds, and whether a preemption is allowed."""
        if step.row["action"] in ("preempt", "evict") and not by_node(step.row):
            yield from self._evicted(step)
        self._count(step)
        if step.row["action"] == "bind":
            yield from self._bound(step)

    def _line(self, asked: Asked, pod: int) -> list[ElasticQuota]:
        """The quota of a pod and those above it: by its label, its namespace, its queue."""
        leaves = {name: quota for name, quota in self._quotas.items() if not quota.is_parent}
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
        """Keep what quotas use up to date; a pod of one job may belong to another quota than its fellows."""
        life = step.life
        holds = set(life.holds)
        stays = {pod for pod, hold in life.holds.items() if hold.due is None}
        before = self._counted.get(life.asked.name, (set(), set()))
        for used, old, new in ((self._holds, before[0], holds), (self._stays, before[1], stays)):
            for pod in old ^ new:
                sign = 1 if pod in new else -1
                for quota in self._line(life.asked, pod):
                    for resource, amount in life.asked.part_of(pod).requests.items():
                        used[quota.name][resource] = used[quota.name].get(resource, 0) + sign * amount
        self._counted[life.asked.name] = holds, stays

    def _bound(self, step: Step) -> Iterator[Broken]:
        (pod,) = step.pods
        line = self._line(step.life.asked, pod)
        asks = {name: amount for name, amount in step.life.asked.part_of(pod).requests.items() if amount}
        for quota in line if self._semantics == ACK else line[:1]:
            for resource in asks:
                used, most = self._holds[quota.name].get(resource, 0), quota.max_of(resource)
                if used > most:
                    what = f"quota {quota.name} uses {used} of {resource}, and at most {most} are allowed"
                    yield Broken("elastic.max", step.where, what)
        if line and self._semantics != KOORDINATORS:
            yield from self._together(step, asks)

    def _together(self, step: Step, asks: Mapping[str, int]) -> Iterator[Broken]:
        """All quotas within the root's guarantee, or without a root within the sum of guarantees."""
        leaves = [quota for quota in self._quotas.values() if not quota.is_parent]
        tops = [quota for quota in self._quotas.values() if not quota.parent]
        for resource in asks:
            least = sum(quota.min_of(resource) for quota in (tops if self._semantics == ACK else leaves))
            used = sum(self._holds[leaf.name].get(resource, 0) for leaf in leaves)
            named = any(resource in quota.named for quota in leaves)
            if used > least and named:
                what = f"all quotas use {used} of {resource}, and {least} are guaranteed"
                yield Broken("elastic.together", step.where, what)

    def _evicted(self, step: Step) -> Iterator[Broken]:
        row, asked = step.row, step.life.asked
        if row["action"] == "evict" and self._semantics != KOORDINATORS:
            yield Broken("elastic.evicts", step.where, "only Koordinator revokes without a preemptor")
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
        """The same quota takes from what is less important; another one from what is borrowed."""
        if not by.preempts:
            yield Broken("elastic.never", step.where, f"{by.name} has preemptionPolicy Never")
        if not ours and self._falls_back:
            theirs = ours  # who has no quota preempts as kube-scheduler does, from quotas too
        elif not ours and self._semantics in (ACK, KOORDINATORS):
            yield Broken("elastic.stranger", step.where, f"{by.name} belongs to no quota")
        if ours[:1] == theirs[:1]:
            if (priority := self.facts.importance(by)) <= asked.priority:
                what = f"{by.name} has priority {priority}, its victim of the same quota {asked.priority}"
                yield Broken("elastic.priority", step.where, what)
            return
        if not ours or not theirs:
            yield Broken(
                "elastic.stranger", step.where, "one of them belongs to a quota and the other does not"
            )
        if self._semantics == ACK:
            yield from self._borrows(step, ours, theirs)

    def _borrows(self, step: Step, ours: list[ElasticQuota], theirs: list[ElasticQuota]) -> Iterator[Broken]:
        """What is taken is used beyond its quota's min, and beyond that of every group that both are not in.

        With other semantics what has just gone may be counted still, for as long as evictions take.
        """
        for quota in theirs:
            if quota in ours:
                break
            if all(amount <= quota.min_of(name) for name, amount in self._stays[quota.name].items()):
                what = f"quota {quota.name} of the victim uses no more than its min"
                yield Broken("elastic.min", step.where, what)

"""Caches the results of dry runs, because equal pods get the same result on an unchanged node.

Under ACK's rules, a result depends on the node and its nominated pods, and on the pod's template, quota and
priority. It also depends on whether the quota admits the pod, and on how far limits are exceeded.

If the pod reclaims, the result also depends on how much is borrowed by other quotas with pods on the node. No
quota can lose more than its pods use on the node, so borrowing beyond this amount does not matter.

A result is not cached if it depends on anything else. Examples are affinity to other pods, budgets, the pod's
own nomination, and pods of the same job or gang, which cannot be victims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, final

from harness.base.memo import Memo
from harness.models.elastic.quota import Quota
from harness.models.elastic.runtime_quotas import add_to
from harness.models.kube.cache import Cache
from harness.models.kube.gangs import has_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import Status
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.preemption.victims import Candidate
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.search import DryRun, Tries, on_each

_MOST = 200_000  # the maximum number of cached results for all nodes together

Input: TypeAlias = tuple[int, ...]
"""The input of a result that equal pods do not share. If two inputs are equal, the results are equal."""


@final
class KeptDryRuns:
    """A cache of the results of dry runs."""

    def __init__(self, usage: QuotaUsage, cache: Cache) -> None:
        self._usage = usage
        self._cache = cache
        # By what equal pods share, and by the position of the node.
        self._kept: Memo[object, dict[int, tuple[Input, Candidate | Status]]] = Memo()
        self._held: dict[int, tuple[int, Mapping[Quota, Mapping[str, int]]]] = {}  # see `_held_on`
        self.renew()

    def renew(self) -> None:
        """Drops all results, because nodes, their order or quotas have changed."""
        self._kept.clear()
        self._kept.most = max(1, _MOST // max(1, len(self._cache.nodes)))
        self._held.clear()

    def __call__(
        self, tries: Tries, nodes: Sequence[NodeInfo], dry_run: DryRun
    ) -> dict[int, Candidate | Status]:
        """See `DryRuns`. Performs only those dry runs whose results are not known."""
        request, reclaims = tries.failure.request, tries.reclaims
        pod, quota = request.pod, request.quota
        if tries.failure.state is not NOTHING or pod.nominated or quota is None:
            return on_each(tries, nodes, dry_run)
        question = (pod.template, quota, pod.priority, reclaims, tuple(tries.exceeded.back))
        kept = self._kept.get(question)
        if kept is None:
            kept = self._kept[question] = {}
        borrowed = self._borrowed_from(quota) if reclaims else None
        may_have_mates = pod.gang is not None or (pod.job is not None and pod.job.pods > 1)
        answers: dict[int, Candidate | Status] = {}
        for node in nodes:
            position = node.position
            if may_have_mates and has_mates(pod, node.pods):
                answers[position] = dry_run(tries, node)
                continue
            given = (node.generation,) if borrowed is None else self._input(node, borrowed)
            last = kept.get(position)
            if last is None or last[0] != given:
                last = given, dry_run(tries, node)
                if not any(other.template.budgets for other in node.pods):
                    kept[position] = last
            answers[position] = last[1]
        return answers

    def _borrowed_from(self, claimant: Quota) -> Mapping[Quota, Sequence[tuple[str, int]]]:
        """Returns the quantities that are borrowed now by the quotas from which a quota can reclaim."""
        return {
            quota: [(resource, max(0, more)) for resource, more in quota.borrowed().items()]
            for quota in self._usage.tree.quotas.values()
            if quota not in claimant.line
        }

    def _input(self, node: NodeInfo, borrowed: Mapping[Quota, Sequence[tuple[str, int]]]) -> Input:
        found = [node.generation]
        for quota, amounts in self._held_on(node).items():
            found += [min(more, amounts.get(resource, 0) + 1) for resource, more in borrowed.get(quota, ())]
        return tuple(found)

    def _held_on(self, node: NodeInfo) -> Mapping[Quota, Mapping[str, int]]:
        """Returns the amounts that pods on a node use, by their quotas and the ancestors of these quotas."""
        generation, held = self._held.get(node.position, (-1, {}))
        if generation != node.generation:
            now: dict[Quota, dict[str, int]] = {}
            for pod in node.pods:
                leaf, amounts, _ = self._usage.of(pod)
                for quota in leaf.line if leaf is not None else ():
                    add_to(now.setdefault(quota, {}), amounts)
            self._held[node.position] = node.generation, now
            return now
        return held

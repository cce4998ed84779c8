"""Caches the results of dry runs, because equal pods get the same result on an unchanged node.

Under ACK's rules, a result depends on the node and its nominated pods, and on the pod's template, quota and
priority. It also depends on whether the quota admits the pod, and on how far limits are exceeded. The pods of
a gang, or of a job with several pods, have results of their own, because none of these pods can be a victim.
If the pod reclaims, the result also depends on how much the quotas of the node's pods borrow. A preemption on
the node takes no more from a quota than these pods use, so it does not matter whether the quota borrows more.

A result is not cached if it depends on anything else. Examples are affinity to other pods, budgets, and the
pod's own nomination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from harness.base.memo import Memo
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.runtime_quotas import add_to
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import Status
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.preemption.victims import Candidate
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.search import DryRun, Tries, on_each

_MOST = 200_000  # the maximum number of cached results for all nodes together


@final
class KeptDryRuns:
    """A cache of the results of dry runs."""

    def __init__(self, usage: QuotaUsage, cache: Cache) -> None:
        self._usage = usage
        self._cache = cache
        # By a node's position: its generation, what the pods of each quota use there, and the results.
        self._kept: dict[int, tuple[int, Mapping[Quota, Amounts], Memo[object, Candidate | Status]]] = {}

    def renew(self) -> None:
        """Drops all results, because nodes, their order or quotas have changed."""
        self._kept.clear()

    def __call__(
        self, tries: Tries, nodes: Sequence[NodeInfo], dry_run: DryRun
    ) -> dict[int, Candidate | Status]:
        """See `DryRuns`. Performs only those dry runs whose results are not known."""
        request, reclaims = tries.failure.request, tries.reclaims
        pod, quota = request.pod, request.quota
        if tries.failure.state is not NOTHING or pod.nominated or quota is None:
            return on_each(tries, nodes, dry_run)
        apart = pod.job if pod.job is not None and pod.job.pods > 1 else None  # its pods are no victims
        exceeded = tuple(tries.exceeded.back)
        question = (pod.template, quota, pod.priority, reclaims, exceeded, apart, pod.gang)
        others = [each for each in self._usage.tree.quotas.values() if reclaims and each not in quota.line]
        borrowed = {each: [(name, max(0, more)) for name, more in each.borrowed().items()] for each in others}
        most = _MOST // max(1, len(self._cache.nodes))
        answers: dict[int, Candidate | Status] = {}
        for node in nodes:
            generation, used, known = self._kept.get(node.position) or (-1, {}, Memo())
            if generation != node.generation:
                _, used, known = self._kept[node.position] = node.generation, self._used_on(node), Memo(most)
            given: list[object] = [question]
            for other, amounts in used.items() if borrowed else ():
                for name, more in borrowed.get(other, ()):
                    given.append(min(more, amounts.get(name, 0) + 1))
            key = tuple(given)
            answer = known.get(key)
            if answer is None:
                answer = dry_run(tries, node)
                if not any(other.template.budgets for other in node.pods):
                    known[key] = answer
            answers[node.position] = answer
        return answers

    def _used_on(self, node: NodeInfo) -> Mapping[Quota, Amounts]:
        """Returns the quantities that the pods of each quota, and of the quotas below it, use on a node."""
        used: dict[Quota, dict[str, int]] = {}
        for pod in node.pods:
            leaf, amounts, _ = self._usage.of(pod)
            for quota in leaf.line if leaf is not None else ():
                add_to(used.setdefault(quota, {}), amounts)
        return used

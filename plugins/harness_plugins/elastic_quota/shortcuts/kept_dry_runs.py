"""Caches the results of dry runs, because equal pods get the same result on an unchanged node.

Under ACK's rules, a result depends on the node and its nominated pods, and on the pod's template, quota and
priority. It also depends on whether the quota admits the pod, and on how far limits are exceeded. The pods of
a gang, or of a job with several pods, have results of their own, because none of these pods can be a victim.
If the pod reclaims, the result also depends on how much other quotas borrow.

A result is not cached if it depends on anything else. Examples are affinity to other pods, budgets, and the
pod's own nomination.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.base.memo import Memo
from harness.models.elastic.quota import Quota
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
        # By what equal pods share, and by the node's position. A result is valid for the input beside it.
        self._kept: Memo[object, dict[int, tuple[Sequence[int], Candidate | Status]]] = Memo()
        self.renew()

    def renew(self) -> None:
        """Drops all results, because nodes, their order or quotas have changed."""
        self._kept.clear()
        self._kept.most = max(1, _MOST // max(1, len(self._cache.nodes)))

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
        kept = self._kept.get(question)
        if kept is None:
            kept = self._kept[question] = {}
        borrowed = self._borrowed_from(quota) if reclaims else ()
        answers: dict[int, Candidate | Status] = {}
        for node in nodes:
            position = node.position
            given = (node.generation, *borrowed)
            last = kept.get(position)
            if last is None or last[0] != given:
                last = given, dry_run(tries, node)
                if not any(other.template.budgets for other in node.pods):
                    kept[position] = last
            answers[position] = last[1]
        return answers

    def _borrowed_from(self, claimant: Quota) -> Sequence[int]:
        """Returns the quantities that are borrowed now by the quotas from which a quota can reclaim."""
        others = (quota for quota in self._usage.tree.quotas.values() if quota not in claimant.line)
        return [max(0, more) for quota in others for more in quota.borrowed().values()]

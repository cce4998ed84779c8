"""Dry runs that are kept: on a node that has not changed, an equal pod finds again what was found before.

By ACK's rules an answer depends on the node, with who is nominated to it; on the pod's template, quota and
priority; on whether its quota lets it in, and which bounds it exceeds by how much; and for a pod that
reclaims on how far others borrow whose pods are on the node. More than these pods hold there cannot be taken
from anybody, so what is borrowed beyond that does not count.

Nothing is kept where more may count: other pods by affinity, budgets, a pod's own nomination, and pods of its
own job, which are no victims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, final

from harness.memo import Memo
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import Status
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.victims import Candidate
from harness_plugins.elastic_quota.failure import Failure
from harness_plugins.elastic_quota.quota_request import add
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.tree import Amounts, Excesses, Quota

_MOST = 200_000
"""So many answers are kept, on all nodes together."""

Moment: TypeAlias = tuple[int, ...]
"""What an answer depends on beyond what equal pods share: at equal moments they have the same answer."""

Known: TypeAlias = dict[int, tuple[Moment, Candidate | Status]]
"""Position of a node -> the last answer that equal pods had there, and when."""


@final
class Answers:
    """The last answers that equal pods had.

    Attributes:
        known: the answers.
        seen: the version of the nodes up to which those of nodes that have changed were forgotten.
    """

    __slots__ = ("known", "seen")

    def __init__(self, seen: int) -> None:
        self.known: Known = {}
        self.seen = seen


Borrowed: TypeAlias = Mapping[Quota, Sequence[tuple[str, int]]]
"""Quota -> how much more it uses of each resource than it is guaranteed, at least 0."""

_NONE: Known = {}

_Holders: TypeAlias = Sequence[tuple[Quota, Amounts]]
"""Quotas, and those above them, with what their pods hold on a node."""


@final
class KeptDryRuns:
    """The answers of dry runs; see the module.

    Args:
        usage: the quotas.
        cache: the nodes.
    """

    def __init__(self, usage: QuotaUsage, cache: Cache) -> None:
        self._usage = usage
        self._cache = cache
        self._answers: Memo[object, Answers] = Memo(max(1, _MOST // max(1, len(cache.nodes))))
        self._holders: dict[int, tuple[int, _Holders]] = {}

    def of_equals(self, failure: Failure, excesses: Excesses, *, reclaims: bool) -> Answers | None:
        """The answers that pods had which are equal to one, also in what their quotas lack.

        Args:
            failure: the pod's.
            excesses: the bounds that keep it out: all that dry runs ask of quotas.
            reclaims: whether it takes from others what is guaranteed to its quota.

        Returns:
            The answers, to which further ones may be added; None where more counts than equal pods share.
        """
        request = failure.request
        pod, quota = request.pod, request.quota
        if failure.state is not NOTHING or pod.nominated or quota is None:
            return None
        question = (pod.template, quota, pod.priority, reclaims, tuple(excesses))
        answers = self._answers.get(question)
        if answers is None:
            answers = self._answers[question] = Answers(self._cache.version)
        return answers

    def settled(self, answers: Answers, pod: PodInfo, borrowed: Borrowed) -> Known:
        """The answers of nodes that have not changed, where an answer depends on nothing else.

        It does on others of the pod's job, and on what others borrow where it may take that back.
        """
        if borrowed or (pod.job is not None and pod.job.pods > 1):
            return _NONE
        known = answers.known
        for position in self._cache.changed_since(answers.seen):
            known.pop(position, None)
        answers.seen = self._cache.version
        return known

    def borrowed_from(self, claimant: Quota) -> Borrowed:
        """What others borrow now that a quota may take its guarantee back from; nobody else does for it."""
        return {
            quota: [
                (resource, max(0, used - quota.min.get(resource, 0)))
                for resource, used in quota.used.items()  # without what is leaving, see `Rules.looks_ahead`
            ]
            for quota in self._usage.tree.quotas.values()
            if quota not in claimant.line
        }

    def moment(self, pod: PodInfo, node: NodeInfo, borrowed: Borrowed) -> Moment | None:
        """What the answer of a pod on a node depends on besides.

        Args:
            pod: the pod.
            node: the node.
            borrowed: what the quotas borrow that it may take its guarantee back from, see `borrowed_from`;
                empty where it takes from nobody but its own quota.

        Returns:
            None where more counts, so that the answer is not to be kept.
        """
        job = pod.job
        if job is not None and job.pods > 1 and any(other.job is job for other in node.pods):
            return None
        if not borrowed:
            return (node.generation,)
        found = [node.generation]
        for quota, amounts in self._on(node):
            found += [min(more, amounts.get(resource, 0) + 1) for resource, more in borrowed.get(quota, ())]
        return tuple(found)

    def keeps(self, node: NodeInfo) -> bool:
        """Whether answers of a node may be kept: what a budget allows changes elsewhere."""
        return not any(pod.template.budgets for pod in node.pods)

    def _on(self, node: NodeInfo) -> _Holders:
        """Who holds what on a node."""
        known = self._holders.get(node.position)
        if known is not None and known[0] == node.generation:
            return known[1]
        held: dict[Quota, dict[str, int]] = {}
        for pod in node.pods:
            leaf, amounts = self._usage.of(pod)
            for quota in leaf.line if leaf is not None else ():
                add(held.setdefault(quota, {}), amounts)
        holders = tuple(held.items())
        self._holders[node.position] = node.generation, holders
        return holders

"""Dry runs that are kept: on an unchanged node, an equal pod gets the same result again.

By ACK's rules a result depends on the node and its nominated pods, and on the pod's template, quota and
priority. It depends on whether the quota admits the pod, and on the exceeded limits with their excess. For a
pod that reclaims, it also depends on the borrowing of other quotas with pods on the node. No quota can lose
more than its pods hold on the node, so borrowing beyond this amount does not count.

No result is kept if more may count: other pods by affinity, budgets, a pod's own nomination, or pods of its
own job, which cannot be victims.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias, final

from harness.base.memo import Memo
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.tree import Excesses
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import Status
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.victims import Candidate
from harness_plugins.elastic_quota.failure import Failure
from harness_plugins.elastic_quota.quota_request import add
from harness_plugins.elastic_quota.quota_usage import QuotaUsage

_MOST = 200_000
"""At most this many results are kept, for all nodes together."""

Moment: TypeAlias = tuple[int, ...]
"""The input of a result that equal pods do not share: for equal moments, equal pods have the same result."""

Borrowed: TypeAlias = Mapping[Quota, Sequence[tuple[str, int]]]
"""Quota -> usage of each resource beyond its guarantee, at least 0."""

_NOTHING: Borrowed = {}


@final
class Answers:
    """The last results of equal pods, by position of the node.

    Attributes:
        of_any: the results of pods without other pods in their job or gang; all such pods share them.
        seen: the version of the nodes up to which results of changed nodes were dropped.
        borrowed: the borrowing when results that depend on it were last dropped.
        of_several: the results of pods with other pods in their job or gang, with their moments.
    """

    __slots__ = ("borrowed", "of_any", "of_several", "seen")

    def __init__(self, seen: int) -> None:
        self.of_any: dict[int, Candidate | Status] = {}
        self.seen = seen
        self.borrowed: Borrowed = _NOTHING
        self.of_several: dict[int, tuple[Moment, Candidate | Status]] = {}


class _Pods(NamedTuple):
    """The relevant facts about the pods on a node.

    Attributes:
        generation: the node's generation when the facts were collected.
        holders: their quotas and the ancestors of these, with the amounts that the pods hold.
        covered: whether a budget covers any of the pods.
    """

    generation: int
    holders: Sequence[tuple[Quota, Amounts]]
    covered: bool


@final
class KeptDryRuns:
    """The kept results of dry runs; see the module.

    Args:
        usage: the quotas.
        cache: the nodes.
    """

    def __init__(self, usage: QuotaUsage, cache: Cache) -> None:
        self._usage = usage
        self._cache = cache
        self._answers: Memo[object, Answers] = Memo(max(1, _MOST // max(1, len(cache.nodes))))
        self._pods: dict[int, _Pods] = {}  # by the position of the node
        self._most: dict[str, int] = {}  # resource -> the most that a quota's pods held on a node so far

    def of_equals(self, failure: Failure, excesses: Excesses, *, reclaims: bool) -> Answers | None:
        """Returns the results of pods that are equal to this pod, including the shortage of their quotas.

        Args:
            failure: the pod's failure.
            excesses: the limits that refuse the pod: the only input of dry runs from quotas.
            reclaims: whether the pod reclaims its quota's guarantee from other quotas.

        Returns:
            The results, which callers may extend; None if a result depends on more than equal pods share.
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

    def of_any(
        self, answers: Answers, pod: PodInfo, borrowed: Borrowed
    ) -> dict[int, Candidate | Status] | None:
        """Returns the results that are still valid; `keep` may add further results.

        Args:
            answers: the results of equal pods.
            pod: the pod.
            borrowed: see `moment`.

        Returns:
            None for a pod with other pods in its job or gang, see `moment`.
        """
        if pod.gang is not None or (pod.job is not None and pod.job.pods > 1):
            return None
        known, cache = answers.of_any, self._cache
        for position in cache.changed_since(answers.seen):
            known.pop(position, None)
        answers.seen = cache.version
        if borrowed:
            before, most = answers.borrowed, self._most
            changed = [quota for quota in borrowed if not _alike(quota, before, borrowed, most)]
            for position in self._with_pods_of(changed):
                if position in known and not all(
                    _alike(quota, before, borrowed, held)
                    for quota, held in self._on(cache.nodes[position]).holders
                ):
                    del known[position]
            answers.borrowed = borrowed
        return known

    def _with_pods_of(self, quotas: Collection[Quota]) -> Collection[int]:
        """Returns the positions of nodes with pods of some quotas, or of quotas below them."""
        leaves = self._usage.tree.leaves.values() if quotas else ()
        below = [leaf for leaf in leaves if any(quota in leaf.line for quota in quotas)]
        return {position for leaf in below for position in self._usage.nodes_of(leaf)}

    def borrowed_from(self, claimant: Quota) -> Borrowed:
        """Returns the current borrowing of the quotas from which a quota may reclaim its guarantee."""
        return {
            quota: [
                (resource, max(0, used - quota.min.get(resource, 0)))
                for resource, used in quota.used.items()  # without leaving amounts, see `Rules.looks_ahead`
            ]
            for quota in self._usage.tree.quotas.values()
            if quota not in claimant.line
        }

    def moment(self, pod: PodInfo, node: NodeInfo, borrowed: Borrowed) -> Moment | None:
        """Returns the further input of a pod's result on a node.

        Args:
            pod: the pod.
            node: the node.
            borrowed: the borrowing of quotas from which it may reclaim its guarantee, see `borrowed_from`;
                empty if it only preempts in its own quota.

        Returns:
            None if the result depends on more, so that it must not be kept.
        """
        job = pod.job
        if job is not None and job.pods > 1 and any(other.job is job for other in node.pods):
            return None
        if not borrowed:
            return (node.generation,)
        found = [node.generation]
        for quota, amounts in self._on(node).holders:
            found += [min(more, amounts.get(resource, 0) + 1) for resource, more in borrowed.get(quota, ())]
        return tuple(found)

    def keep(self, known: dict[int, Candidate | Status], node: NodeInfo, answer: Candidate | Status) -> None:
        """Keeps a result if `keeps` allows it."""
        if not self._on(node).covered:
            known[node.position] = answer

    def keeps(self, node: NodeInfo) -> bool:
        """Returns True if no budget covers pods of a node: allowances change independently of the node."""
        return not self._on(node).covered

    def _on(self, node: NodeInfo) -> _Pods:
        """Returns the facts about the pods on a node."""
        known = self._pods.get(node.position)
        if known is not None and known.generation == node.generation:
            return known
        held: dict[Quota, dict[str, int]] = {}
        covered = False
        for pod in node.pods:
            covered = covered or bool(pod.template.budgets)
            leaf, amounts, _ = self._usage.of(pod)
            for quota in leaf.line if leaf is not None else ():
                add(held.setdefault(quota, {}), amounts)
        for of_quota in held.values():
            for resource, amount in of_quota.items():
                if amount > self._most.get(resource, 0):
                    self._most[resource] = amount
        found = self._pods[node.position] = _Pods(node.generation, tuple(held.items()), covered)
        return found


def _alike(quota: Quota, before: Borrowed, now: Borrowed, held: Amounts) -> bool:
    """Returns True if the change of a quota's borrowing has no effect, given its pods' amounts."""
    was, borrows = before.get(quota, ()), now.get(quota, ())
    if was == borrows:
        return True
    if len(was) != len(borrows):
        return False
    for (resource, less), (_, more) in zip(was, borrows, strict=True):
        most = held.get(resource, 0) + 1
        if min(less, most) != min(more, most):
            return False
    return True

"""Caches the results of dry runs, because equal pods get the same result on an unchanged node.

Under ACK's rules, a result depends on the node and its nominated pods, and on the pod's template, quota and
priority. It also depends on whether the quota admits the pod, and on how far limits are exceeded.

If the pod reclaims, the result also depends on how much is borrowed by other quotas with pods on the node. No
quota can lose more than its pods use on the node, so borrowing beyond this amount does not matter.

A result is not cached if it depends on anything else. Examples are affinity to other pods, budgets, the pod's
own nomination, and pods of the same job, which cannot be victims.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias, final

from harness.base.memo import Memo
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.runtime_quotas import add_to
from harness.models.elastic.tree import Excesses
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import Status
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.victims import Candidate
from harness_plugins.elastic_quota.failure import Failure
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.search import DryRun, Tries, on_each

_MOST = 200_000  # the maximum number of cached results for all nodes together

Moment: TypeAlias = tuple[int, ...]
"""The input of a result that equal pods do not share. If two inputs are equal, the results are equal."""

Borrowed: TypeAlias = Mapping[Quota, Sequence[tuple[str, int]]]
"""Maps each quota to the usage of each resource beyond its guarantee, which is at least 0."""

_NOTHING: Borrowed = {}


@final
class Answers:
    """The most recent results of equal pods, by position of the node.

    Attributes:
        of_any: the results of single pods, which have no other pods in their job or gang. All of them share
            these results.
        seen: the version of the nodes at which the results of changed nodes were last dropped.
        borrowed: the borrowed quantities at the time when the results that depend on them were last dropped.
        of_several: the results of pods with other pods in their job or gang. See `KeptDryRuns.moment`.
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
        generation: the generation of the node when the facts were collected.
        holders: the quotas of the pods and their ancestors, with the amounts that the pods use.
        covered: whether a budget covers any of the pods.
    """

    generation: int
    holders: Sequence[tuple[Quota, Amounts]]
    covered: bool


@final
class KeptDryRuns:
    """A cache of the results of dry runs."""

    def __init__(self, usage: QuotaUsage, cache: Cache) -> None:
        self._usage = usage
        self._cache = cache
        self._answers: Memo[object, Answers] = Memo(max(1, _MOST // max(1, len(cache.nodes))))
        self._pods: dict[int, _Pods] = {}  # by the position of the node
        self._most: dict[str, int] = {}  # the most of each resource that a quota's pods have used on a node

    def __call__(
        self, tries: Tries, nodes: Sequence[NodeInfo], dry_run: DryRun
    ) -> dict[int, Candidate | Status]:
        """See `DryRuns`. Performs only those dry runs whose results are not known."""
        request, reclaims = tries.failure.request, tries.reclaims
        equals = self.of_equals(tries.failure, tries.exceeded.back, reclaims=reclaims)
        if equals is None:
            return on_each(tries, nodes, dry_run)
        borrowed = self.borrowed_from(request.quota) if reclaims and request.quota is not None else {}
        answers: dict[int, Candidate | Status] = {}
        known = self.of_any(equals, request.pod, borrowed)
        for node in nodes:
            position = node.position
            if known is not None:
                answer = known.get(position)
                if answer is None:
                    answer = dry_run(tries, node)
                    self.keep(known, node, answer)
                answers[position] = answer
                continue
            moment = self.moment(request.pod, node, borrowed)
            last = equals.of_several.get(position)
            if last is not None and last[0] == moment:
                answers[position] = last[1]
                continue
            answer = answers[position] = dry_run(tries, node)
            if moment is not None and self.keeps(node):
                equals.of_several[position] = moment, answer
        return answers

    def of_equals(self, failure: Failure, excesses: Excesses, *, reclaims: bool) -> Answers | None:
        """Returns the results of pods that equal this pod and exceed the same limits by the same amounts.

        Args:
            failure: the failure of the pod.
            excesses: the limits that refuse the pod. Dry runs depend on nothing else about quotas.
            reclaims: whether the pod reclaims the guarantee of its quota from other quotas.

        Returns:
            The results, to which the caller can add more results. None if a result depends on input that
            equal pods do not share.
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
        """Returns the valid results for single pods. `keep` can add more results to them.

        Returns:
            The results, or None if the pod has other pods in its job or gang (see `moment`).
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
        leaves = self._usage.tree.leaves.values() if quotas else ()
        below = [leaf for leaf in leaves if any(quota in leaf.line for quota in quotas)]
        return {position for leaf in below for position in self._usage.nodes_of(leaf)}

    def borrowed_from(self, claimant: Quota) -> Borrowed:
        """Returns the quantities that are borrowed now by the quotas from which a quota can reclaim."""
        return {
            quota: [
                (resource, max(0, used - quota.min.get(resource, 0)))
                for resource, used in quota.used.items()  # without pods that terminate
            ]
            for quota in self._usage.tree.quotas.values()
            if quota not in claimant.line
        }

    def moment(self, pod: PodInfo, node: NodeInfo, borrowed: Borrowed) -> Moment | None:
        """Returns the part of a dry run's input that can differ between equal pods on the same node.

        `borrowed` comes from `borrowed_from`. It is empty if the pod can preempt only in its own quota.

        Returns:
            The input, or None if the result depends on further input and must not be cached.
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
        """Caches a result if `keeps` allows it."""
        if not self._on(node).covered:
            known[node.position] = answer

    def keeps(self, node: NodeInfo) -> bool:
        """Returns True if no budget covers pods of a node, because budgets change independently of nodes."""
        return not self._on(node).covered

    def _on(self, node: NodeInfo) -> _Pods:
        known = self._pods.get(node.position)
        if known is not None and known.generation == node.generation:
            return known
        held: dict[Quota, dict[str, int]] = {}
        covered = False
        for pod in node.pods:
            covered = covered or bool(pod.template.budgets)
            leaf, amounts, _ = self._usage.of(pod)
            for quota in leaf.line if leaf is not None else ():
                add_to(held.setdefault(quota, {}), amounts)
        for of_quota in held.values():
            for resource, amount in of_quota.items():
                if amount > self._most.get(resource, 0):
                    self._most[resource] = amount
        found = self._pods[node.position] = _Pods(node.generation, tuple(held.items()), covered)
        return found


def _alike(quota: Quota, before: Borrowed, now: Borrowed, held: Amounts) -> bool:
    """Returns True if a change in how much a quota borrows has no effect, given the usage of its pods."""
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

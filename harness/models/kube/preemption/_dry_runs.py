"""Caches preemption dry runs for all pods of one shape and priority."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.filters import oversized
from harness.models.kube.placement.scheduling import Diagnosis, nominated_before
from harness.models.kube.placement.shape_nodes import FIXED
from harness.models.kube.placement.status import Code, Status
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.victims import Candidate, select_victims_on_node


@final
class Enough:
    """Collects candidates until there are enough of them, and at least one of them violates no budget.

    It keeps at most `wanted` candidates that violate budgets, and at most `wanted` other candidates. If all
    `wanted` candidates violate budgets, the search continues. If `wanted` is 0, the search covers all nodes.
    """

    def __init__(self, wanted: int) -> None:
        self.found: list[Candidate] = []
        self._wanted = wanted
        self._harmful = 0

    def add(self, candidate: Candidate) -> bool:
        harmful = candidate.violations > 0
        alike = self._harmful if harmful else len(self.found) - self._harmful
        if alike < self._wanted:
            self.found.append(candidate)
            self._harmful += harmful
        return self._harmful < len(self.found) and len(self.found) >= self._wanted


@final
class DryRuns:
    """The dry runs of one shape and priority, if they depend only on a node and the pods nominated to it.

    A result is valid until its node changes. A result that depends on a budget is valid until the allowed
    disruptions change.
    """

    def __init__(self, cache: Cache, budgets: Budgets) -> None:
        self._cache = cache
        self._budgets = budgets
        self._answers: list[Candidate | Status | None] = [None] * len(cache.nodes)
        self._generations = [-1] * len(cache.nodes)
        self._allowances = [-1] * len(cache.nodes)
        self._barren = -1  # the version of the cache at which no node was a candidate
        self._seen = self._allowed = -1  # the versions when all nodes were last examined
        self._potential: frozenset[int] = frozenset()  # at these versions; the same for all pods of the shape
        self.failed = False

    def candidates(
        self, pod: PodInfo, diagnosis: Diagnosis, potential: Sequence[int], wanted: int
    ) -> Sequence[Candidate]:
        """Returns candidates among the nodes at the `potential` positions.

        If a dry run ends with an error, sets `failed`.
        """
        cache = self._cache
        if self._barren >= 0 and self._still_barren(pod, diagnosis):
            self._barren = cache.version
            return ()
        found = self._first(pod, potential, wanted) if wanted < len(potential) else self._all(pod, potential)
        self._barren = -1 if found or self.failed else cache.version
        return found

    def _first(self, pod: PodInfo, potential: Sequence[int], wanted: int) -> list[Candidate]:
        nodes, enough = self._cache.nodes, Enough(wanted)
        self.failed = False
        for position in potential:
            answer = self._answer(pod, nodes[position])
            if isinstance(answer, Candidate):
                if enough.add(answer):
                    break
            elif answer.code is Code.ERROR:
                self.failed = True
        return enough.found

    def _all(self, pod: PodInfo, potential: Sequence[int]) -> list[Candidate]:
        """Returns all candidates. Reuses answers for unchanged nodes without nominated pods."""
        cache, nodes, answers = self._cache, self._cache.nodes, self._answers
        if self._seen < 0 or self._allowed != self._budgets.version:
            self._potential = frozenset(potential)
            changed: Iterable[int] = potential
        else:
            changed = self._potential.intersection(cache.changed_since(self._seen))
        for position in changed:
            self._answer(pod, nodes[position])
        self._seen, self._allowed = cache.version, self._budgets.version
        expecting = [node for node in cache.expecting if node.position in self._potential]
        if expecting:
            answers = answers.copy()
            for node in expecting:
                answers[node.position] = self._answer(pod, node)
        known = [answers[position] for position in potential]
        found = [answer for answer in known if isinstance(answer, Candidate)]
        self.failed = not found and any(
            isinstance(each, Status) and each.code is Code.ERROR for each in known
        )
        return found

    def _still_barren(self, pod: PodInfo, diagnosis: Diagnosis) -> bool:
        """Returns True if no node that changed since the last empty result has become a candidate."""
        cache, kinds, shape = self._cache, diagnosis.nodes.kinds, pod.template.shape
        changed = list(cache.changed_since(self._barren))
        own = cache.by_name.get(pod.nominated) if pod.nominated else None
        if own is not None:
            changed.append(own.position)
        return not any(
            kinds[position] != FIXED
            and not oversized(shape, cache.nodes[position])
            and isinstance(self._answer(pod, cache.nodes[position]), Candidate)
            for position in changed
        )

    def _answer(self, pod: PodInfo, node: NodeInfo) -> Candidate | Status:
        if node.nominated and nominated_before(pod, node):  # the result depends on the pod
            return select_victims_on_node(pod, node, NOTHING, self._budgets, self._cache.names)
        position = node.position
        answer = self._answers[position]
        if (
            answer is None
            or self._generations[position] != node.generation
            or self._outdated(answer, position)
        ):
            answer = select_victims_on_node(pod, node, NOTHING, self._budgets, self._cache.names)
            self._answers[position] = answer
            self._generations[position] = node.generation
            self._allowances[position] = self._budgets.version
        return answer

    def _outdated(self, answer: Candidate | Status, position: int) -> bool:
        return (
            isinstance(answer, Candidate)
            and answer.budgeted
            and self._allowances[position] != self._budgets.version
        )

"""Models PodDisruptionBudgets in a preemption, and determines which victims would violate a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import final

from harness.cluster.kinds.disruption import PodDisruptionBudget
from harness.models.kube.pod import PodInfo, Template


@final
class Budgets:
    """All budgets, and the number of disruptions that each budget allows now.

    Args:
        budgets: the manifests.
        live: whether the allowed disruptions are computed from the existing pods. If not, they come from the
            manifests.

    Attributes:
        allowed: how many disruptions each budget allows.
        version: a number that every change of `allowed` increments.
        stale: the budgets whose allowed disruptions must be computed again.
    """

    def __init__(self, budgets: Sequence[PodDisruptionBudget], *, live: bool) -> None:
        self._budgets = budgets
        self._live = live
        self.allowed = [0 if live else budget.disruptions_allowed for budget in budgets]
        # The disruption controller removes a pod from a budget's `disruptedPods` when the pod is terminating,
        # or after two minutes (`buildDisruptedPodMap`). A replay begins with an empty list.
        self._approved = [() if live else budget.disrupted_pods for budget in budgets]
        self.version = 0
        self._expected = [0] * len(budgets)
        self._healthy = [0] * len(budgets)
        self.stale: dict[int, None] = {}

    def covering(self, namespace: str, labels: Mapping[str, str]) -> tuple[int, ...]:
        """Returns the indices of the budgets that cover pods with these labels in this namespace."""
        return tuple(
            number for number, budget in enumerate(self._budgets) if budget.matches(namespace, labels)
        )

    def exists(self, template: Template, change: int) -> None:
        """Records that a pod was created (1) or is gone (-1)."""
        for number in template.budgets:
            self._expected[number] += change
            self.stale[number] = None

    def runs(self, template: Template, change: int) -> None:
        """Records that a pod was bound (change 1), or that it is terminating or gone (change -1)."""
        for number in template.budgets:
            self._healthy[number] += change
            self.stale[number] = None

    def refresh(self) -> None:
        """Updates `allowed` in the same way as the disruption controller."""
        if not self._live or not self.stale:
            return
        for number in self.stale:
            allowed = self._budgets[number].allowed(self._expected[number], self._healthy[number])
            if allowed != self.allowed[number]:
                self.allowed[number] = allowed
                self.version += 1
        self.stale.clear()

    def charged(self, pod: PodInfo) -> Iterable[int]:
        """Returns the indices of the budgets whose allowed disruptions decrease when a pod is evicted."""
        return (number for number in pod.template.budgets if pod.name not in self._approved[number])

    def lets_go(self, pod: PodInfo) -> bool:
        """Returns True if the eviction API evicts a pod now. If several budgets cover it, the API never does.

        Upstream: the eviction subresource of pods (pkg/registry/core/pod/storage/eviction.go).
        """
        covering = pod.template.budgets
        if pod.terminating or not covering:
            return True
        self.refresh()
        return len(covering) == 1 and self.allowed[covering[0]] > 0

    def filter_pods_with_pdb_violation(self, pods: Iterable[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Returns two lists: the potential victims that would violate a budget, and the other ones.

        Both lists keep the given order. Every pod uses one disruption of each budget that covers it, even if
        the pod does not become a victim.
        """
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        left: dict[int, int] = {}
        for pod in pods:
            violates = False
            for number in self.charged(pod):
                left[number] = left.get(number, self.allowed[number]) - 1
                violates = violates or left[number] < 0
            (violating if violates else others).append(pod)
        return violating, others

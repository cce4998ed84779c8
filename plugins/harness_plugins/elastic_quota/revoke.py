"""Implements Koordinator's over-use revoke, which evicts pods if a quota exceeds its runtime for too long.

This module follows the description of Koordinator's controller. No recorded case confirms it.
"""

from __future__ import annotations

from typing import Any, final

from harness.base.units import SECOND
from harness.models.elastic.quota import Amounts, Quota
from harness.models.kube.cache import Cache
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness_plugins.elastic_quota.quota_detail import states
from harness_plugins.elastic_quota.quota_usage import QuotaUsage

OVERUSED = "QuotaOveruse"
"""The reason code for a pod that is evicted because its quota exceeded the runtime for too long."""

_REFRESH = 10 * SECOND  # the time between two computations of the runtimes of all quotas


@final
class Revocation:
    """Watches quotas that exceed their runtime.

    Koordinator compares the usage with the most recently computed runtime once per second. It computes the
    runtime when a pod of the quota is tried, and when all quotas are refreshed. This class skips seconds in
    which nothing can change.

    Args:
        after: how long a quota can exceed its runtime, in microseconds.
        quirks: True to check only the resources of the last removed pod, as Koordinator's code does.
        budgets: the PodDisruptionBudgets. Evictions never violate them.
    """

    def __init__(self, usage: QuotaUsage, after: int, quirks: bool, cache: Cache, budgets: Budgets) -> None:
        self._usage = usage
        assert usage.tree.runtimes is not None, "only Koordinator revokes"
        self._tree, self._runtimes = usage.tree, usage.tree.runtimes
        self._quirks = quirks
        self._cache = cache
        self._budgets = budgets
        self._after = after // SECOND * SECOND + SECOND  # the first full second after this time
        self._started: int | None = None
        self._refreshed = -1  # the value of `changes` at the last refresh
        # `_within` has the time since which each quota has been within its runtime, or None if it exceeds the
        # runtime now. `_good` has the last second in which each quota was within its runtime.
        self._within: dict[Quota, int | None] = {}
        self._good: dict[Quota, int] = {}

    def refresh(self, now: int) -> None:
        """Computes the runtimes of all quotas if a refresh is due."""
        if self._started is None:
            self._started = now // SECOND * SECOND
            self._within = dict.fromkeys(self._tree.leaves.values(), self._started)
            self._good = dict.fromkeys(self._within, self._started)
        runtimes = self._runtimes
        if (now - self._started) % _REFRESH == 0 and runtimes.changes != self._refreshed:
            self._refreshed = runtimes.changes
            for _, leaf in sorted(self._tree.leaves.items()):
                self._tree.runtime(leaf)

    def quotas_change(self, now: int) -> None:
        """Applies a change of quotas. The usage of a new quota counts from now on."""
        if self._started is not None:
            leaves = self._tree.leaves.values()
            self._within = {leaf: self._within.get(leaf, now) for leaf in leaves}
            self._good = {leaf: self._good.get(leaf, now) for leaf in leaves}

    def watch(self, now: int) -> int | None:
        """Checks which quotas exceed their runtime now, and returns the time of the next check."""
        assert self._started is not None, "quotas are refreshed first"
        due = []
        for leaf, within in self._within.items():
            over = self._is_over(leaf, leaf.used)
            if over and within is not None:
                last = -(-now // SECOND) * SECOND - SECOND  # the last full second before now
                if last >= within:
                    self._good[leaf] = last
                self._within[leaf] = None
            elif not over and within is None:
                self._within[leaf] = now
            if over:
                due.append(self._good[leaf] + self._after)
        if self._runtimes.changes != self._refreshed:
            due.append(now + _REFRESH - (now - self._started) % _REFRESH)
        return min((each for each in due if each > now), default=None)

    def standing(self, now: int) -> tuple[object, ...]:
        """Returns the state of quotas that determines future evictions. See `harness.policy.Standing`."""
        assert self._started is not None, "quotas are refreshed first"
        return (
            (now - self._started) % _REFRESH,
            self._runtimes.changes,
            self._refreshed,
            *[
                (
                    tuple((leaf.runtime or {}).items()),
                    _ago(within, now),
                    max(self._good[leaf] - now, -self._after),
                )
                for leaf, within in self._within.items()
            ],
        )

    def skip(self, span: int) -> None:
        """Moves all stored times by this duration. The state of all quotas stays the same."""
        self._within = {leaf: _later(within, span) for leaf, within in self._within.items()}
        self._good = {leaf: good + span for leaf, good in self._good.items()}

    def due(self, now: int) -> list[Quota]:
        """Returns the quotas that have exceeded their runtime for too long. Their time then starts again."""
        late = [leaf for leaf, within in self._within.items() if within is None and self._is_late(leaf, now)]
        for leaf in late:
            self._good[leaf] = now
        return late

    def _is_late(self, leaf: Quota, now: int) -> bool:
        return self._good[leaf] + self._after <= now and self._is_over(leaf, leaf.used)

    def victims(self, leaf: Quota) -> list[PodInfo]:
        """Returns the pods to evict, in order.

        The result includes pods that are already terminating and pods that a budget protects.

        Pods are removed, starting with the least important, until the usage is within the runtime. If this
        never happens, all removed pods are evicted, the least important one first. Otherwise, pods that still
        fit are put back, starting with the most important. The other pods are evicted in the same order. The
        most important of them is the first to use a disruption that a budget allows.
        """
        positions = sorted(self._usage.nodes_of(leaf))
        on_nodes = [pod for position in positions for pod in self._cache.nodes[position].pods]
        mine = [pod for pod in on_nodes if self._usage.quota_of(pod) is leaf]
        mine.sort(key=lambda pod: (pod.priority, -pod.start))
        used: Amounts = leaf.used
        taken: list[PodInfo] = []
        for pod in mine:
            if not self._is_over(leaf, used):
                break
            if not self._usage.of(pod).firm:
                used = self._changed(used, pod, -1)
                taken.append(pod)
        if self._is_over(leaf, used):
            return taken
        gone = []
        for pod in reversed(taken):
            with_it = self._changed(used, pod, 1)
            if self._is_over(leaf, with_it):
                used = self._changed(with_it, pod, -1)
                gone.append(pod)
            else:
                used = with_it
        return gone

    def evictable(self, pod: PodInfo) -> bool:
        """Returns True if a victim is not terminating already, and the eviction API evicts it now."""
        return not pod.terminating and self._budgets.lets_go(pod)

    def _changed(self, used: Amounts, pod: PodInfo, sign: int) -> Amounts:
        """Returns the usage with or without a pod.

        With quirks, the usage has exactly the resources of the pod, even those that the `max` of its quota
        doesn't name. It starts at 0 for a resource that an earlier pod dropped, even if other pods still use
        this resource.
        """
        amounts = pod.template.spec.requests if self._quirks else self._usage.of(pod).amounts
        kept = amounts if self._quirks else used
        return {each: used.get(each, 0) + sign * amounts.get(each, 0) for each in kept}

    def _is_over(self, leaf: Quota, used: Amounts) -> bool:
        """Returns True if a usage exceeds the runtime, which is 0 for resources that only siblings name."""
        runtime = leaf.runtime
        if runtime is None:
            return False
        if any(used.get(resource, 0) > bound for resource, bound in runtime.items()):
            return True
        return any(used.get(resource, 0) > 0 for resource in self._runtimes.unnamed(leaf.name))

    def detail(self, leaf: Quota) -> dict[str, Any]:
        """Returns the usage and limits of a quota before any eviction."""
        return {
            "queue": leaf.name,
            "message": f"quota {leaf.name} has used more than its runtime for too long",
            **states((leaf,)),
        }


def _ago(since: int | None, now: int) -> int | None:
    """Returns a time relative to now. All times that are a second or more in the past count as equal."""
    return None if since is None else max(since - now, -SECOND)


def _later(since: int | None, span: int) -> int | None:
    return None if since is None else since + span

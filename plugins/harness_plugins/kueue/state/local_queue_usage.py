"""Models admission fair sharing, which tracks the consumption of each LocalQueue.

Consumption is halved after every half-life. Like Kueue, this module rounds amounts down to billionths of a
resource's unit. A LocalQueue is sampled when an interval has passed since its last sample, or since it was
last charged for an admission. This module takes samples only when a decision needs the usage. The results are
the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias, final

from harness.base.units import SECOND
from harness.models.cluster import AdmissionFairSharing, Cluster, LocalQueue
from harness.models.quota import QuotaTree
from harness.policy import Job
from harness_plugins.kueue.state.amounts import Amounts

_NANO = 10**9

Factor: TypeAlias = tuple[int, int]
"""The numerator and the denominator of an exact fraction."""


def factor(value: float) -> Factor:
    """Converts a double to its shortest decimal representation. Kueue uses this decimal as a factor."""
    return Decimal(repr(value)).as_integer_ratio()


def alpha(elapsed: int, half_life: int) -> float:
    """Returns the share of past usage that current usage replaces, which is 1 - 0.5^(elapsed / half-life)."""
    if not half_life:
        return 0.0
    return 1.0 - math.pow(0.5, _seconds(elapsed) / _seconds(half_life))


def scaled(amounts: Mapping[str, int], by: Factor) -> dict[str, int]:
    """Returns the amounts multiplied by a factor and rounded down."""
    numerator, denominator = by
    return {name: amount * numerator // denominator for name, amount in amounts.items()}


def decayed(
    consumed: Mapping[str, int], held: Mapping[str, int], keeps: Factor, gains: Factor
) -> dict[str, int]:
    """Combines past usage with the amounts that have been in use since then. Each part is rounded down."""
    return merged(scaled(consumed, keeps), scaled(held, gains))


def merged(some: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Returns the sum of two mappings."""
    total = dict(some)
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
    return total


def usage_of(consumed: Mapping[str, int], weights: Mapping[str, float], weight: float) -> float:
    """Returns the number that orders LocalQueues: the weighted sum of resources, divided by the weight.

    Resources are added in alphabetical order. If the weight is not positive, the number is infinite.
    """
    if weight <= 0:
        return math.inf
    total = 0.0
    for name in sorted(consumed):
        total += weights.get(name, 1.0) * (consumed[name] * 1e-9)
    return total / weight


def billionths(amounts: Mapping[str, int]) -> dict[str, int]:
    """Converts millicores, and whole units of other resources, to billionths of a core or of a unit."""
    return {name: amount * (_NANO // 1000 if name == "cpu" else _NANO) for name, amount in amounts.items()}


def _seconds(time: int) -> float:
    """Converts microseconds to seconds. It rounds twice, as in Go."""
    whole, rest = divmod(time, SECOND)
    return whole + rest * 1000 / 1e9


@final
@dataclass(eq=False)
class LocalQueueUsage:
    """The usage of one LocalQueue.

    Attributes:
        name: the namespace and name.
        label: the text that identifies the LocalQueue when preemption candidates are ordered.
        sampled: whether the LocalQueue is sampled. A stopped LocalQueue is not sampled.
        begun: whether Kueue has started to record the usage of the LocalQueue. It starts with the first
            sample.
        named: whether there is or was a LocalQueue of this name.
        consumed: the past usage of each resource, in billionths.
        held: the current usage of each resource, in billionths.
        updated: the time of the last sample or charge.
        usage: the number that orders the workloads. The lowest comes first.
        still: True if further samples would change nothing.
    """

    name: str
    label: str
    weight: float = 1.0
    consumed: dict[str, int] = field(default_factory=dict)
    updated: int = 0
    sampled: bool = False
    begun: bool = False
    named: bool = False
    held: dict[str, int] = field(default_factory=dict)
    usage: float = 0.0
    still: bool = False


@final
class LocalQueueUsages:
    """The usage of all LocalQueues in ClusterQueues that order their workloads by usage.

    If a job names such a ClusterQueue directly, the job belongs to a LocalQueue of that name in its
    namespace. This LocalQueue has the weight 1.

    Args:
        usable: the ClusterQueues that take part in scheduling. Only their LocalQueues are sampled.
        by_namespace: whether LocalQueues with the same name in different namespaces count as different when
            candidates are ordered.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: AdmissionFairSharing,
        tree: QuotaTree,
        usable: Iterable[str],
        *,
        by_namespace: bool,
    ) -> None:
        self._cluster = cluster
        self._by_namespace = by_namespace
        self._weights = settings.resource_weights
        self._half_life = settings.half_life
        self._interval = settings.sampling_interval
        part = alpha(self._interval, self._half_life)
        self._keeps, self._gains = factor(1.0 - part), factor(part)
        self._resources = [name for _, name in tree.flavor_resources]
        self._usable = frozenset(usable)
        self._local_queues: dict[str, dict[tuple[str, str], LocalQueueUsage]] = {
            name: {} for name, queue in cluster.cluster_queues.items() if queue.by_usage
        }
        self._began: int | None = None
        self._now = 0

    def follow(self, cluster: Cluster, tree: QuotaTree, usable: Iterable[str]) -> None:
        """Switches to another cluster, and keeps the consumed usage of all LocalQueues that still exist."""
        self._cluster = cluster
        self._resources = [name for _, name in tree.flavor_resources]
        self._usable = frozenset(usable)
        for name, queue in cluster.cluster_queues.items():
            if queue.by_usage:
                self._local_queues.setdefault(name, {})
            else:
                self._local_queues.pop(name, None)
        for name, local_queues in self._local_queues.items():
            for key, local_queue in local_queues.items():
                self._match(local_queue, name, cluster.local_queues.get(key))

    def _match(self, local_queue: LocalQueueUsage, queue: str, local: LocalQueue | None) -> None:
        sampled = queue in self._usable and (local is None or local.stop_policy == "None")
        if local is None and local_queue.named:  # deleted
            local_queue.consumed, local_queue.begun, sampled = {}, False, False
        elif sampled and not local_queue.sampled:
            self._resume(local_queue, local)
        local_queue.sampled = sampled
        local_queue.named = local_queue.named or local is not None
        local_queue.weight = float(local.weight) if local else 1.0
        self._count(local_queue)

    def _resume(self, local_queue: LocalQueueUsage, local: LocalQueue | None) -> None:
        """Begins to sample a LocalQueue that is new or was stopped.

        If Kueue has kept no usage for it, the usage begins with its status. Otherwise, one sample replaces
        all samples that were due. If none was due, the next sample is at its usual time.
        """
        if not local_queue.begun:
            local_queue.consumed = dict(local.consumed) if local and self._half_life else {}
            local_queue.updated, local_queue.begun, local_queue.still = self._now, True, False
        elif self._now - local_queue.updated >= self._interval:
            self._decay(local_queue)
            local_queue.consumed = local_queue.consumed if self._half_life else {}

    # --- LocalQueues ----------------------------------------------------------------------------------------

    def of(self, job: Job, queue: str) -> LocalQueueUsage | None:
        """Returns the LocalQueue of a job, or None if its ClusterQueue does not order workloads by usage."""
        local_queues = self._local_queues.get(queue)
        if local_queues is None:
            return None
        return local_queues.get((job.namespace, job.queue)) or self._open(queue, job.namespace, job.queue)

    def _open(self, queue: str, namespace: str, name: str) -> LocalQueueUsage:
        assert self._began is not None
        full = f"{namespace}/{name}"
        local_queue = LocalQueueUsage(full, full if self._by_namespace else name)
        self._match(local_queue, queue, self._cluster.local_queues.get((namespace, name)))
        local_queue.updated = self._now - (self._now - self._began) % self._interval
        self._local_queues[queue][namespace, name] = local_queue
        return local_queue

    # --- time -----------------------------------------------------------------------------------------------

    def advance(self, now: int) -> list[str]:
        """Takes all samples that are due, before any other event at this time.

        LocalQueues start with the usage in their status, and are sampled from the first call on. If there is
        no half-life, past usage is not kept.

        Returns:
            The ClusterQueues whose LocalQueues are now in a different order.
        """
        self._now = now
        if self._began is None:
            self._began = now
            for (namespace, name), local in self._cluster.local_queues.items():
                if local.cluster_queue in self._local_queues:
                    self._open(local.cluster_queue, namespace, name)
        changed = []
        for queue, local_queues in self._local_queues.items():
            moved = False
            for local_queue in local_queues.values():
                if local_queue.sampled and now - local_queue.updated >= self._interval:
                    before = local_queue.usage
                    self._sample(local_queue, now)
                    moved = moved or _passes(local_queue, before, local_queues.values())
            if moved:
                changed.append(queue)
        return changed

    def next_sample(self, queue: str) -> int | None:
        """Returns the next time when a sample could reorder the LocalQueues of a ClusterQueue, or None."""
        local_queues = self._local_queues[queue]
        if len(local_queues) < 2:
            return None
        due = [each.updated for each in local_queues.values() if each.sampled and not each.still]
        return min(due) + self._interval if due else None

    def next_real_sample(self) -> int | None:
        """Returns the time at which Kueue takes the next sample, or None if no LocalQueue is sampled."""
        due = [
            each.updated
            for local_queues in self._local_queues.values()
            for each in local_queues.values()
            if each.sampled
        ]
        return min(due) + self._interval if due else None

    def _sample(self, local_queue: LocalQueueUsage, now: int) -> None:
        samples = (now - local_queue.updated) // self._interval
        local_queue.updated += samples * self._interval
        for _ in range(samples):
            if local_queue.still:
                break
            consumed = {}
            if self._half_life:
                consumed = decayed(local_queue.consumed, local_queue.held, self._keeps, self._gains)
            local_queue.still = consumed == local_queue.consumed
            local_queue.consumed = consumed
        self._count(local_queue)

    # --- what happens ---------------------------------------------------------------------------------------

    def hold(self, local_queue: LocalQueueUsage, usage: Amounts) -> None:
        """Adds the usage of a workload that holds quota to the usage of its LocalQueue."""
        local_queue.held = merged(local_queue.held, billionths(self._by_resource(usage)))
        local_queue.still = False

    def give_back(self, local_queue: LocalQueueUsage, usage: Amounts) -> None:
        """Subtracts the usage that a workload releases. The consumption decreases only over time."""
        for name, amount in billionths(self._by_resource(usage)).items():
            local_queue.held[name] -= amount
        local_queue.still = False

    def charge(self, local_queue: LocalQueueUsage, requests: Mapping[str, int]) -> None:
        """Charges the entry penalty of a workload that was admitted and already holds quota.

        The penalty equals the usage that the workload would have after one interval. As in a sample, the
        usage first decays towards the current usage. The next sample is taken one interval later.
        """
        self._decay(local_queue)
        local_queue.consumed = merged(local_queue.consumed, scaled(billionths(requests), self._gains))
        self._count(local_queue)

    def _decay(self, local_queue: LocalQueueUsage) -> None:
        """Takes a sample now, regardless of the interval."""
        part = alpha(self._now - local_queue.updated, self._half_life)
        kept = factor(1.0 - part), factor(part)
        local_queue.consumed = decayed(local_queue.consumed, local_queue.held, *kept)
        local_queue.updated = self._now
        local_queue.still = False

    def _by_resource(self, usage: Amounts) -> dict[str, int]:
        total: dict[str, int] = {}
        for cell, amount in usage:
            name = self._resources[cell]
            total[name] = total.get(name, 0) + amount
        return total

    def _count(self, local_queue: LocalQueueUsage) -> None:
        local_queue.usage = usage_of(local_queue.consumed, self._weights, local_queue.weight)


def _passes(local_queue: LocalQueueUsage, before: float, others: Iterable[LocalQueueUsage]) -> bool:
    """Returns True if the new usage of a LocalQueue changes its position relative to another LocalQueue."""
    if local_queue.usage == before:
        return False
    low, high = min(before, local_queue.usage), max(before, local_queue.usage)
    return any(low <= other.usage <= high and other is not local_queue for other in others)

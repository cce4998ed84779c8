"""Evictions by NoExecute taints: who goes now, who goes when a toleration ends, and who may stay.

Upstream: `processPodOnNode` in pkg/controller/tainteviction/taint_eviction.go. Its limits of rate are not
modelled: it acts within the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import final

from harness.base.units import SECOND
from harness.cluster.kinds.selectors import Taint
from harness.models.kube.pod import PodInfo

DELETED_BY_TAINT = "DeletionByTaintManager"
"""The reason of such an eviction, as in the condition that pods get."""

_FAR = 2**63 - 1


def no_execute(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Those taints that also concern pods which run."""
    return tuple([taint for taint in taints if taint.effect == "NoExecute"])


@final
class TaintEvictions:
    """The timers of pods that tolerate a taint for a time.

    Attributes:
        due: when the next one ends, microseconds since the origin; far in the future where none runs.
    """

    def __init__(self) -> None:
        self.due = _FAR
        self._timers: list[tuple[int, str, int, PodInfo]] = []
        self._begun = 0
        self._ends: dict[PodInfo, int] = {}

    def must_go(self, pod: PodInfo, taints: Sequence[Taint], now: int) -> bool:
        """Whether a pod is evicted now from a node with these NoExecute taints; else a timer may run.

        It is asked whenever these taints of its node change, and when it is bound to a node that has some.
        """
        seconds: int | None = None
        for taint in taints:
            first = next((each for each in pod.template.spec.tolerations if each.tolerates(taint)), None)
            if first is None:
                return True
            if first.seconds is not None:
                seconds = first.seconds if seconds is None else min(seconds, first.seconds)
        if seconds is None:
            self.forget(pod)
            return False
        if seconds <= 0:
            return True
        if pod not in self._ends:  # one that runs keeps its time
            self._ends[pod] = now + seconds * SECOND
            self._begun += 1
            heappush(self._timers, (now + seconds * SECOND, pod.name, self._begun, pod))
            self._settle()
        return False

    def forget(self, pod: PodInfo) -> None:
        """A pod may stay, or is gone: its timer makes no instant happen."""
        if self._ends.pop(pod, None) is not None:
            self._timers = [timer for timer in self._timers if timer[3] is not pod]
            heapify(self._timers)
            self._settle()

    def ended(self, now: int) -> list[PodInfo]:
        """The pods whose timers end now, by name."""
        pods = []
        while self._timers and self._timers[0][0] <= now:
            pod = heappop(self._timers)[3]
            del self._ends[pod]
            pods.append(pod)
        self._settle()
        return pods

    def _settle(self) -> None:
        self.due = self._timers[0][0] if self._timers else _FAR

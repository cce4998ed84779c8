"""Keeps the equal pods of a block in order."""

from __future__ import annotations

from bisect import bisect_left, insort_left
from collections.abc import Hashable
from typing import Final, final

from harness.models.kube.placement.status import INTER_POD_AFFINITY, NODE_RESOURCES_FIT, POD_TOPOLOGY_SPREAD
from harness.models.kube.pod import LastingRefusal, PodInfo

BEFORE_ALL: Final = -(1 << 62)
AFTER_ALL: Final = 1 << 62
"""Places before and after the places of all pods."""

BY_BINDINGS: Final = frozenset({INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD})
"""The plugins that may no longer reject a pod after another pod is bound."""


def waits_for_room(rejected_by: frozenset[str]) -> bool:
    """Returns True if the deletion of any pod may help, and no binding can help."""
    return NODE_RESOURCES_FIT in rejected_by and BY_BINDINGS.isdisjoint(rejected_by)


def _from_the_end(pod: PodInfo) -> int:
    """Returns a key that sorts later pods first, as in `EqualPods.pods`."""
    return -pod.place


@final
class EqualPods:
    """The equal pods of a block.

    Attributes:
        pods: the pods in reverse order, so that the first pod can be removed and put back without moving
            other pods. Their `rejected_by` is out of date while they are in this list.
        rejected_by: the plugins that rejected the pods before this pass.
        verdict: the plugins that rejected pods in this pass. It is None before the first failure, and for
            resting pods (see `_blocks.py`).
        doubted: a reason for a failure that was still valid when a node had enough resources for the pods.
            As long as this is their reason, the pods can't be resting. None if there is no such reason.
        judged, judged_at: the last verdict on the pods while they rest, and its version. See `Verdicts`.
        turned: how often other plugins than before rejected the pods since `settle`. None of these times
            needs a record.
    """

    __slots__ = ("doubted", "judged", "judged_at", "pods", "rejected_by", "turned", "verdict")

    def __init__(self, pods: list[PodInfo], rejected_by: frozenset[str]) -> None:
        self.pods = pods
        self.rejected_by = rejected_by
        self.verdict: frozenset[str] | None = None
        self.doubted: LastingRefusal | None = None
        self.judged: frozenset[str] | None = None
        self.judged_at = -1
        self.turned = 0

    def next_place(self, reached: int) -> int:
        """Returns the `place` of the first pod after a given place, or `AFTER_ALL` if there is none."""
        pods = self.pods
        if pods and pods[-1].place > reached:  # usually all pods
            return pods[-1].place
        at = bisect_left(pods, -reached, key=_from_the_end) - 1
        return pods[at].place if at >= 0 else AFTER_ALL

    def behind(self, place: int) -> int:
        """Returns how many of the pods have a higher `place` than the given one."""
        pods = self.pods
        if pods and pods[-1].place > place:  # usually all pods
            return len(pods)
        return bisect_left(pods, -place, key=_from_the_end)

    def put_back(self, pod: PodInfo) -> None:
        if self.pods and self.pods[-1].place < pod.place:
            insort_left(self.pods, pod, key=_from_the_end)
        else:
            self.pods.append(pod)

    def fail(self, reached: int, place: int, rejected_by: frozenset[str]) -> list[PodInfo]:
        """Marks the pods between the places `reached` and `place` as failed, because plugins rejected them.

        Returns:
            The pods in order, but only those for which the rejection by these plugins must be recorded.
        """
        first, last = self.behind(place - 1), self.behind(reached)
        if first >= last:
            return []
        self.verdict = rejected_by
        failed = self.pods[first:last]
        failed.reverse()
        news = []
        for pod in failed:
            pod.rejected_by = self.rejected_by  # the previous value, see `pods`
            if pod.note_rejection(rejected_by):
                news.append(pod)
            pod.rejected_by = rejected_by
        return news

    def turn(self, rejected_by: frozenset[str], reached: int, place: int) -> list[PodInfo]:
        """Implements `fail` for a resting group, whose peers then fail for the same reason."""
        self.settle()
        peers = self.pods[0].peers
        peers.rejected_by, peers.refusal = rejected_by, None
        return self.fail(reached, place, rejected_by)

    def turns(self, rejected_by: frozenset[str] | None, reached: int) -> bool | None:
        """Returns whether the pods after a place now fail for another reason than before this pass.

        Returns None if the reason is None, which means that they may succeed. Also returns None if pods
        before this place failed in this pass for another reason than these pods.
        """
        if rejected_by is None:
            return None
        behind = self.behind(reached)
        failed = self.verdict if behind == len(self.pods) else self.verdict or self.rejected_by
        if failed is not None and failed != rejected_by:
            return None
        return rejected_by != self.rejected_by

    def turns_silently(self, rejected_by: frozenset[str], reached: int) -> bool:
        """Makes all pods fail because of other plugins than before, if this needs no record.

        Returns False and changes nothing if some pods need a record, or are before the place `reached`.
        """
        quiet, known = self.quiet()
        if not quiet or rejected_by not in known or self.pods[-1].place <= reached:
            return False
        self.turned += 1
        self.rejected_by = rejected_by
        return True

    def quiet(self) -> tuple[int, frozenset[Hashable]]:
        """Returns how often other plugins can reject the pods without a record, and which plugins."""
        first = self.pods[0].told
        quiet, known = first.quiet, first.known
        for pod in self.pods[1:]:
            quiet, known = min(quiet, pod.told.quiet), known & pod.told.known
        return quiet - self.turned, known

    def settle(self) -> None:
        """Updates what was recorded of each pod by the number of times that the pods turned."""
        if self.turned:
            for pod in self.pods:
                pod.told = pod.told.again(self.rejected_by, self.turned)
            self.turned = 0

    def over(self) -> None:
        """Ends a pass in which all of the pods have failed."""
        if self.verdict is not None:
            self.rejected_by, self.verdict = self.verdict, None

    def split(self, place: int) -> EqualPods | None:
        """Removes and returns the pods that have a higher `place` than the given one.

        If this applies to all pods, returns this group itself. If it applies to none, returns None.
        """
        pods, at = self.pods, self.behind(place)
        if not at:
            return None
        if at == len(pods):
            return self
        if 2 * at > len(pods):  # copy the shorter part, because each pod must be copied
            rest, self.pods = pods, pods[at:]
            del rest[at:]
        else:
            rest = pods[:at]
            del pods[:at]
        return EqualPods(rest, self.rejected_by)

    def fails_again(self, pod: PodInfo, version: int) -> bool:
        """Returns True if a pod fails like its equals, without an attempt. See `Peers.fail_again`."""
        rejected_by = pod.peers.rejected_by
        if self.rejected_by != rejected_by or self.verdict not in (None, rejected_by):
            return False
        if not pod.peers.fail_again(pod, version):
            return False
        self.verdict = rejected_by
        return True

    def fails_otherwise(self, pod: PodInfo) -> bool:
        """Returns True if a pod fails for another reason than its peers before, without an attempt.

        `Peers.rejected_by` then has the new reason.
        """
        peers = pod.peers
        lasting = peers.lasting
        if self.verdict is not None or lasting is None or lasting.verdicts is None:
            return False
        now = lasting.verdicts.rejecting(lasting.amounts, lasting.amounts, -1)
        if now is None:
            return False
        peers.rejected_by, peers.refusal = now, None
        return True

    def may_rest(self, lasting: LastingRefusal | None) -> bool:
        """Returns True if these pods wait only for free resources, so that they can be resting.

        They must have failed for the same reason as before.
        """
        return (
            lasting is not None
            and (lasting.most_room is not None or lasting.verdicts is not None)
            and lasting is not self.doubted
            and bool(self.pods)
            and self.verdict in (None, self.rejected_by)
        )

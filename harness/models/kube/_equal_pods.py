"""Equal pods of a block, which stand one behind the other."""

from __future__ import annotations

from bisect import bisect_left
from typing import final

from harness.models.kube.pod import LastingRefusal, PodInfo

BEFORE_ALL = -(1 << 62)
AFTER_ALL = 1 << 62
"""Places before and after those of all pods."""


def from_the_end(pod: PodInfo) -> int:
    """The later ones first, as in `EqualPods.pods`."""
    return -pod.place


@final
class EqualPods:
    """Equal pods of a block.

    Attributes:
        pods: the pods, the first one last: pods are taken and put back at the front of long lines, where
            nothing else is to be moved then. Which plugins rejected them is up to date in those outside only.
        rejected_by: the plugins that rejected them before this pass.
        verdict: those that rejected them in this pass, so far as they failed in it; None before the first,
            and of pods that rest.
        doubted: a refusal that stood though a node had as much as they ask for, so that they do not rest.
    """

    __slots__ = ("doubted", "pods", "rejected_by", "verdict")

    def __init__(self, pods: list[PodInfo], rejected_by: frozenset[str]) -> None:
        self.pods = pods
        self.rejected_by = rejected_by
        self.verdict: frozenset[str] | None = None
        self.doubted: LastingRefusal | None = None

    def next_place(self, reached: int) -> int:
        """The place of the first pod that comes after a place; `AFTER_ALL` if there is none."""
        at = self.behind(reached) - 1
        return self.pods[at].place if at >= 0 else AFTER_ALL

    def behind(self, place: int) -> int:
        """How many pods come after a place."""
        pods = self.pods
        if pods and pods[-1].place > place:  # all of them, as a rule
            return len(pods)
        return bisect_left(pods, -place, key=from_the_end)

    def fail(self, reached: int, place: int, rejected_by: frozenset[str]) -> list[PodInfo]:
        """Have the pods fail that come after a place and before another one, by other plugins than before.

        Returns:
            Those that are to be recorded with it, the first one first.
        """
        first, last = self.behind(place - 1), self.behind(reached)
        if first >= last:
            return []
        self.verdict = rejected_by
        failed = self.pods[first:last]
        failed.reverse()
        news = []
        for pod in failed:
            pod.rejected_by = self.rejected_by  # up to now, see `pods`
            if pod.note_rejection(rejected_by):
                news.append(pod)
            pod.rejected_by = rejected_by
        return news

    def over(self) -> None:
        """The pass is over, and all of its pods have failed in it."""
        if self.verdict is not None:
            self.rejected_by, self.verdict = self.verdict, None

    def split(self, place: int) -> EqualPods | None:
        """Take out the pods that come after a place; itself if all do, and None if none does."""
        pods, at = self.pods, self.behind(place)
        if not at:
            return None
        if at == len(pods):
            self.verdict = None
            return self
        if 2 * at > len(pods):  # the shorter part is copied: that looks at each of its pods
            rest, self.pods = pods, pods[at:]
            del rest[at:]
        else:
            rest = pods[:at]
            del pods[:at]
        return EqualPods(rest, self.rejected_by)

    def fails_again(self, pod: PodInfo, version: int) -> bool:
        """Whether one of them needs no attempt to fail as its equals last did, see `Peers.fail_again`."""
        rejected_by = pod.peers.rejected_by
        if self.rejected_by != rejected_by or self.verdict not in (None, rejected_by):
            return False
        if not pod.peers.fail_again(pod, version):
            return False
        self.verdict = rejected_by
        return True

    def may_rest(self, lasting: LastingRefusal | None) -> bool:
        """Whether pods that fail as they did before wait for nothing but room."""
        return (
            lasting is not None
            and lasting.most_room is not None
            and lasting is not self.doubted
            and bool(self.pods)
            and self.verdict in (None, self.rejected_by)
        )

"""Checks quotas in the dry run of a preemption.

The option `semantics` determines which pods can be victims and when each limit counts. Everything else in a
dry run follows kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.tree import Excesses
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import Code, Status
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.victims import EligiblePods
from harness_plugins.elastic_quota.quota_usage import QuotaUsage

OVER_QUOTA = Status(Code.UNSCHEDULABLE, "", ("global quota max exceeded",))
"""The status of a node where the quota refuses the preemptor even if all potential victims are gone."""


NO_VICTIMS = Status(Code.UNRESOLVABLE, "", ("no pod on the node may be a victim",))


def no_victims(pod: PodInfo, node: NodeInfo) -> Status:
    """Returns the status for a node without possible victims, with the message of scheduler-plugins."""
    said = f"No victims found on node {node.name} for preemptor pod {pod.name}"
    return Status(Code.UNRESOLVABLE, "", (said,))


class Claim(NamedTuple):
    """The potential victims of a pod. The state does not change while a claim is in use.

    Attributes:
        losing: the quotas that may lose pods, which can be read once. None stands for pods without a quota.
        eligible_pods: finds the potential victims on a node.
    """

    losing: Iterable[Quota | None]
    eligible_pods: EligiblePods

    def is_in_vain(self) -> bool:
        """Returns True if no quota may lose pods."""
        return not any(True for _ in self.losing)


class Exceeded(NamedTuple):
    """The exceeded limits that count in a dry run.

    Attributes:
        back: the limits that count when the dry run puts a potential victim back, because it may not be
            needed.
        gone: the limits that count when the dry run has removed all potential victims.
    """

    back: Excesses
    gone: Excesses


@final
class Shortfall:
    """The amounts that must be freed before a quota admits a pod.

    Other limits need no check. A dry run puts back only pods that it has removed, so it cannot exceed them.
    """

    __slots__ = ("_excesses", "_left")

    def __init__(self, excesses: Excesses) -> None:
        self._excesses = excesses
        self._left = [excess for _, _, excess in excesses]

    def change(self, leaf: Quota | None, amounts: Amounts, sign: int) -> None:
        """Subtracts the usage of a removed pod (-1), or adds it back (1). `leaf` is the quota of the pod."""
        if leaf is not None:
            for place, (quota, resource, _) in enumerate(self._excesses):
                if quota is None or quota in leaf.line:
                    self._left[place] += sign * amounts.get(resource, 0)

    def is_covered(self) -> bool:
        """Returns True if enough has been freed."""
        for left in self._left:  # noqa: SIM110 `all` of a generator takes twice as long for one or two limits
            if left > 0:
                return False
        return True


@final
class QuotaBound:
    """The limits that a preemptor exceeds. See `harness.models.kube.preemption.victims.Bound`.

    Args:
        twice: whether the dry run checks the quota again for a victim that does not fit on the node anymore.
            If the quota refuses the victim, too, the node is not a candidate, as in scheduler-plugins and
            Koordinator.
    """

    __slots__ = ("_back", "_gone", "_twice", "_usage")

    def __init__(self, exceeded: Exceeded, usage: QuotaUsage, *, twice: bool) -> None:
        self._back = Shortfall(exceeded.back)
        self._gone = self._back if exceeded.gone is exceeded.back else Shortfall(exceeded.gone)
        self._usage = usage
        self._twice = twice

    def without(self, pods: Sequence[PodInfo]) -> Status | None:
        """Removes potential victims. Returns a status if this is not enough for the quota. See `Bound`."""
        of = self._usage.of
        for pod in pods:
            leaf, amounts, _ = of(pod)
            self._back.change(leaf, amounts, -1)
            if self._gone is not self._back:
                self._gone.change(leaf, amounts, -1)
        return None if self._gone.is_covered() else OVER_QUOTA

    def with_again(self, pod: PodInfo) -> bool:
        """Puts a victim back if the quota allows it. Returns True if it does. See `Bound`."""
        leaf, amounts, _ = self._usage.of(pod)
        self._back.change(leaf, amounts, 1)
        if self._back.is_covered():
            return True
        self._back.change(leaf, amounts, -1)
        return False

    def is_short(self, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Returns a status if a node is no candidate because the quota refuses a victim, too. See `Bound`."""
        if not self._twice or self._back.is_covered():
            return None
        return Status(Code.ERROR, "", (f"no corresponding pod {pod.name} in pods of node {node.name}",))

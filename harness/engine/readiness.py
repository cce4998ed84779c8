"""When the pods of units are ready, for policies that want to be told."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import final

from harness.engine.events import NEVER
from harness.engine.life import Unit
from harness.policy import ENDLESS, Job


@final
class Readiness:
    """The units that hold what they ask for and of which nobody was told yet that their pods are ready.

    Args:
        tell: is told of a job, of numbers of its pods, and of the time.
    """

    def __init__(self, tell: Callable[[Job, range, int], None]) -> None:
        self._tell = tell
        self._due: list[tuple[int, str, int, Unit]] = []
        self._serial = 0

    def expect(self, unit: Unit, now: int) -> None:
        """A unit starts now; its pods are ready at this instant still, if they need no time for it."""
        ready = max(unit.ready, now)
        if ready < ENDLESS:
            self._serial += 1
            unit.alarm = self._serial
            heappush(self._due, (ready, unit.name, self._serial, unit))

    def next_due(self, otherwise: int) -> int:
        """When pods are ready next; `otherwise` if that is earlier or none will be."""
        due = self._due
        while due and not _holds(due[0][2], due[0][3]):
            heappop(due)
        return due[0][0] if due and due[0][0] < otherwise else otherwise

    def deliver(self, now: int) -> None:
        """Tell of the pods that are ready now, in the order of names."""
        due = self._due
        while due and due[0][0] == now:
            _, _, serial, unit = heappop(due)
            if _holds(serial, unit):
                pod = unit.pod
                self._tell(unit.life.job, unit.life.every_pod if pod == NEVER else range(pod, pod + 1), now)


def _holds(serial: int, unit: Unit) -> bool:
    """Whether a unit still is in the stint in which it got this number."""
    return unit.alarm == serial and unit.due != NEVER

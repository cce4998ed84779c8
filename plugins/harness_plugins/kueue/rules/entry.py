"""The head of a queue in a cycle, and its outcome.

Upstream: `entry` in pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, final

from harness_plugins.kueue.rules.assignment import Assignment
from harness_plugins.kueue.state.second_passes import SecondPass
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload


@final
class Entry:
    """The head of a queue in a cycle.

    Attributes:
        marked: whether this workload was the last one in its queue to issue preemptions.
        reason: why the workload is not admitted, or "" while it can still be admitted. If an entry already
            has a reason when it is served, the cycle does nothing with it.
        inadmissible: whether the workload became inadmissible, so that it is not tried until quota is freed.
        second: the second pass, or None for the head of a queue.
        placed: the new places of all pods in a second pass, or () if there is no place for them.
    """

    __slots__ = ("assignment", "inadmissible", "marked", "placed", "reason", "second", "workload")

    def __init__(self, workload: Workload, assignment: Assignment, *, marked: bool) -> None:
        self.workload = workload
        self.assignment = assignment
        self.marked = marked
        self.reason = ""
        self.inadmissible = False
        self.second: SecondPass | None = None
        self.placed: tuple[Placed, ...] = ()


Order: TypeAlias = Callable[[list[Entry]], Iterator[Entry]]
"""Yields the entries of a cycle in the order in which they are served.

Each entry is chosen only after the previous one has been served, so the order can depend on what that entry
changed. Entries that start with a reason can be omitted if other entries do not depend on them.
"""

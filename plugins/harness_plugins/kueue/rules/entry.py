"""A head in a cycle, and its outcome.

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
    """A head in a cycle.

    Attributes:
        workload: the head.
        assignment: its assignment.
        resumed: whether the scan continued after flavors that were tried before.
        marked: whether the head is the workload of its queue that last issued preemptions.
        reason: why the head is not admitted; "" while it may be. An entry that begins with a reason changes
            nothing when it is served.
        reserved: whether quota or places are reserved for the head.
        preempts: whether the head caused evictions, apart from workloads that were already leaving.
        newly_marked: whether the head became the workload of its queue that last issued preemptions.
        inadmissible: whether the head became inadmissible, until quota becomes free.
        second: the second pass; None for a head.
        placed: the new places of all pods of the second pass; () if they have no place.
    """

    __slots__ = (
        "assignment",
        "inadmissible",
        "marked",
        "newly_marked",
        "placed",
        "preempts",
        "reason",
        "reserved",
        "resumed",
        "second",
        "workload",
    )

    def __init__(self, workload: Workload, assignment: Assignment, *, resumed: bool, marked: bool) -> None:
        self.workload = workload
        self.assignment = assignment
        self.resumed = resumed
        self.marked = marked
        self.reason = ""
        self.reserved = False
        self.preempts = False
        self.newly_marked = False
        self.inadmissible = False
        self.second: SecondPass | None = None
        self.placed: tuple[Placed, ...] = ()


Order: TypeAlias = Callable[[list[Entry]], Iterator[Entry]]
"""Yields the entries of a cycle in the order in which they are served.

The next entry is chosen only after the entry before it was served, so the order may depend on its effects.
The order may leave out entries that begin with a reason, if their turn does not matter to other entries.
"""

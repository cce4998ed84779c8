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
        marked: whether it is the workload of its queue that last issued preemptions.
        reason: why it is not admitted, "" as long as it may be. An entry with a reason from the start changes
            nothing when it is served.
        reserved: whether later entries see something as taken for it.
        preempts: whether workloads were told to leave for it that were not leaving already.
        newly_marked: whether it became the workload of its queue that last issued preemptions.
        inadmissible: whether it waits from now on for quota to become free.
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

It is asked for the next one only after the one before was served, so that it may use what that changed. It
may leave out entries that have a reason from the start, if their turn does not matter to others.
"""

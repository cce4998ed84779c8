"""The part of the engine's state that a policy may read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from harness.policy.job import Job


class View(Protocol):
    """The engine's read-only record, for policies that do not keep their own."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """Resource -> amount of the whole cluster; unlimited resources are absent."""

    @property
    def allocated(self) -> Mapping[str, int]:
        """Resource -> amount that pods hold now, including terminating pods but not promised amounts."""

    def free_on(self, node: str) -> Mapping[str, int]:
        """Returns resource -> free amount on a node."""

    def fits(self, job: Job) -> bool:
        """Returns True if the job's whole request is free in the cluster now (summed over nodes).

        Resources promised to admitted jobs that have not started count as taken. So a job that fits starts
        immediately.
        """

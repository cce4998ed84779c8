"""What of the engine's state a policy may look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from harness.policy.job import Job


class View(Protocol):
    """The engine's truth, read-only, for policies that do not keep books of their own."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """Resource -> amount of the whole cluster; a resource that is not limited is absent."""

    @property
    def allocated(self) -> Mapping[str, int]:
        """Resource -> amount that pods hold now, terminating ones included; not yet what is promised."""

    def free_on(self, node: str) -> Mapping[str, int]:
        """Resource -> amount that is free on a node now."""

    def fits(self, job: Job) -> bool:
        """Whether the job's whole request is free in the cluster now (summed over nodes).

        What admitted jobs are to get that have not started counts as taken: what fits starts at once.
        """

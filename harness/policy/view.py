"""The part of the engine's state that a policy may read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from harness.policy.job import Job


class View(Protocol):
    """A read-only view of the engine's state, for policies that don't keep their own records."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """Maps each resource to its total capacity in the cluster; resources without a limit are absent."""

    @property
    def allocated(self) -> Mapping[str, int]:
        """Maps each resource to the quantity that pods hold now.

        Terminating pods are included, but promises to admitted jobs are not.
        """

    def free_on(self, node: str) -> Mapping[str, int]:
        """Returns the free capacity of a node for each resource."""

    def fits(self, job: Job) -> bool:
        """Returns True if the whole cluster now has enough free capacity for all pods of the job.

        Free capacity is summed over nodes. Resources that are promised to admitted jobs count as used, so a
        job that fits starts immediately.
        """

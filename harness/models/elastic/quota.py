"""Models one elastic quota, with its guarantee (`min`), its limit (`max`), and its usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from harness.cluster.kinds.elastic import CORE_RESOURCES, ElasticQuota
from harness.cluster.model import UNLIMITED

Amounts = Mapping[str, int]
"""Maps resources to quantities. A resource counts as present even if its quantity is 0."""


@final
class Quota:
    """One quota. Only its tree changes it.

    Attributes:
        name: the name of the quota.
        line: the quota itself, its parent, and so on up to the root.
        min: the guarantee of each resource. It is 0 for resources that the manifest doesn't name.
        max: the limit of each resource. If the `max` in the manifest doesn't name cpu, memory or ephemeral
            storage, their limit is 0. Other resources that it doesn't name have no limit. With `only_named`,
            only the named resources have a limit.
        used: the quantity of each resource that is charged.
        leaving: the part of `used` that will soon be released.
        firm: the part of `used` that belongs to pods that must not be preempted. It is empty if the tree does
            not distinguish such pods.
        runtime: the most recently computed runtime quota, or None if only `max` limits the quota.
    """

    __slots__ = (
        "_bounds", "_core", "_only_named", "firm", "leaving", "line", "max", "min", "name",
        "runtime", "used",
    )  # fmt: skip

    def __init__(self, manifest: ElasticQuota, *, only_named: bool = False) -> None:
        self.name = manifest.name
        self._only_named = only_named
        self.runtime: Amounts | None = None
        self.become(manifest)

    def become(self, manifest: ElasticQuota) -> None:
        """Applies a manifest, and resets the usage to zero."""
        self.line: tuple[Quota, ...] = (self,)
        self.min = dict(manifest.min or {})
        core = () if self._only_named else CORE_RESOURCES
        self.max = {each: manifest.max_of(each) for each in (*core, *(manifest.max or ()))}
        # Limits are checked a million times, so it saves time to skip unlimited resources here.
        self._core = [(each, self.max[each]) for each in core if self.max[each] != UNLIMITED]
        self._bounds: dict[tuple[int | str, ...], list[tuple[str, int]]] = {}  # see `bounds`
        self.used: dict[str, int] = {}
        self.leaving: dict[str, int] = {}
        self.firm: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Quota {self.name}>"

    def bounds(self, amounts: Amounts, used: Amounts) -> list[tuple[str, int]]:
        """Returns the resources that can exceed `max`, each with its `max`, in the order of checks.

        They are cpu, memory, ephemeral storage, and the resources in `amounts`. Unlimited resources are left
        out, and so are those that are neither in `amounts` nor in `used`.

        Args:
            amounts: the additional usage.
            used: the usage of all quotas together, in which resources are only added.
        """
        key: tuple[int | str, ...] = (len(used), *amounts)
        found = self._bounds.get(key)
        if found is None:
            most = self.max
            core = [(each, bound) for each, bound in self._core if each in used or each in amounts]
            named = [(each, most[each]) for each in amounts if each not in CORE_RESOURCES and each in most]
            found = self._bounds[key] = core + [(each, bound) for each, bound in named if bound != UNLIMITED]
        return found

    def over_min(self, amounts: Amounts) -> str | None:
        """Returns a resource whose usage would exceed `min` if these quantities were added, or None."""
        used, least = self.used, self.min
        for resource in CORE_RESOURCES:
            if used.get(resource, 0) + amounts.get(resource, 0) > least.get(resource, 0):
                return resource
        for resource, amount in amounts.items():
            if used.get(resource, 0) + amount > least.get(resource, 0):
                return resource
        return None

    def unused_min(self, resource: str) -> int:
        """Returns how much more of a resource stays within `min`. It is negative if the usage exceeds it."""
        return self.min.get(resource, 0) - self.used.get(resource, 0)

    def borrows(self) -> str | None:
        """Returns a resource whose usage exceeds its guarantee, or None if there is none."""
        least = self.min
        for resource, amount in self.used.items():
            if amount > least.get(resource, 0):
                return resource
        return None

    def borrowed(self) -> dict[str, int]:
        """Returns the usage of each resource beyond its guarantee. Terminating pods do not count."""
        least, leaving = self.min, self.leaving
        return {
            resource: amount - leaving.get(resource, 0) - least.get(resource, 0)
            for resource, amount in self.used.items()
        }

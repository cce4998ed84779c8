"""One elastic quota: its guarantee, its bound, and its usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from harness.cluster.kinds.elastic import CORE_RESOURCES, ElasticQuota
from harness.cluster.model import UNLIMITED

_CORE = frozenset(CORE_RESOURCES)

Amounts = Mapping[str, int]
"""Resource -> amount; a named resource counts, even with an amount of 0."""


@final
class Quota:
    """One quota; only its tree changes it.

    Attributes:
        name: its name.
        line: itself, the quota above it, and so on up to the root.
        min: resource -> guarantee; a resource that is not named has 0.
        max: resource -> bound; a resource that is not named has none. But cpu, memory and ephemeral storage
            that it does not name are not allowed at all, unless only named resources count.
        used: resource -> what is charged.
        leaving: resource -> the part of it that will soon be given back.
        firm: resource -> the part of it held by pods that must not be preempted, if that counts.
        runtime: resource -> what it may use, as last computed; None if only `max` bounds it.
    """

    __slots__ = (
        "_core", "_only_named", "firm", "leaving", "line", "max", "min", "name", "runtime", "used"
    )  # fmt: skip

    def __init__(self, manifest: ElasticQuota, *, only_named: bool = False) -> None:
        self.name = manifest.name
        self._only_named = only_named
        self.runtime: Amounts | None = None
        self.become(manifest)

    def become(self, manifest: ElasticQuota) -> None:
        """Takes over its manifest; nothing is charged."""
        self.line: tuple[Quota, ...] = (self,)
        self.min = dict(manifest.min or {})
        core = () if self._only_named else CORE_RESOURCES
        self.max = {each: manifest.max_of(each) for each in (*core, *(manifest.max or ()))}
        # A bound that is none is never exceeded, and bounds are asked a million times.
        self._core = [(each, self.max[each]) for each in core if self.max[each] != UNLIMITED]
        self.used: dict[str, int] = {}
        self.leaving: dict[str, int] = {}
        self.firm: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Quota {self.name}>"

    def bounds(self, amounts: Amounts) -> list[tuple[str, int]]:
        """Resource and `max` of all resources that `over_max` checks and that have a bound, in that order."""
        most = self.max
        named = [(each, most[each]) for each in amounts if each not in CORE_RESOURCES and each in most]
        return self._core + [(each, bound) for each, bound in named if bound != UNLIMITED]

    def over_max(self, amounts: Amounts) -> str | None:
        """A resource in which usage and these amounts would exceed `max`.

        Resources other than the core ones are checked only if they are among the amounts.
        """
        used, most = self.used, self.max
        if not (_CORE.isdisjoint(amounts) and _CORE.isdisjoint(used)):  # of what nobody names there is enough
            for resource, bound in self._core:
                if used.get(resource, 0) + amounts.get(resource, 0) > bound:
                    return resource
        for resource, amount in amounts.items():
            if used.get(resource, 0) + amount > most.get(resource, UNLIMITED):
                return resource
        return None

    def over_min(self, amounts: Amounts) -> str | None:
        """A resource in which usage and these amounts would exceed `min`."""
        used, least = self.used, self.min
        if not (_CORE.isdisjoint(amounts) and _CORE.isdisjoint(used)):
            for resource in CORE_RESOURCES:
                if used.get(resource, 0) + amounts.get(resource, 0) > least.get(resource, 0):
                    return resource
        for resource, amount in amounts.items():
            if used.get(resource, 0) + amount > least.get(resource, 0):
                return resource
        return None

    def borrows(self) -> str | None:
        """A resource that is used beyond its guarantee."""
        least = self.min
        for resource, amount in self.used.items():
            if amount > least.get(resource, 0):
                return resource
        return None

    def borrowed(self) -> dict[str, int]:
        """Resource -> usage beyond the guarantee, once leaving pods have left."""
        least, leaving = self.min, self.leaving
        return {
            resource: amount - leaving.get(resource, 0) - least.get(resource, 0)
            for resource, amount in self.used.items()
        }

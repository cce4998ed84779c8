"""One elastic quota: what is guaranteed, what is allowed, and what is used of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from harness.cluster.kinds.elastic import CORE_RESOURCES, ElasticQuota
from harness.cluster.model import UNLIMITED

_CORE = frozenset(CORE_RESOURCES)

Amounts = Mapping[str, int]
"""Resource -> amount; that a resource is named counts, even with 0."""


@final
class Quota:
    """One quota; changed by its tree only.

    Attributes:
        name: its name.
        line: itself, the quota above it, and so on up to the root.
        min: resource -> what is guaranteed; what is not named is 0.
        max: resource -> bound; what is not named has none. But it allows no cpu, memory or ephemeral storage
            that it does not name, unless only what it names counts.
        used: resource -> what is charged.
        leaving: resource -> the part of it that is about to be given back.
        firm: resource -> the part of it that pods hold which must not be preempted, as far as that counts.
        runtime: resource -> what it may use, as was worked out last; None where nothing but `max` bounds it.
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
        """It is what its manifest says, and nothing is charged."""
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
        """Resource and `max` of all that `over_max` looks at and has a bound, in that order."""
        most = self.max
        named = [(each, most[each]) for each in amounts if each not in CORE_RESOURCES and each in most]
        return self._core + [(each, bound) for each, bound in named if bound != UNLIMITED]

    def over_max(self, amounts: Amounts) -> str | None:
        """A resource in which usage and these amounts would exceed `max`.

        Other resources than the core ones are looked at only if they are among the amounts.
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
        """The same for `min`."""
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
        """Resource -> how much more is used than guaranteed, once what is leaving has left."""
        least, leaving = self.min, self.leaving
        return {
            resource: amount - leaving.get(resource, 0) - least.get(resource, 0)
            for resource, amount in self.used.items()
        }

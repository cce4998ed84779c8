"""Models Koordinator's runtime quotas, which limit each quota depending on the requests of all quotas.

They don't depend on pods, nodes or time, because callers pass the requests and the capacity. The rules are
based on Koordinator's `GroupQuotaManager` and `RuntimeQuotaCalculator` as of July 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import final

from harness.cluster.kinds.elastic import ElasticQuota
from harness.cluster.model import UNLIMITED
from harness.models.elastic.sharing import Part, fair_shares

DEFAULT_QUOTA_RESOURCES = ("cpu", "memory")
"""The resources in the `max` of Koordinator's default quota, which counts pods that have no quota."""


@final
class RuntimeQuotas:
    """The runtime of each quota in a tree.

    Args:
        quotas: the quotas by name.
        capacity: the capacity of all nodes for each resource.
        scales: whether guarantees that exceed the capacity are scaled down (`enableMinQuotaScale`).
        quirks: whether to reproduce two properties of Koordinator that only its code explains. First, a
            guarantee is scaled only when its own quota or a quota below it is queried. Second, a quota
            without children that does not lend has no request until it has had a pod.
        trees: whether quotas of other trees share only the capacity of their root (`MultiQuotaTree`). If not,
            all quotas are in one tree.

    Attributes:
        rescaled: how often a query changed the scale of a guarantee. The runtimes of other quotas can change
            as a result, although no requests change.
        changes: how often any input of the runtimes changed.
        anew: the quotas that were reset by the last change of a quota. Earlier results for them are invalid.
    """

    def __init__(
        self,
        quotas: Mapping[str, ElasticQuota],
        capacity: Mapping[str, int],
        *,
        scales: bool = True,
        quirks: bool = True,
        trees: bool = False,
    ) -> None:
        self.rescaled = 0
        self.changes = 0
        self.anew: frozenset[str] = frozenset()
        self._scales = scales
        self._lazily = quirks
        self._trees = trees
        self._capacity = dict(capacity)
        self._set_up(quotas)

    def _set_up(self, quotas: Mapping[str, ElasticQuota]) -> None:
        trees = self._trees
        self._quotas = {name: _Quota(manifest) for name, manifest in quotas.items()}
        below: dict[tuple[str, str], list[_Quota]] = {}
        for name, manifest in quotas.items():
            above = self._quotas.get(manifest.parent)
            self._quotas[name].above = above
            key = (manifest.parent, "") if above is not None else ("", manifest.tree if trees else "")
            below.setdefault(key, []).append(self._quotas[name])
        self._totals: dict[str, dict[str, int]] = {"": dict(self._capacity)}
        for manifest in quotas.values() if trees else ():
            if manifest.tree and manifest.total is not None:
                self._totals[manifest.tree] = dict(manifest.total)
                if not manifest.apart:
                    add_to(self._totals[""], manifest.total, -1)
        self._levels: list[_Level] = []  # from the top
        parents = {quota.above for quota in self._quotas.values()}
        for (_, tree), siblings in below.items():
            above = siblings[0].above
            named = [quota for quota in quotas.values() if not trees or quota.tree == tree]
            shared = (
                above.most if above is not None else {each for quota in named for each in quota.max or ()}
            )
            level = _Level(siblings, above, tree, sorted(shared))
            self._levels.append(level)
            for quota in siblings:
                quota.level = level
                quota.unnamed = frozenset(level.resources).difference(quota.most)
        self._levels.sort(key=lambda level: len(level.quotas[0].line))
        for quota in sorted(self._quotas.values(), key=lambda quota: -len(quota.line)):  # from the bottom
            quota.figure = {} if self._lazily and quota not in parents else None
            if quota.above is not None:
                add_to(quota.above.asked, {each: quota.limited(each) for each in quota.names}, 1)
        self._answers: dict[str, Mapping[str, int]] = {}  # since the last change
        self._shared: set[_Level] = set()  # levels with up-to-date shares
        self._scaled: set[_Quota] = set()  # quotas with up-to-date scaled guarantees
        self._settled: bool | None = None  # None until it is computed
        self._lags = False  # whether the stored request of a parent quota may be out of date

    # --- changes ------------------------------------------------------------------------------------------

    def ask(self, name: str, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Adds (1) or removes (-1) the requests of a pending or running pod of a quota.

        Args:
            name: the name of the quota.
            amounts: the requests. They must contain only resources in the `max` of the quota.
            sign: 1 or -1.
        """
        quota: _Quota | None = self._quotas[name]
        assert quota is not None, "every name has a quota"
        change = {resource: sign * amount for resource, amount in amounts.items() if amount}
        if change:
            for each in quota.line if self._lags else (quota,):
                if each.figure is not None:
                    each.figure = None
                    self._forget()
        while change and quota is not None:
            change = quota.ask(change)
            quota = quota.above
            if change:
                self._forget()

    def take_outside(self, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Subtracts the requests of a pod without a quota from the capacity that quotas share.

        If `sign` is -1, the requests are added again.
        """
        add_to(self._totals[""], amounts, -sign)
        self._forget()

    def resize(self, capacity: Mapping[str, int]) -> None:
        """Sets the capacity of all nodes. A resource that no node has any more remains, with capacity 0."""
        add_to(self._totals[""], self._capacity, -1)
        self._capacity = {**dict.fromkeys(self._capacity, 0), **capacity}
        add_to(self._totals[""], self._capacity, 1)
        self._forget()

    @contextmanager
    def becoming(self, quotas: Mapping[str, ElasticQuota]) -> Iterator[None]:
        """Adds, removes or changes one quota.

        All requests become 0. Within this context, the caller must add the requests of all pods again.

        Upstream: `UpdateQuota`, `DeleteQuota` and the functions that they call.

        With quirks, a guarantee keeps its scale unless its own quota changes. If the `max` of a quota
        changes, Koordinator updates the request that it stores for the quota. If the `min` changes, it keeps
        the stored request. If a quota starts or stops lending, or starts or stops being a parent, all quotas
        are reset.

        Args:
            quotas: all quotas after the change.
        """
        before = self._quotas
        self._set_up(quotas)
        yield
        if self._lazily:
            self._take_over(before)
        self._forget()

    def _take_over(self, before: dict[str, _Quota]) -> None:
        """Keeps the state that Koordinator keeps for quotas. At most one quota may have changed."""
        there = self._quotas
        both = [(before[name], quota) for name, quota in there.items() if name in before]
        if any(quota.starts_anew(was) for was, quota in both):
            for quota in there.values():
                quota.figure = None
            self.anew, self._lags = frozenset(there), False
            return
        for was, quota in both:
            quota.follow(was)
        changed = [each for pair in both if pair[0].manifest != pair[1].manifest for each in pair]
        changed += [quota for name, quota in (there | before).items() if (name in there) != (name in before)]
        above = {each.name for quota in changed for each in quota.line[1:]}
        for name in above & there.keys():
            there[name].figure = None
        self.anew = frozenset(quota.name for was, quota in both if quota.moved_from(was))
        parents = {quota.above for quota in there.values()}
        self._lags = any(quota is not None and quota.figure is not None for quota in parents)

    def _forget(self) -> None:
        self.changes += 1
        self._settled = None
        self._answers.clear()
        self._shared.clear()
        self._scaled.clear()

    # --- questions ----------------------------------------------------------------------------------------

    def request(self, name: str) -> dict[str, int]:
        """Returns the requests of a quota, before they are limited to its `max`."""
        quota = self._quotas[name]
        return {resource: quota.request(resource) for resource in quota.names}

    def unnamed(self, name: str) -> frozenset[str]:
        """Returns the resources that are shared among a quota and its siblings, but are not in its own `max`.

        For these resources, the requests of the quota's pods are ignored. Therefore, its share is 0.
        """
        return self._quotas[name].unnamed

    def runtime(self, name: str) -> Mapping[str, int]:
        """Returns how much a quota can use now of each resource that its `max` names.

        If guarantees are scaled only by queries (see `quirks`), this query scales the guarantees of the quota
        and of its ancestors.
        """
        known = self._answers.get(name)
        if known is not None:
            return known
        quota = self._quotas[name]
        for each in reversed(quota.line):
            level = each.level
            if self._scales and each not in self._scaled:
                self._scale(each, level)
            self._share_out(level)
        found = {resource: amount for resource, amount in quota.share.items() if resource in quota.most}
        self._answers[name] = found
        return found

    @property
    def settled(self) -> bool:
        """True if the capacity is sufficient, so that no result depends on the order of queries."""
        if self._settled is None:
            self._settled = not (self._scales and self._lazily) or self._is_enough()
        return self._settled

    def _is_enough(self) -> bool:
        """Returns True if no guarantee is scaled, and if no query of a quota would scale its guarantee."""
        if any(quota.scaled for quota in self._quotas.values()):
            return False
        for level in self._levels:
            total = self._total(level)
            if any(least and total.get(each, least) < least for each, least in level.guaranteed.items()):
                return False
            self._share_out(level)
        return True

    def _total(self, level: _Level) -> Mapping[str, int]:
        return level.above.share if level.above is not None else self._totals.get(level.tree, {})

    def _share_out(self, level: _Level) -> None:
        if level not in self._shared:
            level.share_out(self._total(level))
            self._shared.add(level)

    def _scale(self, asked: _Quota, level: _Level) -> None:
        """Scales the guarantee of the queried quota, and possibly those of its siblings, to the capacity."""
        total = self._total(level)
        quotas = (asked,) if self._lazily else level.quotas
        changed = [quota.scale(total, level.guaranteed) for quota in quotas]
        if any(changed):
            self.rescaled += 1
            self._forget()
        self._scaled.add(asked)


@final
class _Quota:
    __slots__ = (
        "above", "asked", "figure", "least", "lends", "level", "manifest", "most", "name", "scaled", "share",
        "unnamed", "weight",
    )  # fmt: skip

    def __init__(self, manifest: ElasticQuota) -> None:
        self.name = manifest.name
        self.manifest = manifest
        self.least = dict(manifest.min or {})
        self.most = dict(manifest.max or {})
        self.weight = self.most if manifest.weight is None else manifest.weight
        self.lends = manifest.lends
        self.above: _Quota | None = None
        self.level: _Level
        self.unnamed: frozenset[str] = frozenset()  # see `RuntimeQuotas.unnamed`
        # Sharing uses the stored request if it is out of date. It is empty until the quota has had a pod.
        self.figure: Mapping[str, int] | None = None
        self.asked: dict[str, int] = {}  # by its pods or its child quotas
        self.scaled: dict[str, int] = {}  # the scaled guarantee, only for scaled resources
        self.share: dict[str, int] = {}

    @property
    def line(self) -> list[_Quota]:
        found = [self]
        while found[-1].above is not None:
            found.append(found[-1].above)
        return found

    @property
    def names(self) -> Sequence[str]:
        return list(self.asked if self.lends else {**self.asked, **self.least})

    def request(self, resource: str) -> int:
        """Returns the request of the pods or children. Without lending, it is at least the guarantee."""
        asked = self.asked.get(resource, 0)
        return asked if self.lends else max(asked, self.least.get(resource, 0))

    def limited(self, resource: str) -> int:
        return min(self.request(resource), self.most.get(resource, UNLIMITED))

    def ask(self, change: Mapping[str, int]) -> dict[str, int]:
        """Changes the requests, and returns how the requests of the parent change as a result."""
        found = {}
        for resource, amount in change.items():
            is_new, before = resource not in self.asked, self.limited(resource)
            self.asked[resource] = self.asked.get(resource, 0) + amount
            difference = self.limited(resource) - before
            if difference or is_new:
                found[resource] = difference
        return found

    def scale(self, total: Mapping[str, int], guaranteed: Mapping[str, int]) -> bool:
        """Scales the guarantee if all guarantees exceed the capacity, and returns whether it changed.

        Like Koordinator, this method uses IEEE doubles and multiplies before it divides.
        """
        before = self.scaled
        self.scaled = {
            resource: int(float(total[resource]) * float(least) / float(guaranteed[resource]))
            if total[resource] > 0
            else 0
            for resource, least in self.least.items()
            if least and resource in total and total[resource] < guaranteed[resource]
        }
        return self.scaled != before

    def moved_from(self, before: _Quota) -> bool:
        return self.manifest.parent != before.manifest.parent

    def starts_anew(self, before: _Quota) -> bool:
        """Returns True if a quota in the same place changed its kind. All quotas are then reset."""
        now, was = self.manifest, before.manifest
        other = now.lends != was.lends or now.is_parent != was.is_parent
        return other and not self.moved_from(before)

    def follow(self, before: _Quota) -> None:
        """Takes over the pods of the former quota of the same name, and their known requests."""
        if self.moved_from(before):  # the quota is added again, followed by its pods
            self.figure = None if _some(self.asked) else {}
            return
        if self.least == before.least:
            self.scaled = before.scaled
        if _some(self.asked) != _some(before.asked):  # pods have joined or left the quota
            self.figure = None
        elif self.most != before.most:  # `max` is applied before `min`
            self.figure = None if self.least == before.least else self._figure(before.least)
        elif self.least != before.least and before.figure is None:
            self.figure = self._figure(before.least)
        else:
            self.figure = before.figure

    def _figure(self, least: Mapping[str, int]) -> Mapping[str, int]:
        """Returns the request with a different guarantee, which is limited to the `max`."""
        now, self.least = self.least, dict(least)
        found = {resource: self.limited(resource) for resource in self.names}
        self.least = now
        return found

    def part(self, resource: str) -> Part:
        least = self.scaled.get(resource, self.least.get(resource, 0))
        request = self.limited(resource) if self.figure is None else self.figure.get(resource, 0)
        return Part(self.name, request, least, self.weight.get(resource, 0), self.lends)


@final
class _Level:
    """Quotas that share the runtime of their parent, or of a tree if they have no parent."""

    __slots__ = ("above", "guaranteed", "quotas", "resources", "tree")

    def __init__(
        self, quotas: Sequence[_Quota], above: _Quota | None, tree: str, resources: Sequence[str]
    ) -> None:
        self.quotas = quotas
        self.above = above
        self.tree = tree
        self.resources = resources
        self.guaranteed: dict[str, int] = {}
        for quota in quotas:
            add_to(self.guaranteed, quota.least, 1)

    def share_out(self, total: Mapping[str, int]) -> None:
        for quota in self.quotas:
            quota.share = {}
        for resource in self.resources:
            shares = fair_shares(total.get(resource, 0), [quota.part(resource) for quota in self.quotas])
            for quota, share in zip(self.quotas, shares, strict=True):
                quota.share[resource] = share


def _some(amounts: Mapping[str, int]) -> dict[str, int]:
    return {resource: amount for resource, amount in amounts.items() if amount}


def add_to(total: dict[str, int], amounts: Mapping[str, int], sign: int = 1) -> None:
    """Adds amounts to a total. With the sign -1, subtracts them."""
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0) + sign * amount

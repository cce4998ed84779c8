"""Edits of a cluster over time: one object changes, appears or goes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, final

from harness.base.frozen import Frozen
from harness.base.units import parse_quantity
from harness.base.values import Value, fixed
from harness.cluster.model import Cluster, Cohort

_BEFORE_ALL = -(2**63)

PLACES: Mapping[str, str] = MappingProxyType(
    {
        "Cohort": "cohorts",
        "ClusterQueue": "cluster_queues",
        "LocalQueue": "local_queues",
        "ElasticQuota": "elastic_quotas",
        "Node": "nodes",
        "PriorityClass": "priority_classes",
        "WorkloadPriorityClass": "workload_priority_classes",
    }
)
"""Kind of an object that may change -> the field of `Cluster` that holds such objects."""

AT_ARRIVAL = frozenset(("PriorityClass", "WorkloadPriorityClass"))
"""Kinds whose objects matter only when a job arrives, so that policies are not notified of their changes."""


class Edit(NamedTuple):
    """The change of one object.

    Attributes:
        kind: its kind, one of `PLACES`; nodes of an ElasticQuotaTree are `ElasticQuota`.
        name: its name; `namespace/name` of a LocalQueue.
        before: the object before the change; None if it is new.
        after: the object from now on; None if it is gone.
        announced: whether a planning policy knows the change from the beginning; failures are not announced.
    """

    kind: str
    name: str
    before: Any
    after: Any
    announced: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def key(self) -> Any:
        """The key of the object in a `Cluster`."""
        return tuple(self.name.split("/", 1)) if self.kind == "LocalQueue" else self.name

    def between(self, before: Cluster, after: Cluster) -> Edit | None:
        """Returns the object's change from one cluster to another; None if it is the same in both."""
        was, becomes = (getattr(each, PLACES[self.kind]).get(self.key) for each in (before, after))
        return None if was == becomes else Edit(self.kind, self.name, was, becomes)

    def on(self, cluster: Cluster) -> Cluster:
        """Returns the cluster with the object as it is from now on.

        Cohorts that are only named exist, too.
        """
        place = PLACES[self.kind]
        objects = dict(getattr(cluster, place))
        if self.after is None:
            objects.pop(self.key, None)
        else:
            objects[self.key] = self.after
        placed: dict[str, Any] = {place: Frozen(objects)}
        changed = replace(cluster, **placed)
        if self.kind == "Node" and (capacity := _capacity(self, cluster)):
            changed.__dict__["capacity"] = capacity  # as it would be added up of all nodes
        if self.kind not in ("ClusterQueue", "Cohort"):
            return changed
        missing = {name for name in _named(changed) if name and name not in changed.cohorts}
        if not missing:
            return changed
        implied = {name: Cohort(name) for name in sorted(missing)}
        return replace(changed, cohorts=Frozen({**changed.cohorts, **implied}))


def _capacity(edit: Edit, cluster: Cluster) -> Mapping[str, int] | None:
    """Returns the capacity after the change of a node; None if a resource may appear or vanish with it."""
    total = dict(cluster.capacity)
    for node, sign in ((edit.before, -1), (edit.after, 1)):
        for resource, amount in () if node is None else node.allocatable.items():
            total[resource] = total.get(resource, 0) + sign * amount
    return Frozen(total) if all(total.values()) else None


def _named(cluster: Cluster) -> Iterable[str]:
    """Yields the cohorts that queues and cohorts name."""
    yield from (queue.cohort for queue in cluster.cluster_queues.values())
    yield from (cohort.parent for cohort in cluster.cohorts.values())


class Instant(NamedTuple):
    """All changes at one time; none if the cluster already is as a patch says.

    Attributes:
        at: microseconds since the trace's origin.
        edits: the objects that change, in order.
    """

    at: int
    edits: tuple[Edit, ...]


_KUEUE = ("ClusterQueue", "Cohort")
_QUOTAS = ("nominalQuota", "borrowingLimit", "lendingLimit")


class State(NamedTuple):
    """A cluster while nothing changes.

    Attributes:
        cluster: the cluster.
        specs: the objects with a manifest -> the details that distinguish two specs which the model treats
            alike.
    """

    cluster: Cluster
    specs: Mapping[tuple[str, str], object]


def specs(contents: Iterable[Mapping[str, Any]]) -> Mapping[tuple[str, str], object]:
    """Returns the specs of manifests; see `State.specs`."""
    return {(str(each.get("kind")), name_of(each)): _exact(each) for each in contents}


def name_of(content: Mapping[str, Any]) -> str:
    """Returns the name of an object among those of its kind."""
    metadata = content.get("metadata") or {}
    name = str(metadata.get("name"))
    return f"{metadata.get('namespace') or 'default'}/{name}" if content.get("kind") == "LocalQueue" else name


def _exact(content: Mapping[str, Any]) -> object:
    """Returns details of a Kueue spec that the model drops: whether it has a weight, exact amounts."""
    spec = content.get("spec")
    if content.get("kind") not in _KUEUE or not isinstance(spec, Mapping):
        return None
    quotas = [
        (quota.get("name"), *(_quantity(quota.get(name)) for name in _QUOTAS))
        for group in spec.get("resourceGroups") or ()
        for flavor in group.get("flavors") or ()
        for quota in flavor.get("resources") or ()
    ]
    return spec.get("fairSharing") is not None, quotas


def _quantity(value: Any) -> Fraction | None:
    return None if value is None else parse_quantity(value)


def ever(cluster: Cluster) -> Cluster:
    """Returns the cluster with all objects that exist at any time, each in its first form."""
    for edit in (edit for instant in cluster.changes for edit in instant.edits):
        # What was there before may come back; only a cohort that is there may name others.
        known = edit.kind != "Cohort" and edit.key in getattr(cluster, PLACES[edit.kind])
        if edit.before is None and not known:
            with_it = edit.on(cluster)
            there = getattr(cluster, PLACES[edit.kind])
            if len(getattr(with_it, PLACES[edit.kind])) > len(there):
                cluster = with_it
    return cluster


def by_arrival(cluster: Cluster) -> list[tuple[int, Cluster]]:
    """Returns the clusters whose classes count for arriving jobs, each with the time from which it counts.

    Times are microseconds since the trace's origin. The first one precedes all others.
    """
    found = [(_BEFORE_ALL, cluster)]
    for at, edits in cluster.changes:
        classes = [edit for edit in edits if edit.kind in AT_ARRIVAL]
        for edit in classes:
            cluster = edit.on(cluster)
        if classes:
            found.append((at, cluster))
    return found


def at_arrival(states: Sequence[tuple[int, Cluster]], submit: int) -> Cluster:
    """Returns the cluster of `by_arrival` that counts for a job that arrives at `submit`."""
    return states[bisect_right(states, submit, key=itemgetter(0)) - 1][1]


@final
@fixed()
class Change(Value):
    """A change as a policy is notified of it: the object, and the cluster from now on.

    Attributes:
        edit: the change of the object.
        cluster: the cluster with this change, and without those that follow at the same instant.
    """

    edit: Edit
    cluster: Cluster

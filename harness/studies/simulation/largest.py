"""Finds the largest gangs of equal pods that would start now, by queue and flavor."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from harness.base.errors import InputError, OptionError
from harness.base.options import did_you_mean
from harness.base.text import aligned
from harness.base.units import format_amount, format_amounts, parse_quantity, round_up
from harness.cluster.kinds.elastic import leaves_of
from harness.cluster.model import Cluster, ResourceFlavor
from harness.policy import PodSet
from harness.studies.forecasting.job_kinds import QUEUE
from harness.studies.simulation.differences import for_flavor, with_count, with_pod_sets, workload_of
from harness.studies.simulation.instant import Instant
from harness.studies.simulation.moment import Asked, Moment

_RANGE = re.compile(r"(?P<resource>[^=]+)=(?P<least>[^.]+)\.\.(?P<most>.+)")
_MOST_PODS = 100_000


class Shape(NamedTuple):
    """The shape of a gang.

    Attributes:
        resource: the resource that measures the size of a gang.
        least, most: the range of sizes to try, in units of the resource.
        pod: the requests of one pod, by resource.
    """

    resource: str
    least: int
    most: int
    pod: Mapping[str, int]

    @property
    def counts(self) -> range:
        """The numbers of pods for the range of sizes."""
        each = self.pod[self.resource]
        return range(max(1, -(-self.least // each)), self.most // each + 1)


class Size(NamedTuple):
    """The size of the largest gang. If no gang in the range starts, `pods` is 0.

    Attributes:
        amount: the amount of the resource that measures sizes.
        victims: the number of other jobs that are preempted for the gang.
    """

    pods: int
    amount: int
    victims: int = 0


class Largest(NamedTuple):
    """The largest gangs of one queue.

    Attributes:
        queue: the queue; "" if there is none.
        flavor: the flavor that the pods select; None for any flavor.
        preempting: the largest gang that starts now or for which other jobs are preempted.
    """

    queue: str
    flavor: str | None
    now: Size
    preempting: Size


@dataclass(frozen=True)
class Fitting:
    """The largest gangs, by queue and flavor."""

    shape: Shape
    rows: Sequence[Largest]

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values, with quantities as in manifests."""
        resource = self.shape.resource

        def plain(size: Size) -> dict[str, Any]:
            return {**size._asdict(), "amount": format_amount(resource, size.amount)}

        return {
            "schema": "1",
            "resource": resource,
            "shape": format_amounts(self.shape.pod),
            "largest": [
                {**each._asdict(), "now": plain(each.now), "preempting": plain(each.preempting)}
                for each in self.rows
            ],
        }

    def text(self, width: int | None = None) -> str:
        """Returns a table for a terminal. A `width` of None means no limit."""
        resource = self.shape.resource
        head = ["queue", "flavor", f"{resource} now", "pods", "with preemption", "pods", "preempts"]
        rows = [
            [
                each.queue,
                "any" if each.flavor is None else each.flavor,
                format_amount(resource, each.now.amount),
                f"{each.now.pods:,}",
                format_amount(resource, each.preempting.amount),
                f"{each.preempting.pods:,}",
                f"{each.preempting.victims:,}",
            ]
            for each in self.rows
        ]
        return aligned([head, *rows], left=(0, 1), width=width)


def shape_of(largest: str, shape: str) -> Shape:
    """Parses texts such as `nvidia.com/gpu=1..512` and `nvidia.com/gpu=8,cpu=32,memory=200Gi`.

    Raises:
        InputError: a text can't be parsed, or the range contains no gang.
    """
    found = _RANGE.fullmatch(largest)
    if found is None:
        raise OptionError(f"largest: {largest!r} is not understood", hint="write it as nvidia.com/gpu=1..512")
    pod: dict[str, int] = {}
    for part in shape.split(","):
        name, equals, text = part.partition("=")
        if not name or not equals:
            raise OptionError(f"shape: {part!r} is not understood", hint="write it as cpu=32,memory=200Gi")
        pod[name] = _amount("shape", name, text)
    resource = found["resource"]
    if not pod.get(resource):
        raise OptionError(f"shape: a pod requests no {resource}, the resource that --largest varies")
    bounds = [_amount("largest", resource, found[name]) for name in ("least", "most")]
    made = Shape(resource, bounds[0], bounds[1], pod)
    if not made.counts or made.counts.stop > _MOST_PODS:
        raise OptionError(
            f"largest: with pods of this shape, {largest} must give gangs of 1 to {_MOST_PODS:,} pods"
        )
    return made


def _amount(what: str, resource: str, text: str) -> int:
    try:
        return round_up(resource, parse_quantity(text))
    except InputError as error:
        raise OptionError(f"{what}: {resource}: {error}") from error


def fitting(moment: Moment, shape: Shape, queue: str | None = None) -> Fitting:
    """Returns the largest gangs of a shape.

    If `queue` is None, all queues are tried.

    Raises:
        InputError: there is no such queue.
    """
    doors = list(_doors(moment.cluster))
    known = [name for _, name in doors]
    if queue is not None and queue not in known:
        raise InputError(f"there is no queue {queue!r}", hint=did_you_mean(queue, known))
    there = _resources(moment.cluster)
    for resource in shape.pod if there else ():
        if resource not in there:
            raise OptionError(
                f"shape: no node and no quota has any {resource}", hint=did_you_mean(resource, sorted(there))
            )
    rows = [
        row
        for namespace, name in doors
        if queue in (None, name)
        for row in _of_queue(moment, shape, namespace, name)
    ]
    return Fitting(shape, rows)


def _resources(cluster: Cluster) -> set[str]:
    found = {name for node in cluster.nodes.values() for name in node.allocatable}
    for queue in cluster.cluster_queues.values():
        found.update(name for group in queue.resource_groups for name in group.covered_resources)
    for quota in cluster.elastic_quotas.values():
        found.update((*(quota.min or ()), *(quota.max or ())))
    return found


def _doors(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yields namespaces and queues to which jobs can be submitted, or an unnamed queue if there are none."""
    if cluster.cluster_queues:
        for namespace, name in cluster.local_queues or [("default", each) for each in cluster.cluster_queues]:
            yield namespace, name
    elif cluster.elastic_quotas:
        for name, leaf in leaves_of(cluster.elastic_quotas).items():
            yield next(iter(leaf.namespaces), name), name
    else:
        yield "default", ""


def _of_queue(moment: Moment, shape: Shape, namespace: str, queue: str) -> Iterator[Largest]:
    cluster = moment.cluster
    found = cluster.cluster_queue_of(namespace, queue) if queue else None
    yield _largest(moment, shape, namespace, queue, None, {})
    groups = () if found is None else found.resource_groups
    group = next((each for each in groups if shape.resource in each.covered_resources), None)
    flavors = [cluster.flavor(each.flavor) for each in (() if group is None else group.flavors)]
    labels = frozenset(label for each in flavors for label in each.node_labels)
    for flavor in flavors if len(flavors) > 1 else ():
        if flavor.node_labels:
            own = {key: value for key, value in flavor.node_labels.items() if key in labels}
            yield _largest(moment, shape, namespace, queue, flavor, own)


def _largest(
    moment: Moment,
    shape: Shape,
    namespace: str,
    queue: str,
    flavor: ResourceFlavor | None,
    selector: Mapping[str, str],
) -> Largest:
    most = shape.counts[-1]
    ready = moment.with_jobs([Asked(_gang(shape, namespace, queue, most, selector), "the gang")])
    names = ready.submitted[-1]
    whole = workload_of(ready.cluster, names[0]) is not None

    @cache
    def outcome(pods: int) -> tuple[bool, int]:
        if whole:
            change = partial(_sized, flavor, pods)
            return ready.asked(partial(_told, names), partial(with_pod_sets, names=names, change=change))
        gang = moment.with_jobs([Asked(_gang(shape, namespace, queue, pods, selector), "the gang")])
        return gang.asked(partial(_told, gang.submitted[-1]))

    now = _most(shape.counts, lambda pods: outcome(pods)[0])
    preempting = _most(shape.counts, lambda pods: outcome(pods)[0] or outcome(pods)[1] > 0)
    each = shape.pod[shape.resource]
    victims = outcome(preempting)[1] if preempting else 0
    return Largest(
        queue,
        None if flavor is None else flavor.name,
        Size(now, now * each),
        Size(preempting, preempting * each, victims),
    )


def _told(names: Sequence[str], instant: Instant) -> tuple[bool, int]:
    """Returns whether a gang starts, and the number of other jobs that are preempted for it."""
    return instant.starts(names), len(instant.victims(names))


def _sized(flavor: ResourceFlavor | None, pods: int, pod_set: PodSet) -> PodSet:
    """Returns a pod set with this many pods, which tolerate the taints of the flavor."""
    sized = with_count(pod_set, pods)
    return sized if flavor is None or not flavor.taints else for_flavor(sized, flavor, frozenset())


def _most(counts: range, holds: Callable[[int], bool]) -> int:
    """Returns the largest count for which `holds` is true, or 0. The search is binary."""
    if holds(counts[-1]):
        return counts[-1]
    if not holds(counts[0]):
        return 0
    falling = counts[::-1]
    return falling[bisect_left(falling, True, 1, len(falling) - 1, key=holds)]


def _gang(
    shape: Shape, namespace: str, queue: str, pods: int, selector: Mapping[str, str]
) -> Mapping[str, Any]:
    requests = format_amounts(shape.pod)
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "resources": {"requests": requests}}],
    }
    if selector:
        spec["nodeSelector"] = dict(selector)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "gang", "namespace": namespace, **({"labels": {QUEUE: queue}} if queue else {})},
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": spec}},
    }

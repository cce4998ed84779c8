"""Creates initial manifests for a trace, with nodes of a suitable size, queues and elastic quotas.

Without manifests, a replay assumes a cluster that has no nodes (`harness.cluster.derive`). The cluster of
this module has nodes, and a real API server would accept its manifests. Names are checked, and every queue
has LocalQueues in the namespaces of the trace. There are quotas for cpu and memory even if the trace does not
request them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import polars as pl

from harness.base.errors import Fault, InputError, TraceError
from harness.base.grouping import grouped
from harness.base.text import counted
from harness.base.units import INT64_MAX, format_amount, short_number
from harness.cluster.derive import WANTED_UTILIZATION, unit_of, wanted_capacity
from harness.cluster.kinds.core import HOSTNAME
from harness.cluster.manifests import (
    cluster_queue_manifest,
    elastic_quota_tree_manifest,
    flavor_manifest,
    local_queue_manifest,
    namespace_manifest,
    node_manifest,
    node_pool_manifest,
    quota_node,
    topology_manifest,
)
from harness.cluster.model import MOST_NODES
from harness.cluster.shares import split_in_units
from harness.trace.demand import demands_of, traced_node
from harness.trace.job_rows import filled, job_rows
from harness.trace.schema import DEFAULT_NAMESPACE, REQUEST, resources_of
from harness.trace.trace import Trace

_COHORT = "all"
_FLAVOR = "default"
_POOL = "node"
_TOPOLOGY = "default"
_PREEMPTION = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_MOST_WRITTEN = 10_000
_MOST_PODS = 110
_DEVICES = 8
_CORE, _GI = 1000, 2**30
_UNASKED = {"cpu": 8 * _CORE, "memory": 64 * _GI}
"""How much of each resource a node has per device (or per 8 cores).

These quantities apply to resources that the trace does not request.
"""


@dataclass(frozen=True)
class Starter:
    """A cluster for a trace.

    Attributes:
        node: the quantity of each resource on one node.
        queues: the nominal quota of each queue for each resource. The quotas add up to the capacity of all
            nodes.
        doors: the pairs of namespace and queue in the trace, sorted.
        why: sentences about the choices that were made.
        topology: maps each level, which is a node label, to the size of one of its domains. The size of a
            domain of the finest level is its number of nodes. The size of any other domain is its number of
            domains of the next finer level. The levels are sorted from the finest to the coarsest. It is
            empty if there is no topology.
    """

    nodes: int
    node: Mapping[str, int]
    queues: Mapping[str, Mapping[str, int]]
    doors: Sequence[tuple[str, str]]
    why: tuple[str, ...]
    topology: Mapping[str, int] = field(default_factory=dict)

    def manifests(self, *, pools: bool = False) -> Iterator[dict[str, Any]]:
        """Yields namespaces, nodes, queues, and an ElasticQuotaTree with the same quotas.

        If `pools` is true, a NodePool is written instead of Nodes. Only harness can read it.

        Raises:
            InputError: there are too many Nodes to write individually.
        """
        if not pools and self.nodes > _MOST_WRITTEN:
            raise InputError(
                f"{self.nodes:,} Nodes are too many to write individually; the maximum is {_MOST_WRITTEN:,}",
                hint="--node-pool writes a single NodePool for all nodes, and --node makes nodes larger",
            )
        for namespace in dict.fromkeys(namespace for namespace, _ in self.doors):
            yield namespace_manifest(namespace)
        if pools:
            yield from self._pools()
        else:
            width = len(str(self.nodes - 1))
            for number in range(self.nodes):
                yield node_manifest(f"{_POOL}-{number:0{width}}", self.node, self._labels(number))
        if self.topology:
            yield topology_manifest(_TOPOLOGY, [*reversed(list(self.topology)), HOSTNAME])
        yield flavor_manifest(_FLAVOR, topology=_TOPOLOGY if self.topology else "")
        cohort = _COHORT if len(self.queues) > 1 else ""
        preemption = _PREEMPTION if cohort else {"withinClusterQueue": "LowerPriority"}
        for name, nominal in self.queues.items():
            yield cluster_queue_manifest(name, _FLAVOR, nominal, cohort=cohort, preemption=preemption)
        for namespace, queue in self.doors:
            yield local_queue_manifest(namespace, queue)
        total = {name: amount * self.nodes for name, amount in self.node.items() if name != "pods"}
        owned = self._namespaces()
        children = [
            quota_node(queue, nominal, total, namespaces=owned[queue])
            for queue, nominal in self.queues.items()
        ]
        yield elastic_quota_tree_manifest(quota_node("root", total, total, children))

    def _pools(self) -> Iterator[dict[str, Any]]:
        """Yields a single NodePool or, with a topology, a NodePool for each domain of the finest level."""
        size = next(iter(self.topology.values()), self.nodes)
        for first in range(0, self.nodes, size):
            labels = self._labels(first)
            name = f"{_POOL}-{next(iter(labels.values()))}" if labels else _POOL
            yield node_pool_manifest(name, min(size, self.nodes - first), self.node, labels)

    def _labels(self, node: int) -> dict[str, str]:
        labels, size = {}, 1
        for level, of_them in self.topology.items():
            size *= of_them
            width = len(str((self.nodes - 1) // size))
            labels[level] = f"{level.rpartition('/')[2]}-{node // size:0{width}}"
        return labels

    def _namespaces(self) -> dict[str, list[str]]:
        """Returns the namespaces of each queue that no other queue uses.

        If a queue has none, it gets a namespace with its own name.
        """
        owners = grouped((namespace, queue) for namespace, queue in self.doors)
        alone: dict[str, list[str]] = {queue: [] for queue in self.queues}
        for namespace, queues in owners.items():
            if len(queues) == 1:
                alone[queues[0]].append(namespace)
        return {queue: names or [queue] for queue, names in alone.items()}


def start(
    trace: Trace,
    *,
    load: Fraction | None = None,
    node: Mapping[str, int] | None = None,
    weights: Mapping[str, Fraction] | str = "equal",
    topology: Mapping[str, int] | None = None,
) -> Starter:
    """Make a cluster on which a trace can be replayed.

    Args:
        trace: the jobs.
        load: the mean demand divided by the capacity, if the trace does not contain the size of the machine.
            By default, the capacity is the peak usage of the recorded runs. If the peak is unknown, the
            default is 0.8.
        node: the quantities on one node. Missing quantities become powers of two that are large enough for
            the largest pod.
        weights: how quotas are divided: `equal`, `proportional` to the queues' demands, or a weight for each
            queue. Queues without a weight have the weight 0.
        topology: how nodes are grouped. See `Starter`.

    Raises:
        TraceError: jobs request nothing, Kubernetes refuses a name, a node is too small for some pod, there
            are too many nodes, or weights name unknown queues.
    """
    frame = trace.frame
    demands = {name: demand for name, demand in demands_of(trace).items() if demand.largest}
    if not demands:
        raise TraceError(
            str(trace.path), [Fault("", "no job requests a resource, so any cluster is large enough")]
        )
    doors = (
        frame.select(filled(frame, "namespace", DEFAULT_NAMESPACE), "queue")
        .unique()
        .sort("namespace", "queue")
    )
    queues = sorted(set(doors["queue"]))
    faults = _unfit_names(queues, sorted(set(doors["namespace"])), demands)
    capacity = {name: wanted_capacity(name, demand, load) for name, demand in demands.items()}
    largest = {name: int(frame[f"{REQUEST}{name}"].max() or 0) for name in demands}  # type: ignore[arg-type]
    traced = _traced(trace, largest)
    given = _node(capacity, largest, {**traced, **(node or {})})
    for resource, amount in largest.items():
        if amount > given.get(resource, 0):
            asked, has = (format_amount(resource, each) for each in (amount, given.get(resource, 0)))
            faults.append(
                Fault(f"node {resource}", f"{has} is less than the {asked} that the largest pod requests")
            )
    shares = _weights(weights, queues, frame, faults)
    if faults:
        named = any(fault.where.startswith("queue") for fault in faults)
        hint = "--tenants names converts queue names to names that Kubernetes accepts" if named else None
        raise TraceError(str(trace.path), faults, hint=hint)
    counts = {resource: ceil(Fraction(amount, given[resource])) for resource, amount in capacity.items()}
    count = max(counts.values())
    _check_size(trace, count, max(counts, key=lambda name: counts[name]), capacity, given)
    whole = {"pods": _pods(given, frame), **given}
    nodes = "node" if count == 1 else "nodes"
    busy = short_number(100 * float(load or WANTED_UTILIZATION))
    peak = load is None and any(demand.recorded for demand in demands.values())
    scale = "enough for the peak usage of the recorded runs" if peak else f"{busy} % are busy on average"
    why = [
        f"{count} {nodes}: {scale}, unless the trace states the size of its machine",
        f"a node has {', '.join(f'{name} {format_amount(name, amount)}' for name, amount in whole.items())}",
    ]
    if traced and not node:
        why.append(f"for {', '.join(traced)}, a node has as much as a node of the traced machine")
    unasked = [name for name in given if name not in demands]
    if unasked:
        why.append(f"the trace does not request {' and '.join(unasked)}; the amount on each node is assumed")
    quotas: dict[str, dict[str, int]] = {queue: {} for queue in queues}
    for resource, amount in given.items():
        total = amount * count
        for queue, share in split_in_units(total, shares, unit_of(resource, total)).items():
            quotas[queue][resource] = share
    by = weights if isinstance(weights, str) else "by the weights given"
    why.append(f"nominal quotas of {counted(len(queues), 'queue')}: {by}; idle quota may be borrowed")
    size, of_what = 1, "nodes"
    for level, number in (topology or {}).items():
        size *= number
        values = ceil(Fraction(count, size))
        why.append(f"label {level} has {values:,} values, each of at most {number:,} {of_what}")
        of_what = f"values of {level}"
    return Starter(count, whole, quotas, doors.rows(), tuple(why), topology or {})


def _check_size(
    trace: Trace, count: int, scarce: str, capacity: Mapping[str, int], node: Mapping[str, int]
) -> None:
    """Raises an error if there are too many nodes or too much of a resource, which suggests a wrong unit."""
    total = {resource: amount * count for resource, amount in node.items()}
    beyond = [resource for resource, amount in total.items() if amount > INT64_MAX]
    if count > MOST_NODES:
        wanted, has = (format_amount(scarce, each) for each in (capacity[scarce], node[scarce]))
        what = (
            f"a total of {wanted} needs {count:,} nodes of {has} each, but there can be at most "
            f"{MOST_NODES:,}"
        )
        faults = [Fault(f"node {scarce}", what)]
    else:
        faults = [
            Fault(f"node {name}", f"{count:,} nodes have more than 64 bits can count") for name in beyond
        ]
    if faults:
        hint = (
            "check the unit with harness trace lint; if the unit is right, specify larger nodes with --node"
        )
        raise TraceError(str(trace.path), faults, hint=hint)


def _unfit_names(
    queues: Sequence[str], namespaces: Sequence[str], resources: Mapping[str, object]
) -> list[Fault]:
    faults = [
        Fault(
            f"{kind} {name!r}",
            "is not a name that Kubernetes accepts (at most 63 characters of a-z, 0-9, - and .)",
        )
        for kind, names in (("queue", queues), ("namespace", namespaces))
        for name in names
        if not _NAME.fullmatch(name)
    ]
    known = ("cpu", "memory", "ephemeral-storage")
    return faults + [
        Fault(f"resource {name!r}", "is not a resource of Kubernetes: use a name such as example.com/gpu")
        for name in resources
        if name not in known and "/" not in name
    ]


def _traced(trace: Trace, largest: Mapping[str, int]) -> dict[str, int]:
    stated = {name: traced_node(trace, name) for name in largest}
    return {name: amount for name, amount in stated.items() if amount is not None and amount >= largest[name]}


def _node(
    capacity: Mapping[str, int], largest: Mapping[str, int], given: Mapping[str, int]
) -> dict[str, int]:
    """Returns the given quantities on a node, or else a round quantity of the scarcest resource.

    The quantities of other resources are in proportion.
    """
    devices = [name for name in capacity if "/" in name]
    kinds = [name for name in devices or capacity if name in given or not given] or list(capacity)
    first = max(kinds, key=lambda name: (capacity[name], name)) if devices else min(kinds)
    node = dict(given)
    if first not in node:
        unit = unit_of(first, capacity[first])
        whole = _power_of_two(capacity[first], unit)
        usual = _DEVICES * unit if first in devices or first == "cpu" else unit
        node[first] = max(_power_of_two(largest[first], unit), min(usual, whole))
        if node[first] > max(capacity[first], usual):  # One such node would exceed the whole machine.
            node[first] = max(capacity[first], largest[first])
    count = ceil(Fraction(capacity[first], node[first]))
    for name in (*capacity, *_UNASKED):
        if name in capacity and name not in node:
            wanted = max(largest[name], ceil(Fraction(capacity[name], count)))
            node[name] = _power_of_two(wanted, unit_of(name, wanted))
        elif name not in node:
            cores = Fraction(node.get("cpu", _UNASKED["cpu"]), _UNASKED["cpu"])
            node[name] = (node[first] if first in devices else ceil(cores)) * _UNASKED[name]
    return dict(sorted(node.items()))


def _power_of_two(amount: int, unit: int) -> int:
    """Returns the next power of two of a unit, limited to the largest quantity that can be counted."""
    return min((1 << max(0, ceil(Fraction(amount, unit)) - 1).bit_length()) * unit, INT64_MAX)


def _pods(node: Mapping[str, int], frame: pl.DataFrame) -> int:
    """Returns the number of pods that a node can run.

    It is Kubernetes' default, or the number of smallest pods that fit if that is larger.
    """
    fit = _MOST_PODS
    for resource in resources_of(frame.columns):
        amounts = frame[f"{REQUEST}{resource}"].drop_nulls()
        smallest = amounts.filter(amounts > 0).min()
        if isinstance(smallest, int):
            fit = max(fit, node.get(resource, 0) // smallest)
    return min(fit, 10 * _MOST_PODS)


def _weights(
    weights: Mapping[str, Fraction] | str, queues: Sequence[str], frame: pl.DataFrame, faults: list[Fault]
) -> Mapping[str, Fraction | int]:
    if isinstance(weights, str):
        return dict.fromkeys(queues, 1) if weights == "equal" else _asked(frame)
    faults += [
        Fault(f"weight of {name!r}", "the trace has no such queue") for name in weights if name not in queues
    ]
    found = {queue: weights.get(queue, Fraction(0)) for queue in queues}
    if not any(found.values()):
        faults.append(Fault("weights", "are 0 for every queue"))
    return found


def _asked(frame: pl.DataFrame) -> dict[str, int]:
    """Returns the resource-time of each queue, in billionths of the total of each resource."""
    jobs = job_rows(frame).with_columns(pl.col("duration").to_physical().cast(pl.Int128))
    total: dict[str, int] = dict.fromkeys(jobs["queue"].unique().sort(), 0)
    for resource in resources_of(jobs.columns):
        work = (pl.col(f"{REQUEST}{resource}") * pl.col("duration")).sum().alias("work")
        parts = jobs.group_by("queue").agg(work)
        whole = int(parts["work"].sum())
        for queue, part in parts.iter_rows():
            total[queue] += 10**9 * int(part) // max(whole, 1)
    return total if any(total.values()) else dict.fromkeys(total, 1)

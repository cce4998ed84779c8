"""The immutable model of the cluster in a replay: nodes, queues, quotas and priority classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness.base.frozen import Frozen
from harness.base.grouping import grouped, summed
from harness.base.units import INT64_MAX
from harness.base.values import Value, fixed
from harness.cluster.kinds.selectors import LabelSelector, Taint, Toleration

if TYPE_CHECKING:
    from harness.cluster.changes.edits import Instant
    from harness.cluster.changes.knobs import Values
    from harness.cluster.changes.patches import Patch
    from harness.cluster.kinds.device_claims import ClaimTemplate
    from harness.cluster.kinds.disruption import PodDisruptionBudget
    from harness.cluster.kinds.elastic import ElasticQuota
    from harness.cluster.kinds.kueue_configuration import KueueConfiguration
    from harness.cluster.kinds.kueue_controller import KueueController
    from harness.cluster.kinds.kueue_requests import Counting
    from harness.cluster.kinds.pod_groups import PodGroup
    from harness.cluster.kinds.pods import Pod
    from harness.cluster.kinds.request_defaults import LimitRange, RuntimeClass
    from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
    from harness.cluster.kinds.scheduling_groups import GroupKey, SchedulingGroup
    from harness.cluster.kinds.topology import Topology
    from harness.cluster.kinds.workloads import Workload
    from harness.cluster.standing import Standing

_T = TypeVar("_T")

UNLIMITED: Final = INT64_MAX
"""A quota of this size or more counts as unlimited, as in Kueue."""

MOST_NODES = 100_000
"""The maximum number of nodes. A higher number is probably a mistake, and would use too much memory."""

NEWER = Frozen({"newer": True})
"""Marks a field that was added later. A cluster that doesn't use the field keeps its old digest."""

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label with the name of a namespace, which Kubernetes adds to every namespace."""


def frozen(mapping: Mapping[str, _T] | None = None) -> Mapping[str, _T]:
    """Returns a read-only copy of a mapping."""
    return Frozen(mapping or {})


@fixed()
class Node(Value):
    """A machine. `allocatable` maps resources to quantities (cpu in millicores).

    `ready` is False if the condition Ready has a status other than True. Topologies exclude such a node.
    `drain` is None unless a `kubectl drain` is running. It is then the timeout of the drain in microseconds,
    and 0 means no timeout.
    """

    name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=frozen)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = field(default=True, metadata=NEWER)
    drain: int | None = field(default=None, metadata=NEWER)


@fixed()
class PriorityClass(Value):
    """A Kubernetes PriorityClass."""

    name: str
    value: int
    global_default: bool = False
    preempts: bool = True


SYSTEM_PRIORITY_CLASSES: Mapping[str, PriorityClass] = Frozen(
    {
        "system-cluster-critical": PriorityClass("system-cluster-critical", 2_000_000_000),
        "system-node-critical": PriorityClass("system-node-critical", 2_000_001_000),
    }
)
"""The priority classes that every Kubernetes cluster has."""


@fixed()
class ResourceFlavor(Value):
    """A group of nodes that quotas refer to. `topology` is the Topology of these nodes, or ""."""

    name: str
    node_labels: Mapping[str, str] = field(default_factory=frozen)
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: str = field(default="", metadata=NEWER)


@fixed()
class ResourceQuota(Value):
    """The quota for one resource in one flavor.

    `UNLIMITED` means that there is no limit. For the borrowing limit and the lending limit, None means the
    same.
    """

    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@fixed()
class FlavorQuotas(Value):
    """The quotas of one flavor within a resource group, by resource."""

    flavor: str
    resources: Mapping[str, ResourceQuota]


@fixed()
class ResourceGroup(Value):
    """Resources that a job always takes from the same flavor. Flavors are tried in the given order."""

    covered_resources: tuple[str, ...]
    flavors: tuple[FlavorQuotas, ...]

    def quotas(self) -> Iterator[tuple[str, str, ResourceQuota]]:
        """Yields each quota with its flavor and its resource."""
        for each in self.flavors:
            for resource, quota in each.resources.items():
                yield each.flavor, resource, quota

    def with_quotas(self, change: Callable[[str, str, ResourceQuota], ResourceQuota]) -> ResourceGroup:
        """Returns the group with changed quotas. `change` takes a flavor, a resource and their quota."""
        flavors = []
        for each in self.flavors:
            changed = {name: change(each.flavor, name, quota) for name, quota in each.resources.items()}
            flavors.append(replace(each, resources=frozen(changed)))
        return replace(self, flavors=tuple(flavors))


@fixed()
class Preemption(Value):
    """The preemption policies of a ClusterQueue, in Kueue's terms.

    Attributes:
        within_cluster_queue: `Never`, `LowerPriority` or `LowerOrNewerEqualPriority`.
        reclaim_within_cohort: `Never`, `LowerPriority` or `Any`.
        borrow_within_cohort: `Never` or `LowerPriority`.
        max_priority_threshold: the highest priority that can be preempted with `borrow_within_cohort`.
    """

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: str = "Never"
    max_priority_threshold: int | None = None


@fixed()
class FlavorFungibility(Value):
    """Says when a ClusterQueue tries its next flavor, in the terms of v1beta2.

    Attributes:
        when_can_borrow, when_can_preempt: `MayStopSearch` or `TryNextFlavor`.
        preference: `BorrowingOverPreemption`, `PreemptionOverBorrowing` or "".
    """

    when_can_borrow: str = "MayStopSearch"
    when_can_preempt: str = "TryNextFlavor"
    preference: str = ""


@fixed()
class AdmissionCheck(Value):
    """A check that all jobs of a ClusterQueue, or only its jobs in certain flavors, must pass."""

    name: str
    on_flavors: tuple[str, ...] = ()


DELETION = "its deletion has begun"
"""Why Kueue keeps a ClusterQueue inactive that ends when its last workload releases its quota."""

NO_TOPOLOGY = "there is no Topology "
"""Why Kueue keeps a ClusterQueue inactive if a Topology is missing. The name of the Topology follows."""


@fixed()
class ClusterQueue(Value):
    """A Kueue ClusterQueue, with its quotas and the cohort in which it shares them ("" if there is none).

    Attributes:
        namespace_selector: selects the namespaces that can use the queue. None selects no namespace.
        stop_policy: the text `None`, `Hold` or `HoldAndDrain`.
        by_usage: whether jobs are ordered by the past usage of their LocalQueues.
        checks: the admission checks that must be ready before a job with reserved quota starts.
        inactive: why Kueue keeps the queue inactive because of its admission checks, a cycle of cohorts or a
            missing Topology (`NO_TOPOLOGY`), `DELETION` if its deletion has begun, or "".
    """

    name: str
    cohort: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    weight: Fraction = Fraction(1)
    queueing_strategy: str = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = field(default_factory=LabelSelector)
    preemption: Preemption = Preemption()
    fungibility: FlavorFungibility = FlavorFungibility()
    stop_policy: str = "None"
    by_usage: bool = field(default=False, metadata=NEWER)
    checks: tuple[AdmissionCheck, ...] = field(default=(), metadata=NEWER)
    inactive: str = field(default="", metadata=NEWER)


@fixed()
class Cohort(Value):
    """A Kueue Cohort of queues and cohorts that lend quota to each other. It can have its own quotas."""

    name: str
    parent: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    weight: Fraction = Fraction(1)


@fixed()
class LocalQueue(Value):
    """A Kueue LocalQueue, through which a namespace submits jobs to a ClusterQueue.

    Attributes:
        stop_policy: the text `None`, `Hold` or `HoldAndDrain`.
        weight: the number by which its usage is divided if a ClusterQueue orders jobs by usage.
        consumed: the past usage in its status, by resource, in billionths of the resource's unit.
        deleted: whether its deletion has begun, so that it is held whatever its own stop policy is.
    """

    name: str
    namespace: str
    cluster_queue: str
    stop_policy: str = "None"
    weight: Fraction = field(default=Fraction(1), metadata=NEWER)
    consumed: Mapping[str, int] = field(default_factory=frozen, metadata=NEWER)
    deleted: bool = field(default=False, metadata=NEWER)


@fixed(slots=False)
class Cluster(Value):
    """The cluster that a replay starts from.

    Attributes:
        nodes, namespaces, priority_classes, workload_priority_classes, topologies, flavors, cluster_queues,
            cohorts, local_queues: by name (local queues by namespace and name), in the order of the
            manifests. A namespace is represented by its labels. Cohorts that are only named by other objects
            come last, without quota or parent.
        workloads: Kueue's Workloads, in the order of the manifests.
        pods: running and waiting pods, in the order of the manifests.
        disruption_budgets: PodDisruptionBudgets, in the order of the manifests.
        pod_groups: PodGroups of scheduler-plugins, by namespace and name.
        claim_templates: ResourceClaimTemplates, by namespace and name.
        runtime_classes: RuntimeClasses, by name. The requests of `workloads` include their overhead.
        limit_ranges: LimitRanges, by namespace and name. The requests of `workloads` include their defaults.
        scheduling_groups: pod groups of kube-scheduler's own kinds, by namespace, Workload and name.
        elastic_quotas: by name, the nodes of the ElasticQuotaTree, or the ElasticQuotas if there is no tree.
        scheduler: the KubeSchedulerConfiguration, or None.
        kueue: Kueue's own Configuration, or None.
        kueue_controller: Kueue's controller or None. Its image tag says which release runs.
        warnings: sentences about parts of the manifests that affect decisions in a real cluster but not in a
            replay.
        assumed: sentences about assumptions that fill gaps in the manifests.
        source: the origin of the cluster, for messages. It is not part of a run's identity.
        files: the files from which the cluster can be read again, which are its manifests and then each
            patch. A file is "" if the manifests were derived from a trace. There are no files if the cluster
            was made or changed in memory. The files are not part of a run's identity.
        manifests: the documents from which the cluster was made. Their unmodelled parts are not part of a
            run's identity.
        scale: the size of the cluster relative to its manifests (`harness.cluster.changes.scale`).
        timed: the documents in `manifests` that have a time. See `harness.cluster.changes.timed`. All other
            fields describe the cluster at the beginning.
        changes: how the cluster changes during a replay, sorted by time. See
            `harness.cluster.changes.over_time`.
        as_of: the current time, in microseconds since 1970, if a replay begins with the Workloads and Pods of
            the cluster, or else None. It is derived from the Workloads, the Pods and the trace, so it is not
            part of a run's identity.
    """

    nodes: Mapping[str, Node] = field(default_factory=frozen)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=frozen)
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=frozen)
    workload_priority_classes: Mapping[str, PriorityClass] = field(default_factory=frozen)
    flavors: Mapping[str, ResourceFlavor] = field(default_factory=frozen)
    cluster_queues: Mapping[str, ClusterQueue] = field(default_factory=frozen)
    cohorts: Mapping[str, Cohort] = field(default_factory=frozen)
    local_queues: Mapping[tuple[str, str], LocalQueue] = field(default_factory=Frozen)
    workloads: tuple[Workload, ...] = ()
    pods: tuple[Pod, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    pod_groups: Mapping[tuple[str, str], PodGroup] = field(default_factory=Frozen)
    elastic_quotas: Mapping[str, ElasticQuota] = field(default_factory=frozen)
    scheduler: SchedulerConfiguration | None = None
    kueue: KueueConfiguration | None = None
    warnings: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    source: str = ""
    manifests: tuple[Mapping[str, Any], ...] = ()
    scale: Fraction = Fraction(1)
    topologies: Mapping[str, Topology] = field(default_factory=frozen, metadata=NEWER)
    kueue_controller: KueueController | None = field(default=None, metadata=NEWER)
    custom_resources: Mapping[str, Mapping[str, Any]] = field(default_factory=frozen, metadata=NEWER)
    scheduling_groups: Mapping[GroupKey, SchedulingGroup] = field(default_factory=Frozen, metadata=NEWER)
    claim_templates: Mapping[tuple[str, str], ClaimTemplate] = field(default_factory=Frozen, metadata=NEWER)
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=frozen, metadata=NEWER)
    limit_ranges: Mapping[tuple[str, str], LimitRange] = field(default_factory=Frozen, metadata=NEWER)
    timed: tuple[Mapping[str, Any], ...] = field(default=(), metadata=NEWER)
    changes: tuple[Instant, ...] = field(default=(), metadata=NEWER)
    files: tuple[str, ...] = ()
    as_of: int | None = None

    @cached_property
    def nodes_change(self) -> bool:
        """True if a node is added, removed or changed during the replay."""
        return any(edit.kind == "Node" for instant in self.changes for edit in instant.edits)

    @cached_property
    def counting(self) -> Counting:
        """The rules by which Kueue counts requests against quotas."""
        from harness.cluster.kinds.kueue_requests import Counting

        return Counting() if self.kueue is None else self.kueue.counting

    @property
    def resource_groups(self) -> list[ResourceGroup]:
        """The resource groups of all ClusterQueues, followed by those of all cohorts."""
        groups = [group for queue in self.cluster_queues.values() for group in queue.resource_groups]
        return groups + [group for cohort in self.cohorts.values() for group in cohort.resource_groups]

    @cached_property
    def capacity(self) -> Mapping[str, int]:
        """The capacity by resource, summed over all nodes, or over nominal quotas if there are no nodes.

        A resource is absent if one of its quotas is unlimited, or if the sum of its quotas is 0.
        """
        if self.nodes or self.nodes_change:
            return frozen(summed(pair for node in self.nodes.values() for pair in node.allocatable.items()))
        quotas = (each for group in self.resource_groups for each in group.quotas())
        total = summed((resource, quota.nominal) for _, resource, quota in quotas)
        return frozen({resource: amount for resource, amount in total.items() if amount < UNLIMITED})

    @cached_property
    def pods_of(self) -> Mapping[str, tuple[Pod, ...]]:
        """The Pods of each Workload, by `namespace/name` of the Workload, in the order of the manifests."""
        found = grouped((pod.workload, pod) for pod in self.pods if pod.workload)
        return frozen({key: tuple(pods) for key, pods in found.items()})

    @cached_property
    def standings(self) -> dict[int, tuple[Workload, Standing]]:
        """Cached results of `harness.cluster.standing` for Workloads, by the `id()` of the Workload."""
        return {}

    @cached_property
    def staying(self) -> frozenset[str]:
        """The Pods that stay on their nodes, as `namespace/name`. See `harness.cluster.standing`."""
        from harness.cluster.standing import staying

        return staying(self)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the modelled part of the manifests, as JSON with sorted keys.

        YAML and JSON with the same content have the same digest. Fields that harness doesn't read, such as
        `status.nodeInfo`, `resourceVersion` and most annotations, don't affect the digest. Warnings,
        assumptions, the text of the manifests and their origin don't affect it either.
        """
        from harness.cluster.digest import digest_of

        return digest_of(self)

    @cached_property
    def follows_manifests(self) -> bool:
        """True if the cluster equals the cluster created again from its manifests and its scale."""
        from harness.cluster.changes.remake import follows_manifests

        return follows_manifests(self)

    def patched(self, patch: Patch) -> Cluster:
        """Returns this cluster with a patch applied to its manifests, as in kustomize's strategic merge.

        Args:
            patch: documents with a kind, a name and only the changed fields. It is a mapping, several
                mappings, the path to a file or folder, or an event table as a path or as rows.

        Raises:
            ClusterError: the patch cannot be read, refers to something that doesn't exist, or makes the
                manifests faulty.
            InputError: the cluster was made or changed without manifests.
        """
        from harness.cluster.changes.patches import patched

        return patched(self, patch)

    def with_values(self, values: Values) -> Cluster:
        """Returns this cluster with new values for some knobs.

        Args:
            values: nested values, such as `{"ClusterQueue/team-a": {"quota": {"nvidia.com/gpu": 32},
                "weight": 2}}`, or values by path, such as `{"*.quota[nvidia.com/gpu]": 32}`. Values have the
                same units as in manifests. See `harness.cluster.changes.knobs`.

        Raises:
            InputError: an object or knob does not exist, or a value has the wrong type.
            ClusterError: the manifests with these values are faulty.
        """
        from harness.cluster.changes.knobs import with_values

        return with_values(self, values)

    def knobs(self, pattern: str | None = None) -> dict[str, int | Fraction | None]:
        """Returns the knobs that `with_values` can set, by path, with exact values in the units of manifests.

        Args:
            pattern: a path in which `*` matches any text. The default matches all knobs.

        Raises:
            InputError: the cluster was made without manifests, or no knob matches the pattern.
        """
        from harness.cluster.changes.knobs import knobs

        return knobs(self, pattern)

    @cached_property
    def default_class(self) -> PriorityClass:
        """The class of a job that names no class: the global default, or an unnamed class with value 0."""
        for priority_class in self.priority_classes.values():
            if priority_class.global_default:
                return priority_class
        return PriorityClass("", 0)

    @property
    def default_priority(self) -> int:
        """The priority of a job that names no class."""
        return self.default_class.value

    def schedules(self, pod: Pod) -> bool:
        """Returns True if the replayed scheduler places this pod, according to the pod's `schedulerName`.

        Pods of other schedulers only use resources.
        """
        return pod.scheduler in self.scheduler_names

    @cached_property
    def scheduler_names(self) -> tuple[str, ...]:
        """The names of the replayed scheduler in pods, where "" is Kubernetes' default scheduler.

        Without a KubeSchedulerConfiguration, it has the usual name of a scheduler with such elastic quotas,
        too.
        """
        from harness.cluster.kinds.elastic import USUAL_NAMES, semantics_of

        if self.scheduler is not None:
            return self.scheduler.scheduler_name, *self.scheduler.other_names
        return "", USUAL_NAMES.get(semantics_of(self.elastic_quotas), "")

    def priority_of(self, name: str) -> PriorityClass | None:
        """Returns the Kueue or Kubernetes class that a trace's `priority_class` names, or None.

        If both kinds have a class with this name, the WorkloadPriorityClass takes precedence, as in Kueue.
        """
        return (
            self.workload_priority_classes.get(name)
            or self.priority_classes.get(name)
            or SYSTEM_PRIORITY_CLASSES.get(name)
        )

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Returns the labels of a namespace, including the label with its name that Kubernetes adds."""
        return self.namespaces.get(namespace) or frozen({NAMESPACE_NAME: namespace})

    def cluster_queue_of(self, namespace: str, queue: str) -> ClusterQueue | None:
        """Returns the ClusterQueue of the queue that a trace names, or None if there is none.

        A trace can name a LocalQueue or a ClusterQueue.
        """
        local = self.local_queues.get((namespace, queue))
        return self.cluster_queues.get(local.cluster_queue if local else queue)

    def tree_of(self, owner: ClusterQueue | Cohort) -> str:
        """Returns a name for a tree of cohorts: its highest cohort, or `queue` and a queue without cohort."""
        cohort = owner.cohort if isinstance(owner, ClusterQueue) else owner.name
        while cohort in self.cohorts and self.cohorts[cohort].parent:
            cohort = self.cohorts[cohort].parent
        return cohort or f"queue {owner.name}"

    def queue_of_object(self, namespace: str, queue: str) -> ClusterQueue | None:
        """Returns the ClusterQueue of the queue that an object in the manifests names, or None.

        An object can name only a LocalQueue. If the manifests contain no LocalQueue at all, the name counts
        as the name of a ClusterQueue.
        """
        known = not self.local_queues or (namespace, queue) in self.local_queues
        return self.cluster_queue_of(namespace, queue) if known else None

    def flavor(self, name: str) -> ResourceFlavor:
        """Returns a flavor. A flavor whose ResourceFlavor was deleted has no labels and no tolerations."""
        return self.flavors.get(name) or ResourceFlavor(name)

    def missing_flavors(self, queue: ClusterQueue) -> tuple[str, ...]:
        """Returns the flavors of a queue that have no ResourceFlavor. Kueue keeps the queue inactive."""
        return tuple(
            quotas.flavor
            for group in queue.resource_groups
            for quotas in group.flavors
            if quotas.flavor not in self.flavors
        )

"""Models what a pod requires from the cluster: resources, ports, and rules about nodes and other pods.

`pod_reading.py` creates these objects from manifests and from the pod sets of a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, final

from harness.base.frozen import Frozen
from harness.base.values import Fixed, Value, fixed
from harness.cluster.kinds.selectors import LabelSelector, Requirement, Toleration
from harness.cluster.model import NEWER

if TYPE_CHECKING:
    from harness.cluster.kinds.scheduling_groups import GroupReference

DEFAULT_SCHEDULER = "default-scheduler"

KUEUES_GATES = frozenset(("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"))
"""The scheduling gates that Kueue adds to pods, and removes when their Workload is admitted."""

NamespaceLabels = Callable[[str], Mapping[str, str]]
"""A function that returns the labels of a namespace, for namespace selectors."""

_NOTHING: Mapping[str, int] = Frozen({})
_NO_LABELS: Mapping[str, str] = Frozen({})

DEFAULT_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
"""The memory that kube-scheduler's scores assume for a container without a request: 200Mi. The
scores assume 100m of cpu.
"""


@fixed()
class NodeSelectorTerm(Value):
    """A term of a node affinity. A term without expressions matches no node."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    @property
    def names(self) -> frozenset[str] | None:
        """Returns the node names that the term allows, or None if it allows any name."""
        named = [frozenset(each.values) for each in self.match_fields if each.operator == "In"]
        return frozenset.intersection(*named) if named else None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Returns True if a node with this name and these labels satisfies all expressions of the term."""
        if not self.match_expressions and not self.match_fields:
            return False
        return all(requirement.matches(labels) for requirement in self.match_expressions) and all(
            requirement.matches({"metadata.name": name}) for requirement in self.match_fields
        )


@fixed()
class PreferredNodes(Value):
    """Nodes that a pod prefers, with a weight from 1 to 100."""

    weight: int
    term: NodeSelectorTerm


@fixed()
class PodAffinityTerm(Value):
    """A rule that places a pod in the same topology domain as certain other pods, or in another domain.

    The rule can be required or preferred, as an affinity or an anti-affinity.

    Attributes:
        topology_key: the node label whose values define the domains.
        selector: selects the other pods. None selects no pod.
        namespaces: the namespaces of the other pods.
        namespace_selector: selects further namespaces by their labels. An empty selector selects all
            namespaces, and None selects no namespace.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None = None

    def matches(self, namespace: str, labels: Mapping[str, str], labels_of: NamespaceLabels) -> bool:
        """Returns True if the term matches a pod in this namespace with these labels."""
        if self.selector is None or not self.selector.matches(labels):
            return False
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(labels_of(namespace))


@fixed()
class PreferredPods(Value):
    """Pods that a pod prefers to be close to (weight > 0) or apart from (weight < 0)."""

    weight: int
    term: PodAffinityTerm


@fixed()
class TopologySpreadConstraint(Value):
    """Limits how unevenly matching pods can be distributed over the domains of a topology key.

    Attributes:
        required: True for `DoNotSchedule`, False for `ScheduleAnyway`.
        min_domains: the minimum number of domains. If there are fewer domains, the minimum number of pods per
            domain counts as 0.
        honor_affinity: whether a node counts only if the pod's node selector and affinity allow it.
        honor_taints: whether a node counts only if the pod tolerates its taints.
    """

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    required: bool = True
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


@fixed()
class HostPort(Value):
    """A port that a pod occupies on its node. The address 0.0.0.0 means all addresses of the node."""

    protocol: str
    address: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Returns True if two pods can't use these ports on the same node."""
        return (
            self.port == other.port
            and self.protocol == other.protocol
            and (self.address == other.address or "0.0.0.0" in (self.address, other.address))  # noqa: S104
        )


@final
@fixed()
class PodSpec(Fixed):
    """The parts of a pod's `spec` that a scheduler uses.

    Attributes:
        requests: the requested quantities by resource, which can be 0. Each quantity is the sum of all
            containers or the quantity of one init container, whichever is larger, plus the overhead.
        scored_cpu, scored_memory: the requests by which kube-scheduler scores nodes. They include default
            requests for containers without requests.
        host_ports: the ports that the pod occupies on its node. Ports of init containers don't count, except
            those of sidecars (`GetHostPorts` in pkg/scheduler/util/utils.go).
        node_name: the only node that the pod can run on, or "".
        required_nodes: the alternative terms of the required node affinity, or None if there is no required
            node affinity.
        affinity, anti_affinity: the required terms, which the node must all satisfy.
        preferred_pods: the preferred affinity, and the preferred anti-affinity with negative weights.
        qos: Guaranteed, Burstable or BestEffort.
    """

    requests: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    scored_cpu: int = DEFAULT_CPU
    scored_memory: int = DEFAULT_MEMORY
    host_ports: tuple[HostPort, ...] = ()
    node_name: str = ""
    node_selector: Mapping[str, str] = field(default_factory=lambda: _NO_LABELS)
    tolerations: tuple[Toleration, ...] = ()
    required_nodes: tuple[NodeSelectorTerm, ...] | None = None
    preferred_nodes: tuple[PreferredNodes, ...] = ()
    affinity: tuple[PodAffinityTerm, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_pods: tuple[PreferredPods, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()
    qos: str = "BestEffort"

    @property
    def node_names(self) -> frozenset[str] | None:
        """Returns the node names that the node affinity allows, or None if a term allows any name."""
        named = [term.names for term in self.required_nodes or ()]
        known = [names for names in named if names is not None]
        return frozenset().union(*known) if known and len(known) == len(named) else None

    def allows(self, name: str, labels: Mapping[str, str]) -> bool:
        """Returns True if the node selector and the required node affinity match a node."""
        if any(labels.get(key) != value for key, value in self.node_selector.items()):
            return False
        return self.required_nodes is None or any(term.matches(name, labels) for term in self.required_nodes)


@final
@fixed()
class Pod(Fixed):
    """A pod in the manifests.

    Attributes:
        node: the node of the pod, or "" while the pod is pending.
        nominated_node: the node on which a preemption freed resources for the pod, or "".
        priority: its `spec.priority`. If this is None, `priority_class` determines the priority.
        preempts: False for `preemptionPolicy: Never`, or None if the pod has no policy.
        grace_period: the grace period in microseconds, or None.
        start: when the pod started, in microseconds since 1970, or None if unknown.
        terminating: whether the pod has a deletion timestamp.
        gone_at: the deletion timestamp in microseconds since 1970, or None. The pod ends at this time at the
            latest.
        told_at: when the deletion was requested, in microseconds since 1970. It is None if there is no
            request, or if its time is unknown.
        preempted: whether kube-scheduler's condition says that the pod was preempted.
        ended: whether the phase of the pod is Succeeded or Failed.
        scheduler: the name of its scheduler, or "" for Kubernetes' default.
        group: the kube-scheduler pod group that the pod names, or None.
        topology: whether Kueue placed the pod in a topology, according to its annotations.
        of_daemon_set: whether an owner reference names a DaemonSet.
        deadline: the maximum run time of the pod in microseconds, or None if there is no limit.
        workload: the namespace and name of its Workload, or "" if it has none.
        pod_set, index: the pod set of the pod and its number in the pod set, according to its labels. They
            are "" and None if the labels don't specify them.
        lasting: whether the pod runs until it is deleted, as the pods of a DaemonSet do.
        named_as_workload: whether a Workload in the manifests has the same namespace and name.
        gates: the names of the scheduling gates. kube-scheduler ignores the pod until all gates are gone.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    spec: PodSpec
    node: str = ""
    nominated_node: str = ""
    priority: int | None = None
    priority_class: str = ""
    preempts: bool | None = None
    grace_period: int | None = None
    start: int | None = None
    terminating: bool = False
    preempted: bool = False
    ended: bool = False
    scheduler: str = field(default="", metadata=NEWER)
    group: GroupReference | None = field(default=None, metadata=NEWER)
    topology: bool = field(default=False, metadata=NEWER)
    of_daemon_set: bool = field(default=False, metadata=NEWER)
    deadline: int | None = field(default=None, metadata=NEWER)
    workload: str = field(default="", metadata=NEWER)
    pod_set: str = field(default="", metadata=NEWER)
    index: int | None = field(default=None, metadata=NEWER)
    lasting: bool = field(default=False, metadata=NEWER)
    gone_at: int | None = field(default=None, metadata=NEWER)
    told_at: int | None = field(default=None, metadata=NEWER)
    named_as_workload: bool = field(default=False, metadata=NEWER)
    gates: tuple[str, ...] = field(default=(), metadata=NEWER)

    @property
    def held_back(self) -> bool:
        """True if a controller other than Kueue must remove a scheduling gate before the pod is scheduled."""
        return not KUEUES_GATES.issuperset(self.gates)

    @property
    def key(self) -> str:
        """The pod's namespace and name.

        If a Workload has the same namespace and name, the key has the prefix `pod`. It then identifies one
        job, because a Pod and a Workload can both be jobs.
        """
        return f"pod {self.full_name}" if self.named_as_workload else self.full_name

    @property
    def full_name(self) -> str:
        """The pod's namespace and name, as in the manifest."""
        return f"{self.namespace}/{self.name}"


def places_of_pods(manifests: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Returns the index of each Pod in the list of manifests, by the `full_name` of the Pod.

    Only Pods of the API version v1 count, because another API group can also have a kind named Pod.
    """
    return {
        f"{item['metadata'].get('namespace') or 'default'}/{item['metadata']['name']}": place
        for place, item in enumerate(manifests)
        if item.get("kind") == "Pod" and item.get("apiVersion") == "v1"
    }

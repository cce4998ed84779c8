"""Models pods as the scheduler sees them, and the properties that many pods share.

A `Shape` contains the properties that determine whether a single node fits. Thousands of pods have only a few
hundred different shapes, so the results of a shape on a node are computed once. A `Template` adds the
properties that matter between pods: the namespace, the labels, and the rules about other pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from harness.cluster.kinds.pods import HostPort, PodSpec
from harness.cluster.kinds.scheduling_groups import GroupReference
from harness.models.kube._queued import Queued
from harness.models.kube.devices import LARGEST, ask_of
from harness.models.told import NOTHING_TOLD
from harness.policy import Job

if TYPE_CHECKING:
    from harness.models.kube.gangs import Gang
    from harness.models.kube.most_room import MostRoom
    from harness.models.kube.node import NodeInfo

Requests = tuple[tuple[int, int], ...]
"""Pairs of a resource index and a quantity above 0."""

NOT_STARTED: Final = 2**62 - 1
"""The unknown start of a pod, which counts as now and therefore as later than all other starts."""


@final
class Shape:
    """The properties of a pod that determine whether a single node fits.

    Attributes:
        amounts: the quantities that the pod uses on a node.
        requests: `amounts`, and the required quantities of the node's devices. See `devices.py`.
        rules: a key that is the same for shapes with the same rules about nodes.
        device: the request for devices, or None if the pod requests none, or if no node has devices.
        missing: the requested resources that no node has.
        scored_cpu, scored_memory: the requests with defaults, for the score of NodeResourcesFit.
        ports: the host ports that the pod uses.
        asks_for_several: whether the pod requests several resources, or host ports, so that a node can lack
            more than one of them.
        balanced: whether NodeResourcesBalancedAllocation scores the pod. This requires a request for cpu or
            memory.
    """

    __slots__ = (
        "amounts", "asks_for_several", "balanced", "device", "missing", "ports", "requests", "rules",
        "scored_cpu", "scored_memory", "spec",
    )  # fmt: skip

    def __init__(self, spec: PodSpec, resources: Mapping[str, int], rules: object) -> None:
        self.spec = spec
        self.rules = rules
        self.scored_cpu = spec.scored_cpu
        self.scored_memory = spec.scored_memory
        self.ports: tuple[HostPort, ...] = spec.host_ports
        self.balanced = bool(spec.requests.get("cpu") or spec.requests.get("memory"))
        self.count_by(resources)

    def count_by(self, resources: Mapping[str, int]) -> None:
        """Sets the indices of its resources, at first and whenever nodes have a new resource."""
        spec = self.spec
        asked = [(name, amount) for name, amount in spec.requests.items() if amount > 0 and name != "pods"]
        found = [(resources[name], amount) for name, amount in asked if name in resources]
        self.amounts: Requests = tuple(sorted(found))
        self.missing = tuple(sorted([name for name, _ in asked if name not in resources]))
        self.device = ask_of(spec.requests) if LARGEST in resources else None
        self.requests = self.amounts
        if self.device is not None:
            decisive = resources[self.device.resource], self.device.amount
            self.requests = tuple(sorted((*self.amounts, decisive)))
        self.asks_for_several = len(self.requests) + len(self.missing) > 1 or bool(self.ports)


@final
class Template:
    """The properties that equal pods in one namespace have in common.

    Attributes:
        number: the position among all templates, which are numbered when they are first seen.
        spread: the spread constraints that filter nodes (`DoNotSchedule`).
        soft_spread: the spread constraints that only score nodes.
        alone: True if none of the rules is about other pods.
        budgets: the numbers of the PodDisruptionBudgets that cover its pods.
        placed: how many of its pods are bound to each node.
        leaving: how many of its bound pods are terminating on each node.
        made: how many pods with this template have existed.
        rules: a key that is the same for templates that differ only in their shapes.
    """

    __slots__ = (
        "_peers", "alone", "budgets", "labels", "leaving", "made", "namespace", "number", "placed", "rules",
        "shape", "soft_spread", "spec", "spread",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        namespace: str,
        labels: Mapping[str, str],
        spec: PodSpec,
        shape: Shape,
        budgets: tuple[int, ...],
        rules: object,
    ) -> None:
        self.number = number
        self.namespace = namespace
        self.labels = labels
        self.spec = spec
        self.shape = shape
        self.spread = tuple(constraint for constraint in spec.spread if constraint.required)
        self.soft_spread = tuple(constraint for constraint in spec.spread if not constraint.required)
        self.alone = not (spec.spread or spec.affinity or spec.anti_affinity or spec.preferred_pods)
        self.budgets = budgets
        self.rules = rules
        self.placed: dict[NodeInfo, int] = {}
        self.leaving: dict[NodeInfo, int] = {}
        self.made = 0
        self._peers: dict[tuple[int, bool], Peers] = {}

    def peers(self, priority: int, preempts: bool) -> Peers:
        """Returns the shared `Peers` object of those pods of the template that have this priority.

        Args:
            priority: the priority of the pods.
            preempts: whether the pods may preempt other pods.
        """
        peers = self._peers.get((priority, preempts))
        if peers is None:
            peers = self._peers[priority, preempts] = Peers()
        return peers


class Refusal(Protocol):
    """The reason why a pod did not get a node, and why no pod is preempted for it."""

    def detail(self) -> dict[str, Any]:
        """Returns numbers that explain the refusal. Call this method immediately after the attempt."""


class Verdicts(Protocol):
    """Judges pods that differ only in their requests, for a scheduler with quotas.

    If some requests fail, all larger requests fail, too, for the same or another reason.
    """

    @property
    def version(self) -> int:
        """A number that changes whenever a verdict may change."""

    @property
    def by_nodes(self) -> frozenset[str]:
        """The verdict on a pod that only nodes refuse."""

    def rejecting(self, least: Sequence[int], most: Sequence[int], seen: int) -> frozenset[str] | None:
        """Returns the plugins that reject every pod with requests between two bounds.

        Args:
            least: the smallest request of any pod for each resource.
            most: the largest request.
            seen: a version at which no node had enough resources for any of these pods, or -1.

        Returns:
            The plugins. None if they differ between these pods, or if a pod may succeed.
        """


class LastingRefusal(Protocol):
    """A reason for a failed attempt that can stay valid after changes.

    As long as it is valid, equal pods fail without an attempt.

    Attributes:
        most_room: an upper bound of the resources that nodes can offer to equal pods. The refusal is valid
            until a changed node can offer `amounts`. `most_room` is None if something other than free
            resources may also help these pods.
        verdicts: predicts the plugins that reject equal pods, even if these change. It is None if this is not
            known.
        amounts: the request of a pod for each resource.
        keeps_figures: whether `Peers.refusal` has the figures that an attempt would record now.
    """

    @property
    def keeps_figures(self) -> bool:
        """See the class."""

    @property
    def verdicts(self) -> Verdicts | None:
        """See the class."""

    @property
    def most_room(self) -> MostRoom | None:
        """See the class."""

    @property
    def amounts(self) -> Sequence[int]:
        """See the class."""

    def holds(self, pod: PodInfo) -> bool:
        """Returns True if an attempt for an equal pod would fail for the same reason, and record nothing new.

        Callers must not pass a pod if a preemption is freeing resources for it.
        """

    def outlives_nodes(self) -> bool:
        """Returns True if `holds` remains correct after nodes or their order have changed."""


@final
class Peers:
    """Pods that the scheduler treats alike, except for their age.

    Attributes:
        failed_at: the version of the cache at which one of the pods last failed without a nomination. It is
            not set if no attempt can be skipped. See `Scheduling.moves_on`.
        rejected_by: the plugins that rejected that pod.
        refusal: the reason why that pod failed, as it is recorded. It is None if the record needs the figures
            of an attempt.
        lasting: the reason why the pods would fail again, or None if it is not known that they would.
        loose: whether a pod can become equal to other pods, or change its priority, while it waits. See
            `_blocks.py`.
    """

    __slots__ = ("failed_at", "lasting", "loose", "refusal", "rejected_by")

    def __init__(self, *, loose: bool = False) -> None:
        self.loose = loose
        self.failed_at = -1
        self.rejected_by: frozenset[str] = frozenset()
        self.refusal: Refusal | None = None
        self.lasting: LastingRefusal | None = None

    def fail_again(self, pod: PodInfo, version: int) -> bool:
        """Returns True if the reason why an equal pod failed is still valid, so that this pod fails, too.

        The pod then needs no attempt. The method notes that all equal pods fail at this version of the cache,
        unless the record of a failure may need the figures of an attempt.

        Args:
            pod: the pod.
            version: the version of the cache.
        """
        lasting = self.lasting
        if lasting is None or not lasting.holds(pod):
            return False
        if lasting.keeps_figures:
            self.failed_at = version
        return True


@final
class PodInfo(Queued):
    """One pod. Pods are compared by identity, and the replacement of an evicted pod is a different object.

    Attributes:
        name: the name within the namespace.
        job, pod: the job, and the number of the pod in the job.
        group: the pod group of kube-scheduler that the pod refers to, or None if it refers to none.
        start: when the pod started, as a number that grows with time.
        node: the position of the node to which the pod is bound, or -1 if it is not bound.
        nominated: the name of the node where a preemption frees resources for the pod, or "".
        keeps: the highest priority against which its nomination reserves these resources. It is normally the
            priority of the pod.
        preempted: whether the pod is terminating because the scheduler preempted it.
        peers: the pods that are equal to this pod, including itself.
        quota: the data that a scheduler with quotas stores for the pod, or None without quotas.
        gang: the gang with which the pod is placed, or None if it is placed alone.
        devices: the devices that the pod has on its node, or that it will have if they are known before the
            pod is bound.
        stamp, since, failures, errors, backoff, rejected_by: the queue uses these attributes. See `queue.py`.
        place: the place in its block. See `_blocks.py`.
        told: the rejections of the pod that were recorded since the last preemption for it. See `Told`.
    """

    __slots__ = (
        "devices", "errors", "failures", "gang", "group", "job", "keeps", "name", "node",
        "nominated", "peers", "place", "pod", "preempted", "preempts", "priority", "quota", "rejected_by",
        "start", "template", "terminating", "told",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        template: Template,
        priority: int,
        preempts: bool,
        job: Job | None = None,
        pod: int = 0,
        group: GroupReference | None = None,
    ) -> None:
        self.name = name
        self.template = template
        template.made += 1
        self.priority = priority
        self.preempts = preempts
        self.peers = template.peers(priority, preempts)
        self.quota: Any = None
        self.gang: Gang | None = None
        self.job = job
        self.pod = pod
        self.group = group
        self.start = NOT_STARTED
        self.node = -1
        self.devices: tuple[int, ...] = ()
        self.nominated = ""
        self.keeps = priority
        self.terminating = False
        self.preempted = False
        self.stamp = self.since = 0
        self.failures = 0
        self.errors = 0
        self.backoff = 0
        self.place = 0
        self.rejected_by: frozenset[str] = frozenset()
        self.told = NOTHING_TOLD

    @property
    def key(self) -> str:
        """The namespace and name, in the format of Kubernetes."""
        return f"{self.template.namespace}/{self.name}"

    def note_rejection(self, rejected_by: frozenset[str]) -> bool:
        """Returns True if the rejection of the pod by these plugins must be recorded, and updates `told`.

        It must be recorded if other plugins rejected the pod last time (see `Told`), or if a preemption has
        freed resources for the pod since then. While victims are terminating for the pod, it must be recorded
        only if other plugins rejected the pod last time. The same is true for a pod of a gang.
        """
        if self.gang is not None:
            return rejected_by != self.rejected_by
        before = self.told
        if rejected_by == (self.rejected_by if self.nominated else before.last):
            return False
        self.told = before.then(rejected_by)
        return before.tells(self.told)

    @property
    def is_told(self) -> bool:
        """True if the last recorded rejection of the pod is still up to date."""
        return self.gang is not None or self.rejected_by == self.told.last

    @property
    def expects_room(self) -> bool:
        """True if a preemption is freeing resources for the pod, or for another pending pod of its gang."""
        gang = self.gang
        return bool(self.nominated) or (
            gang is not None and any(mate.nominated for mate in gang.pending.values())
        )

    def __repr__(self) -> str:
        return f"<Pod {self.key}>"


@final
class Templates:
    """Finds the template and shape of a pod. Equal pods share them.

    Args:
        resources: the index of each resource of nodes.
        budgets_of: a function that returns the budgets that cover pods with some labels in a namespace.
    """

    def __init__(self, resources: Mapping[str, int], budgets_of: Any) -> None:
        self._resources = resources
        self._budgets_of = budgets_of
        self._shapes: dict[object, Shape] = {}
        self._templates: dict[object, Template] = {}

    @property
    def all(self) -> Iterable[Template]:
        """All templates, in the order in which they were first seen."""
        return self._templates.values()

    @property
    def made(self) -> int:
        """The number of pods that have existed."""
        return sum(template.made for template in self._templates.values())

    def count_by_resources(self) -> None:
        """Updates all shapes because a node has a resource that no node had before."""
        for shape in self._shapes.values():
            shape.count_by(self._resources)

    def of(self, namespace: str, labels: Mapping[str, str], spec: PodSpec) -> Template:
        """Returns the template of a pod."""
        node_rules = (
            spec.node_name,
            tuple(sorted(spec.node_selector.items())),
            spec.tolerations,
            spec.required_nodes,
            spec.preferred_nodes,
        )
        rules = (spec.affinity, spec.anti_affinity, spec.preferred_pods, spec.spread)
        others = namespace, tuple(sorted(labels.items())), repr(rules) if any(rules) else ""
        return self._of(namespace, labels, spec, node_rules, others)

    def like(self, other: Template, spec: PodSpec) -> Template:
        """Returns the template of pods that differ from those of another template only in their requests."""
        return self._of(other.namespace, other.labels, spec, other.shape.rules, other.rules)

    def _of(
        self, namespace: str, labels: Mapping[str, str], spec: PodSpec, node_rules: object, others: object
    ) -> Template:
        amounts = tuple(sorted(spec.requests.items()))
        shape_key = amounts, spec.scored_cpu, spec.scored_memory, spec.host_ports, node_rules
        shape = self._shapes.get(shape_key)
        if shape is None:
            shape = self._shapes[shape_key] = Shape(spec, self._resources, node_rules)
        template = self._templates.get((shape, others))
        if template is None:
            budgets = self._budgets_of(namespace, labels)
            template = Template(len(self._templates), namespace, labels, spec, shape, budgets, others)
            self._templates[shape, others] = template
        return template

"""Finds the properties that the pods of a pod set share, and whether any node could run these pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, Protocol, final

from harness.base.errors import ClusterError, Fault
from harness.cluster.kinds.pod_reading import asking_for, manifest_of, pod_spec_of, template_of
from harness.cluster.kinds.scheduling_groups import GroupReference, read_group_reference
from harness.cluster.model import Cluster, Node
from harness.cluster.yaml.fields import Fields
from harness.models.kube.cache import Cache
from harness.models.kube.devices import LARGEST
from harness.models.kube.placement.filters import could_run
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.shape_nodes import never
from harness.models.kube.pod import Shape, Template, Templates
from harness.policy import Job, Never, PodSet


class Kind(NamedTuple):
    """The properties that all pods of a pod set in one namespace have in common.

    Attributes:
        template: the properties that the scheduler uses.
        node: the node on which the pods are already running, or "" if the pods are not running.
        start: when the pods started, in microseconds since 1970, or None if unknown.
        nominated: the node on which a preemption freed resources for the pods, according to their manifest,
            or "".
        going: two values: whether the pods are terminating on `node`, and whether the scheduler preempted
            them.
        never: the reason why the pods can never be placed. Either they fit on no empty node, or their group
            is missing. It is None for pods that may be placed or are already running.
        group: the pod group of kube-scheduler that the pods refer to, or None.
        ours: whether the simulated scheduler places the pods again after they have stopped running.
    """

    template: Template
    node: str
    start: int | None
    nominated: str
    going: tuple[bool, bool]
    never: Never | None
    group: GroupReference | None
    ours: bool


class JobKinds(NamedTuple):
    """The kinds of a job's pods.

    Attributes:
        only: the kind of all pods, or None if pod sets are different.
        never: the reason why some pod of the job can never run, or None if all pods may run.
    """

    only: Kind | None
    never: Never | None


class Nodes(Protocol):
    """The nodes and pods of kube-scheduler, or of a scheduler that is based on it."""

    @property
    def cache(self) -> Cache:
        """The nodes and the pods on them."""

    @property
    def templates(self) -> Templates:
        """The templates of pods."""

    @property
    def scheduling(self) -> Scheduling:
        """Finds nodes for pods."""


@final
class Kinds:
    """The kinds of pods. Each kind is computed once.

    Args:
        scheduler: the scheduler with the nodes.
        cluster: the cluster. It determines which pods the scheduler places.
        groups: whether pods wait forever if they refer to a pod group of kube-scheduler that is missing.
    """

    def __init__(self, scheduler: Nodes, cluster: Cluster, *, groups: bool = False) -> None:
        self._scheduler = scheduler
        self._cluster = cluster
        self._groups = groups
        self._specs: dict[tuple[PodSet, str], tuple[Template, GroupReference | None]] = {}
        self._first: dict[object, Template] = {}  # of the pods that differ only in their requests
        self._kinds: dict[tuple[PodSet, str], Kind] = {}
        self._of_jobs: dict[tuple[tuple[PodSet, ...], str], JobKinds] = {}
        self._impossible: dict[Shape, str] = {}
        self._rooms: dict[object, Mapping[str, int]] = {}  # for each set of rules, a node that runs some pods
        self._by_present = False  # whether a result depends on the present nodes
        edits = (edit for instant in cluster.changes for edit in instant.edits)
        self._to_come = [edit.after for edit in edits if isinstance(edit.after, Node)]

    def forget(self) -> None:
        """Drops the results that depend on nodes, because nodes have changed."""
        if not self._by_present:
            return
        self._by_present = False
        self._kinds.clear()
        self._of_jobs.clear()
        self._impossible.clear()
        self._rooms.clear()

    def of(self, job: Job, pod_set: PodSet) -> Kind:
        """Returns the properties that the pods of a pod set have in common.

        Raises:
            ClusterError: the template is not a valid Pod template, or its requests differ from those of the
                job.
        """
        kind = self._kinds.get((pod_set, job.namespace))
        if kind is None:
            known = self._specs.get((pod_set, job.namespace))
            if known is None:
                known = self._specs[pod_set, job.namespace] = self._read(job, pod_set)
            template, group = known
            found = manifest_of(pod_set)
            node, start = (found.node, found.start) if found is not None else ("", None)
            nominated = found.nominated_node if found is not None else ""
            going = (found.terminating, found.preempted) if found is not None else (False, False)
            why = "" if node else self.fits_none(template.shape)
            never = Never("nodes", why) if why else None if node else self._lacks(group, job.namespace)
            ours = found is None or self._cluster.schedules(found)
            kind = self._kinds[pod_set, job.namespace] = Kind(
                template, node, start, nominated, going, never, group, ours
            )
        return kind

    def of_job(self, job: Job) -> JobKinds:
        """Returns the kinds of a job's pods.

        Raises:
            ClusterError: see `of`.
        """
        known = self._of_jobs.get((job.pod_sets, job.namespace))
        if known is None:
            kinds = [self.of(job, pod_set) for pod_set in job.pod_sets]
            never = next((kind.never for kind in kinds if kind.never is not None), None)
            known = JobKinds(kinds[0] if len(kinds) == 1 else None, never)
            self._of_jobs[job.pod_sets, job.namespace] = known
        return known

    def _lacks(self, group: GroupReference | None, namespace: str) -> Never | None:
        if group is None or not self._groups or group.key(namespace) in self._cluster.scheduling_groups:
            return None
        name = group.text(namespace)
        return Never(name, f"{name} does not exist, and the pods that refer to it wait for it")

    def never(self, job: Job) -> Never | None:
        """Returns the reason why some pod of a job can never run, or None if all pods may run.

        If a node could run pods with larger requests and the same rules, this needs no template.
        """
        for pod_set in job.pod_sets:
            bare = pod_set.pod_template is None
            first = self._first.get(_besides_requests(job, pod_set)) if bare else None
            if first is None or not self._fits(first.shape.rules, pod_set.requests):
                return self.of_job(job).never
        return None

    def _fits(self, rules: object, requests: Mapping[str, int]) -> bool:
        """Returns True if the last node that could run pods with these rules could run these pods, too.

        If there is no such node, it is unknown whether the pods fit on any node.
        """
        room = self._rooms.get(rules)
        if room is None:
            return False
        for resource, amount in requests.items():
            if amount > room.get(resource, 0) and resource != "pods":
                return False
        return True

    def fits_none(self, shape: Shape) -> str:
        """Returns the reason why pods of a shape fit on no empty node, in kube-scheduler's words.

        The result is "" if they fit on an empty node, or on a node that the replay adds or changes later.
        """
        if self._fits(shape.rules, shape.spec.requests):
            return ""
        why = self._impossible.get(shape)
        if why is None:
            why = self._impossible[shape] = self._reasons(shape)
        return why

    def _reasons(self, shape: Shape) -> str:
        for coming in self._to_come:
            if could_run(shape.spec, coming):
                self._rooms[shape.rules] = coming.allocatable
                return ""
        self._by_present = True
        cache = self._scheduler.cache
        reasons: Counter[str] = Counter()
        for node in cache.by_name.values():
            found = never(shape, node, cache.names)
            if not found:
                if LARGEST not in cache.resources:  # whether devices suffice is not a matter of the manifest
                    self._rooms[shape.rules] = node.manifest.allocatable
                return ""
            reasons.update(found)
        said = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        return f"0/{len(cache.by_name)} nodes could run the pod even when empty: {said}"

    def _read(self, job: Job, pod_set: PodSet) -> tuple[Template, GroupReference | None]:
        if pod_set.pod_template is not None:
            return self._read_template(job, pod_set)
        key = _besides_requests(job, pod_set)
        first = self._first.get(key)
        if first is None:
            template, group = self._read_template(job, pod_set)
            self._first[key] = template
            return template, group
        spec = asking_for(first.spec, pod_set.requests, pod_set.limits)
        return self._scheduler.templates.like(first, spec), None

    def _read_template(self, job: Job, pod_set: PodSet) -> tuple[Template, GroupReference | None]:
        faults: list[Fault] = []
        where = f"job {job.id}, pod set {pod_set.name}"
        spec = pod_spec_of(pod_set, job.namespace, faults, where)
        group = read_group_reference(Fields(template_of(pod_set, [], where), where, faults))
        if _asked(spec.requests) != _asked(pod_set.requests):
            faults.append(
                Fault(f"{where}: pod_template", "its containers' requests differ from the job's requests")
            )
        if faults:
            raise ClusterError("the trace", faults)
        return self._scheduler.templates.of(job.namespace, pod_set.labels, spec), group


def _besides_requests(job: Job, pod_set: PodSet) -> object:
    """Returns a key that is the same for pod sets without a template that differ only in their requests."""
    return (
        job.namespace,
        pod_set.tolerations,
        pod_set.affinity,
        tuple(pod_set.node_selector.items()),
        tuple(pod_set.labels.items()),
    )


def _asked(requests: Mapping[str, int]) -> dict[str, int]:
    return {resource: amount for resource, amount in requests.items() if amount}

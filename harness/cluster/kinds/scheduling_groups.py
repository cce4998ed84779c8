"""Reads kube-scheduler's own pod groups in `scheduling.k8s.io`, and the references of pods to them.

In v1.35, a Workload lists the groups of its pods, and a pod names the Workload and the group in
`spec.workloadRef`. Since v1.36, a group is a PodGroup that pods name in `spec.schedulingGroup`, and a
Workload contains only templates for groups. Policies decide whether groups matter.

The documentation is below https://kubernetes.io/docs/: concepts/workloads/workload-api/ and its subpage
policies/, concepts/workloads/pods/workload-reference/ (all as of v1.35), concepts/workloads/podgroup-api/,
concepts/workloads/pods/scheduling-group/.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from harness.base.values import Value, fixed
from harness.cluster.draft import Draft, read_metadata
from harness.cluster.yaml.fields import Fields

MOST_GROUPS = 8
"""The maximum number of groups that a Workload can list."""

GroupKey: TypeAlias = tuple[str, str, str]
"""The namespace, Workload ("" for a PodGroup) and name of a group."""


@fixed()
class SchedulingGroup(Value):
    """A pod group of one of kube-scheduler's own kinds.

    Attributes:
        name, namespace: the group. If a Workload lists the group, the name is unique within that Workload.
        workload: the Workload that lists the group, or "" for a PodGroup.
        min_count: how many pods of the group must be schedulable at the same time. It is None for the policy
            `basic`, which schedules pods one by one.
    """

    name: str
    namespace: str
    workload: str = ""
    min_count: int | None = None


class GroupReference(NamedTuple):
    """A reference to a pod group in a pod's spec. The group is in the pod's namespace.

    Attributes:
        workload: the Workload that lists the group, or "" for a PodGroup.
        replica: the replica key. Among the pods that name the same group of a Workload, each key forms a
            separate group.
    """

    name: str
    workload: str = ""
    replica: str = ""

    def key(self, namespace: str) -> GroupKey:
        """Returns the key of the group for a pod in this namespace."""
        return namespace, self.workload, self.name

    def text(self, namespace: str) -> str:
        """Returns the name that messages use for the group."""
        if not self.workload:
            return f"PodGroup {namespace}/{self.name}"
        replica = f", replica {self.replica}" if self.replica else ""
        return f"Workload {namespace}/{self.workload}, pod group {self.name}{replica}"


def read_group_reference(spec: Fields) -> GroupReference | None:
    """Returns the group that a pod's `spec` names, or None if the field is absent or faulty."""
    if "workloadRef" in spec:
        if "schedulingGroup" in spec:
            spec.fault(
                "schedulingGroup", "cannot be combined with workloadRef, because a pod belongs to one group"
            )
        found = spec.child("workloadRef")
        name, workload = found.string("podGroup", required=True), found.string("name", required=True)
        return (
            GroupReference(name, workload, found.string("podGroupReplicaKey")) if name and workload else None
        )
    if "schedulingGroup" not in spec:
        return None
    name = spec.child("schedulingGroup").string("podGroupName", required=True)
    return GroupReference(name) if name else None


def read_scheduling_workload(fields: Fields, draft: Draft) -> None:
    """Read a Workload of `scheduling.k8s.io`.

    In v1alpha1, a Workload lists groups. In later versions, it contains templates that PodGroups copy.
    """
    if not fields.string("apiVersion").endswith("/v1alpha1"):
        return
    metadata = read_metadata(fields)
    spec = fields.child("spec")
    groups = spec.items("podGroups")
    if not 0 < len(groups) <= MOST_GROUPS:
        spec.fault("podGroups", f"must name 1 to {MOST_GROUPS} pod groups, not {len(groups)}")
    for group in groups:
        name = group.string("name", required=True)
        found = SchedulingGroup(name, metadata.namespace, metadata.name, _read_policy(group, "policy"))
        draft.scheduling_groups.add((metadata.namespace, metadata.name, name), found, group)


def read_scheduling_pod_group(fields: Fields, draft: Draft) -> None:
    """Read a PodGroup, which contains a copy of the fields in its Workload's template."""
    metadata = read_metadata(fields)
    found = SchedulingGroup(
        metadata.name, metadata.namespace, "", _read_policy(fields.child("spec"), "schedulingPolicy")
    )
    draft.scheduling_groups.add((metadata.namespace, "", metadata.name), found, fields)


def _read_policy(fields: Fields, name: str) -> int | None:
    """Returns the `minCount` of the policy `gang`, or None for `basic`. Exactly one policy must be set."""
    if name not in fields:
        fields.fault(name, "is missing")
        return None
    policy = fields.child(name)
    given = [each for each in ("basic", "gang") if each in policy]
    if len(given) != 1:
        fields.fault(name, "must have either basic or gang")
    if "basic" in policy:
        policy.child("basic")
    if "gang" not in policy:
        return None
    return policy.child("gang").integer("minCount", 1, required=True, least=1)


def check_scheduling_groups(draft: Draft) -> None:
    """Warn about Pods in the manifests that name a group that doesn't exist."""
    for (namespace, name), pod in draft.pods.items():
        group = pod.group
        if group is not None and not pod.node and group.key(namespace) not in draft.scheduling_groups:
            draft.warnings.add("Pod", f"{namespace}/{name}", f"names {missing(group, namespace)}")


def missing(group: GroupReference, namespace: str) -> str:
    """Returns a text about a missing group and about what happens to its pods.

    According to the page on workload references, a pod stays pending if it names a missing Workload or group.
    The page on scheduling groups says the same about a missing PodGroup.
    """
    return (
        f"{group.text(namespace)}, which does not exist: its pods wait forever if kube-scheduler's own "
        f"gang scheduling is on, or are placed one by one if it is off"
    )

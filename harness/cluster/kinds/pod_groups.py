"""Models pod groups. The pods of a group are placed together if at least a minimum number of them fit.

A label of a pod names its group. Policies decide whether and how groups matter.
https://github.com/kubernetes-sigs/scheduler-plugins/blob/master/apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.base.values import Value, fixed
from harness.cluster.draft import Draft, read_metadata
from harness.cluster.yaml.fields import Fields

LIGHTWEIGHT = "pod-group.scheduling.sigs.k8s.io"
"""The prefix of labels for groups without a manifest.

Without a suffix, the prefix is also a label, which names a PodGroup.
"""

MIN_AVAILABLE_LABEL = f"{LIGHTWEIGHT}/min-available"
"""The label with the minimum number of pods, for a group that has no manifest."""

NAME_LABELS = ("scheduling.x-k8s.io/pod-group", LIGHTWEIGHT, f"{LIGHTWEIGHT}/name")
"""The labels in which a pod can name its group. If a pod has several of these labels, the first one applies.
"""


@fixed()
class PodGroup(Value):
    """A PodGroup. Its pods are only placed if at least `min_member` of them can be placed together."""

    name: str
    namespace: str
    min_member: int


class Membership(NamedTuple):
    """The group that a pod belongs to.

    Attributes:
        namespace, name: the group. The pods of several jobs can name the same group.
        least: the minimum number of pods that must be placed together.
    """

    namespace: str
    name: str
    least: int


def group_name(labels: Mapping[str, str]) -> str:
    """Returns the group that a pod's labels name, or ""."""
    return next((labels[key] for key in NAME_LABELS if labels.get(key)), "")


def min_available(labels: Mapping[str, str]) -> int | None:
    """Returns the group size that a pod's label specifies, or None if it is not an integer greater than 0."""
    text = labels.get(MIN_AVAILABLE_LABEL, "")
    found = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
    return found if 0 < found < 2**31 else None


def membership_of(
    namespace: str, labels: Mapping[str, str], groups: Mapping[tuple[str, str], PodGroup]
) -> Membership | None:
    """Returns the group of a pod and the group's size. The size comes from the PodGroup, or else a label.

    If the pod names no group, or a group of unknown size, the function returns None.
    """
    name = group_name(labels)
    if not name:
        return None
    group = groups.get((namespace, name))
    least = group.min_member if group is not None else min_available(labels)
    return None if least is None else Membership(namespace, name, least)


def read_pod_group(fields: Fields, draft: Draft) -> None:
    """Read a PodGroup of scheduler-plugins, which can have one of two API groups."""
    metadata = read_metadata(fields)
    least = fields.child("spec").integer("minMember", 1, required=True, least=1)
    key = (metadata.namespace, metadata.name)
    draft.pod_groups.add(key, PodGroup(metadata.name, metadata.namespace, least), fields)

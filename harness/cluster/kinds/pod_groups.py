"""Pod groups: pods that are placed together, and how many of them at least.

A label of a pod names its group. Policies decide whether and how a group counts.
https://github.com/kubernetes-sigs/scheduler-plugins/blob/master/apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.base.values import Value, fixed
from harness.cluster.draft import Draft, read_metadata
from harness.cluster.yaml.fields import Fields

LIGHTWEIGHT = "pod-group.scheduling.sigs.k8s.io"
"""The prefix of labels for groups without a manifest; used as a label itself, it names a PodGroup."""

MIN_AVAILABLE_LABEL = f"{LIGHTWEIGHT}/min-available"
"""The label with the smallest number of pods, for a group without a manifest."""

NAME_LABELS = ("scheduling.x-k8s.io/pod-group", LIGHTWEIGHT, f"{LIGHTWEIGHT}/name")
"""The labels by which a pod names its group; the first label that the pod has counts."""


@fixed()
class PodGroup(Value):
    """A PodGroup: at least `min_member` pods are placed together, or no pod."""

    name: str
    namespace: str
    min_member: int


class Membership(NamedTuple):
    """The group that a pod belongs to.

    Attributes:
        namespace, name: the group; pods of several jobs may name it.
        least: how many pods must be placed together at least.
    """

    namespace: str
    name: str
    least: int


def group_name(labels: Mapping[str, str]) -> str:
    """Returns the group that a pod's labels name, or ""."""
    return next((labels[key] for key in NAME_LABELS if labels.get(key)), "")


def min_available(labels: Mapping[str, str]) -> int | None:
    """Returns the size of a group by a pod's label; None unless it is a whole number above 0."""
    text = labels.get(MIN_AVAILABLE_LABEL, "")
    found = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
    return found if 0 < found < 2**31 else None


def membership_of(
    namespace: str, labels: Mapping[str, str], groups: Mapping[tuple[str, str], PodGroup]
) -> Membership | None:
    """Returns the group of a pod: its PodGroup, else a group whose size a label gives.

    Returns None if the pod names no group, or a group of unknown size.
    """
    name = group_name(labels)
    if not name:
        return None
    group = groups.get((namespace, name))
    least = group.min_member if group is not None else min_available(labels)
    return None if least is None else Membership(namespace, name, least)


def read_pod_group(fields: Fields, draft: Draft) -> None:
    """Read a PodGroup of scheduler-plugins, under either of its API groups."""
    metadata = read_metadata(fields)
    least = fields.child("spec").integer("minMember", 1, required=True, least=1)
    key = (metadata.namespace, metadata.name)
    draft.pod_groups.add(key, PodGroup(metadata.name, metadata.namespace, least), fields)

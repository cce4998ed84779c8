"""Represents sets of identical pods with their requests, for manifests, traces and policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import final

from harness.base.frozen import Frozen
from harness.base.values import Fixed, Value, fixed

_NOTHING: Mapping[str, int] = Frozen({})
_NO_LABELS: Mapping[str, str] = Frozen({})


@fixed()
class SliceLayer(Value):
    """A division of pods into groups of `size`, where each group must be in one domain of `level`."""

    level: str
    size: int


@fixed()
class TopologyRequest(Value):
    """A pod set's `topologyRequest`.

    Attributes:
        required: the level at which one domain must hold all pods, or "".
        preferred: the level at which one domain should hold all pods, or "".
        unconstrained: whether pods can be in any domains.
        slices: layers of groups, from the outermost to the innermost.
        group: the name of a group of pod sets that are placed together, or "".
    """

    required: str = ""
    preferred: str = ""
    unconstrained: bool = False
    slices: tuple[SliceLayer, ...] = ()
    group: str = ""

    @property
    def explicit(self) -> bool:
        """True if the pod set requests a placement. Membership in a group alone is not a request."""
        return bool(self.required or self.preferred or self.unconstrained or self.slices)


@final
@fixed()
class PodSet(Fixed):
    """A set of identical pods of a job. Jobs with equal requests share one object.

    Attributes:
        name: the name, which is unique within the job.
        count: the number of pods.
        min_count: the minimum number of pods that partial admission can admit. It equals `count` if the job
            doesn't allow partial admission.
        requests: the request of one pod for each resource (cpu in millicores, other resources in base units).
        limits: the limit of one pod for each resource. Limits determine the QoS class, and Kueue rejects
            requests above them.
        labels, node_selector: as in a Pod.
        tolerations, affinity, pod_template: JSON text as in a Pod, or None.
        reclaimed: the number of pods that ended before the job arrived. `count` excludes them.
        topology: the topology request of the pods, or None.
    """

    name: str
    count: int
    min_count: int
    requests: Mapping[str, int]
    limits: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    labels: Mapping[str, str] = field(default_factory=lambda: _NO_LABELS)
    node_selector: Mapping[str, str] = field(default_factory=lambda: _NO_LABELS)
    tolerations: str | None = None
    affinity: str | None = None
    pod_template: str | None = None
    reclaimed: int = 0
    topology: TopologyRequest | None = None

"""Identical pods and their requests: for manifests, traces and policies alike."""

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
    """Pods in groups of `size`; each group must be in one domain of `level`."""

    level: str
    size: int


@fixed()
class TopologyRequest(Value):
    """A pod set's `topologyRequest`.

    Attributes:
        required: the level at which one domain must hold all pods; "" for none.
        preferred: the level at which one domain should hold all pods; "" for none.
        unconstrained: any domains will do.
        slices: layers of groups, from the outermost to the innermost.
        group: pod sets of one group are placed together; "" for none.
    """

    required: str = ""
    preferred: str = ""
    unconstrained: bool = False
    slices: tuple[SliceLayer, ...] = ()
    group: str = ""

    @property
    def explicit(self) -> bool:
        """True if it requests a placement; membership of a group alone does not."""
        return bool(self.required or self.preferred or self.unconstrained or self.slices)


@final
@fixed()
class PodSet(Fixed):
    """Identical pods of a job; jobs with equal requests share one object.

    Attributes:
        name: unique within its job.
        count: how many pods.
        min_count: the least that partial admission may give; `count` if the job does not allow it.
        requests: resource -> amount of one pod (cpu in millicores, the rest in base units).
        limits: the same for limits. They give the QoS class, and Kueue admits nothing that requests more.
        labels, node_selector: as in a Pod.
        tolerations, affinity, pod_template: JSON text as in a Pod, or None.
        reclaimed: pods that had ended before the job arrived and are not in `count`.
        topology: the topology request of its pods; None for none.
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

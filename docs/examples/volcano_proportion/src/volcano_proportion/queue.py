"""Volcano's Queue, `scheduling.volcano.sh/v1beta1`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from harness import Cluster
from harness.models import manifests
from harness.models.manifests import Draft, Fields, Knob, Quota, assumed, modelled  # fmt: skip

KIND = "Queue.scheduling.volcano.sh"


@dataclass(frozen=True, slots=True)
class Queue:
    """A Queue; `capability` limits how much of some resources its pods may hold together."""

    name: str
    weight: int
    capability: Mapping[str, int] = field(default_factory=dict)
    reclaimable: bool = True

    def scaled(self, scale: Fraction) -> "Queue":
        """Return the queue for a cluster whose size is multiplied by `scale`."""
        return replace(self, capability={name: int(most * scale) for name, most in self.capability.items()})

    def quota(self, cluster: Cluster) -> Quota:
        """Return the share of the cluster by weight, up to `capability`; metrics measure jobs against it."""
        weights = sum(each.weight for each in cluster.custom_resources[KIND].values())
        shares = {name: amount * self.weight // weights for name, amount in cluster.capacity.items()}
        limited = {name: min(amount, self.capability.get(name, amount)) for name, amount in shares.items()}
        return Quota(limited, self.weight, limit=self.capability)


def read_queue(fields: Fields, draft: Draft) -> None:
    """Read a Queue; the default weight is 1, as in Volcano's webhook."""
    name, spec = manifests.read_metadata(fields).name, fields.child("spec")
    capability = spec.amounts("capability") if "capability" in spec else {}
    queue = Queue(name, spec.integer("weight", 1, least=1), capability, spec.boolean("reclaimable", True))
    draft.custom_resources(KIND).add(name, queue, fields)


KNOBS = (Knob("weight", "spec.weight", whole=True), Knob("capability", "spec.capability", "resource"))

QUEUE_FIELDS = manifests.Coverage(
    manifests.metadata(),
    manifests.STATUS,
    modelled("spec.weight", "spec.capability{}", "spec.reclaimable"),
    assumed("nothing is reserved for a queue", "spec.guarantee"),
    assumed("proportion decides by weight", "spec.deserved", "spec.parent", "spec.priority", "spec.type"),
    assumed("its pods may run on any node of this cluster", "spec.affinity", "spec.extendClusters"),
)

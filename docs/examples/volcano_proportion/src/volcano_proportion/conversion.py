"""Makes Queues of other quotas, for `harness cluster convert` and for clusters with ClusterQueues."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from harness.base.units import format_amount
from harness.models.cluster import UNLIMITED
from harness.models.manifests import Quota


def weights_of(quotas: Mapping[str, Quota]) -> dict[str, int]:
    """Return weights in thousandths: the largest fraction that a quota has of a resource's guarantees."""
    total = sum((Counter(quota.nominal) for quota in quotas.values()), Counter[str]())
    return {
        name: max(1, *(most * 1000 // total[each] for each, most in quota.nominal.items() if most), 1)
        for name, quota in quotas.items()
    }


def write_queues(quotas: Mapping[str, Quota]) -> Iterator[Mapping[str, Any]]:
    """Yield a Queue for each quota that can have jobs. Its weight follows from its guarantee."""
    leaves = {name: quota for name, quota in quotas.items() if not quota.group}
    for name, weight in weights_of(leaves).items():
        limit = {each: most for each, most in (leaves[name].limit or {}).items() if most < UNLIMITED}
        spec = {"weight": weight, "capability": {each: format_amount(each, limit[each]) for each in limit}}
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        yield {**queue, "metadata": {"name": name}, "spec": spec}

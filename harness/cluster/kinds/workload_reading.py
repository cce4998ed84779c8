"""Adds Kueue's Workloads to a cluster, except variants of other Workloads.

With concurrent admission, a Workload owns a variant of itself for each flavor, and takes over the admission
of one of them. Upstream: `IsVariant` in pkg/workload/concurrentadmission.
"""

from __future__ import annotations

from harness.cluster.draft import Draft
from harness.cluster.kinds.workloads import workload_from
from harness.cluster.yaml.fields import Fields

_VARIANT = (
    "is left out, because it is a variant of another Workload (concurrent admission), and only the other "
    "Workload counts"
)


def read_workload(fields: Fields, draft: Draft) -> None:
    """Read a Workload that is pending, holds quota, or has finished."""
    found = workload_from(fields, draft.pod_sets)
    owners = fields.child("metadata").items("ownerReferences")
    if any(owner.string("kind") == "Workload" for owner in owners):
        draft.warnings.add("Workload", found.key, _VARIANT)
    else:
        draft.workloads.add((found.namespace, found.name), found, fields)

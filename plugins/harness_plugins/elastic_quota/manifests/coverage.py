"""Lists the used and ignored fields of ElasticQuotaTree and of both kinds of ElasticQuota.

The fields of the tree are documented at https://www.alibabacloud.com/help/en/ack/
ack-managed-and-ack-dedicated/user-guide/work-with-capacity-scheduling. Koordinator's labels are defined in
apis/extension/elastic_quota.go in Koordinator.
"""

from __future__ import annotations

from harness.models.cluster import KOORDINATOR
from harness.models.manifests import STATUS, Coverage, Row, assumed, harmless, metadata, modelled, same

QUEUE_RESOURCES = "kube-queue/"
"""The prefix of resources that matter only to ACK's job queue."""

_HOME = "kube-system"  # the namespace in which a tree takes effect

ELASTIC_QUOTA_TREE = Coverage(
    [row for row in metadata(named=False) if row.path != "metadata.namespace"],
    assumed(
        f"harness treats the tree as if it were in {_HOME}, because a tree has an effect only there",
        "metadata.namespace",
        usual=(_HOME,),
    ),
    STATUS,
    modelled("spec.root", "spec.root.(name|namespaces|min{}|max{})"),
    assumed("pods of a quota may run on any node", "spec.root.attributes"),
    assumed(
        "ACK's job queue releases jobs without regard to this resource",
        f"spec.root.(min|max){{{QUEUE_RESOURCES}*}}",
    ),
    same("spec.root.children[]", "spec.root"),
)

_LABELS = ("parent", "is-parent", "tree-id", "allow-lent-resource", "is-root", "ignore-default-tree")
_ANNOTATIONS = ("namespaces", "shared-weight", "total-resource")
_NOTED = (
    "allocated", "allow-force-update", "child-request", "name", "non-preemptible-request",
    "non-preemptible-used", "profile", "request", "resource-keys", "runtime", "unschedulable-resource",
)  # fmt: skip

_KOORDINATORS: list[Row] = [
    *modelled(
        *(f"metadata.labels{{{KOORDINATOR}{name}}}" for name in _LABELS),
        *(f"metadata.annotations{{{KOORDINATOR}{name}}}" for name in _ANNOTATIONS),
    ),
    *(
        row
        for part in ("annotations", "labels")
        for row in (
            *harmless(
                "Koordinator writes it, or only its webhook reads it",
                *(f"metadata.{part}{{{KOORDINATOR}{name}}}" for name in _NOTED),
            ),
            *assumed("harness ignores this annotation or label", f"metadata.{part}{{{KOORDINATOR}*}}"),
        )
    ),
]

ELASTIC_QUOTA = Coverage(
    metadata(namespaced=True), STATUS, _KOORDINATORS, modelled("spec.min{}", "spec.max{}")
)

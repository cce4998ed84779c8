"""Writes manifests, so that an assumed cluster can be saved, edited and loaded again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from harness.base.units import format_amount, format_amounts
from harness.cluster.model import Cluster, ResourceQuota
from harness.cluster.yaml.scalars import Word, reads_as_text

KUEUE = "kueue.x-k8s.io/v1beta2"

_NEEDS_ESCAPES = r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe]"
"""The pattern is compiled when the first text is written, because compiling it takes longer than all imports
of this module.
"""


def manifest_of(
    version: str, kind: str, name: str, spec: Mapping[str, Any] | None, namespace: str = ""
) -> dict[str, Any]:
    """Returns the manifest of an object. If `spec` is None, the manifest has no field `spec`."""
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    head = {"apiVersion": version, "kind": kind, "metadata": metadata}
    return head if spec is None else {**head, "spec": spec}


def flavor_manifest(name: str, topology: str = "") -> dict[str, Any]:
    """Returns a ResourceFlavor without node labels, which represents every node."""
    return manifest_of(KUEUE, "ResourceFlavor", name, {"topologyName": topology} if topology else None)


def topology_manifest(name: str, levels: Iterable[str]) -> dict[str, Any]:
    """Returns a Topology with the given levels, from the coarsest to the finest."""
    return manifest_of(KUEUE, "Topology", name, {"levels": [{"nodeLabel": level} for level in levels]})


def cluster_queue_manifest(
    name: str,
    flavor: str,
    quotas: Mapping[str, int | ResourceQuota],
    *,
    cohort: str = "",
    preemption: Mapping[str, str],
) -> dict[str, Any]:
    """Returns a ClusterQueue that is open to all namespaces and has quotas in one flavor.

    `quotas` maps each resource to its quota, or to the nominal quantity of a quota without limits. The queue
    lends and borrows in `cohort`, or nowhere if that is "". `preemption` has the fields of `spec.preemption`.
    """
    spec: dict[str, Any] = {"cohortName": cohort} if cohort else {}
    spec["namespaceSelector"] = {}
    spec["preemption"] = dict(preemption)
    if quotas:
        spec["resourceGroups"] = [_resource_group(flavor, quotas)]
    return manifest_of(KUEUE, "ClusterQueue", name, spec)


def cohort_manifest(
    name: str, parent: str, flavor: str, quotas: Mapping[str, int | ResourceQuota]
) -> dict[str, Any]:
    """Returns a Cohort that has its own quotas in one flavor. The `parent` may be ""."""
    spec: dict[str, Any] = {"parentName": parent} if parent else {}
    if quotas:
        spec["resourceGroups"] = [_resource_group(flavor, quotas)]
    return manifest_of(KUEUE, "Cohort", name, spec or None)


def _resource_group(flavor: str, quotas: Mapping[str, int | ResourceQuota]) -> dict[str, Any]:
    resources = []
    for name, quota in quotas.items():
        nominal = quota.nominal if isinstance(quota, ResourceQuota) else quota
        written = {"name": name, "nominalQuota": format_amount(name, nominal)}
        if isinstance(quota, ResourceQuota):
            limits = {"borrowingLimit": quota.borrowing_limit, "lendingLimit": quota.lending_limit}
            written |= {key: format_amount(name, limit) for key, limit in limits.items() if limit is not None}
        resources.append(written)
    return {"coveredResources": list(quotas), "flavors": [{"name": flavor, "resources": resources}]}


def local_queue_manifest(namespace: str, cluster_queue: str) -> dict[str, Any]:
    """Returns a LocalQueue that has the same name as its ClusterQueue."""
    return manifest_of(KUEUE, "LocalQueue", cluster_queue, {"clusterQueue": cluster_queue}, namespace)


def quota_node(
    name: str,
    least: Mapping[str, int],
    most: Mapping[str, int],
    children: Sequence[Mapping[str, Any]] = (),
    namespaces: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns a node of an ElasticQuotaTree. Its `min` and `max` map resources to quantities.

    `children` are the nodes below this node.
    """
    node: dict[str, Any] = {"name": name, "min": format_amounts(least), "max": format_amounts(most)}
    return node | {
        key: list(items) for key, items in (("namespaces", namespaces), ("children", children)) if items
    }


def elastic_quota_tree_manifest(root: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the ElasticQuotaTree of a cluster. `quota_node` creates its `root`."""
    version, spec = "scheduling.sigs.k8s.io/v1beta1", {"root": dict(root)}
    return manifest_of(version, "ElasticQuotaTree", "elastic-quota-tree", spec, "kube-system")


def node_pool_manifest(
    name: str, count: int, allocatable: Mapping[str, int], labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Returns a NodePool of equal nodes, which all have the quantities in `allocatable`."""
    template: dict[str, Any] = {"metadata": {"labels": dict(labels)}} if labels else {}
    template["allocatable"] = format_amounts(allocatable)
    return manifest_of("harness/v1", "NodePool", name, {"count": count, "template": template})


def node_manifest(
    name: str, allocatable: Mapping[str, int], labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Returns a Node that an API server accepts. All of its capacity is allocatable."""
    amounts = format_amounts(allocatable)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**(labels or {}), "kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": dict(amounts)},
    }


def namespace_manifest(name: str) -> dict[str, Any]:
    """Returns a Namespace without labels."""
    return manifest_of("v1", "Namespace", name, None)


def to_manifests(cluster: Cluster) -> list[dict[str, Any]]:
    """Returns the documents that a cluster was made from, whether harness read or assumed them."""
    return [dict(manifest) for manifest in cluster.manifests]


def dump_yaml(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Returns manifests as a YAML stream, with one document for each manifest.

    `load_cluster` and kubectl read the same values from the stream.
    """
    return yaml.dump_all(
        [dict(manifest) for manifest in manifests],
        Dumper=_Dumper,
        sort_keys=False,
        explicit_start=True,
        allow_unicode=True,
        width=110,
    )


class _Dumper(yaml.SafeDumper):
    """Quotes every text that YAML 1.1 or YAML 1.2 would read as a different value."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write shared values in full each time, because anchors are hard to edit."""
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = '"' if re.search(_NEEDS_ESCAPES, text) else None if reads_as_text(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_word(dumper: _Dumper, word: Word) -> yaml.ScalarNode:
    """Write a word unchanged, so that it is read back as a text or a boolean."""
    kind = "str" if len(word) == 1 else "bool"  # the type that PyYAML infers, so that no tag is written
    return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", str(word))


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(Word, _represent_word)

"""Writes manifests, so that an assumed cluster can be saved, edited and given back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from harness.cluster.documents import reads_as_text
from harness.units import format_amount

if TYPE_CHECKING:
    from harness.cluster.model import Cluster

KUEUE = "kueue.x-k8s.io/v1beta2"

_NEEDS_ESCAPES = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe]")


def flavor_manifest(name: str, node_labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A ResourceFlavor; without node labels it stands for every node."""
    flavor: dict[str, Any] = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}}
    if node_labels:
        flavor["spec"] = {"nodeLabels": dict(node_labels)}
    return flavor


def cluster_queue_manifest(
    name: str, flavor: str, nominal: Mapping[str, int], *, cohort: str = "", preemption: Mapping[str, str]
) -> dict[str, Any]:
    """A ClusterQueue that is open to every namespace, with quotas in one flavor.

    Args:
        name: the queue.
        flavor: the flavor of all its quotas.
        nominal: resource -> amount.
        cohort: whom it lends to and borrows from; "" for nobody.
        preemption: the fields of `spec.preemption`.
    """
    spec: dict[str, Any] = {"cohortName": cohort} if cohort else {}
    spec["namespaceSelector"] = {}
    spec["preemption"] = dict(preemption)
    if nominal:
        resources = [
            {"name": resource, "nominalQuota": format_amount(resource, amount)}
            for resource, amount in nominal.items()
        ]
        group = {"coveredResources": list(nominal), "flavors": [{"name": flavor, "resources": resources}]}
        spec["resourceGroups"] = [group]
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def node_pool_manifest(
    name: str, count: int, allocatable: Mapping[str, int], labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A NodePool of equal nodes; `allocatable` is resource -> amount of one of them."""
    template: dict[str, Any] = {"metadata": {"labels": dict(labels)}} if labels else {}
    template["allocatable"] = {
        resource: format_amount(resource, amount) for resource, amount in allocatable.items()
    }
    return {
        "apiVersion": "harness/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"count": count, "template": template},
    }


def to_manifests(cluster: Cluster) -> list[dict[str, Any]]:
    """The documents that a cluster was made of, read or assumed."""
    return [dict(manifest) for manifest in cluster.manifests]


def dump_yaml(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Manifests as YAML of several documents; `load_cluster` and kubectl read the same values back."""
    return yaml.dump_all(
        [dict(manifest) for manifest in manifests],
        Dumper=_Dumper,
        sort_keys=False,
        explicit_start=True,
        allow_unicode=True,
        width=110,
    )


class _Dumper(yaml.SafeDumper):
    """Quotes every text that a plain scalar would turn into something else, for YAML 1.1 and 1.2 alike."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write shared values out each time; anchors are hard to edit."""
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = '"' if _NEEDS_ESCAPES.search(text) else None if reads_as_text(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)

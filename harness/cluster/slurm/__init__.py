"""A Slurm cluster as Kubernetes manifests: nodes, priority classes and quotas, and what these cannot say.

Slurm's own words decide: CPUs are threads, amounts of memory are MiB, shares divide what there is.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from harness.cluster.draft import Warnings


class FromSlurm(NamedTuple):
    """Manifests of a cluster, and what of Slurm's they do not say, in sentences."""

    manifests: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]


def from_slurm(nodes: Path, *, qos: Path | None = None, associations: Path | None = None) -> FromSlurm:
    """Manifests of a Slurm cluster.

    Args:
        nodes: what `scontrol show nodes` printed.
        qos: what `sacctmgr -P show qos` printed, for priority classes.
        associations: what `sacctmgr -P show assoc tree` printed, for quotas of accounts.

    Raises:
        ClusterError: a file that cannot be read or is malformed; every fault is named.
    """
    # Plugins read priority classes as Slurm prints them, and need nothing else of this.
    from harness.cluster.slurm.accounts import quota_manifests, read_accounts
    from harness.cluster.slurm.nodes import read_nodes
    from harness.cluster.slurm.qos import priority_classes, read_qos

    notes = Warnings()
    found = read_nodes(nodes, notes)
    manifests = [manifest for manifest, _ in found]
    if qos is not None:
        manifests += priority_classes(read_qos(qos), notes)
    if associations is not None:
        capacity: Counter[str] = Counter()
        for _, amounts in found:
            capacity.update(amounts)
        usable = {resource: amount for resource, amount in sorted(capacity.items()) if amount}
        manifests += quota_manifests(read_accounts(associations, notes), usable, notes)
    return FromSlurm(tuple(manifests), notes.sentences())

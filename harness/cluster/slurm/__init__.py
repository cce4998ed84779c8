"""Converts a Slurm cluster to Kubernetes manifests with nodes, priority classes and quotas.

Notes name the settings that manifests can't express. As Slurm defines them, CPUs are threads, memory is in
MiB, and shares divide the capacity.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from harness.cluster.draft import Warnings


class FromSlurm(NamedTuple):
    """The manifests of a cluster, and sentences about Slurm settings that manifests can't express."""

    manifests: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]


def from_slurm(nodes: Path, *, qos: Path | None = None, associations: Path | None = None) -> FromSlurm:
    """Returns the manifests for a Slurm cluster.

    Args:
        nodes: the output of `scontrol show nodes`.
        qos: the output of `sacctmgr -P show qos`, for priority classes.
        associations: the output of `sacctmgr -P show assoc tree`, for the quotas of accounts.

    Raises:
        ClusterError: a file can't be read or is malformed. The error lists every fault.
    """
    # Plugins that read Slurm's priority classes import this module, but they don't need the rest of the
    # package.
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

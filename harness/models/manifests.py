"""What reads kinds of manifests: fields with their faults, the draft of a cluster, what is said of fields.

A plugin brings a kind with `harness_register_kinds`; see `RegisterKind`.
"""

from __future__ import annotations

from harness.cluster.coverage.common import STATUS, metadata
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, harmless, modelled, same
from harness.cluster.draft import Draft, Metadata, Objects, read_metadata
from harness.cluster.fields import Fields
from harness.cluster.kind import RegisterKind
from harness.cluster.kinds import Kinds
from harness.cluster.load import cluster_from, load_cluster

__all__ = [
    "STATUS",
    "Coverage",
    "Draft",
    "Fields",
    "Kinds",
    "Metadata",
    "Objects",
    "RegisterKind",
    "Row",
    "assumed",
    "cluster_from",
    "harmless",
    "load_cluster",
    "metadata",
    "modelled",
    "read_metadata",
    "same",
]

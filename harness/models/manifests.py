"""Provides the helpers with which plugins read manifests.

They read fields and collect faults, build the draft of a cluster, and declare the fields that are modelled. A
plugin adds a kind of manifests with `harness_register_kinds`. See `KindSpec`.
"""

from harness.cluster.changes.edits import Instant
from harness.cluster.changes.over_time import nodes_replaced, replaced
from harness.cluster.convert import convert
from harness.cluster.coverage.common import STATUS, metadata
from harness.cluster.coverage.kueue import WORKLOAD
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, harmless, modelled, same
from harness.cluster.draft import NOT_MODELLED, NOT_READ, Draft, Metadata, Objects, read_metadata
from harness.cluster.kinds.kind import Kind, Knob
from harness.cluster.kinds.pod_reading import manifest_of, pod_spec_of, read_pod, template_of
from harness.cluster.kinds.quotas import Quota
from harness.cluster.kinds.selectors import read_requirement, read_toleration
from harness.cluster.kinds.table import Kinds
from harness.cluster.kinds.topology import annotated_topology
from harness.cluster.kinds.workloads import Condition, read_pod_set, read_time, workload_from
from harness.cluster.load import cluster_from, load_cluster, unpacked
from harness.cluster.manifests import dump_yaml, node_pool_manifest
from harness.cluster.slurm.qos import read_qos
from harness.cluster.yaml.documents import Document, read_documents
from harness.cluster.yaml.fields import Fields, shown
from harness.plugins.kind import KindSpec

__all__ = [
    "NOT_MODELLED", "NOT_READ", "STATUS", "WORKLOAD", "Condition", "Coverage", "Document", "Draft", "Fields",
    "Instant", "Kind", "KindSpec", "Kinds", "Knob", "Metadata", "Objects", "Quota", "Row",
    "annotated_topology", "assumed",
    "cluster_from", "convert", "dump_yaml", "harmless", "load_cluster", "manifest_of", "metadata", "modelled",
    "node_pool_manifest", "nodes_replaced", "pod_spec_of", "read_documents", "read_metadata", "read_pod",
    "read_pod_set", "read_qos", "read_requirement", "read_time", "read_toleration", "replaced", "same",
    "shown", "template_of", "unpacked", "workload_from",
]  # fmt: skip

"""Makes the bundled Philly trace and its cluster: `traces/philly.parquet` and `traces/philly.cluster.yaml`.

    python scripts/bundle_philly.py philly.csv.gz philly_vc.csv

`philly.csv.gz` is the extract of Microsoft's Philly trace (CC-BY-4.0) with the columns `timestamp, duration,
num_gpus, gpu_time, cluster`. `philly_vc.csv` contains the number of nodes of each virtual cluster.
`traces/README.md` names the sources of these files and the changes.

The size of the cluster is chosen so that jobs queue, but the queue does not grow without bound. All nodes of
the virtual clusters together have 2,816 GPUs, assuming 8 per node. The jobs of the extract request only 374
GPUs on average, so the cluster is scaled to 80 nodes with 8 GPUs each. The quotas of virtual clusters are
proportional to their node counts, rounded to whole GPUs by the largest remainder method. If the file does not
name a virtual cluster, that cluster has no quota of its own and borrows.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import harness.plugins
from harness.cluster.manifests import cluster_queue_manifest, dump_yaml, flavor_manifest, node_pool_manifest
from harness.cluster.shares import largest_remainder
from harness.trace.schema import SOURCE_KEY
from harness.trace.trace import open_trace
from harness.trace.write import write_trace

NODES = 80
GPUS_PER_NODE = 8
GPU = "nvidia.com/gpu"
COHORT = "philly"
FLAVOR = "gpu"
PREEMPTION = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}

SOURCE = (
    "Microsoft Philly, github.com/msr-fiddle/philly-traces commit 29a1b87; jobs as extracted in "
    "github.com/siasosp23/artifacts commit aaf7a0d, sia-simulator/traces/philly.csv"
)
_ABOUT = """\
# A cluster for philly.parquet, made by scripts/bundle_philly.py: a pool of equal nodes on which the trace
# queues without drowning, and one ClusterQueue a virtual cluster, all in one cohort. Quotas are in proportion
# to the virtual clusters' node counts (philly_vc.csv of HeliosArtifact, commit bdaae10), scaled to the GPUs
# of the pool; virtual clusters without a node count have a quota of 0 and borrow. The size of the pool and
# the preemption policies are assumptions. The trace is Microsoft's, CC-BY-4.0; see README.md.
"""


def manifests(queues: list[str], nodes: Mapping[str, int]) -> str:
    """Returns the cluster as YAML. The queues with the largest quotas come first."""
    quotas = largest_remainder(NODES * GPUS_PER_NODE, nodes)
    names = sorted(queues, key=lambda name: (-quotas.get(name, 0), name))
    documents = [
        node_pool_manifest("gpu-node", NODES, {GPU: GPUS_PER_NODE}),
        flavor_manifest(FLAVOR),
        *(
            cluster_queue_manifest(
                name, FLAVOR, {GPU: quotas.get(name, 0)}, cohort=COHORT, preemption=PREEMPTION
            )
            for name in names
        ),
    ]
    return _ABOUT + dump_yaml(documents)


def main() -> None:
    """Writes both files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jobs", type=Path, help="philly.csv.gz")
    parser.add_argument("virtual_clusters", type=Path, help="philly_vc.csv")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent.parent / "traces")
    given = parser.parse_args()

    trace = open_trace(
        given.jobs,
        harness.plugins.load(only=["readers"]),
        reader="philly",
        options={"gpus_per_node": GPUS_PER_NODE},
    )
    write_trace(
        replace(trace, metadata={**trace.metadata, SOURCE_KEY: SOURCE}), given.output / "philly.parquet"
    )
    with given.virtual_clusters.open(newline="") as file:
        nodes = {row["vc"]: int(row["node num"]) for row in csv.DictReader(file)}
    queues = trace.frame["queue"].unique().to_list()
    (given.output / "philly.cluster.yaml").write_text(manifests(queues, nodes), encoding="utf-8")


if __name__ == "__main__":
    main()

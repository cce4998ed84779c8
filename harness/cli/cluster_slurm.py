"""`harness cluster from-slurm` makes manifests from the output of a Slurm cluster."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.output import deliver_manifests, output_file, spare
from harness.cli.screen import tell


@click.command(
    "from-slurm",
    epilog="""\b
Examples:
  harness cluster from-slurm nodes.txt
  harness cluster from-slurm nodes.txt --qos qos.txt --assoc assoc.txt -o slurm.cluster.yaml""",
)
@click.argument("nodes", type=click.Path(path_type=Path))
@click.option(
    "--qos", type=click.Path(path_type=Path), metavar="FILE",
    help="Output of sacctmgr -P show qos, for priority classes.",
)  # fmt: skip
@click.option(
    "--assoc", type=click.Path(path_type=Path), metavar="FILE",
    help="Output of sacctmgr -P show assoc tree, for quotas of accounts.",
)  # fmt: skip
@output_file
def from_slurm(nodes: Path, qos: Path | None, assoc: Path | None, output: Path | None) -> None:
    """Write manifests of a Slurm cluster: Nodes, PriorityClasses of its QOS, ClusterQueues of its accounts.

    NODES is a file with the output of scontrol show nodes. stderr names the settings that influence Slurm but
    have no counterpart in the manifests.
    """
    from harness.cluster.load import cluster_from
    from harness.cluster.slurm import from_slurm as converted

    for each in (nodes, qos, assoc):
        if output is not None and each is not None:
            spare(each, output)
    made = converted(nodes, qos=qos, associations=assoc)
    cluster_from(made.manifests, str(nodes))
    for note in made.notes:
        tell(f"not in the manifests: {note}")
    if assoc is None:
        tell("note: without --assoc there are no queues, but kueue-classic and fairsharing need queues")
    deliver_manifests(made.manifests, output)

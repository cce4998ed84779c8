"""Converts node lists of openb, PAI, MetaCentrum and Alibaba's spot GPU trace to manifests for `--cluster`.

python -m harness_plugins.readers.machines openb_node_list_all_node.csv.gz -o openb.cluster.yaml
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import click

from harness.base.errors import Fault, HarnessError, OptionError, TraceError
from harness.base.units import format_amount
from harness.models.manifests import dump_yaml, node_pool_manifest
from harness.readers.cells import amount, number, text, whole
from harness.readers.counts import counted
from harness.readers.delimited import open_table, typed_rows
from harness.readers.names import GPU, GPU_COUNT, MACHINE, MILLI_GPU, MODEL
from harness.readers.sniff import has_columns
from harness.readers.source import contents, lines_of, shown
from harness_plugins.readers.sniff import OPENB_NODE_COLUMNS, SPOT_NODE_COLUMNS

_PODS_OF_A_NODE = 110
_MOST_GPUS = 1_000
_MOST_NODES = 1_000_000
_SNIFFED = 4096
_KIB, _MIB = 2**10, 2**20


@dataclass(frozen=True, slots=True)
class Machine:
    """A group of equal nodes.

    Attributes:
        name: the name of the node, or of the group.
        allocatable: the allocatable amount of each resource on one node.
    """

    name: str
    nodes: int
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)

    def manifest(self, nodes: int) -> dict[str, Any]:
        """Returns a NodePool with the given number of nodes or, for a group of one node, a Node."""
        allocatable = {**self.allocatable, "pods": _PODS_OF_A_NODE}
        if self.nodes > 1:
            return node_pool_manifest(self.name, nodes, allocatable, self.labels)
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {"kubernetes.io/hostname": self.name, **self.labels}},
            "status": {
                "allocatable": {
                    resource: format_amount(resource, size) for resource, size in allocatable.items()
                }
            },
        }


def read_machines(path: Path, *, gpu: str = "milli") -> list[Machine]:
    """Reads the machines of a node list, in the order of the list.

    Args:
        path: the list, in any known format.
        gpu: how the trace counts shares of GPUs: `milli`, `count`, or `devices`. `devices` is like `milli`,
            but each share comes from a single GPU. Only the traces of openb and PAI have shares.

    Raises:
        TraceError: the format of the list is unknown, or lines are malformed. The error lists all faults.
    """
    if path.name.startswith("pai_machine_spec"):
        return _pai(path, gpu)
    head = contents(path)[:_SNIFFED]
    if has_columns(head, OPENB_NODE_COLUMNS):
        return _openb(path, gpu)
    if has_columns(head, SPOT_NODE_COLUMNS):
        return _spot(path)
    first = head.splitlines()[0]
    if first.count(b"\t") == len(_METACENTRUM) - 1:
        return _metacentrum(path)
    known = " or ".join(",".join(columns) for columns in (OPENB_NODE_COLUMNS, SPOT_NODE_COLUMNS))
    what = f"is {shown(first.decode('utf-8', 'replace'))}, not {known}, nor 6 values separated by tabs"
    raise TraceError(str(path), [Fault("line 1", what)])


def node_manifests(path: Path, *, gpu: str = "milli", keep: int | None = None) -> list[dict[str, Any]]:
    """Returns the nodes of a node list as Kubernetes manifests.

    Args:
        path: the list.
        gpu: see `read_machines`.
        keep: the number of nodes to keep. These nodes are evenly spaced over the list, which preserves the
            mix of nodes. None keeps all nodes.

    Raises:
        TraceError: lines are malformed. The error lists all faults.
        OptionError: the list has fewer nodes than `keep`.
    """
    machines = read_machines(path, gpu=gpu)
    places = [place for place, machine in enumerate(machines) for _ in range(machine.nodes)]
    if keep is not None:
        if not 1 <= keep <= len(places):
            raise OptionError(f"{counted(keep, 'node')} cannot be kept: {path} has {len(places):,}")
        places = [places[number * len(places) // keep] for number in range(keep)]
    return [machines[place].manifest(count) for place, count in sorted(Counter(places).items())]


def _openb(path: Path, gpu: str) -> list[Machine]:
    fields = [
        text("sn"), whole("cpu_milli"), amount("memory_mib", _MIB), whole("gpu", most=_MOST_GPUS),
        text("model").or_empty(),
    ]  # fmt: skip
    return [
        _machine(sn, cpu, memory, gpus, model, gpu)
        for sn, cpu, memory, gpus, model in open_table(path).typed(fields).iter_rows()
    ]


def _spot(path: Path) -> list[Machine]:
    fields = [
        text("node_name"),
        amount("cpu_num", 1000),
        whole("gpu_capacity_num", most=_MOST_GPUS),
        text("gpu_model"),
    ]
    return [
        _machine(name, cpu, 0, gpus, model, "count")
        for name, cpu, gpus, model in open_table(path).typed(fields).iter_rows()
    ]


def _pai(path: Path, gpu: str) -> list[Machine]:
    """Reads the machines of PAI. The file has no header line, so the caller recognises it by its name."""
    fields = [
        text("machine"),
        text("gpu_type").or_empty(),
        amount("cap_cpu", 1000),
        amount("cap_mem", 2**30),
        whole("cap_gpu", most=_MOST_GPUS),
    ]
    rows = open_table(path, [field.name for field in fields]).typed(fields)
    return [
        _machine(name, cpu, memory, gpus, model if gpus else "", gpu)
        for name, model, cpu, memory, gpus in rows.iter_rows()
    ]


def _machine(name: str, cpu: int, memory: int, gpus: int, model: str, gpu: str) -> Machine:
    unit, resource = (1, GPU) if gpu == "count" else (1000, MILLI_GPU)
    amounts = {"cpu": cpu, "memory": memory, resource: unit * gpus}
    allocatable = {resource: size for resource, size in amounts.items() if size or resource == "cpu"}
    labels = {MODEL: model} if model else {}
    if gpu == "devices" and gpus:
        labels[GPU_COUNT] = str(gpus)
    return Machine(name, 1, allocatable, labels)


_METACENTRUM = (
    whole("number"), text("name"), whole("nodes", 1, _MOST_NODES), whole("processors", 1, _MOST_NODES),
    number("speed"), amount("memory", _KIB),
)  # fmt: skip


def _metacentrum(path: Path) -> list[Machine]:
    """Reads a tab-separated list without a header line.

    The columns are a number, a name, the number of nodes, and the processors, speed and KiB of each node.
    """
    names = [field.name for field in _METACENTRUM]
    rows = typed_rows(path, lines_of(path, contents(path)), names, _METACENTRUM, delimiter="\t", quoted=False)
    return [
        Machine(name, nodes, {"cpu": processors * 1000, "memory": memory}, {MACHINE: name})
        for _, name, nodes, processors, _, memory in rows.iter_rows()
    ]


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--keep", type=click.IntRange(1), help="Keep this many nodes, evenly spaced over the list.")
@click.option(
    "--gpu",
    type=click.Choice(["milli", "count", "devices"]),
    default="milli",
    show_default=True,
    help="How to count GPUs: in thousandths (milli), as whole GPUs (count), or in thousandths where each "
    "share is on a single GPU (devices).",
)
@click.option("-o", "--output", type=click.File("w", encoding="utf-8"), default="-", help="Where to write.")
def main(file: Path, keep: int | None, gpu: str, output: IO[str]) -> None:
    """Converts the node list of a trace to Kubernetes manifests."""
    try:
        manifests = dump_yaml(node_manifests(file, gpu=gpu, keep=keep))
    except HarnessError as error:
        click.echo(f"Error: {error.message}", err=True)
        sys.exit(error.exit_code)
    click.echo(manifests, file=output, nl=False)


if __name__ == "__main__":
    main()

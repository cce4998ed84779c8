"""`harness cluster init` makes initial manifests for a trace."""

from __future__ import annotations

import csv
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import ClusterError, InputError, OptionError
from harness.base.options import factor
from harness.base.text import printable
from harness.base.units import exact_number, to_amount
from harness.cli.calibration import calibrated
from harness.cli.output import output_file, spare, write_output
from harness.cli.screen import put
from harness.cli.trace_file import from_file, open_file
from harness.cluster.yaml.sources import text_of

if TYPE_CHECKING:
    from harness.trace.calibration import Calibration

_LABEL = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,50}[A-Za-z0-9])?")
"""The pattern for the name of a node label. Names must be short enough for numbered values."""


@click.command(
    epilog="""\b
Examples:
  harness cluster init traces/philly.parquet -o philly.yaml
  harness cluster init traces/philly.parquet --quota proportional --node nvidia.com/gpu=8
  harness cluster init traces/philly.parquet --topology rack=8,block=4 -o racks.yaml"""
)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--quota", default="equal", show_default=True, metavar="equal|proportional|FILE",
    help="How to divide quota among queues. A CSV file has a header, then a queue and its weight per row.",
)  # fmt: skip
@click.option(
    "--target-load", metavar="LOAD",
    help="Mean demand divided by capacity, for a trace that does not state the size of its machine. "
    "[default: the recorded peak usage is the capacity; without a record, 0.8]",
)  # fmt: skip
@click.option(
    "--node", metavar="RESOURCE=AMOUNT,...",
    help="Capacity of one node. [default: enough for the largest pod]",
)  # fmt: skip
@click.option(
    "--topology", metavar="LEVEL=SIZE,...",
    help="Levels of a Topology as node labels, the finest first. rack=8,block=4 puts 8 nodes in a rack "
    "and 4 racks in a block.",
)  # fmt: skip
@click.option(
    "--node-pool", is_flag=True, help="Write NodePools, a kind that only harness knows, instead of Nodes."
)
@output_file
@from_file
@calibrated(cluster=False)
@click.pass_context
def init(
    ctx: click.Context,
    trace: Path,
    quota: str,
    target_load: str | None,
    node: str | None,
    topology: str | None,
    node_pool: bool,
    output: Path | None,
    reader: str | None,
    settings: tuple[str, ...],
    calibration: Calibration,
) -> None:
    """Write manifests to start from: nodes, a cohort with a ClusterQueue per tenant, and elastic quotas.

    A real cluster would accept the manifests. Pass them to a replay with --cluster. If you use options that
    change the trace, give the same options to the replay.
    """
    from harness.cluster.manifests import dump_yaml
    from harness.trace.starter import start

    if output is not None:
        spare(trace, output, "trace")
    load = None
    if target_load is not None:
        load = factor("the load cannot be", target_load, hint="0.8 keeps 80 % of the cluster busy on average")
    shape = None if node is None else _node(node)
    weights = quota if quota in ("equal", "proportional") else _weights(Path(quota))
    opened = calibration.of_trace(open_file(ctx, trace, reader, settings))
    levels = None if topology is None else _levels(topology)
    made = start(opened, load=load, node=shape, weights=weights, topology=levels)
    lines = [f"A cluster to start from for {trace.name}, made by harness cluster init.", *made.why]
    lines += [
        f"The trace was changed: --{name.replace('_', '-')} {text}"
        for name, text in opened.calibration.items()
    ]
    text = "".join(f"# {printable(line)}\n" for line in lines) + dump_yaml(made.manifests(pools=node_pool))
    if output is None:
        put(text)
        return
    write_output(output, text)
    click.echo("\n".join(printable(line) for line in (f"{output} written", *made.why)))


def _node(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in text.split(","):
        resource, equals, amount = part.strip().partition("=")
        if not (resource and equals) or resource in found:
            raise OptionError(
                f"--node {text!r} is not understood", hint="write cpu=48,memory=512Gi,nvidia.com/gpu=8"
            )
        try:
            found[resource] = to_amount(resource, amount)
        except InputError as error:
            raise OptionError(f"--node {resource}: {error}") from error
        if found[resource] <= 0:
            raise OptionError(f"--node {resource}: a node has more than {amount}")
    return found


def _levels(text: str) -> dict[str, int]:
    """Maps each level, the finest first, to the number of next-finer domains in each of its domains."""
    from harness.cluster.kinds.core import HOSTNAME

    found: dict[str, int] = {}
    for part in text.split(","):
        level, equals, size = (piece.strip() for piece in part.partition("="))
        if not (_LABEL.fullmatch(level) and equals) or level in found or level == HOSTNAME:
            raise OptionError(
                f"--topology {text!r} is not understood",
                hint="write levels, the finest first: rack=8,block=4; harness adds the level of host names",
            )
        if not (size.isascii() and size.isdecimal() and int(size[:9]) >= 1 and len(size) <= 6):
            raise OptionError(f"--topology {level}: {size!r} is not a number from 1 to 999999")
        found[level] = int(size)
    return found


def _weights(path: Path) -> dict[str, Fraction]:
    """Returns the weight of each queue from the first two columns of a CSV file with a header."""
    try:
        rows = list(csv.reader(text_of(path, "give equal, proportional or a CSV file").splitlines()))
    except ClusterError as error:
        raise OptionError(f"--quota {error.message}", hint=error.hint) from error
    found: dict[str, Fraction] = {}
    for number, row in enumerate(rows[1:], 2):
        if not any(row):
            continue
        try:
            name, weight = row[0], exact_number(row[1])
        except (IndexError, ValueError):
            name, weight = "", Fraction(-1)
        if not name or weight < 0 or name in found:
            raise OptionError(
                f"--quota {path}, line {number}: {','.join(row)!r} is not a queue with its weight"
            )
        found[name] = weight
    return found

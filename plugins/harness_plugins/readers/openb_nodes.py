"""The nodes of an openb node list as manifests for `--cluster`.

python -m harness_plugins.readers.openb_nodes openb_node_list_all_node.csv.gz -o openb.cluster.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

import click

from harness.cluster.manifests import dump_yaml
from harness.errors import HarnessError
from harness_plugins.readers.openb import node_manifests


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--keep", type=click.IntRange(1), help="Keep this many nodes, evenly spaced over the list.")
@click.option(
    "--gpu", type=click.Choice(["milli", "count"]), default="milli", show_default=True, help="As for pods."
)
@click.option("-o", "--output", type=click.File("w", encoding="utf-8"), default="-", help="Where to write.")
def main(file: Path, keep: int | None, gpu: str, output: IO[str]) -> None:
    """Turn a node list of Alibaba's openb into Kubernetes manifests."""
    try:
        text = dump_yaml(node_manifests(file, gpu=gpu, keep=keep))
    except HarnessError as error:
        click.echo(f"Error: {error.message}", err=True)
        sys.exit(error.exit_code)
    click.echo(text, file=output, nl=False)


if __name__ == "__main__":
    main()

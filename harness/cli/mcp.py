"""`harness mcp`: answers questions as tools of the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.errors import OptionError


@click.command(
    epilog="""\b
Examples:
  harness mcp dumps results
  harness mcp dumps --seconds 30 --memory 1Gi"""
)
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER...",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True, metavar="N",
    help="How long a question may take.",
)  # fmt: skip
@click.option(
    "--memory", default="2Gi", show_default=True, metavar="AMOUNT",
    help="How much memory the process of a question may have.",
)  # fmt: skip
def mcp(folders: tuple[Path, ...], seconds: float, memory: str) -> None:
    """Answer questions of AI assistants over stdio: simulate, forecast, what_if, explain, compare, list_runs.

    Only files below the folders are read. Each question is answered by a process of its own, which is ended
    when its time is over.
    """
    from harness.base.errors import InputError
    from harness.base.units import parse_quantity, round_up
    from harness.cli.tool_server.server import Bounds, serve

    try:
        most = round_up("memory", parse_quantity(memory))
    except InputError as error:
        raise OptionError(f"memory: {error}") from error
    serve(Bounds(folders, seconds, most))

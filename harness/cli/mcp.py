"""`harness mcp` answers questions through tools of the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.errors import InputError, OptionError
from harness.base.units import parse_quantity, round_up


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
    help="Time limit of a question, in seconds.",
)  # fmt: skip
@click.option(
    "--memory", default="2Gi", show_default=True, metavar="AMOUNT",
    help="Memory limit of the process that answers a question.",
)  # fmt: skip
def mcp(folders: tuple[Path, ...], seconds: float, memory: str) -> None:
    """Serve tools to AI assistants over stdio: simulate, forecast, what_if, explain, compare, list_runs.

    The tools read only files below the given folders. A separate process answers each question, and it is
    killed at the time limit.
    """
    from harness.cli.tool_server.server import Bounds, serve

    try:
        most = round_up("memory", parse_quantity(memory))
    except InputError as error:
        raise OptionError(f"memory: {error}") from error
    serve(Bounds(folders, seconds, most))

"""`harness demo` replays a bundled trace as a first impression of harness."""

from __future__ import annotations

import json
from pathlib import Path

import click
from click.core import ParameterSource

from harness.base.text import aligned
from harness.cli.replay import replay
from harness.cli.run_options import kept
from harness.cli.screen import terminal_width
from harness.trace.bundled import BUNDLED, bundled_path

_FIRST = next(iter(BUNDLED))


@click.command(
    epilog="""\b
Examples:
  harness demo --list
  harness demo mix --until 2d"""
)
@click.argument("name", default=_FIRST)
@click.option("--list", "listed", is_flag=True, help="List the bundled traces, and do not replay any.")
@click.option(
    "--until", metavar="TIME",
    help="Stop at this time after the trace's origin, such as 7d. [default: 1d for the trace 'mix', else no "
    "limit]",
)  # fmt: skip
@kept
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.pass_context
def demo(ctx: click.Context, name: str, listed: bool, until: str | None, output: Path, as_json: bool) -> None:
    """Replay a trace that comes with harness, on the cluster that comes with the trace.

    Without NAME, the command replays the first trace of --list. It first prints the equivalent replay
    command.
    """
    if listed and as_json:
        traces = [
            {"name": each, "about": bundled.about, "plugins": list(bundled.plugins)}
            for each, bundled in BUNDLED.items()
        ]
        click.echo(json.dumps({"schema": "1", "traces": traces}))
        return
    if listed:
        rows = [(each, bundled.about, " ".join(bundled.plugins)) for each, bundled in BUNDLED.items()]
        click.echo(
            aligned([("trace", "what it is", "plugins"), *rows], left=range(3), width=terminal_width())
        )
        return
    path = bundled_path(name)
    look = BUNDLED[name]
    until = until or look.until
    options = [f"-p {plugin}" for plugin in look.plugins]
    options += [f"--until {until}"] if until else []
    options += [f"--shake {look.shake}"] if look.shake else []
    options += [f"-o {output}"] if ctx.get_parameter_source("output") is not ParameterSource.DEFAULT else []
    click.echo(f"harness replay {path} {' '.join(options)}", err=True)
    ctx.invoke(
        replay,
        trace=path,
        names=look.plugins,
        until=until,
        shake_text=look.shake,
        output=output,
        as_json=as_json,
    )

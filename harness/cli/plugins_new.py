"""`harness plugins new` writes the package of a new plugin."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from harness.base.errors import InputError
from harness.cli.context import loaded_plugins
from harness.trace.bundled import BUNDLED, bundled_path


@click.command(
    epilog="""\b
Examples:
  harness plugins new least-slack
  harness plugins new our-log --reader"""
)
@click.argument("name")
@click.option(
    "--policy", "kind", flag_value="policy", default="policy", help="A scheduling policy. [default]"
)
@click.option("--reader", "kind", flag_value="reader", help="A reader of a trace format.")
@click.option("--metric", "kind", flag_value="metric", help="A metric.")
@click.option("--section", "kind", flag_value="section", help="A section of reports.")
@click.pass_context
def new(ctx: click.Context, name: str, kind: str) -> None:
    """Write the package of a plugin into the new folder NAME.

    The package works unchanged and passes its own tests. The command prints how to install, test and use it.
    """
    from harness.plugins.scaffold.package import commands, new_package

    folder = new_package(Path(), name, kind, loaded_plugins(ctx))
    click.echo(f"a {kind} {name} is in the new folder {folder}; next steps:")
    for line in commands(name, kind, shlex.quote(_trace())):
        click.echo(f"  {line}")


def _trace() -> str:
    """Returns the bundled trace with the fastest replay, or a placeholder if it is not installed."""
    try:
        return str(bundled_path(next(iter(BUNDLED))).resolve())
    except InputError:
        return "TRACE.parquet"

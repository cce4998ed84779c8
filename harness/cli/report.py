"""`harness report`: finished runs as one page."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.context import command_line, loaded_plugins
from harness.cli.output import write_output
from harness.errors import OptionError
from harness.text import printable

_PAGE = Path("report.html")
_STDOUT = Path("-")


@click.command(
    epilog="""\b
Examples:
  harness report results/philly/* -o report.html
  harness report results/philly/none-* --gantt 30d..30d6h
  harness report results/philly/none-* --format markdown"""
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="Where to write it; - is stdout. [default: report.html, and stdout for Markdown]",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["html", "markdown"]), default="html", show_default=True,
    help="A page that needs nothing else, or text for a pull request.",
)  # fmt: skip
@click.option(
    "--baseline",
    metavar="LABEL",
    help="The run that the others are compared with, by its label or folder. [default: the first as given]",
)
@click.option(
    "--gantt", metavar="FROM..TO",
    help="Show jobs one by one in this time: as the run writes times, or since its origin, such as 1d..1d6h. "
    "Of many jobs those that held most. [default: all jobs, if there are at most 60]",
)  # fmt: skip
@click.option(
    "--interactive", is_flag=True, help="Charts that can be zoomed and asked for values; a few MB more."
)
@click.pass_context
def report(
    ctx: click.Context,
    runs: tuple[Path, ...],
    output: Path | None,
    form: str,
    baseline: str | None,
    gantt: str | None,
    interactive: bool,
) -> None:
    """Write a report of finished runs of the same jobs: figures, charts, and what they rest on."""
    from harness import api

    if interactive and form != "html":
        raise OptionError("only a page can be interactive", hint="leave out --interactive or --format")
    made = api.make_report(
        runs, baseline=baseline, plugins=loaded_plugins(ctx), command=command_line(ctx), gantt=gantt
    )
    text = made.html(interactive=interactive) if form == "html" else made.markdown()
    place = output or (_PAGE if form == "html" else _STDOUT)
    if place == _STDOUT:
        click.echo(text, nl=False)
        return
    write_output(place, text)
    click.echo(printable(str(place)))

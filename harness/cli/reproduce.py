"""`harness reproduce` replays published results."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.errors import InputError, OptionError
from harness.base.text import aligned
from harness.cli.output import table_format
from harness.cli.screen import fold, tell, terminal_width

_SHOWN = 1


@click.command(
    epilog="""\b
Examples:
  harness reproduce --list
  harness reproduce kueue-fair-sharing"""
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listed", is_flag=True, help="List the results and the files that they need.")
@click.option("--all", "every", is_flag=True, help="Replay all results whose files are given.")
@click.option(
    "--data", "places", multiple=True, type=click.Path(path_type=Path, exists=True), metavar="PATH",
    help="A file that a result needs, or a folder to search; may be repeated.",
)  # fmt: skip
@table_format
def reproduce(names: tuple[str, ...], listed: bool, every: bool, places: tuple[Path, ...], form: str) -> None:
    """Replay published results, and show our figures next to the published ones.

    A table shows how much each figure differs, and why. Pass files that don't come with harness
    with --data; harness verifies their checksums.
    """
    from harness.studies.reproduced.case import markdown, text, to_json
    from harness.studies.reproduced.cases import CASES, case_of

    if sum((bool(names), listed, every)) != 1:
        raise OptionError("name published results, or give one of --list and --all")
    if listed:
        lines = [["name", "what it is", "published in", "needs"]]
        for case in CASES.values():
            needs = [each.name for each in case.sources[:_SHOWN]] or ["nothing"]
            if len(case.sources) > _SHOWN:
                needs.append(f"{len(case.sources) - _SHOWN} more of {case.sources[0].origin}")
            lines.append([case.name, case.about, case.published, ", ".join(needs)])
        click.echo(aligned(lines, left=(0, 1, 2, 3), width=terminal_width()))
        return
    results = {}
    for case in CASES.values() if every else [case_of(name) for name in names]:
        try:
            results[case.name] = case.rows(places)
        except InputError as error:
            if not every or not case.sources:
                raise
            tell(f"{case.name} is left out: {error.message}; {error.hint}")
    if form == "text":
        click.echo(fold(text(results, terminal_width())))
    else:
        click.echo(markdown(results) if form == "markdown" else to_json(results))

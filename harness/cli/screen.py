"""What a terminal can show: its width, and verdicts in colours; nothing of it reaches a pipe or a file."""

from __future__ import annotations

import os
import re
import shutil
import sys

import click

_COLOURS = {"▲": "green", "△": "green", "▼": "red", "▽": "red"}
_VERDICT = re.compile(f"(?<= )[{''.join(_COLOURS)}](?=  |$)", re.MULTILINE)
"""A verdict stands behind a change, at the end of a column."""


def terminal_width() -> int | None:
    """How many columns stdout has; None where it is no terminal, so that lines may be as long as they are."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def can_redraw() -> bool:
    """Whether stderr is a terminal that can go back to the beginning of a line, and no log, as under CI."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def coloured(table: str) -> str:
    """A table with its verdicts in colours, where stdout is a terminal and NO_COLOR is not set."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain:
        return table
    return _VERDICT.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0]]), table)

"""Output to a terminal: safe text, harness's own colours and redrawn lines, and the terminal's size.

All text for a terminal passes `Screen`, which removes control characters. Only `steer` and `show_table` send
control characters, and only harness's own. Pipes and files get bytes unchanged.
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from harness.base.text import folded, printable

if TYPE_CHECKING:
    from harness.analysis.export.sink import BinarySink

_COLOURS = {"▲": "green", "△": "green", "▼": "red", "▽": "red"}
_VERDICT = re.compile(f"(?<= )[{''.join(_COLOURS)}](?=  |$)", re.MULTILINE)
"""Matches a verdict, which follows a change at the end of a column."""

_KEPT = re.compile(r"([\n\t]+)")
"""The only control characters that text may contain: line ends and tabs."""


class Screen:
    """A terminal's stream that only accepts text, and removes control characters.

    Args:
        stream: the stream of the terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text without its control characters."""
        self.stream.write(harmless(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # no code can bypass this class by writing bytes
            raise AttributeError(name)
        return getattr(self.stream, name)


def harmless(text: str) -> str:
    """Returns text with a visible sign in place of each control character except line ends and tabs."""
    return "".join(part if part.isprintable() else _cleared(part) for part in _KEPT.split(text))


def _cleared(part: str) -> str:
    return part if _KEPT.fullmatch(part) else printable(part)


def guard_terminals() -> None:
    """Pass all output of stdout and stderr to a terminal through a `Screen`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            setattr(sys, name, Screen(stream))


def steer(sequence: str) -> None:
    """Send harness's own control characters to stderr, to redraw lines."""
    stream = sys.stderr.stream if isinstance(sys.stderr, Screen) else sys.stderr
    stream.write(sequence)
    stream.flush()


class _Decoded:
    """Takes bytes of UTF-8, piece by piece, for a terminal."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes, /) -> object:
        """Show the text of further bytes."""
        return sys.stdout.write(self._decoder.decode(data))


def binary_stdout() -> BinarySink:
    """Returns the target for bytes of text: unchanged to a pipe or a file, harmless to a terminal."""
    return _Decoded() if sys.stdout.isatty() else sys.stdout.buffer


def put(text: str) -> None:
    """Write text for another program to stdout, unchanged; click would cut sequences out of names."""
    click.echo(text, nl=False, color=True)


def terminal_width() -> int | None:
    """Returns the columns of stdout; None if it is not a terminal, so that lines may have any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def terminal_size() -> tuple[int, int]:
    """Returns the columns and lines of stderr's terminal; 80 and 24 if they are unknown."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return 80, 24
    return size.columns or 80, size.lines or 24


def error_width() -> int | None:
    """Returns the columns of stderr; None if it is not a terminal."""
    return terminal_size()[0] if sys.stderr.isatty() else None


def fold(text: str) -> str:
    """Returns text for stdout, with long lines folded between words if stdout is a terminal."""
    return "\n".join(folded(text.split("\n"), terminal_width()))


def tell(text: str) -> None:
    """Print a line on stderr, such as a note; fold it between words on a terminal."""
    click.echo("\n".join(folded([printable(text)], error_width())), err=True)


def can_redraw() -> bool:
    """Returns True if stderr is a terminal that can redraw a line; in CI a terminal is a log."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def show_table(table: str) -> None:
    """Print a table, with verdicts in colours if stdout is a terminal and NO_COLOR is not set."""
    table = fold(table)
    if not isinstance(sys.stdout, Screen) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        click.echo(table)
        return
    coloured = _VERDICT.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0]]), harmless(table))
    sys.stdout.stream.write(f"{coloured}\n")
    sys.stdout.stream.flush()

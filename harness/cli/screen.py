"""Writes safe text, colours and redrawn lines to terminals, and determines the size of terminals.

All text for a terminal passes through `Screen`, which removes control characters. Only `steer` and
`show_table` send control characters, and they send only those of harness itself. Pipes and files get bytes
unchanged.
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

import click

from harness.base.text import folded, printable

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_COLOURS = {"▲": "green", "△": "green", "▼": "red", "▽": "red"}
_VERDICT = re.compile(f"(?<= )[{''.join(_COLOURS)}](?=  |$)", re.MULTILINE)
"""Matches a verdict, which follows a change at the end of a column."""

_KEPT = re.compile(r"([\n\t]+)")
"""Matches line ends and tabs, the only control characters that text may contain."""


class Screen:
    """A stream for a terminal that accepts only text, and removes control characters."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text without its control characters."""
        self.stream.write(harmless(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # Otherwise, code could bypass this class by writing bytes.
            raise AttributeError(name)
        return getattr(self.stream, name)


def harmless(text: str) -> str:
    """Returns text in which visible signs replace control characters, except line ends and tabs."""
    return "".join(part if part.isprintable() else _cleared(part) for part in _KEPT.split(text))


def _cleared(part: str) -> str:
    return part if _KEPT.fullmatch(part) else printable(part)


def guard_terminals() -> None:
    """Pass everything that is written to a terminal through a `Screen`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            setattr(sys, name, Screen(stream))


def steer(sequence: str) -> None:
    """Send control characters of harness itself to stderr, to redraw lines."""
    stream = sys.stderr.stream if isinstance(sys.stderr, Screen) else sys.stderr
    stream.write(sequence)
    stream.flush()


class _Decoded:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes, /) -> object:
        return sys.stdout.write(self._decoder.decode(data))


def binary_stdout() -> SupportsWrite[bytes]:
    """Returns a sink for bytes of text. It changes the bytes only if stdout is a terminal."""
    return _Decoded() if sys.stdout.isatty() else sys.stdout.buffer


@contextmanager
def results_only() -> Iterator[None]:
    """Send to stderr what plugins print, because stdout has only the results of a command."""
    with redirect_stdout(sys.stderr):
        yield


def put(text: str) -> None:
    """Write text for another program to stdout unchanged.

    By default, click would remove control sequences, even from names.
    """
    click.echo(text, nl=False, color=True)


def terminal_width() -> int | None:
    """Returns the number of columns of stdout, or None (for no limit) if it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def terminal_size() -> tuple[int, int]:
    """Returns the numbers of columns and lines of stderr's terminal, or 80 and 24 if they are unknown."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return 80, 24
    return size.columns or 80, size.lines or 24


def error_width() -> int | None:
    """Returns the number of columns of stderr, or None if it is not a terminal."""
    return terminal_size()[0] if sys.stderr.isatty() else None


def fold(text: str) -> str:
    """Returns text for stdout. If stdout is a terminal, long lines are folded between words."""
    return "\n".join(folded(text.split("\n"), terminal_width()))


def printable_lines(text: str) -> str:
    """Returns a text whose lines have no characters that control a terminal."""
    return "\n".join(printable(line) for line in text.split("\n"))


def tell(text: str) -> None:
    """Print a line on stderr, such as a note, and fold it between words on a terminal."""
    click.echo("\n".join(folded([printable(text)], error_width())), err=True)


def can_redraw() -> bool:
    """Returns True if stderr is a terminal that can redraw a line.

    In CI, the result is False, because the terminal's output becomes a log.
    """
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def show_table(table: str) -> None:
    """Print a table, with coloured verdicts if stdout is a terminal and NO_COLOR is not set."""
    table = fold(table)
    if not isinstance(sys.stdout, Screen) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        click.echo(table)
        return
    coloured = _VERDICT.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0]]), harmless(table))
    sys.stdout.stream.write(f"{coloured}\n")
    sys.stdout.stream.flush()

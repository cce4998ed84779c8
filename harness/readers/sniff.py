"""Recognises formats by the first bytes of a file, for files with ambiguous suffixes.

A reader is registered with a function of the path and the first 4 KiB, decompressed. Nothing here imports
polars, so that readers are listed without it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

MARK = b"\xef\xbb\xbf"
"""The byte-order mark that some programs write before UTF-8."""


def beginning(head: bytes) -> bytes:
    """Returns the head without a byte-order mark and without leading blanks."""
    return head.removeprefix(MARK).lstrip()


def first_line(head: bytes) -> bytes:
    """The first line that is not blank, without its end."""
    return beginning(head).partition(b"\n")[0]


def has_columns(head: bytes, columns: tuple[str, ...]) -> bool:
    """Returns True if the first line of comma-separated text names all these columns."""
    lines = beginning(head).splitlines()
    names = lines[0].split(b",") if lines else []
    return {column.encode() for column in columns} <= {name.strip(b' "') for name in names}


def names_columns(*columns: str) -> Callable[[Path, bytes], bool]:
    """Returns a function that tells whether the header line of a file names all these columns."""

    def sniff(path: Path, head: bytes) -> bool:
        return has_columns(head, columns)

    return sniff

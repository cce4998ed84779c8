"""Recognises formats by the first bytes of a file, if its suffix is ambiguous.

A reader is registered with a function that takes the path and the first 4 KiB, decompressed. This module
does not import polars, so that readers can be listed without it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

MARK = b"\xef\xbb\xbf"
"""The byte-order mark that some programs write before UTF-8 text."""


def beginning(head: bytes) -> bytes:
    """Returns the head of a file without a byte-order mark and without leading spaces."""
    return head.removeprefix(MARK).lstrip()


def first_line(head: bytes) -> bytes:
    """Returns the first non-blank line without its line end."""
    return beginning(head).partition(b"\n")[0]


def has_columns(head: bytes, columns: tuple[str, ...]) -> bool:
    """Returns True if the first line of comma-separated text names all of these columns."""
    lines = beginning(head).splitlines()
    names = lines[0].split(b",") if lines else []
    return {column.encode() for column in columns} <= {name.strip(b' "') for name in names}


def names_columns(*columns: str) -> Callable[[Path, bytes], bool]:
    """Returns a function that checks whether the header line of a file names all of these columns."""

    def sniff(path: Path, head: bytes) -> bool:
        return has_columns(head, columns)

    return sniff

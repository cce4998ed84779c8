"""Makes it possible to read standard input, which has the path `-`, more than once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

STANDARD_INPUT = Path("-")
"""The path that stands for standard input."""

CALLED = "stdin"
"""The name of standard input in messages and labels."""


def standard_input() -> bytes:
    """Returns all bytes of standard input, and the same bytes again in later calls.

    Raises:
        OSError: standard input is closed, or cannot be read.
    """
    stream: BinaryIO | None = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.closed:
        raise OSError("there is no standard input")
    return _all_of(stream)


@lru_cache(maxsize=1)
def _all_of(stream: BinaryIO) -> bytes:
    return stream.read()


@contextmanager
def standard_input_file() -> Iterator[Path]:
    """Provide standard input as a file named `stdin` during the block.

    Raises:
        OSError: standard input can't be read, or the file can't be written.
    """
    data = standard_input()
    with TemporaryDirectory(prefix="harness-") as folder:
        file = Path(folder, CALLED)
        file.write_bytes(data)
        yield file

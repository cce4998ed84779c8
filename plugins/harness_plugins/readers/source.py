"""Text files of traces: their bytes, plain or gzipped, and the lines in them that are malformed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.errors import Fault, TraceError

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_LISTED = 1000


def contents(path: Path) -> bytes:
    """The bytes of a text file, decompressed if they are gzipped, without a byte-order mark.

    Raises:
        TraceError: a gzip file that is damaged or cut off, or a file with nothing in it.
    """
    data = path.read_bytes()
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            reason = f"is not a whole gzip file: {error}"
            raise TraceError(str(path), [Fault("", reason)], hint="fetch or copy the file again") from error
    data = data.removeprefix(_MARK)
    if not data.strip():
        raise TraceError(str(path), [Fault("", "has no lines")])
    return data


def lines_of(data: bytes, comment: bytes | None = None) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers from 1, without blank ones and without comments."""
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip() and not (comment and line.lstrip().startswith(comment)):
            yield number, line


def refuse_lines(
    path: Path, lines: Iterator[tuple[int, bytes]], wrong: Callable[[bytes], Sequence[str]], otherwise: str
) -> TraceError:
    """The error that names every malformed line.

    Args:
        path: the file.
        lines: its lines of data.
        wrong: what is wrong with a line.
        otherwise: what to say if no line by itself is wrong.
    """
    faults: list[Fault] = []
    beyond = 0
    for number, line in lines:
        for what in wrong(line):
            if len(faults) < _LISTED:
                faults.append(Fault(f"line {number:,}", what))
            else:
                beyond += 1
    if beyond:
        faults.append(Fault("", f"{beyond:,} more faults in lines"))
    return TraceError(str(path), faults or [Fault("", otherwise)])


def shown(word: bytes) -> str:
    """A word of a line for a message."""
    text = repr(word.decode("utf-8", "replace"))
    return text if len(text) <= 40 else f"{text[:37]}..."

"""Reads the bytes and lines of trace files, which can be packed, and reports faults in lines."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.base.errors import IN_UTF8, Fault, TraceError, why
from harness.base.files.packed import PackedError, is_packed, unpacked_bytes, unpacked_head
from harness.base.json_text import parse_json
from harness.readers.sniff import MARK

_HEAD = 1 << 16
_BLOCK = 1 << 20
_LINE_END = re.compile(rb"\r\n|\r|\n")
_LISTED = 1000
_MANY = 10_000
_LONGEST_LINE = 1 << 20


class EncodingFault(Fault):
    """A line of a file is not UTF-8 text."""


def contents(path: Path) -> bytes:
    """Returns the bytes of a text file, unpacked if necessary and without a byte-order mark.

    Raises:
        TraceError: the path is a folder, the file is empty, or a packed file is damaged, cut off or too
            large.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TraceError(str(path), [Fault("", f"cannot be read: {why(error)}")]) from error
    data = _unpacked(path, data).removeprefix(MARK)
    if not data.strip():
        raise TraceError(str(path), [Fault("", "has no lines")])
    return data


def unpacked_contents(path: Path) -> bytes | None:
    """Returns the content of a packed file, or None if the file is not packed.

    Only the first bytes of an unpacked file are read.

    Raises:
        OSError: the file cannot be read.
        TraceError: the packed file is damaged, cut off or too large.
    """
    with path.open("rb") as file:
        if not is_packed(file.read(_HEAD)):
            return None
    return _unpacked(path, path.read_bytes())


def first_bytes(path: Path, most: int) -> bytes:
    """Returns the first bytes of a file's content, unpacked.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return unpacked_head(file.read(_HEAD), most)


def _unpacked(path: Path, data: bytes) -> bytes:
    try:
        return unpacked_bytes(data)
    except PackedError as error:
        raise TraceError(str(path), [Fault("", str(error))], hint=error.hint) from error


def text_of(path: Path) -> str:
    """Returns the text of a file, plain or gzipped.

    Raises:
        TraceError: as for `contents`, or the text is not UTF-8. The error names the line.
    """
    data = contents(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TraceError(str(path), [Fault(f"line {line:,}", "is not UTF-8 text")], hint=IN_UTF8) from error


def read_json(path: Path) -> Any:
    """Returns the value of a JSON file, plain or gzipped.

    Raises:
        TraceError: the file is not JSON. The error names the line.
    """
    text = text_of(path)
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        fault = not_json(error)
    except ValueError as error:  # JSON beyond our limits
        fault = Fault("", str(error))
    raise TraceError(str(path), [fault])


def not_json(error: json.JSONDecodeError) -> Fault:
    """Returns the fault of a JSON document, with the place where reading stopped."""
    return Fault(f"line {error.lineno:,}", f"is not JSON: {error.msg} (column {error.colno:,})")


def json_lines(path: Path, faults: list[Fault]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the objects of a file that has one object per line, with their line numbers.

    The faults of lines that are not objects are added to `faults`.
    """
    for number, line in lines_of(path, contents(path)):
        try:
            value = parse_json(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            yield number, value
        else:
            faults.append(Fault(f"line {number:,}", "is not a JSON object"))
            stop_at_many(path, faults)


def also_read(path: Path) -> dict[str, str]:
    """Returns the metadata that records an additional source file of a trace."""
    return {f"harness.also_read.{path.name}": f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"}


def lines_of(path: Path, data: bytes, comment: bytes | None = None) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that are neither blank nor comments, with their numbers from 1.

    Raises:
        TraceError: a line is longer than any record can be.
    """
    for number, line in enumerate(every_line(data), start=1):
        if len(line) > _LONGEST_LINE:
            what = f"has {len(line):,} bytes; a record has at most {_LONGEST_LINE:,}"
            raise TraceError(str(path), [Fault(f"line {number:,}", what)])
        if line.strip() and not (comment and line.lstrip().startswith(comment)):
            yield number, line


def every_line(data: bytes) -> Iterator[bytes]:
    """Yields all lines. They are split block by block, because a list of all lines would need much memory."""
    start = 0
    while start < len(data):
        mark = _LINE_END.search(data, start + _BLOCK)
        end = mark.end() if mark else len(data)
        yield from data[start:end].splitlines()
        start = end


def stop_at_many(path: Path, faults: list[Fault]) -> None:
    """Raises an error if a file has very many faults, because storing all of them could exhaust the memory.

    Raises:
        TraceError: there are too many faults. The error lists the first ones.
    """
    if len(faults) >= _MANY:
        raise trace_error(path, faults, "")


def trace_error(path: Path, faults: Iterable[Fault], otherwise: str) -> TraceError:
    """Returns an error that lists every fault of a file.

    Args:
        path: the file.
        faults: the faults in the order of the file's lines.
        otherwise: the message if there are no faults.
    """
    listed: list[Fault] = []
    beyond = 0
    for fault in faults:
        if len(listed) < _LISTED:
            listed.append(fault)
        else:
            beyond += 1
    if beyond:
        listed.append(Fault("", f"{beyond:,} more faults in lines"))
    hint = IN_UTF8 if any(isinstance(fault, EncodingFault) for fault in listed) else None
    return TraceError(str(path), listed or [Fault("", otherwise)], hint=hint)


def not_utf8(place: int, line: bytes, error: UnicodeDecodeError) -> Fault:
    """Returns the fault of a line that is not UTF-8 text. `place` is its number in the file."""
    what = f"is not UTF-8 text: byte {line[error.start]:#04x} at position {error.start + 1}"
    return EncodingFault(f"line {place:,}", what)


def shown(text: str) -> str:
    """Formats a word of a line for a message."""
    quoted = repr(text)
    return quoted if len(quoted) <= 40 else f"{quoted[:37]}..."

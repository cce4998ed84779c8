"""Files of traces: their bytes, plain or gzipped, their lines, and what is wrong with some of these."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.errors import Fault, TraceError

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_LISTED = 1000


def contents(path: Path) -> bytes:
    """The bytes of a text file, decompressed if they are gzipped, without a byte-order mark.

    Raises:
        TraceError: a directory, a gzip file that is damaged or cut off, or a file with nothing in it.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TraceError(str(path), [Fault("", f"cannot be read: {error.strerror or error}")]) from error
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


def read_json(path: Path) -> Any:
    """The value of a JSON file, plain or gzipped.

    Raises:
        TraceError: not JSON, with the line.
    """
    data = contents(path)
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = Fault(f"line {line:,}", "is not UTF-8 text")
    except json.JSONDecodeError as error:
        fault = Fault(f"line {error.lineno:,}", f"is not JSON: {error.msg} (column {error.colno:,})")
    except RecursionError:
        fault = Fault("", "is not read: its values are nested too deeply")
    except ValueError:  # Python refuses to read very long numbers
        fault = Fault("", "holds a number that is too long to be one")
    raise TraceError(str(path), [fault])


def json_lines(path: Path, faults: list[Fault]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with one in every line, with the numbers of the lines.

    Args:
        path: the file.
        faults: where lines that are no objects are added.
    """
    for number, line in lines_of(contents(path)):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            yield number, value
        else:
            faults.append(Fault(f"line {number:,}", "is not a JSON object"))


def also_read(path: Path) -> dict[str, str]:
    """What to keep with a trace about a second file that it was made of."""
    return {f"harness.also_read.{path.name}": f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"}


def lines_of(data: bytes, comment: bytes | None = None) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers from 1, without blank ones and without comments."""
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip() and not (comment and line.lstrip().startswith(comment)):
            yield number, line


def refusal(path: Path, faults: Iterable[Fault], otherwise: str) -> TraceError:
    """The error that names every fault of a file.

    Args:
        path: the file.
        faults: in the order of its lines.
        otherwise: what to say if there is none.
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
    return TraceError(str(path), listed or [Fault("", otherwise)])


def shown(text: str) -> str:
    """A word of a line for a message."""
    quoted = repr(text)
    return quoted if len(quoted) <= 40 else f"{quoted[:37]}..."

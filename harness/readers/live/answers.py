"""Reads the body of an answer within limits of received bytes, unpacked bytes, line length and time.

A server can send data without end, or one byte at a time, or a few bytes that unpack to more data than fits
in memory. This module unpacks bodies itself, because the client would unpack each piece as a whole. harness
accepts only gzip.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

PIECE = 1 << 16
"""The size of a piece in bytes, whether received or unpacked."""

_GZIP = 16 + zlib.MAX_WBITS


class Bounds(NamedTuple):
    """The limits of an answer.

    Attributes:
        sent: the number of received bytes.
        held: the number of unpacked bytes.
        line: the number of bytes in one line.
        seconds: the time from the request to the last byte.
    """

    sent: int
    held: int
    line: int
    seconds: float


class UnreachedError(Exception):
    """The answer is missing or incomplete."""


class BeyondError(UnreachedError):
    """The answer exceeds a limit, which the message names."""


class LateError(UnreachedError):
    """The answer takes too long."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the answer takes longer than {seconds:,.0f} s")


def body(
    pieces: Iterator[bytes], encoding: str, bounds: Bounds, clock: Callable[[], float]
) -> Iterator[bytes]:
    """Yields the unpacked pieces of a body.

    `encoding` is the value of the header Content-Encoding. `clock` returns the seconds since the request.

    Raises:
        BeyondError: the pieces exceed a limit, or are packed with something other than gzip.
        LateError: the pieces take too long.
    """
    plain = _unpacked(pieces, encoding, bounds, clock)
    held = 0
    for piece in plain:
        held += len(piece)
        if held > bounds.held:
            raise BeyondError(f"the answer has more than {bounds.held:,} bytes when it is unpacked")
        yield piece


def _unpacked(
    pieces: Iterator[bytes], encoding: str, bounds: Bounds, clock: Callable[[], float]
) -> Iterator[bytes]:
    if encoding not in ("", "identity", "gzip"):
        raise BeyondError(f"the answer is packed as {encoding[:20]!r}, but gzip was requested")
    unpacker = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
    sent = 0
    for piece in pieces:
        sent += len(piece)
        if sent > bounds.sent:
            raise BeyondError(f"the answer has more than {bounds.sent:,} bytes")
        if clock() > bounds.seconds:
            raise LateError(bounds.seconds)
        if unpacker is None:
            yield piece
            continue
        yield from _unzipped(unpacker, piece)
    if unpacker is not None and sent and not unpacker.eof:
        raise UnreachedError("the answer is cut off: its gzip data has no end")


def _unzipped(unpacker: Any, piece: bytes) -> Iterator[bytes]:
    """Yields the unpacked content of a piece in parts of limited size."""
    while not unpacker.eof:
        try:
            part = unpacker.decompress(piece, PIECE)
        except zlib.error as error:
            raise UnreachedError("the answer claims to be gzip, but is not") from error
        yield part
        piece = unpacker.unconsumed_tail
        if not piece and len(part) < PIECE:
            return


def lines(pieces: Iterator[bytes], bounds: Bounds) -> Iterator[bytes]:
    """Yields each line of a body as soon as it is complete. The last line needs no line end.

    Raises:
        BeyondError: a line is too long.
    """
    begun = bytearray()
    for piece in pieces:
        begun += piece
        *whole, rest = begun.split(b"\n")
        if any(len(line) > bounds.line for line in (*whole, rest)):
            raise BeyondError(f"a line of the answer has more than {bounds.line:,} bytes")
        yield from (bytes(line) for line in whole)
        begun = rest
    if begun:
        yield bytes(begun)


def stopwatch() -> Callable[[], float]:
    """Returns a function that returns the seconds since this call."""
    begin = time.monotonic()
    return lambda: time.monotonic() - begin

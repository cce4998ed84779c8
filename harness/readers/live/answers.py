"""The body of an answer, with an end: this many bytes on the way and unpacked, so long a line, so much time.

A server can send without an end, or a byte at a time, or a few bytes that unpack to all the memory there is.
Bodies are unpacked here, as the client would unpack each piece as a whole; only gzip is asked for.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

PIECE = 1 << 16
"""Bytes of a piece, on the way and unpacked."""

_GZIP = 16 + zlib.MAX_WBITS


class Bounds(NamedTuple):
    """What an answer is at most.

    Attributes:
        sent: bytes on the way.
        held: bytes unpacked.
        line: bytes of one line.
        seconds: from the request until the last byte.
    """

    sent: int
    held: int
    line: int
    seconds: float


class UnreachedError(Exception):
    """There is no answer, or not all of it."""


class BeyondError(UnreachedError):
    """An answer is more than it may be; the message says which bound that is."""


class LateError(UnreachedError):
    """An answer takes longer than it may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the answer takes longer than {seconds:,.0f} s")


def body(
    pieces: Iterator[bytes], encoding: str, bounds: Bounds, clock: Callable[[], float]
) -> Iterator[bytes]:
    """The unpacked pieces of a body.

    Args:
        pieces: as they came.
        encoding: the header Content-Encoding.
        bounds: what they are at most.
        clock: seconds since the request.

    Raises:
        BeyondError: they are more, or packed in another way than gzip.
        LateError: they take longer.
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
        raise BeyondError(f"the answer is packed as {encoding[:20]!r}, and gzip was asked for")
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
        raise UnreachedError("the answer breaks off: its gzip has no end")


def _unzipped(unpacker: Any, piece: bytes) -> Iterator[bytes]:
    """What a piece holds, never much at once, whatever it unpacks to."""
    while not unpacker.eof:
        try:
            part = unpacker.decompress(piece, PIECE)
        except zlib.error as error:
            raise UnreachedError("the answer says that it is gzip, and is not") from error
        yield part
        piece = unpacker.unconsumed_tail
        if not piece and len(part) < PIECE:
            return


def lines(pieces: Iterator[bytes], bounds: Bounds) -> Iterator[bytes]:
    """The lines of a body, each as soon as it is there; the last one may have no end.

    Raises:
        BeyondError: one is longer than it may be.
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
    """Seconds since now."""
    begin = time.monotonic()
    return lambda: time.monotonic() - begin

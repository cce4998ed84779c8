"""What gzip files hold, as long as it is no more than text can be."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""

_EXPANDS = 64
_FREELY = 64 << 20
"""A gzip file may become so many times as large, and in any case so many bytes; text packs no better."""

_BLOCK = 1 << 20


class PackedError(ValueError):
    """A gzip file that is damaged, cut off or too large; `hint` says what to do about it."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def unpacked_bytes(data: bytes) -> bytes:
    """The bytes themselves, or what they hold if they are those of a gzip file.

    Raises:
        PackedError: a gzip file that is damaged, cut off, or larger than text can be.
    """
    if not data.startswith(GZIP):
        return data
    most = max(_FREELY, _EXPANDS * len(data))
    parts: list[bytes] = []
    size = 0
    try:
        for part in _parts(data):
            parts.append(part)
            size += len(part)
            if size > most:
                raise PackedError(
                    f"becomes larger than {most >> 20:,} MiB when it is unpacked, {_EXPANDS} times its size "
                    "or more: no text of jobs or manifests packs like that",
                    "if it is one all the same, unpack it first: gunzip",
                )
    except (EOFError, zlib.error) as error:
        raise PackedError(f"is not a whole gzip file: {error}", "fetch or copy the file again") from error
    return b"".join(parts)


def _parts(packed: bytes) -> Iterator[bytes]:
    """What a gzip file of one or more members holds, a block at a time."""
    rest = packed
    while rest:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            part = member.decompress(rest, _BLOCK)
            rest = member.unconsumed_tail
            if not part and not member.eof:
                raise EOFError("it ends before its end-of-stream marker was reached")
            yield part
        rest = member.unused_data.lstrip(b"\0")  # some tools fill the end up

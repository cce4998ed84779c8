"""Unpacks files (gzip, bzip2, xz, zstd, UTF-16) up to the size that text can plausibly have."""

from __future__ import annotations

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from harness.base.values import Value, fixed

_EXPANDS = 64
_FREELY = 64 << 20
"""A file may expand to `_FREELY` bytes, or else at most by the factor `_EXPANDS`."""

_BLOCK = 1 << 20
_ZIP = b"PK\x03\x04"
_BROKEN = (EOFError, zlib.error, lzma.LZMAError, OSError, UnicodeDecodeError)


class PackedError(ValueError):
    """A packed file is damaged, cut off, too large or a zip archive. `hint` says what the user can do."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


@fixed()
class _Kind(Value):
    """A format of packed files, with its name, first bytes and tool, and the function that unpacks it."""

    name: str
    begins: bytes
    tool: str
    parts: Callable[[bytes], Iterator[bytes]]


def is_packed(head: bytes) -> bool:
    """Returns True if a file that begins with these bytes is packed."""
    return _kind(head) is not None or head.startswith(_ZIP)


def refuse_zip(head: bytes) -> None:
    """Raises a `PackedError` if a file that begins with these bytes is a zip archive."""
    if head.startswith(_ZIP):
        raise PackedError("is a zip archive, which harness does not read", "unpack it first: unzip")


def unpacked_bytes(data: bytes) -> bytes:
    """Returns the unpacked content of a packed file, and other content unchanged.

    Raises:
        PackedError: the content is a zip archive, or a packed file that is damaged, cut off, or larger than
            text can be.
    """
    refuse_zip(data)
    kind = _kind(data)
    if kind is None:
        return data
    most = max(_FREELY, _EXPANDS * len(data))
    parts: list[bytes] = []
    size = 0
    try:
        for part in kind.parts(data):
            parts.append(part)
            size += len(part)
            if size > most:
                raise PackedError(
                    f"unpacks to more than {most >> 20:,} MiB, at least {_EXPANDS} times its size; "
                    "no file of jobs or manifests compresses that well",
                    f"if the file is valid, unpack it first: {kind.tool}",
                )
    except _BROKEN as error:
        raise PackedError(
            f"is not a whole {kind.name} file: {error}", "fetch or copy the file again"
        ) from error
    return b"".join(parts)


def unpacked_head(head: bytes, most: int) -> bytes:
    """Unpacks `head`, the first bytes of a file, and returns at most `most` bytes of the result.

    If `head` is not packed or can't be unpacked, the function returns its first `most` bytes unchanged.
    """
    kind = _kind(head)
    if kind is None:
        return head[:most]
    found = b""
    try:
        for part in kind.parts(head):
            found += part
            if len(found) >= most:
                break
    except _BROKEN:  # the head ends before the file does
        return found[:most] or head[:most]
    return found[:most]


def _kind(data: bytes) -> _Kind | None:
    return next((kind for kind in _KINDS if data.startswith(kind.begins)), None)


def _members(new: Callable[[], Any]) -> Callable[[bytes], Iterator[bytes]]:
    """Returns a function that unpacks a file with one or more members, block by block."""

    def parts(packed: bytes) -> Iterator[bytes]:
        rest = packed
        while rest:
            member = new()
            while not member.eof:
                part = member.decompress(rest, _BLOCK)
                rest = getattr(member, "unconsumed_tail", b"")  # bzip2 and xz keep the rest themselves
                if not part and not member.eof:
                    raise EOFError("it ends before its end-of-stream marker was reached")
                yield part
            rest = member.unused_data.lstrip(b"\0")  # some tools pad the end

    return parts


def _zstd(packed: bytes) -> Iterator[bytes]:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        while part := stream.read(_BLOCK):
            yield part


def _utf16(text: bytes) -> Iterator[bytes]:
    """Yields the text as UTF-8. A shell of Windows writes UTF-16 if it redirects the output of a program."""
    yield codecs.getincrementaldecoder("utf-16")().decode(text).encode()


_KINDS = (
    _Kind("gzip", b"\x1f\x8b", "gunzip", _members(lambda: zlib.decompressobj(wbits=31))),
    _Kind("bzip2", b"BZh", "bunzip2", _members(bz2.BZ2Decompressor)),
    _Kind("xz", b"\xfd7zXZ\x00", "unxz", _members(lzma.LZMADecompressor)),
    _Kind("zstd", b"\x28\xb5\x2f\xfd", "unzstd", _zstd),
    _Kind("UTF-16", codecs.BOM_UTF16_LE, "iconv", _utf16),
    _Kind("UTF-16", codecs.BOM_UTF16_BE, "iconv", _utf16),
)

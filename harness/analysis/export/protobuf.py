"""Writes the parts of the wire format of protocol buffers that a trace for Perfetto needs.

The format is described at https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import struct
from functools import cache

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def integer(field: int, value: int) -> bytes:
    """Encodes a field of an integer type or an enumeration. Negative values are in two's complement."""
    return _key(field, _VARINT) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def fixed64(field: int, value: int) -> bytes:
    """Encodes a field of type `fixed64`."""
    return _key(field, _FIXED64) + struct.pack("<Q", value)


def double(field: int, value: float) -> bytes:
    """Encodes a field of type `double`."""
    return _key(field, _FIXED64) + struct.pack("<d", value)


def text(field: int, value: str) -> bytes:
    """Encodes a field of type `string`. Characters that cannot be encoded become question marks."""
    return message(field, value.encode("utf-8", errors="replace"))


def message(field: int, content: bytes) -> bytes:
    """Encodes a field that contains a message, which must already be encoded."""
    return _key(field, _BYTES) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Encodes a number in groups of seven bits, with the lowest group first."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:  # a fast path for nearly all lengths
        return bytes((value & 0x7F | 0x80, value >> 7))
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


@cache
def _key(field: int, kind: int) -> bytes:
    return varint(field << 3 | kind)

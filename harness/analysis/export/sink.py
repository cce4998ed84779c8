"""Defines the target of an export, which may be a file, standard output, or a compressor."""

from __future__ import annotations

from typing import Protocol


class BinarySink(Protocol):
    """A target that accepts bytes."""

    def write(self, data: bytes, /) -> object:
        """Writes bytes to the target."""

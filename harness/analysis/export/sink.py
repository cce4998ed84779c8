"""Where exports are written to: a file, standard output, or what packs them."""

from __future__ import annotations

from typing import Protocol


class BinarySink(Protocol):
    """Takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take some more."""

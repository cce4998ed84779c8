"""Numbers for requests."""

from __future__ import annotations

from typing import final


@final
class Number:
    """A number that is valid as long as its object is referenced.

    Compiled classes allow no weak references to their objects, so this module is not compiled in any build.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: int) -> None:
        self.value = value

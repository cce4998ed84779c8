"""Numbers for requests."""

from __future__ import annotations

from typing import final


@final
class Number:
    """A number that is valid as long as its object is referenced.

    Objects of compiled classes cannot be held weakly, so this module stays plain in every build.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: int) -> None:
        self.value = value

"""A number for what is asked for."""

from __future__ import annotations

from typing import final


@final
class Number:
    """It is alive as long as somebody asks for it.

    Objects of compiled classes cannot be held weakly, so this module stays plain in every build.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: int) -> None:
        self.value = value

"""Provides numbers that identify requests."""

from __future__ import annotations

from typing import final


@final
class Number:
    """A number that identifies a request. When this object is no longer referenced, the number can be reused.

    This module is never compiled, because objects of compiled classes do not support weak references.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: int) -> None:
        self.value = value

"""Provides numbers that identify requests."""

from __future__ import annotations

from typing import final


@final
class Number:
    """A number that remains in use until nothing refers to this object anymore.

    This module is never compiled, because objects of compiled classes do not support weak references.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: int) -> None:
        self.value = value

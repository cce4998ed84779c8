"""What values have in common: they are compared, hashed and shown by their fields.

Python compiles such methods anew for each dataclass, and every command makes some seventy of them first.
Therefore values inherit them: `@dataclass(frozen=True, repr=False, eq=False)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

_known: dict[type, Callable[[Any], Any]] = {}
"""Class -> what its values are compared by."""


class Value:
    """The beginning of a frozen dataclass; two of one class with equal fields are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """By each field that is compared; values of different classes differ."""
        if other.__class__ is not self.__class__:
            return NotImplemented
        content = _known.get(self.__class__) or _content(self.__class__)
        return bool(content(self) == content(other))

    def __hash__(self) -> int:
        """Of the same."""
        content = _known.get(self.__class__) or _content(self.__class__)
        return hash(content(self))

    def __repr__(self) -> str:
        """As it could be made again."""
        kind: Any = self.__class__
        shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(kind) if each.repr)
        return f"{kind.__qualname__}({shown})"


def _content(kind: Any) -> Callable[[Any], Any]:
    names = [each.name for each in fields(kind) if each.compare]
    found = _known[kind] = attrgetter(*names) if names else _nothing
    return found


def _nothing(_: Any) -> None:
    """What a class without compared fields is compared by."""

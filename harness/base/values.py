"""Base classes of immutable values, which are compared, hashed and shown based on their fields.

For each frozen dataclass, Python compiles five methods, and every command begins by creating about eighty of
these classes. To save this time, values inherit all methods except `__init__`, which `fixed` creates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")

_known: dict[type, Callable[[Any], Any]] = {}
"""Maps a class to the function that returns the compared fields of its values."""

_LEFT_OUT = object()
"""Stands for an argument that was omitted, if its default must be created anew for each object."""

_set = object.__setattr__


@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def fixed(*, slots: bool = True) -> Callable[[type[_T]], type[_T]]:
    """Convert a subclass of `Fixed` or `Value` to a dataclass, as `@dataclass(frozen=True)` would.

    Args:
        slots: whether values have no attributes other than their fields.
    """

    def made(kind: type[_T]) -> type[_T]:
        own: Any = dataclass(init=False, repr=False, eq=False, slots=slots)(kind)
        if "__init__" not in vars(kind):
            own.__init__ = _init_of(own)
        if slots:
            own.__getstate__, own.__setstate__ = _state, _set_state
        kept: type[_T] = own
        return kept

    return made


class Fixed:
    """The base class of immutable dataclasses with objects that are compared by identity."""

    __slots__ = ()

    def __setattr__(self, name: str, to: object) -> None:
        """Refuse to set an attribute, because users of the object expect that it doesn't change."""
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        kind: Any = self.__class__
        shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(kind) if each.repr)
        return f"{kind.__qualname__}({shown})"


class Value(Fixed):
    """The base class of immutable dataclasses with objects that are equal if their fields are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Compare all fields that take part in comparisons. Values of different classes differ."""
        if other.__class__ is not self.__class__:
            return NotImplemented
        content = _known.get(self.__class__) or _content(self.__class__)
        return bool(content(self) == content(other))

    def __hash__(self) -> int:
        content = _known.get(self.__class__) or _content(self.__class__)
        return hash(content(self))


def _content(kind: Any) -> Callable[[Any], Any]:
    names = [each.name for each in fields(kind) if each.compare]
    found = _known[kind] = attrgetter(*names) if names else _nothing
    return found


def _nothing(_: Any) -> None:
    """Returns None, so that all values of a class without compared fields are equal."""


def _init_of(kind: Any) -> Any:
    """Creates the `__init__` that a class would have as a frozen dataclass."""
    known: dict[str, Any] = {"_set": _set, "_LEFT_OUT": _LEFT_OUT}
    given, named, lines = ["self"], list[str](), list[str]()
    for each in fields(kind):
        name, told, to = each.name, each.name, each.name
        if each.default_factory is not MISSING:
            known[f"_made_{name}"] = each.default_factory
            told = f"{name}=_LEFT_OUT"
            to = f"_made_{name}() if {name} is _LEFT_OUT else {name}" if each.init else f"_made_{name}()"
        elif each.default is not MISSING:
            known[f"_default_{name}"] = each.default
            told = f"{name}=_default_{name}"
        if each.init:
            (named if each.kw_only else given).append(told)
        if each.init or each.default_factory is not MISSING:
            lines.append(f" _set(self,{name!r},{to})")
    if hasattr(kind, "__post_init__"):
        lines.append(" self.__post_init__()")
    arguments = ",".join([*given, "*", *named] if named else given)
    exec(f"def __init__({arguments}):\n" + ("\n".join(lines) or " pass"), known)  # noqa: S102 - as dataclasses do
    made = known["__init__"]
    made.__qualname__, made.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    made.__annotations__ = {each.name: each.type for each in fields(kind) if each.init} | {"return": None}
    return made


def _state(this: Any) -> list[Any]:
    return [getattr(this, each.name) for each in fields(this)]


def _set_state(this: Any, state: list[Any]) -> None:
    for each, to in zip(fields(this), state, strict=True):
        _set(this, each.name, to)

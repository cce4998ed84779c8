"""Defines a read-only mapping that can be pickled, unlike Python's own read-only view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar, final

_K = TypeVar("_K")
_V = TypeVar("_V")


@final
class Frozen(dict[_K, _V]):
    """A dictionary that can't be changed after its construction."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this mapping is read-only; copy it with dict(...) and change the copy")

    def __hash__(self) -> int:  # type: ignore[override] # a dictionary has no hash, because it may change
        return hash(frozenset(self.items()))

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Frozen[Any, Any]], tuple[dict[_K, _V]]]:
        """Pickle the mapping as a whole, because the default way would fill an empty mapping."""
        return Frozen, (dict(self),)


def changed(mapping: Mapping[_K, _V], changes: Mapping[_K, _V | None]) -> Frozen[_K, _V]:
    """Returns a copy with other values for some keys, and without the keys whose new value is None."""
    made = Frozen(mapping)
    for key, value in changes.items():
        if value is None:
            dict.pop(made, key, None)
        else:
            dict.__setitem__(made, key, value)
    return made

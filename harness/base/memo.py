"""Caches results in a limited amount of memory."""

from __future__ import annotations

from typing import TypeVar, final

_K = TypeVar("_K")
_V = TypeVar("_V")
_keep = dict.__setitem__  # `super()` takes twice as long


@final
class Memo(dict[_K, _V]):
    """A dictionary that caches results. When it is full, it discards all of them before it adds the next one.

    The cache is for results that callers usually need again. If every job of a trace is different, no result
    is needed again. The limit then keeps memory from growing with the trace.

    Args:
        most: the maximum number of results in the cache.
    """

    __slots__ = ("most",)

    def __init__(self, most: int = 4096) -> None:
        self.most = most

    def __setitem__(self, question: _K, answer: _V) -> None:
        if len(self) >= self.most:
            self.clear()
        _keep(self, question, answer)

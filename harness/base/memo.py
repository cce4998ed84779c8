"""Caches answers in a limited amount of memory."""

from __future__ import annotations

from typing import TypeVar, final

_K = TypeVar("_K")
_V = TypeVar("_V")
_keep = dict.__setitem__  # `super()` takes twice as long


@final
class Memo(dict[_K, _V]):
    """A cache of answers to questions, which discards all answers when it is full and starts again.

    The cache is for questions that usually recur. If every job of a trace is different, the questions don't
    recur. The limit then keeps memory from growing with the trace.

    Args:
        most: the maximum number of answers in the cache.
    """

    __slots__ = ("most",)

    def __init__(self, most: int = 4096) -> None:
        self.most = most

    def __setitem__(self, question: _K, answer: _V) -> None:
        if len(self) >= self.most:
            self.clear()
        _keep(self, question, answer)

"""Caches answers within bounded memory."""

from __future__ import annotations

from typing import TypeVar, final

_K = TypeVar("_K")
_V = TypeVar("_V")
_keep = dict.__setitem__  # `super()` takes twice as long


@final
class Memo(dict[_K, _V]):
    """A cache, question -> answer; when it is full, it drops all answers and starts again.

    It is for questions that usually recur. In a trace in which every job is different they do not recur, and
    memory must not grow with the trace.

    Args:
        most: the largest number of kept answers.
    """

    __slots__ = ("most",)

    def __init__(self, most: int = 4096) -> None:
        self.most = most

    def __setitem__(self, question: _K, answer: _V) -> None:
        """Keep an answer."""
        if len(self) >= self.most:
            self.clear()
        _keep(self, question, answer)

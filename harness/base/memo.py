"""Answers that are kept so that they are worked out once, without filling the memory."""

from __future__ import annotations

from typing import TypeVar, final

_K = TypeVar("_K")
_V = TypeVar("_V")
_keep = dict.__setitem__  # `super()` takes twice as long


@final
class Memo(dict[_K, _V]):
    """Question -> answer; when it is full it forgets all and starts over.

    It is for questions that recur, in a trace in which they might not: where every job is different, what is
    kept must not grow with the trace.

    Args:
        most: how many answers are kept.
    """

    __slots__ = ("most",)

    def __init__(self, most: int = 4096) -> None:
        self.most = most

    def __setitem__(self, question: _K, answer: _V) -> None:
        """Keep an answer."""
        if len(self) >= self.most:
            self.clear()
        _keep(self, question, answer)

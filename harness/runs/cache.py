"""Caches results that are computed from a trace and a cluster, for as long as both exist.

Traces and clusters never change, so later replays of the same trace on the same cluster can reuse results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, final
from weakref import ref

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

_V = TypeVar("_V")

_MOST = 16  # The maximum number of answers about the same trace on the same cluster.


class _Known(NamedTuple):
    """Questions and answers about a trace and a cluster. They are dropped when either object is collected."""

    trace: ref[Trace]
    cluster: ref[Cluster]
    answers: list[tuple[Any, Any]]


@final
class Lasting(Generic[_V]):
    """A cache for the results of one function of a trace and a cluster."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], _Known] = {}

    def answer(self, trace: Trace, cluster: Cluster, find: Callable[[], _V], question: Any = None) -> _V:
        """Returns the cached result, or calls `find` and caches its result. Errors are not cached.

        `question` contains all values that the result depends on, apart from the trace and the cluster. They
        are compared with `==`.
        """
        key = id(trace), id(cluster)
        known = self._known.get(key)
        if known is None:

            def forget(_: object) -> None:
                self._known.pop(key, None)

            known = self._known[key] = _Known(ref(trace, forget), ref(cluster, forget), [])
        for asked, answer in known.answers:
            if asked == question:
                found: _V = answer
                return found
        found = find()
        if len(known.answers) == _MOST:
            known.answers.clear()
        known.answers.append((question, found))
        return found

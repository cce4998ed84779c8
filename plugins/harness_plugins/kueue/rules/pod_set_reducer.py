"""Partial admission: the most pods that work, between all and as few as a job allows.

Upstream: `PodSetReducer` in pkg/scheduler/flavorassigner/podset_reducer.go (KEP 420).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from harness_plugins.kueue.state.asks import Asks

_T = TypeVar("_T")


def most_that_work(
    asks: Asks, left: tuple[int, ...], tried: Callable[[tuple[int, ...]], _T | None]
) -> _T | None:
    """Kueue's bisection for the most pods that work; right only if fewer pods never work worse.

    It begins with all pods, including ended ones, and so may find more than are left. Pod sets without a pod
    left are skipped.

    Args:
        asks: the request.
        left: the pods of each pod set that have not ended.
        tried: the result for this many pods; None if they do not work.
    """
    reducible = [
        max(0, count - pod_set.min_count) for count, pod_set in zip(asks.full, asks.pod_sets, strict=True)
    ]
    steps = sum(reducible)
    if not steps:
        return None
    low, high = 0, steps + 1
    found: tuple[int, _T] | None = None
    while low < high:
        step = (low + high) // 2
        answer = tried(
            tuple(
                count - most * step // steps if any_left else 0
                for count, most, any_left in zip(asks.full, reducible, left, strict=True)
            )
        )
        if answer is not None:
            found = step, answer
            high = step
        else:
            low = step + 1
    return found[1] if found is not None and found[0] == low else None

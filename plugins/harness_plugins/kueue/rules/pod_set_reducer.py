"""Partial admission, which finds the largest number of pods that can be admitted, down to the minimum.

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
    """Finds the largest number of pods that works, by the same bisection as in Kueue.

    The bisection assumes that a smaller number of pods works if a larger number works. It starts with all
    pods, including finished pods, so the result can be larger than the number of pods that are left. Pod sets
    whose pods have all finished are skipped.

    Args:
        asks: the request.
        left: the number of pods in each pod set that have not finished.
        tried: returns the result for a number of pods in each pod set, or None if these numbers do not work.
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

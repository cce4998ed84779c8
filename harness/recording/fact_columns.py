"""What happened in a replay, as columns of numbers and texts."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from harness.engine.events import NEVER, Amounts, Fact
from harness.memo import Memo

_BATCH = 1 << 11
"""Facts that are taken apart together: few enough to be in the processor's cache still."""

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=dict, check_circular=False)


@final
class FactColumns:
    """Facts that are not written yet: a column for each of their attributes.

    `amounts`, `dropped` and `unused` are those of the few rows that have any, by row.

    Args:
        texts: turns flavors and details into text.
        most: how many it takes; a power of two.
        full: called when it has so many.
    """

    def __init__(self, texts: Texts, most: int, full: Callable[[], None]) -> None:
        self.job, self.pods, self.pod, self.successor, self.by = (array("i") for _ in range(5))
        self.time, self.cycle = array("q"), array("q")
        self.action, self.alive, self.holding, self.quota = (array("b") for _ in range(4))
        self.pod_name: list[str | None] = []
        self.reason: list[str | None] = []
        self.node: list[str | None] = []
        self.flavors: list[str | None] = []
        self.detail: list[str | None] = []
        self.amounts: dict[int, Amounts] = {}
        self.dropped: dict[int, Amounts] = {}
        self.unused: dict[int, Amounts] = {}
        self._texts = texts
        self._most = most
        self._full = full
        self._batch: list[Fact] = []

    def add(self, fact: Fact) -> None:
        """Append a fact."""
        batch, flavors, detail = self._batch, fact.flavors, fact.detail
        batch.append(fact)
        # At once: what cannot be written is the fault of the policy that has just said it.
        self.flavors.append(None if flavors is None else self._texts.of(flavors))
        self.detail.append(None if detail is None else self._texts.of(detail))
        if len(batch) == _BATCH:
            self.settle()
            if len(self.time) == self._most:
                self._full()

    def settle(self) -> None:
        """Complete the columns; those of the last facts are not until this is called."""
        if not self._batch:
            return
        row = len(self.time)
        (
            time, cycle, action, jobs, pods, amounts, pod, successor, by, reason, node, _, _, alive, holding,
            quota, dropped, unused,
        ) = zip(*self._batch, strict=True)  # fmt: skip
        self._batch.clear()
        self.time.extend(time)
        self.cycle.extend(cycle)
        self.action.extend(action)
        self.job.extend([job.index for job in jobs])
        self.pods.extend(pods)
        self.pod.extend(pod)
        self.successor.extend(successor)
        self.by.extend([NEVER if job is None else job.index for job in by])
        self.pod_name += [
            None if number == NEVER else job.pod_name(number, recreated)
            for job, number, recreated in zip(jobs, pod, successor, strict=True)
        ]
        self.reason += reason
        self.node += node
        self.alive.extend(alive)
        self.holding.extend(holding)
        self.quota.extend(quota)
        for kept, given in ((self.amounts, amounts), (self.dropped, dropped), (self.unused, unused)):
            _keep(kept, given, row)


@final
class Texts:
    """Objects as canonical JSON; one that was seen before is not turned into text again."""

    def __init__(self) -> None:
        self._seen: Memo[int, tuple[object, str]] = Memo()

    def of(self, value: Mapping[str, Any]) -> str:
        """Its text."""
        seen = self._seen.get(id(value))
        if seen is not None and seen[0] is value:
            return seen[1]
        text = as_json(value)
        self._seen[id(value)] = (value, text)
        return text


def as_json(value: Mapping[str, Any]) -> str:
    """Canonical JSON: equal values give equal text."""
    return _JSON.encode(value)


def _keep(kept: dict[int, Amounts], given: Sequence[Amounts | None], row: int) -> None:
    """Add the amounts of the rows from `row` on that have any."""
    kept.update((at, each) for at, each in enumerate(given, row) if each is not None)

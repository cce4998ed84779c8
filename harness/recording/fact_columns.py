"""What happened in a replay, as columns."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from typing import Any, TypeVar, final

from harness.engine.events import NEVER, Amounts, Fact
from harness.memo import Memo

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=dict, check_circular=False)

_V = TypeVar("_V")


@final
class FactColumns:
    """Facts that are not written yet: a column for each of their attributes.

    What few of them have is kept by row: the preemptor's index, reason, flavors and detail (as text),
    `amounts`, `dropped` and `unused`; so is a pod's successor where it is not 0.

    Attributes:
        change: what changes with each row, `alive * 9 + holding * 3 + quota`.
    """

    __slots__ = (
        "action", "amounts", "by", "change", "cycle", "detail", "dropped", "flavors", "job", "node", "pod",
        "pod_name", "pods", "reason", "rows", "successor", "time", "unused",
    )  # fmt: skip

    def __init__(self) -> None:
        self.rows = 0
        self.time, self.cycle = array("q"), array("q")
        self.job, self.pods, self.pod = (array("i") for _ in range(3))
        self.action, self.change = array("b"), array("b")
        self.pod_name: list[str | None] = []
        self.node: list[str | None] = []
        self.successor: dict[int, int] = {}
        self.by: dict[int, int] = {}
        self.reason: dict[int, str] = {}
        self.flavors: dict[int, str] = {}
        self.detail: dict[int, str] = {}
        self.amounts: dict[int, Amounts] = {}
        self.dropped: dict[int, Amounts] = {}
        self.unused: dict[int, Amounts] = {}

    def add(self, fact: Fact, texts: Texts) -> int:
        """Append a fact; answers how many there are."""
        (
            time, cycle, action, job, pods, alive, holding, quota, amounts, pod, successor, node, detail, by,
            reason, flavors, dropped, unused,
        ) = fact  # fmt: skip
        row = self.rows
        # First what may fail: what cannot be written is the fault of the policy that has just said it.
        if flavors is not None:
            self.flavors[row] = texts.of(flavors)
        if detail is not None:
            self.detail[row] = texts.of(detail)
        if successor:
            self.successor[row] = successor
        if by is not None:
            self.by[row] = by.index
        if reason is not None:
            self.reason[row] = reason
        if amounts is not None:
            self.amounts[row] = amounts
        if dropped is not None:
            self.dropped[row] = dropped
        if unused is not None:
            self.unused[row] = unused
        self.time.append(time)
        self.cycle.append(cycle)
        self.action.append(action)
        self.job.append(job.index)
        self.pods.append(pods)
        self.pod.append(pod)
        self.pod_name.append(None if pod == NEVER else job.pod_name(pod, successor))
        self.node.append(node)
        self.change.append(alive * 9 + holding * 3 + quota)
        self.rows = row + 1
        return row + 1

    def whole(self, few: Mapping[int, _V]) -> list[_V | None]:
        """A column of which few rows have anything."""
        column: list[_V | None] = [None] * self.rows
        for row, value in few.items():
            column[row] = value
        return column


@final
class Texts:
    """Objects as canonical JSON; one that was seen before is not turned into text again."""

    def __init__(self) -> None:
        self._seen: Memo[int, tuple[object, str]] = Memo()

    def of(self, value: Mapping[str, Any]) -> str:
        """Its text; equal objects have equal texts."""
        seen = self._seen.get(id(value))
        if seen is not None and seen[0] is value:
            return seen[1]
        text = _JSON.encode(value)
        self._seen[id(value)] = (value, text)
        return text

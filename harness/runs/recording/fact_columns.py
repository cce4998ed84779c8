"""Stores the events of a replay in columns."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar, final

from harness.base.tables.parquet import extend
from harness.engine.events import Amounts, Fact
from harness.engine.texts import Texts

_INDEX = attrgetter("index")

_V = TypeVar("_V")


@final
class FactColumns:
    """Facts that have not been written yet, with one column for each attribute.

    Attributes that only a few facts have are stored by row. These are the flavors and the detail (as text),
    `amounts`, `dropped`, `unused`, and the successor of a pod unless it is 0. The preemptor is stored as an
    index.
    """

    __slots__ = (
        "action", "alive", "amounts", "by", "cycle", "detail", "dropped", "flavors", "holding", "job", "node",
        "pod", "pods", "quota", "reason", "rows", "successor", "time", "unused",
    )  # fmt: skip

    def __init__(self) -> None:
        self.rows = 0
        self.time, self.cycle = array("q"), array("q")
        self.job, self.pods, self.pod = (array("i") for _ in range(3))
        self.action = array("b")
        self.alive, self.holding, self.quota = (array("b") for _ in range(3))
        self.node: list[str | None] = []
        self.by: list[int | None] = []
        self.reason: list[str | None] = []
        self.successor: dict[int, int] = {}
        self.flavors: dict[int, str] = {}
        self.detail: dict[int, str] = {}
        self.amounts: dict[int, Amounts] = {}
        self.dropped: dict[int, Amounts] = {}
        self.unused: dict[int, Amounts] = {}

    def tell(self, fact: Fact, row: int, texts: Texts) -> None:
        """Convert the objects in a fact to text before the fact is added as row `row`.

        The conversion happens immediately, so that an error is attributed to the policy that has just
        reported the fact.

        Raises:
            UnwritableError: an object can't be converted.
        """
        if fact.flavors is not None:
            self.flavors[row] = texts.of_flavors(fact)
        if fact.detail is not None:
            self.detail[row] = texts.of_detail(fact)

    def add(self, facts: Sequence[Fact]) -> None:
        """Append facts column by column, which is much faster than row by row."""
        (
            time, cycle, action, job, pods, alive, holding, quota, amounts, pod, successor, node, _, by,
            reason, _, dropped, unused,
        ) = zip(*facts, strict=True)  # fmt: skip
        few: tuple[tuple[dict[int, Any], Sequence[Any]], ...] = (
            (self.amounts, amounts),
            (self.dropped, dropped),
            (self.unused, unused),
        )
        for kept, values in few:
            if values.count(None) < len(values):
                kept.update((row, each) for row, each in enumerate(values, self.rows) if each is not None)
        if any(successor):
            self.successor.update((row, each) for row, each in enumerate(successor, self.rows) if each)
        for column, values in (
            (self.time, time),
            (self.cycle, cycle),
            (self.action, action),
            (self.job, list(map(_INDEX, job))),
            (self.pods, pods),
            (self.pod, pod),
            (self.alive, alive),
            (self.holding, holding),
            (self.quota, quota),
        ):
            extend(column, values)
        self.node += node
        if by.count(None) < len(by):
            by = [None if each is None else each.index for each in by]
        self.by += by
        self.reason += reason
        self.rows += len(facts)

    def whole(self, few: Mapping[int, _V]) -> list[_V | None]:
        """Returns a column with one entry per row. Rows that are not in `few` have the entry None."""
        column: list[_V | None] = [None] * self.rows
        for row, value in few.items():
            column[row] = value
        return column

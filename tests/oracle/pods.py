"""How many pods of each pod set of a job ask for something, and hold it: what each decision moves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Amounts: TypeAlias = tuple[int, ...]
"""Of each resource how much."""


class Part(NamedTuple):
    """A pod set of a job: its name, how many pods it has, and what each of them asks for."""

    name: str
    pods: int
    asks: Amounts


class Moved(NamedTuple):
    """How many pods more of each pod set ask for something, waiting or running, and how many more hold it."""

    asking: Sequence[int]
    holding: Sequence[int]


def parts_of(row: Mapping[str, Any], resources: Sequence[str]) -> list[Part]:
    """The pod sets of a job; one where all of its pods ask for the same."""
    text = row.get("pod_sets")
    if text is None:
        return [Part("", row["pods"], tuple(row[f"request.{each}"] // row["pods"] for each in resources))]
    return [
        Part(each["name"], each["pods"], tuple(each["requests"].get(name, 0) for name in resources))
        for each in json.loads(text)
    ]


def total(parts: Sequence[Part], counts: Sequence[int]) -> Amounts:
    """What so many pods of each pod set ask for together."""
    columns = zip(*(part.asks for part in parts), strict=True)
    return tuple(sum(count * ask for count, ask in zip(counts, column, strict=True)) for column in columns)


def place_of(parts: Sequence[Part], pod: int) -> int:
    """The pod set of a pod: they are numbered through all of them, in order."""
    for place, part in enumerate(parts):
        if pod < part.pods:
            return place
        pod -= part.pods
    raise AssertionError("no such pod")


def admitted(parts: Sequence[Part], left: Sequence[int], row: Mapping[str, Any]) -> list[int]:
    """How many pods of each pod set an admission is of.

    Where they are fewer than there are, the admission's detail says which; else the last ones are left out.
    """
    pods = row["pods"]
    counts = json.loads(row["detail"] or "{}").get("counts") or {}
    found = [min(counts.get(part.name, each), each) for part, each in zip(parts, left, strict=True)]
    if sum(found) != pods:
        found, room = [], pods
        for each in left:
            found.append(min(each, room))
            room -= found[-1]
    assert sum(found) == pods
    return found


@dataclass(eq=False)
class Pods:
    """Those of one job.

    Args:
        parts: its pod sets.
    """

    parts: Sequence[Part]

    def __post_init__(self) -> None:
        self.left = [part.pods for part in self.parts]  # that have not ended
        self.asking, self.holding = ([0] * len(self.parts) for _ in range(2))

    @property
    def waiting(self) -> list[Amounts]:
        """What those that wait ask for, of each pod set that has any."""
        pairs = zip(self.parts, self.asking, self.holding, strict=True)
        return [part.asks for part, asking, holding in pairs if asking > holding]

    def take(self, row: Mapping[str, Any], *, holds: bool) -> Moved:
        """What a decision moves; `holds` if pods hold something from then on."""
        action, pod, count = row["action"], row["pod_number"], row["pods"]
        asking, holding = list(self.asking), list(self.holding)
        one = None if pod is None else place_of(self.parts, pod)
        if action in ("submit", "requeue", "reject"):
            if one is not None:
                self.asking[one] += 1
            else:
                self.asking = list(self.holding if action == "reject" else self.left)
            assert abs(sum(self.asking) - sum(asking)) == count, row
        elif action == "admit":
            self.asking = admitted(self.parts, self.left, row)
        elif action in ("gone", "finish"):
            gone = list(self.holding) if one is None else [place == one for place in range(len(self.parts))]
            assert sum(gone) == count, row
            for place, each in enumerate(gone):
                self.asking[place] -= each
                self.holding[place] -= each
                self.left[place] -= each * (action == "finish")
        if holds and one is not None:
            self.holding[one] += 1
        elif holds:
            self.holding = list(self.asking)
        return Moved(
            [after - before for after, before in zip(self.asking, asking, strict=True)],
            [after - before for after, before in zip(self.holding, holding, strict=True)],
        )

"""Creates random traces with bursts, gangs, priorities, jobs of length zero and protected pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate
from typing import Any

import polars as pl

from harness.base.units import INT64_MAX, SECOND
from harness.testing.worlds.chance import Chance
from harness.testing.worlds.clusters import GPU, LARGEST, MOST_NODES, SPOT, TAINT, Units
from harness.trace.schema import REQUEST, Kind, column_of

Row = dict[str, Any]

PROTECTED = "protected"
"""A label of pods that must not be preempted, for plugins that use such labels."""

POD_GROUP = "scheduling.x-k8s.io/pod-group"
"""The label of pods that contains the name of their pod group."""

_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
_DURATIONS = (0, 1, SECOND, 5 * SECOND, 20 * SECOND, 20 * SECOND, 60 * SECOND, 200 * SECOND)
_LONG = (100 * SECOND,) * 8
_SIZES = {"cpu": (1, 1, 1, 2, 2, 3, 4), "memory": (0, 1, 1, 2, 4), GPU: (0, 0, 0, 1, 1, 2)}
_GAPS = (1, SECOND, 5 * SECOND, 10 * SECOND, 20 * SECOND, 30 * SECOND)
_MAPS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))


@dataclass(frozen=True)
class Kin:
    """Common properties of the jobs of one world.

    Attributes:
        resources: the resources that jobs can request.
        queues: the queues of the jobs. The first queues are busier at the beginning, so they borrow.
        flavors: the kinds of nodes that jobs can require.
        fussy: whether some jobs have selectors, tolerations and labels.
        several: whether some jobs have two pod sets, or accept fewer pods than they request.
        own: whether some jobs have their own grace period or checkpoint interval.
    """

    resources: Sequence[str]
    queues: Sequence[str]
    flavors: Sequence[str]
    fussy: bool
    several: bool
    own: bool


def rows(chance: Chance, kin: Kin, count: int) -> list[Row]:
    """Returns `count` jobs with requests in small units, with one row for each pod set."""
    gaps = [chance.choice(_GAPS) for _ in range(chance.between(1, 5))]
    instants = list(accumulate([0, *gaps]))
    priorities = chance.choice(((0,), (0, 1), (0, 1, 2, 3), (0, 1, 2, 3), (-5, 0, 7)))
    shapes = sorted((_shape(chance, kin) for _ in range(chance.between(1, 5))), key=_cores)
    found: list[Row] = []
    when = sorted(max(0, chance.between(-1, len(instants) - 1)) for _ in range(count))
    for number, place in enumerate(when):
        busy = kin.queues[: 1 + len(kin.queues) * (place + 1) // (len(instants) + 1)]
        job = {
            "job_id": f"j{number:02}",
            "submit_time": instants[place],
            "duration": chance.choice(_DURATIONS if place else (*_DURATIONS, *_LONG)),
            "queue": chance.choice(busy if chance.percent(70) else kin.queues),
            "priority": chance.choice(priorities) if place else priorities[0],
            "gang": None if chance.percent(60) else chance.percent(50),
            "preemption_policy": "Never" if chance.percent(10) else None,
            "grace_period": chance.choice((0, 3 * SECOND, 45 * SECOND))
            if _now_and_then(kin, chance)
            else None,
            "checkpoint_interval": chance.choice((1, 3 * SECOND)) if _now_and_then(kin, chance) else None,
        }
        # Later jobs are larger, so that they need several victims.
        found += [
            job | part for part in shapes[max(chance.below(len(shapes)) for _ in range(1 + bool(place)))]
        ]
    return found


def _cores(shape: Sequence[Row]) -> int:
    return sum(int(part["pods"] * part[f"{REQUEST}cpu"]) for part in shape)


def _now_and_then(kin: Kin, chance: Chance) -> bool:
    return kin.own and chance.percent(20)


def _shape(chance: Chance, kin: Kin) -> list[Row]:
    """Returns the pod sets of a job, which request at most `LARGEST` in total."""
    sets = 2 if kin.several and chance.percent(30) else 1
    pods = [chance.choice((1, 1, 1, 1, 2, 4)) for _ in range(sets)]
    left = dict(LARGEST)
    found = []
    for number, count in enumerate(pods):
        part: Row = {"pod_set": f"p{number}", "pods": count, "min_pods": count}
        for resource in kin.resources:
            amount = min(left[resource] // count, chance.choice(_SIZES[resource]))
            part[f"{REQUEST}{resource}"] = amount
            left[resource] -= amount * count
        if sets == 1 and kin.several and chance.percent(40):
            part["min_pods"] = chance.between(1, count)
        part |= _wishes(chance, kin, gpus=bool(part.get(f"{REQUEST}{GPU}")))
        found.append(part)
    return found


def _wishes(chance: Chance, kin: Kin, *, gpus: bool) -> Row:
    """Returns columns that restrict the nodes of pods, or protect pods from preemption."""
    if not kin.fussy:
        return {
            "node_selector": None,
            "tolerations": '[{"operator": "Exists"}]' if gpus else None,
            "labels": None,
        }
    selector = chance.choice(([], [], [], [], [("kind", chance.choice(kin.flavors))], [("zone", "a")]))
    tolerated = [taint for taint in (TAINT, SPOT) if chance.percent(80 if gpus and taint is TAINT else 30)]
    tolerations = ", ".join(f'{{"key": "{taint["key"]}", "operator": "Exists"}}' for taint in tolerated)
    safe = [(PROTECTED, "yes"), (_PREEMPTIBLE, "false")] if chance.percent(10) else []
    return {"node_selector": _map(selector), "tolerations": f"[{tolerations}]", "labels": _map(safe)}


def _map(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]] | None:
    return [{"key": key, "value": value} for key, value in pairs] or None


def pod_groups(chance: Chance, found: Sequence[Row]) -> dict[str, int]:
    """Puts some pod sets of several jobs into pod groups, and returns the minimum size of each group."""
    least = {f"g{number}": chance.between(1, 4) for number in range(chance.between(1, 3))}
    for row in found:
        if chance.percent(40):
            row["labels"] = [*(row["labels"] or ()), {"key": POD_GROUP, "value": chance.choice(tuple(least))}]
    return least


def largest_unit(found: Sequence[Row], resource: str) -> int:
    """Returns the largest unit of a resource for which the sum of all requests fits a 64-bit integer.

    The sum of all capacities must also fit.
    """
    asked: int = sum(row["pods"] * row[f"{REQUEST}{resource}"] for row in found)
    return INT64_MAX // max(MOST_NODES * LARGEST[resource], asked)


def frame_of(found: Sequence[Row], units: Units) -> pl.DataFrame:
    """Returns the rows as a trace with the types of the schema, without empty columns."""
    columns = {}
    for name in found[0]:
        values = [row[name] for row in found]
        if all(value is None for value in values):
            continue
        column = column_of(name)
        assert column is not None
        if column.kind in (Kind.TIME, Kind.DURATION):
            values = [None if value is None else timedelta(microseconds=value) for value in values]
            columns[name] = pl.Series(values, dtype=pl.Duration("us"))
        elif name.startswith(REQUEST):
            unit = units[name.removeprefix(REQUEST)]
            columns[name] = pl.Series([value * unit for value in values], dtype=pl.Int64)
        elif column.kind is Kind.MAP:
            columns[name] = pl.Series(values, dtype=_MAPS)
        else:
            columns[name] = pl.Series(values, dtype=column.kind.stored(pl.Boolean()))
    return pl.DataFrame(columns)

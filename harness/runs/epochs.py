"""What changes of a run's cluster, as `run.json` keeps it, and the spans of time between these changes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from harness.cluster.changes.edits import Edit
from harness.cluster.content import default_of, told
from harness.cluster.model import Cluster
from harness.engine.events import NEVER
from harness.runs.tenants import cohorts, quotas

_FACTS = ("capacity", "queues", "cohorts")
"""What `run.json` says of a cluster that may change with quotas, each a table by name."""


_SORTS = {
    "stops": ("stopPolicy",),
    "moves": ("cohort", "parent"),
    "quotas": ("nominalQuota", "borrowingLimit", "lendingLimit", "min", "max"),
    "weights": ("weight",),
    "policies": ("preemption",),
    "priorities": ("value", "globalDefault"),
    "cordons": ("unschedulable",),
    "taints": ("taints",),
    "resizes": ("allocatable",),
}
"""What a change is called -> the beginnings of the fields that it is of; the first one that fits counts."""


class Epoch(NamedTuple):
    """A span of time in which nothing of the cluster changes.

    Attributes:
        begin: its first instant, microseconds since the origin; `NEVER` of the first one.
        cluster: what `run.json` says of the cluster then.
    """

    begin: int
    cluster: Mapping[str, Any]


class Step(NamedTuple):
    """What there is of something from an instant on.

    Attributes:
        time: the instant, microseconds since the origin; `NEVER` of the first one.
        amount: how much; None where it has no end, or there is none.
    """

    time: int
    amount: int | None


def events(cluster: Cluster, *, by_elastic_quotas: bool) -> list[dict[str, Any]]:
    """What changes of a cluster, for `run.json`.

    Each instant has `edits`, the objects that change with the fields that do, before and after. It has of
    `capacity`, `queues` and `cohorts` what differs from before, null for what is gone. `allocatable` says
    what nodes had before and have then, null where they are not there.
    """
    found = []
    before = _facts(cluster, by_elastic_quotas=by_elastic_quotas)
    for at, edits in cluster.changes:
        for edit in edits:
            cluster = edit.on(cluster)
        if all(edit.kind == "Node" for edit in edits):
            after = {**before, "capacity": dict(cluster.capacity)}
        else:
            after = _facts(replace(cluster, changes=()), by_elastic_quotas=by_elastic_quotas)
        found.append(
            {
                "at_us": at,
                "edits": [_edit(each) for each in edits],
                **({"allocatable": amounts} if (amounts := _amounts(edits)) else {}),
                **{name: other for name in _FACTS if (other := _others(before[name], after[name]))},
            }
        )
        before = after
    return found


def epochs(cluster: Mapping[str, Any]) -> list[Epoch]:
    """The spans of time in which nothing changes.

    Args:
        cluster: what `run.json` says of the cluster.
    """
    found = [Epoch(NEVER, cluster)]
    for event in cluster.get("events", ()):
        facts = {}
        for name in _FACTS:
            known = {**found[-1].cluster.get(name, {}), **event.get(name, {})}
            facts[name] = {key: value for key, value in known.items() if value is not None}
        found.append(Epoch(event["at_us"], {**found[-1].cluster, **facts}))
    return found


def steps(those: Sequence[Epoch], amount: Callable[[Mapping[str, Any]], int | None]) -> list[Step]:
    """The change points of an amount of a cluster, the first of them when nothing has changed yet.

    Args:
        those: the spans of time in which nothing changes.
        amount: how much there is, by what `run.json` says of the cluster.
    """
    found: list[Step] = []
    for begin, cluster in those:
        now = amount(cluster)
        if not found or found[-1].amount != now:
            found.append(Step(begin, now))
    return found


def summary(those: Sequence[Mapping[str, Any]]) -> str:
    """How many objects change, and of what sort these changes are: `5 (3 quotas, 2 stops)`; "" for none."""
    sorts = Counter(_sort(edit) for event in those for edit in event["edits"])
    parts = ", ".join(f"{count:,} {_counted(sort, count)}" for sort, count in sorted(sorts.items()))
    return f"{sorts.total():,} ({parts})" if sorts else ""


def shared(several: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The events that all of several runs have: the same objects become the same at the same instant.

    Args:
        several: `events` of each run.
    """
    others = [
        {(each["at_us"], str(edit)) for each in those for edit in each["edits"]} for those in several[1:]
    ]
    found = []
    for event in several[0]:
        edits = [
            edit for edit in event["edits"] if all((event["at_us"], str(edit)) in those for those in others)
        ]
        if edits:
            found.append({"at_us": event["at_us"], "edits": edits})
    return found


def sentence(edit: Mapping[str, Any]) -> str:
    """An object that changes, for people: `ClusterQueue a: stopPolicy None -> Hold`."""
    if edit["how"] != "changed":
        return f"{edit['kind']} {edit['name']} is {edit['how']}"
    usual = {name: default_of(edit["kind"], name) for name in edit["fields"]}
    fields = [
        f"{name} {usual[name] if before is None else before} -> {usual[name] if after is None else after}"
        for name, (before, after) in edit["fields"].items()
    ]
    return (
        f"{edit['kind']} {edit['name']}: {', '.join(fields) or 'its manifest says the same in other words'}"
    )


def _counted(sort: str, count: int) -> str:
    """What changes of a sort are called, where there are this many."""
    if count > 1 or not sort.endswith("s"):
        return sort
    return sort.removesuffix("ies") + "y" if sort.endswith("ies") else sort.removesuffix("s")


def _sort(edit: Mapping[str, Any]) -> str:
    """What a change is about, in a word."""
    if edit["how"] != "changed":
        return str(edit["how"])
    for sort, beginnings in _SORTS.items():
        if any(name.startswith(beginnings) for name in edit["fields"]):
            return sort
    return "others"


def number_at(those: Sequence[Epoch], time: int) -> int:
    """The number of the epoch of an instant."""
    return bisect_right(those, time, key=lambda each: each.begin) - 1


def _facts(cluster: Cluster, *, by_elastic_quotas: bool) -> dict[str, dict[str, Any]]:
    return {
        "capacity": dict(cluster.capacity),
        "queues": quotas(cluster, by_elastic_quotas=by_elastic_quotas),
        "cohorts": cohorts(cluster),
    }


def _amounts(edits: Sequence[Edit]) -> dict[str, list[dict[str, int] | None]]:
    """Of nodes that have other amounts than before, or came or went, both."""
    found: dict[str, list[dict[str, int] | None]] = {}
    for edit in edits:
        if edit.kind == "Node":
            before, after = (
                None if each is None else dict(each.allocatable) for each in (edit.before, edit.after)
            )
            if before != after:
                found[edit.name] = [found.get(edit.name, [before])[0], after]
    return found


def _others(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What is another than before, by name; None for what is gone."""
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return changed | {name: None for name in before if name not in after}


def _edit(edit: Edit) -> dict[str, Any]:
    """An object that changes, with the fields that do; all fields of one that is new or gone."""
    before, after = ({} if each is None else told(each) for each in (edit.before, edit.after))
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    how = "removed" if edit.after is None else "added" if edit.before is None else "changed"
    fields = {name: [before.get(name), after.get(name)] for name in names}
    known = {"announced": True} if edit.announced else {}
    return {"kind": edit.kind, "name": edit.name, "how": how, "fields": fields, **known}

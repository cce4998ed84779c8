"""The changes of a run's cluster as stored in `run.json`, and the spans of time between them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from harness.base.units import format_duration
from harness.cluster.changes.edits import Edit
from harness.cluster.content import default_of, told
from harness.cluster.model import Cluster
from harness.engine.events import NEVER
from harness.plugins.measurement import Window
from harness.runs.tenants import cohorts, quotas

_FACTS = ("capacity", "queues", "cohorts")
"""The entries in `run.json` that describe a cluster and can change with quotas. Each maps names to values."""


SORTS = {
    "stops": ("stopPolicy",),
    "moves": ("cohort", "parent"),
    "quotas": ("nominalQuota", "borrowingLimit", "lendingLimit", "min", "max"),
    "weights": ("weight",),
    "policies": ("preemption",),
    "priorities": ("value", "globalDefault"),
    "drains": ("drain",),
    "cordons": ("unschedulable",),
    "partitions": ("ready",),
    "taints": ("taints",),
    "resizes": ("allocatable",),
}
"""Maps each kind of change to the prefixes of the fields that it covers. The first matching kind is used."""


class Epoch(NamedTuple):
    """A span of time during which the cluster does not change.

    Attributes:
        begin: when the span begins, in microseconds since the origin, or `NEVER` for the first span.
        cluster: the cluster during the span, as stored in `run.json`.
    """

    begin: int
    cluster: Mapping[str, Any]


class Step(NamedTuple):
    """A quantity that applies from a certain time on.

    Attributes:
        time: the time, in microseconds since the origin, or `NEVER` for the first step.
        amount: the quantity, or None if it is unlimited or absent.
    """

    time: int
    amount: int | None


def events(cluster: Cluster, *, by_elastic_quotas: bool) -> list[dict[str, Any]]:
    """Returns the changes of a cluster as stored in `run.json`.

    Each entry describes the changes at one time. `edits` lists the changed objects, with the old and new
    values of their changed fields. `capacity`, `queues` and `cohorts` contain the changed entries, with null
    for removed entries. `allocatable` contains the quantities of nodes before and after the change, with null
    for an absent node.
    """
    found = []
    texts: dict[int, Mapping[str, str]] = {}  # maps the identity of an object to its fields as text
    known: dict[tuple[int, int, bool], dict[str, Any]] = {}  # the same objects change again and again
    before = _facts(cluster, by_elastic_quotas=by_elastic_quotas)
    for at, edits in cluster.changes:
        for edit in edits:
            cluster = edit.on(cluster)
        # A quota of a plugin's kind may depend on the nodes.
        if all(edit.kind == "Node" for edit in edits) and not cluster.custom_resources:
            after = {**before, "capacity": dict(cluster.capacity)}
        else:
            after = _facts(replace(cluster, changes=()), by_elastic_quotas=by_elastic_quotas)
        found.append(
            {
                "at_us": at,
                "edits": [_edit(each, texts, known) for each in edits],
                **({"allocatable": amounts} if (amounts := _amounts(edits)) else {}),
                **{
                    name: other
                    for name in _FACTS
                    if after[name] is not before[name] and (other := _others(before[name], after[name]))
                },
            }
        )
        before = after
    return found


def epochs(cluster: Mapping[str, Any]) -> list[Epoch]:
    """Returns the spans of time during which the cluster does not change."""
    found = [Epoch(NEVER, cluster)]
    for event in cluster.get("events", ()):
        facts = {}
        for name in _FACTS:
            facts[name] = known = found[-1].cluster.get(name, {})
            if name in event:  # An unchanged table remains the same object.
                known = {**known, **event[name]}
                facts[name] = {key: value for key, value in known.items() if value is not None}
        found.append(Epoch(event["at_us"], {**found[-1].cluster, **facts}))
    return found


def steps(those: Sequence[Epoch], amount: Callable[[Mapping[str, Any]], int | None]) -> list[Step]:
    """Returns the successive values of a quantity, each with the time from which it applies.

    The first value applies before all changes of the cluster. `amount` computes the quantity from a cluster
    in the form of `run.json`.
    """
    found: list[Step] = []
    for begin, cluster in those:
        now = amount(cluster)
        if not found or found[-1].amount != now:
            found.append(Step(begin, now))
    return found


def node_counts(cluster: Mapping[str, Any]) -> list[int]:
    """Returns the number of nodes at the beginning and after each event."""
    found = [int(cluster["nodes"])]
    for event in cluster.get("events", ()):
        ways = [edit["how"] for edit in event["edits"] if edit["kind"] == "Node"]
        found.append(found[-1] + ways.count("added") - ways.count("removed"))
    return found


def summary(those: Sequence[Mapping[str, Any]]) -> str:
    """Returns how many changes of each kind the events contain, such as `5 (3 quotas, 2 stops)`.

    Returns "" if there are no changes.
    """
    return told_sorts(Counter(sort_of(edit) for event in those for edit in event["edits"]))


def told_sorts(sorts: Counter[str]) -> str:
    """Returns the counts of changes as text, such as `5 (3 quotas, 2 stops)`, or "" without changes."""
    parts = ", ".join(f"{count:,} {sort_name(sort, count)}" for sort, count in sorted(sorts.items()))
    return f"{sorts.total():,} ({parts})" if sorts else ""


def shared(several: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Returns the events of the first run, but only with changes that every run has at the same time."""
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
    """Returns a text about a changed object, such as `ClusterQueue a: stopPolicy None -> Hold`."""
    if edit["how"] != "changed":
        return f"{edit['kind']} {edit['name']} is {edit['how']}"
    usual = {name: default_of(edit["kind"], name) for name in edit["fields"]}
    fields = [
        f"{name} {' -> '.join(_value(name, usual[name] if each is None else each) for each in values)}"
        for name, values in edit["fields"].items()
    ]
    same = "its manifest has the same content in another form"
    return f"{edit['kind']} {edit['name']}: {', '.join(fields) or same}"


def _value(field: str, value: str) -> str:
    """Returns the value of a field as text. The value of a drain is its timeout in microseconds."""
    if field == "drain" and value.isdigit():
        return format_duration(int(value)) if int(value) else "without a time-out"
    return value


def sort_name(sort: str, count: int) -> str:
    """Returns the name of a kind of change, in the singular if the count is 1."""
    if count > 1 or not sort.endswith("s"):
        return sort
    return sort.removesuffix("ies") + "y" if sort.endswith("ies") else sort.removesuffix("s")


def sort_of(edit: Mapping[str, Any]) -> str:
    """Returns the kind of a change as one word, such as `removed`, `added`, `quotas` or `others`."""
    if edit["how"] != "changed":
        return str(edit["how"])
    for sort, beginnings in SORTS.items():
        if any(name.startswith(beginnings) for name in edit["fields"]):
            return sort
    return "others"


def number_at(those: Sequence[Epoch], time: int) -> int:
    """Returns the index of the epoch that contains a given time."""
    return bisect_right(those, time, key=lambda each: each.begin) - 1


def _facts(cluster: Cluster, *, by_elastic_quotas: bool) -> dict[str, dict[str, Any]]:
    return {
        "capacity": dict(cluster.capacity),
        "queues": quotas(cluster, by_elastic_quotas=by_elastic_quotas),
        "cohorts": cohorts(cluster),
    }


def _amounts(edits: Sequence[Edit]) -> dict[str, list[dict[str, int] | None]]:
    """Returns each changed node's quantities before and after the changes. None stands for an absent node."""
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
    """Returns the changed entries by name. Removed entries have the value None."""
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return changed | {name: None for name in before if name not in after}


def _edit(
    edit: Edit, texts: dict[int, Mapping[str, str]], known: dict[tuple[int, int, bool], dict[str, Any]]
) -> dict[str, Any]:
    """Returns a changed object with its changed fields, or with all fields if it was added or removed.

    `texts` maps the identity of an object to its fields as text, and `known` has the answers about earlier
    changes. The function adds to both.
    """
    change = id(edit.before), id(edit.after), edit.announced
    if change in known:
        return known[change]
    for each in (edit.before, edit.after):
        if each is not None and id(each) not in texts:
            texts[id(each)] = told(each)
    before, after = ({} if each is None else texts[id(each)] for each in (edit.before, edit.after))
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    how = "removed" if edit.after is None else "added" if edit.before is None else "changed"
    fields = {name: [before.get(name), after.get(name)] for name in names}
    found = {"kind": edit.kind, "name": edit.name, "how": how, "fields": fields}
    known[change] = found | ({"announced": True} if edit.announced else {})
    return known[change]


def integrated(of_run: Sequence[Epoch], resource: str, window: Window, lacking: int | None) -> int | None:
    """Returns the integral of a resource's capacity over a window. See `Run.capacity_time`."""
    total, until = 0, window.end
    for begin, cluster in reversed(of_run):
        since = max(begin, window.start)
        if since < until or begin <= window.start:
            capacity = cluster["capacity"].get(resource, lacking)
            if capacity is None:
                return None
            total += capacity * (until - since)
            until = since
        if begin <= window.start:
            break
    return total

"""What differs between the clusters of two runs, from what the runs keep of them."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from harness.cluster.content import NOTHING, QUOTAS, default_of
from harness.comparison.distinction import CLUSTER, NODES, Distinction
from harness.units import format_amount

_TOLD_OF_NEW = 4  # fields of an object that is only in one of the clusters
_SAY_LITTLE = ("pods", "ephemeral-storage")  # resources that say little of a node
_COMMON = ("kinds", "allocatable", "taints", "unschedulable", "ready")
_NONE_COUNTED: Mapping[str, Any] = {"count": 0, "sha256": ""}

Info = Mapping[str, Any]


def cluster_distinctions(base: Info, other: Info) -> list[Distinction]:
    """What differs, object by object; `base` and `other` are `cluster` of `run.json`."""
    if base["sha256"] == other["sha256"]:
        return []
    if "content" not in base or "content" not in other:
        unknown = "its content is not known of a run of schema 2, but for its size and quotas"
        return [Distinction(CLUSTER, "", unknown, None, None), *_sizes(base, other)]
    mine, theirs = base["content"], other["content"]
    found = [
        *_objects(mine["objects"], theirs["objects"]),
        *_nodes(mine, theirs),
        *_counted(mine["counted"], theirs["counted"]),
    ]
    same = "other manifests, but nothing that is modelled of them differs (the order of objects may)"
    return found or [Distinction(CLUSTER, "", same, None, None)]


# --- objects ----------------------------------------------------------------------------------------------


def _objects(base: Info, other: Info) -> Iterator[Distinction]:
    """Changes of objects; those that are only in one of the clusters are told with their first fields."""
    for kind in dict.fromkeys((*base, *other)):
        mine, theirs = base.get(kind, {}), other.get(kind, {})
        for name in sorted({*mine, *theirs}):
            before, after = mine.get(name), theirs.get(name)
            if before is None:
                yield Distinction(kind, name, "", None, _fields(after))
            elif after is None:
                yield Distinction(kind, name, "", _fields(before), None)
            elif before != after:
                yield from _changes(kind, name, before, after)


def _changes(kind: str, name: str, before: Info, after: Info) -> Iterator[Distinction]:
    plain = not len({flavor for flavor in map(_flavor, (*before, *after)) if flavor}) > 1
    for field in dict.fromkeys((*before, *after)):
        values = [each.get(field) or default_of(kind, field) for each in (before, after)]
        if values[0] != values[1]:
            yield Distinction(kind, name, _short(field) if plain else field, *values)


def _fields(fields: Info) -> str:
    """The first fields of an object."""
    plain = not len({flavor for flavor in map(_flavor, fields) if flavor}) > 1
    told = [f"{_short(field) if plain else field} {value}" for field, value in fields.items()]
    more = f" and {len(told) - _TOLD_OF_NEW} more fields" if len(told) > _TOLD_OF_NEW else ""
    return ", ".join(told[:_TOLD_OF_NEW]) + more


def _flavor(field: str) -> str:
    """The flavor of a quota's or limit's field, else ""."""
    word, _, rest = field.partition(" ")
    return rest.partition("/")[0] if word in QUOTAS else ""


def _short(field: str) -> str:
    """A quota's or limit's field without the flavor, where there is no choice of flavors."""
    flavor = _flavor(field)
    return field.replace(f" {flavor}/", " ", 1) if flavor else field


# --- nodes ------------------------------------------------------------------------------------------------


def _nodes(base: Info, other: Info) -> Iterator[Distinction]:
    """Kinds of nodes that were added, removed or changed, and labels that tell too many apart for kinds."""
    left_out = {*base["labels"], *other["labels"]}
    mine, theirs = (_kinds(each["nodes"], left_out) for each in (base, other))
    new = [kind for key, kind in theirs.items() if key not in mine]
    for key, before in mine.items():
        after = theirs.get(key) or next((each for each in new if each["names"] == before["names"]), None)
        if after is None:
            yield Distinction(NODES, _about(before), "", str(before["count"]), None)
        elif key in theirs:
            yield from _other_nodes(before, after)
        else:
            new.remove(after)
            yield from _changed_nodes(before, after)
    for kind in new:
        yield Distinction(NODES, _about(kind), "", None, str(kind["count"]))
    for label in sorted({*base["labels"]} & {*other["labels"]}):
        before, after = base["labels"][label], other["labels"][label]
        if before != after:
            values = [f"{each['count']:,} values (sha256 {each['sha256']})" for each in (before, after)]
            yield Distinction(NODES, "", f"label {label}", *values)


def _kinds(nodes: Iterable[Info], left_out: Container[str]) -> dict[str, dict[str, Any]]:
    """What equal nodes have in common, as text -> the kind of nodes; where some labels do not count.

    Kinds that are one without these labels are joined; then it is not known which nodes they are.
    """
    found: dict[str, dict[str, Any]] = {}
    for kind in nodes:
        labels = {key: value for key, value in kind.get("labels", {}).items() if key not in left_out}
        common = {**{key: kind[key] for key in _COMMON if key in kind}, "labels": labels}
        same = found.setdefault(json.dumps(common, sort_keys=True), {**kind, **common, "count": 0})
        if same["count"]:
            same.update(first=min(same["first"], kind["first"]), last=max(same["last"], kind["last"]))
            same["names"] = ""
        same["count"] += kind["count"]
    return found


def _other_nodes(before: Info, after: Info) -> Iterator[Distinction]:
    """Nodes of one kind: more or fewer of them, or others."""
    if before["count"] != after["count"]:
        larger = max(before, after, key=lambda each: int(each["count"]))
        yield Distinction(NODES, _about(larger), "count", f"{before['count']:,}", f"{after['count']:,}")
    elif before["names"] != after["names"] and before["names"] and after["names"]:
        ranges = [_range(each) for each in (before, after)]
        others = " (others)" if ranges[0] == ranges[1] else ""
        yield Distinction(NODES, _about(before), "names", ranges[0], ranges[1] + others)


def _changed_nodes(before: Info, after: Info) -> Iterator[Distinction]:
    """The same nodes with other amounts, labels or taints."""
    for table, word in (("allocatable", "allocatable"), ("labels", "label")):
        mine, theirs = before.get(table, {}), after.get(table, {})
        for key in dict.fromkeys((*mine, *theirs)):
            values = [each.get(key, NOTHING) for each in (mine, theirs)]
            if values[0] != values[1]:
                yield Distinction(NODES, _range(before), f"{word} {key}", *values)
    taints = [", ".join(each.get("taints", ())) or NOTHING for each in (before, after)]
    if taints[0] != taints[1]:
        yield Distinction(NODES, _range(before), "taints", *taints)
    for name, usual in (("unschedulable", False), ("ready", True)):
        said = [str(each.get(name, usual)).lower() for each in (before, after)]
        if said[0] != said[1]:
            yield Distinction(NODES, _range(before), name, *said)


def _about(kind: Info) -> str:
    """Which nodes these are, and what one of them has."""
    amounts = ", ".join(
        f"{resource} {amount}"
        for resource, amount in kind["allocatable"].items()
        if resource not in _SAY_LITTLE
    )
    of_all = "all together " if "kinds" in kind else ""
    return f"{_range(kind)} ({of_all}{amounts})"


def _range(kind: Info) -> str:
    first, last = kind["first"], kind["last"]
    return str(first) if first == last else f"{first} … {last}"


# --- what is only counted, and runs of which little is known ----------------------------------------------


def _counted(base: Info, other: Info) -> Iterator[Distinction]:
    """Pods, workloads and objects beyond the first ones of a kind."""
    for what in dict.fromkeys((*base, *other)):
        before, after = (each.get(what, _NONE_COUNTED) for each in (base, other))
        if before["count"] != after["count"]:
            yield Distinction(what, "", "count", f"{before['count']:,}", f"{after['count']:,}")
        elif before != after:
            yield Distinction(what, "", "sha256", before["sha256"], after["sha256"])


def _sizes(base: Info, other: Info) -> Iterator[Distinction]:
    """What every run knows of its cluster: how many nodes, the capacity, and queues with their quotas."""
    if base["nodes"] != other["nodes"]:
        yield Distinction(NODES, "", "count", f"{base['nodes']:,}", f"{other['nodes']:,}")
    for resource in sorted({*base["capacity"], *other["capacity"]}):
        sizes = [format_amount(resource, each["capacity"].get(resource, 0)) for each in (base, other)]
        if sizes[0] != sizes[1]:
            yield Distinction(CLUSTER, "", f"capacity {resource}", *sizes)
    mine, theirs = ({name: _plain(each) for name, each in info["queues"].items()} for info in (base, other))
    yield from _objects({"queue": mine}, {"queue": theirs})


def _plain(queue: Info) -> dict[str, str]:
    """What `run.json` says of a queue with quotas, as fields."""
    nominal = {f"nominal {key}": format_amount(key, amount) for key, amount in queue["nominal"].items()}
    return {"cohort": queue["cohort"] or NOTHING, "weight": queue["weight"], **nominal}

"""Lists the differences between the nodes of two runs' clusters.

A run does not record each node, but kinds of nodes. Nodes of the same kind have equal properties.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from harness.analysis.comparison.distinction import NODES, Distinction
from harness.cluster.content import NOTHING
from harness.cluster.node_kinds import digest

_SAY_LITTLE = ("pods", "ephemeral-storage")  # How much of these resources a node has is rarely interesting.
_COMMON = ("kinds", "allocatable", "taints", "unschedulable", "ready")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)

Info = Mapping[str, Any]
Kinds: TypeAlias = dict[str, dict[str, Any]]
"""Maps a text with the common properties of equal nodes to the kind of these nodes."""


def node_distinctions(base: Info, other: Info) -> Iterator[Distinction]:
    """Yields the differences between the nodes of two clusters.

    A kind of nodes may be added, removed or changed, and nodes may move from one kind to another. A label
    with very many values, such as a serial number, does not define kinds of nodes. Its values are compared
    separately. The arguments are results of `node_kinds`.
    """
    left_out = {*base["labels"], *other["labels"]}
    mine, theirs = (_kinds(each["nodes"], left_out) for each in (base, other))
    yield from _apart(mine, theirs)
    yield from (each._replace(before=each.after, after=each.before) for each in _apart(theirs, mine))
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
    """Returns the kinds of nodes by their common properties.

    The labels in `left_out` are ignored. If two kinds are then equal, they are joined, and the names of their
    nodes become unknown.
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


def _apart(mine: Kinds, theirs: Kinds) -> Iterator[Distinction]:
    """Yields the changes of nodes that form one kind in `mine` but several in `theirs`. Drops these kinds.

    This works only if the names of all these nodes are known, and if no node was added, removed or renamed.
    """
    alone = {key: names for key, kind in theirs.items() if key not in mine and (names := _names(kind))}
    for key in list(mine) if alone else ():
        names = _names(mine[key])
        parts = {other: found for other, found in alone.items() if found < names}
        left = names.difference(*parts.values())
        if not parts or (_named(left) if left else None) != (theirs[key]["names"] if key in theirs else None):
            continue
        for other in parts:
            part = theirs.pop(other)
            del alone[other]
            yield from _changed_nodes({**mine[key], "first": part["first"], "last": part["last"]}, part)
        del mine[key]
        theirs.pop(key, None)


def _names(kind: Info) -> frozenset[str]:
    """Returns the names of a kind's nodes, if they can be reconstructed.

    A run records the first name, the last name, and a hash of all names. The function assumes that these two
    names are all, or that the nodes are numbered from the first name on. If the resulting names have the
    recorded hash, the assumption is correct.
    """
    names, numbered = {kind["first"], kind["last"]}, _NUMBERED.fullmatch(kind["first"])
    if kind["count"] > len(names) and numbered is not None:
        prefix, digits = numbered.groups()
        numbers = range(int(digits), int(digits) + kind["count"])
        names = {f"{prefix}{number:0{len(digits)}}" for number in numbers}
    known = "kinds" not in kind and _named(names) == kind["names"]
    return frozenset(names) if known else frozenset()


def _named(names: Iterable[str]) -> str:
    return digest(sorted(names))


def _other_nodes(before: Info, after: Info) -> Iterator[Distinction]:
    if before["count"] != after["count"]:
        larger = max(before, after, key=lambda each: int(each["count"]))
        yield Distinction(NODES, _about(larger), "count", f"{before['count']:,}", f"{after['count']:,}")
    elif before["names"] != after["names"] and before["names"] and after["names"]:
        ranges = [_range(each) for each in (before, after)]
        others = " (others)" if ranges[0] == ranges[1] else ""
        yield Distinction(NODES, _about(before), "names", ranges[0], ranges[1] + others)


def _changed_nodes(before: Info, after: Info) -> Iterator[Distinction]:
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

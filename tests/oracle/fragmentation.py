"""What is free on nodes, node by node, where no waiting pod fits."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from oracle.book import Book
from oracle.pods import Amounts, place_of
from oracle.world import World


def fragmentation(world: World, book: Book) -> None:
    """The share of the capacity that is free in vain while some pod is pending; null without nodes."""
    pools = world.cluster["allocatable"]
    usual = next((pool["amounts"] for pool in pools if "nodes" not in pool), {})
    size = {name: pool["amounts"] for pool in pools for name in pool.get("nodes", [])}
    changed = [
        (each.begin, *change) for each in world.epochs[1:] for change in each.cluster["allocatable"].items()
    ]
    first = {name: amounts[0] for _, name, amounts in reversed(changed)}
    later = {name for name, before in first.items() if before is None}
    named = {row["node"] for row in world.decisions if row["node"] is not None} | first.keys()
    named -= later
    unnamed = sum(pool["count"] for pool in pools) - len({*size, *named})
    nodes: list[Any] = [
        *size,
        *sorted(named - size.keys()),
        *(("unnamed", number) for number in range(unnamed)),
    ]
    free = {node: [size.get(node, usual).get(each, 0) for each in world.resources] for node in nodes}
    where: dict[int, dict[int | None, str]] = defaultdict(dict)
    waiting: dict[int, list[Amounts]] = {}
    lost = [0] * len(world.resources)
    any_nodes = bool(nodes)
    for time, following, rows in world.instants():
        while changed and changed[0][0] <= time:
            _, name, (before, after) = changed.pop(0)
            more = [(after or {}).get(each, 0) - (before or {}).get(each, 0) for each in world.resources]
            there = free.get(name, [0] * len(world.resources))
            free[name] = [have + one for have, one in zip(there, more, strict=True)]
            any_nodes |= after is not None
            if after is None:
                nodes.remove(name)
            elif name not in nodes:
                nodes.append(name)
        for row in rows:
            job, action, pod = row["job"], row["action"], row["pod_number"]
            _, waiting[job] = world.moved_by[row["seq"]]
            moved = {"bind": [pod], "gone": [pod], "finish": list(where[job]) if pod is None else [pod]}
            if action == "bind":
                where[job][pod] = row["node"]
            for each in moved.get(action, []) if any_nodes else []:
                node = where[job][each] if action == "bind" else where[job].pop(each)
                sign = -1 if action == "bind" else 1
                asks = world.parts[job][place_of(world.parts[job], each)].asks
                free[node] = [have + sign * one for have, one in zip(free[node], asks, strict=True)]
        needs = {asks for of_job in waiting.values() for asks in of_job}
        for node in nodes if needs else []:
            fits = [all(one <= have for one, have in zip(need, free[node], strict=True)) for need in needs]
            if not any(fits):
                # On a node that has become smaller than what it holds nothing is free.
                lost = [
                    one + (following - time) * max(0, have)
                    for one, have in zip(lost, free[node], strict=True)
                ]
    for place, resource in enumerate(world.resources):
        whole = world.whole(place) if any_nodes else None
        book.ratio("fragmentation", lost[place], whole, resource=resource)

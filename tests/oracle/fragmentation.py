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
    named = {row["node"] for row in world.decisions if row["node"] is not None}
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
    for time, following, rows in world.instants():
        for row in rows:
            job, action, pod = row["job"], row["action"], row["pod_number"]
            _, waiting[job] = world.moved_by[row["seq"]]
            moved = {"bind": [pod], "gone": [pod], "finish": list(where[job]) if pod is None else [pod]}
            if action == "bind":
                where[job][pod] = row["node"]
            for each in moved.get(action, []) if nodes else []:
                node = where[job][each] if action == "bind" else where[job].pop(each)
                sign = -1 if action == "bind" else 1
                asks = world.parts[job][place_of(world.parts[job], each)].asks
                free[node] = [have + sign * one for have, one in zip(free[node], asks, strict=True)]
        needs = {asks for of_job in waiting.values() for asks in of_job}
        for node in nodes if needs else []:
            fits = [all(one <= have for one, have in zip(need, free[node], strict=True)) for need in needs]
            if not any(fits):
                lost = [one + (following - time) * have for one, have in zip(lost, free[node], strict=True)]
    for place, resource in enumerate(world.resources):
        whole = (world.sizes[place] or 0) * (world.end - world.start)
        book.ratio("fragmentation", lost[place], whole if nodes else None, resource=resource)

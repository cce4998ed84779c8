"""Idle by cause: what stands idle, split among the jobs that wait, from judgements that the run has kept.

Why a job waits cannot be found out of decisions, so that judgements are taken as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from oracle.book import Book
from oracle.world import World

MINUTE = 60 * 10**6
CAUSES = ("reserved", "quota", "fragmented", "policy")


class Wait(NamedTuple):
    """What jobs ask for that waits, and what is held, until the next change."""

    start: int
    length: int
    sizes: Sequence[int | None]
    asks: Mapping[int, Sequence[int]]
    held: Sequence[int]


def idle(world: World, book: Book, judged: Iterable[tuple[int, int, int]]) -> None:
    """The five of each resource.

    Args:
        world: of a run in its own window.
        book: where they are written down.
        judged: minute, job and number of its cause from then on.
    """
    waits = list(_waits(world))
    of_job: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for minute, job, cause in judged:
        at = world.start + minute * MINUTE
        # Only of a job that waits at the end of the instant a judgement says anything.
        if any(each.start <= at < each.start + each.length and job in each.asks for each in waits):
            of_job[job].append((at, cause))
    sums = [[0] * (1 + len(CAUSES)) for _ in world.resources]
    for each in waits:
        end = each.start + each.length
        inside = {at for job in each.asks for at, _ in of_job[job] if each.start < at < end}
        borders = [each.start, *sorted(inside), end]
        for begin, until in pairwise(borders):
            causes = {job: _cause(of_job[job], begin) for job in each.asks}
            for place, parts in enumerate(sums):
                for number, amount in enumerate(_split(each, place, causes)):
                    parts[number] += amount * (until - begin)
    for place, resource in enumerate(world.resources):
        for name, part in zip(("no_demand", *CAUSES), sums[place], strict=True):
            book.ratio(f"idle.{name}", part, world.whole(place), resource=resource)


def _waits(world: World) -> Iterable[Wait]:
    width = len(world.resources)
    for state in world.states(lambda number: number):
        asks = {}
        held = [0] * width
        for job, wanted in state.wanted.items():
            pending = [wanted[place] - state.allocated[job][place] for place in range(width)]
            held = [held[place] + state.allocated[job][place] for place in range(width)]
            if any(pending):
                asks[job] = pending
        yield Wait(state.start, state.length, state.epoch.sizes, asks, held)


def _cause(judged: Sequence[tuple[int, int]], now: int) -> int:
    """A judgement holds until the next one, the first from the beginning; without any it is the policy."""
    if not judged:
        return CAUSES.index("policy")
    return judged[max(0, bisect_right(judged, now, key=lambda each: each[0]) - 1)][1]


def _split(wait: Wait, place: int, causes: Mapping[int, int]) -> list[int]:
    """What is idle without demand, and for each cause: in proportion, by the largest remainder."""
    free = max(0, (wait.sizes[place] or 0) - wait.held[place])
    asks = {job: amounts[place] for job, amounts in wait.asks.items()}
    asked = sum(asks.values())
    idle = min(free, asked)
    parts = {job: idle * ask // asked if asked else 0 for job, ask in asks.items()}
    left = idle - sum(parts.values())
    ranked = sorted(asks, key=lambda job: (-(idle * asks[job] % asked), job)) if asked else []
    for job in ranked[:left]:
        parts[job] += 1
    found = [free - idle, *(0 for _ in CAUSES)]
    for job, part in parts.items():
        found[1 + causes[job]] += part
    return found

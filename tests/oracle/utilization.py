"""Utilization, goodput and backlog: of the whole, by queue and by user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oracle.book import Book
from oracle.history import NEVER
from oracle.world import World

KINDS = ("useful", "lost", "idle_held", "unfinished")
MOST_USERS = 200


def utilization(world: World, book: Book) -> None:
    """All rows; the denominators are those of the whole cluster."""
    of_all = groups(world, lambda _: "all")
    of_queue = groups(world, lambda job: f"queue={world.queue[job]}")
    counted = {job.number for job in world.counted}
    whose = {number: f"user={world.user[number] or '(none)'}" for number in counted}
    of_user = groups(world, whose.get)
    scopes = {f"queue={world.queue[number]}" for number in counted}
    for place, resource in enumerate(world.resources):
        rows(world, book, place, resource, of_all, {"all"})
        rows(world, book, place, resource, of_queue, scopes)
        rows(world, book, place, resource, of_user, set(whose.values()))


def groups(world: World, group: Callable[[int], Any]) -> dict[str, Any]:
    """What each group held, asked for, needed, and what became of it; resource by resource."""
    width = len(world.resources)
    found: dict[str, Any] = {
        name: defaultdict(lambda: [0] * width)
        for name in (*KINDS, "allocated", "of_demand", "needed", "waited")
    }
    for state in world.states(group):
        for name, wanted in state.wanted.items():
            held = state.allocated[name]
            for place, size in enumerate(state.epoch.sizes):
                found["allocated"][name][place] += state.length * held[place]
                most = wanted[place] if size is None else min(wanted[place], size)
                found["of_demand"][name][place] += state.length * most
                found["waited"][name][place] += state.length * (wanted[place] - held[place])
    for job in world.runs_out:
        for span in job.spans:
            start, end = max(span.start, world.start), min(span.end, world.end)
            kind = kind_of(world, span.progress, span.lost, job.finish)
            for place, amount in enumerate(span.held):
                found[kind][group(job.number)][place] += max(0, end - start) * amount
    for job in world.counted:
        for place in range(width):
            found["needed"][group(job.number)][place] += world.demand(job, place)
    return found


def kind_of(world: World, progress: bool, lost: int, finish: int | None) -> str:
    """What became of held time: useful is what was kept by jobs that finish in the run's own window."""
    if not progress:
        return "idle_held"
    if lost <= world.end:
        return "lost"
    return "useful" if finish is not None and lost == NEVER else "unfinished"


def rows(
    world: World, book: Book, place: int, resource: str, found: Mapping[str, Any], scopes: Iterable[str]
) -> None:
    """The rows of one resource."""
    length, whole = world.end - world.start, world.whole(place)
    for scope in sorted(scopes):
        of = {name: values[scope][place] for name, values in found.items()}
        assert sum(of[kind] for kind in KINDS) == of["allocated"], "the four parts add up"
        for name in ("allocated", *KINDS):
            book.ratio(f"utilization.{name}", of[name], whole, scope, resource)
            book.say(f"utilization.{name}.hours", world.hours(of[name], resource), scope, resource)
        book.ratio(
            "utilization.of_demand", of["allocated"], of["of_demand"] if whole else None, scope, resource
        )
        book.ratio("goodput.of_allocated", of["useful"], of["allocated"], scope, resource)
        book.ratio("goodput.of_capacity", of["useful"], whole, scope, resource)
        book.ratio("goodput.of_demand", of["useful"], of["needed"], scope, resource)
        if scope == "all":
            book.say("utilization.capacity.hours", world.hours(whole, resource), scope, resource)
            book.ratio("backlog", of["waited"], length * world.unit(resource), scope, resource)

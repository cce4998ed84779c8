"""Fairness: between those that hold resources, between users, and of waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from oracle import world as worlds
from oracle.book import Book
from oracle.statistics import gini, jain
from oracle.utilization import groups
from oracle.waiting import jct, slowdown
from oracle.world import World


def fairness(world: World, book: Book) -> None:
    """All rows that need no other run."""
    shares(world, book)
    deficit(world, book)
    slowdowns(world, book)
    users(world, book)


def shares(world: World, book: Book) -> None:
    """Dominant shares against weighted max-min fair ones, at each moment and over days."""
    off = due = alike = Fraction(0)
    compared = 0
    days: dict[int, dict[str, list[Fraction]]] = defaultdict(
        lambda: defaultdict(lambda: [Fraction(0), Fraction(0)])
    )
    for state in world.states(world.holder.__getitem__):
        known = state.epoch.cluster["queues"]
        weight = {name: Fraction(known[name]["weight"] if name in known else 1) for name in world.holder}
        sizes = {place: size for place, size in enumerate(state.epoch.sizes) if size}
        share = {
            name: max((Fraction(each[place], size) for place, size in sizes.items()), default=Fraction(0))
            for name, each in state.allocated.items()
        }
        parts = {
            name: {place: Fraction(each[place], size) for place, size in sizes.items()}
            for name, each in state.wanted.items()
        }
        ideal = filled(parts, weight)
        off += state.length * sum(abs(share[name] - ideal[name]) for name in share) / 2
        due += state.length * sum(ideal.values())
        ratios = [share[name] / ideal[name] for name in share if ideal[name]]
        index = jain(ratios)
        if len(ratios) >= 2 and index is not None:
            alike += state.length * index
            compared += state.length
        now, end = state.start, state.start + state.length
        while now < end:
            day = (now - world.start) // worlds.DAY
            part = min(end, world.start + (day + 1) * worlds.DAY) - now
            for name in share:
                days[day][name][0] += part * share[name]
                days[day][name][1] += part * ideal[name]
            now += part
    book.ratio("fairness.share_deviation", off, due)
    book.ratio("fairness.jain_share", alike, compared)
    daily(world, book, days)


def daily(world: World, book: Book, days: Mapping[int, Mapping[str, Sequence[Fraction]]]) -> None:
    """The same of what was held and due in each day of 24 h."""
    pairs = [pair for of_day in days.values() for pair in of_day.values()]
    off = sum((abs(held - due) for held, due in pairs), Fraction(0)) / 2
    book.ratio("fairness.share_deviation_daily", off, sum(due for _, due in pairs))
    found = []
    for day, of_day in days.items():
        ratios = [held / due for held, due in of_day.values() if due]
        if len(ratios) >= 2 and sum(ratios):
            length = min(worlds.DAY, world.end - world.start - day * worlds.DAY)
            found.append((length, jain(ratios), gini(ratios)))
    whole = sum(each[0] for each in found)
    book.ratio("fairness.jain_share_daily", sum(each[0] * (each[1] or 0) for each in found), whole)
    book.ratio("fairness.gini_share_daily", sum(each[0] * (each[2] or 0) for each in found), whole)


def filled(
    parts: Mapping[str, Mapping[int, Fraction]], weight: Mapping[str, Fraction]
) -> dict[str, Fraction]:
    """Weighted max-min fair shares: all rise until one has what it asks for or a resource is full."""
    share = dict.fromkeys(parts, Fraction(0))
    used: dict[int, Fraction] = defaultdict(Fraction)
    top = {queue: max(each.values(), default=Fraction(0)) for queue, each in parts.items()}
    rising = [queue for queue in parts if top[queue] > 0 and weight[queue] > 0]
    while rising:
        speed = {
            place: sum(weight[queue] * parts[queue][place] / top[queue] for queue in rising)
            for place in parts[rising[0]]
        }
        step = min((min(top[queue], Fraction(1)) - share[queue]) / weight[queue] for queue in rising)
        step = min([step, *((1 - used[place]) / each for place, each in speed.items() if each)])
        for queue in rising:
            share[queue] += weight[queue] * step
        for place, each in speed.items():
            used[place] += each * step
        full = {place for place in speed if used[place] == 1}
        rising = [
            queue
            for queue in rising
            if share[queue] < min(top[queue], 1) and not any(parts[queue][place] for place in full)
        ]
    return share


def deficit(world: World, book: Book) -> None:
    """Resource-time that a quota was owed within its nominal quota while it had the demand."""
    owed: dict[tuple[str, int], int] = defaultdict(int)
    for state in world.states(world.holder.__getitem__):
        known = state.epoch.cluster["queues"]
        for name in known:
            for place, resource in enumerate(world.resources):
                nominal = (known[name]["nominal"] or {}).get(resource, 0)
                held, wanted = state.allocated[name][place], state.wanted[name][place]
                owed[name, place] += state.length * max(0, min(nominal, wanted) - held)
    known = world.given()
    for place, resource in enumerate(world.resources):
        of = {
            name: owed[name, place] if resource in known.get(name, {}).get("nominal", {}) else None
            for name in world.holders()
        }
        there = [each for each in of.values() if each is not None]
        total = sum(there) if there else None
        book.say("fairness.guarantee_deficit", world.hours(total, resource), resource=resource)
        for name, value in of.items():
            book.say("fairness.guarantee_deficit", world.hours(value, resource), world.of(name), resource)


def slowdowns(world: World, book: Book) -> None:
    """How alike the mean bounded slowdowns of holders are."""
    of: dict[str, list[Fraction]] = defaultdict(list)
    jobs = world.timed
    for job in jobs:
        of[world.holder[job.number]].append(slowdown(world, job).number)
    means = [sum(each) / len(each) for each in of.values()]
    book.say("fairness.jain_slowdown", jain(means) if means else None, at_least=None)
    ratio = max(means) / min(means) if means else None
    book.say("fairness.max_min_slowdown", ratio, at_least=None)


def users(world: World, book: Book) -> None:
    """How alike users fare: what they got of what they needed."""
    found = groups(world, world.user.__getitem__)
    for place, resource in enumerate(world.resources):
        parts = [
            Fraction(found["useful"][user][place], needed[place])
            for user, needed in found["needed"].items()
            if user and needed[place]
        ]
        served = any(parts)
        book.say("fairness.gini_users", gini(parts) if served else None, resource=resource)
        book.say("fairness.jain_users", jain(parts) if served else None, resource=resource)


def finish_time(world: World, book: Book, alone: Mapping[str, World]) -> None:
    """How jobs fare against the runs in which their quota is alone."""
    means: dict[str, Fraction] = {}
    above = every = 0
    for quota in sorted({each for each in world.counts_against if each is not None}):
        other = {job.row["job_id"]: job for job in alone[quota].jobs} if quota in alone else {}
        ratios, worse_jobs, compared = [], 0, 0
        for job in world.counted:
            by_itself = other.get(job.row["job_id"])
            if world.counts_against[job.number] != quota or by_itself is None or by_itself.finish is None:
                continue
            took = by_itself.finish - by_itself.submit
            if took:
                rho = jct(world, job).number / took
                worse_jobs, compared = worse_jobs + (rho > 1), compared + 1
                ratios += [rho] if job.finish is not None else []
        if ratios:
            means[quota] = sum(ratios) / len(ratios)
        above, every = above + worse_jobs, every + compared
        scope = f"quota={quota}"
        book.say("fairness.finish_time", means.get(quota), scope, at_least=None)
        share = Fraction(worse_jobs, compared) if compared else None
        book.say("fairness.finish_time_above_1", share, scope, at_least=None)
    for holder, behind in sorted(set(zip(world.holder, world.counts_against, strict=True)), key=str):
        if behind is None:
            book.say("fairness.finish_time", None, f"queue={holder}", at_least=None)
    worse = sum(mean > Fraction(105, 100) for mean in means.values())
    book.ratio("fairness.sharing_violations", worse, len(means))
    share = Fraction(above, every) if every else None
    book.say("fairness.finish_time_above_1", share, at_least=None)

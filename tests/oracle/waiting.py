"""Waits, delays and slowdowns: accrued by the end where a job is not over."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from oracle.book import Book
from oracle.history import Job, union
from oracle.statistics import Sample
from oracle.world import DAY, HOUR, SECOND, World

SHAPES = ("mean", "p50", "p90", "p95", "p99", "max")
FEW = ("mean", "p50", "p95")
WITHIN = {"1m": 60 * SECOND, "10m": 600 * SECOND, "1h": HOUR, "4h": 4 * HOUR}


def first_start(world: World, job: Job) -> Sample:
    """From its submission to its first progress, or so far."""
    unstarted = job.first is None
    return Sample(Fraction((world.until if unstarted else job.first) - job.submit), unstarted)


def jct(world: World, job: Job) -> Sample:
    """From its submission to its end, or the least that it can become."""
    if job.finish is not None:
        return Sample(Fraction(job.finish - job.submit))
    return Sample(Fraction(world.until - job.submit + job.duration - job.progress), open=True)


def delay(world: World, job: Job) -> Sample:
    """Its jct without its duration, of which what a dump says had run took no time of the window."""
    took, is_open = jct(world, job)
    return Sample(took - job.duration + job.row["done"], is_open)


def total(world: World, job: Job) -> Sample:
    """All time in which none of its pods progressed."""
    until = world.until if job.finish is None else job.finish
    idle = until - job.submit - union(span for span in job.spans if span.progress)
    return Sample(Fraction(idle), job.finish is None)


def slowdown(world: World, job: Job) -> Sample:
    """Its jct over its duration, both at least as the bound says."""
    took, is_open = jct(world, job)
    return Sample(max(Fraction(1), took / max(job.duration, 10 * SECOND)), is_open)


def waiting(world: World, book: Book) -> None:
    """All rows about waits, and the counts of jobs."""
    jobs = world.timed
    scopes: dict[str, list[Job]] = {"all": jobs}
    for job in world.jobs:
        for scope in (f"queue={world.queue[job.number]}", f"priority={world.priority[job.number]}"):
            scopes.setdefault(scope, []).extend([job] if job in jobs else [])
    for scope, some in scopes.items():
        starts = [first_start(world, job) for job in some]
        book.spread("wait.first_start", starts, SHAPES, scope, SECOND)
        book.ratio("wait.never_started", sum(each.open for each in starts), len(starts), scope)
        for name, limit in WITHIN.items():
            sooner = sum(not each.open and each.number <= limit for each in starts)
            may = any(each.open and each.number < limit for each in starts)
            share = Fraction(sooner, len(starts)) if starts else None
            book.say(f"wait.within_{name}", share, scope, at_least=may)
        book.spread("wait.total", [total(world, job) for job in some], SHAPES, scope, SECOND)
        book.spread("delay", [delay(world, job) for job in some], FEW, scope, SECOND)
        slow = [slowdown(world, job) for job in some]
        book.spread("slowdown.bounded", slow, (*FEW, "p99"), scope)
    book.spread("jct", [jct(world, job) for job in jobs], FEW, unit=SECOND)
    weighted(world, book, jobs)
    starved(world, book, jobs)
    counts(world, book)
    to_start = [
        Sample(Fraction((world.until if job.first is None else job.first) - job.admitted), job.first is None)
        for job in jobs
        if job.admitted is not None
    ]
    book.spread("wait.admission_to_start", to_start, (*FEW, "max"), unit=SECOND)


def weighted(world: World, book: Book, jobs: Sequence[Job]) -> None:
    """The mean slowdown, weighted by the dominant request of all pods times the duration."""
    total = whole = Fraction(0)
    for job in jobs:
        parts = [
            Fraction(ask, size)
            for ask, size in zip(world.asks[job.number], world.epochs[0].sizes, strict=True)
            if size
        ]
        weight = max(parts, default=Fraction(0)) * job.duration
        total, whole = total + weight * slowdown(world, job).number, whole + weight
    is_open = bool(whole) and any(job.finish is None for job in jobs)
    book.say("slowdown.weighted", total / whole if whole else None, at_least=is_open)


def starved(world: World, book: Book, jobs: Sequence[Job]) -> None:
    """Jobs that waited far too long."""
    found = []
    for job in jobs:
        late = delay(world, job).number
        long = late > DAY and late > 10 * max(job.duration, 10 * SECOND)
        if long or first_start(world, job).number > 7 * DAY:
            found.append(world.queue[job.number])
    book.say("starvation", len(found))
    for queue in {world.queue[job.number] for job in world.counted}:
        book.say("starvation", found.count(queue), f"queue={queue}")


def counts(world: World, book: Book) -> None:
    """How many jobs there were, and how long all took."""
    arrived = [job for job in world.jobs if job.submit is not None]
    ends = [job.finish for job in arrived if job.finish is not None]
    rejected = sum(job.reject is not None for job in arrived)
    unfinished = len(arrived) - len(ends) - rejected
    over = ends and not unfinished
    book.say("makespan", Fraction(max(ends) - world.start, SECOND) if over else None)
    book.say("jobs.finished", len(ends))
    book.say("jobs.unfinished", unfinished)
    book.say("jobs.rejected", rejected)
    there = sum(job.row.get("ran_before") is not None for job in world.jobs)
    if there:
        book.say("jobs.at_start", there)
    book.ratio("throughput", len(ends) * HOUR, world.own_end - world.start)

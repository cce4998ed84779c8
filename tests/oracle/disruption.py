"""Preemptions: how many, of whom, for whom, and what they cost."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from oracle.book import Book
from oracle.history import Took, cause
from oracle.statistics import Sample
from oracle.world import SECOND, Preemption, World


def disruption(world: World, book: Book) -> None:
    """All rows."""
    counts(world, book)
    chains(world, book)
    causes(world, book)
    lost(world, book)
    restarts(world, book)
    loops(world, book)
    budgets(world, book)


def counted(book: Book, metric: str, kind: str, values: Sequence[str | None]) -> None:
    """How often each one is there; None is nobody."""
    for value in {each for each in values if each is not None}:
        book.say(metric, values.count(value), f"{kind}={value}")


def counts(world: World, book: Book) -> None:
    """How many, and in proportion to what."""
    found = world.preemptions
    reason: dict[Preemption, str] = {}
    for row in world.preempts:
        reason.setdefault(Preemption(row["time"], row["job"], row["by_job"]), row["reason"])
    name = "disruption.preemptions"
    book.say(name, len(found))
    counted(book, name, "reason", [reason[each] for each in found])
    counted(book, name, "queue", [world.queue[each.job] for each in found])
    counted(book, name, "quota", [world.counts_against[each.job] for each in found])
    counted(book, name, "beneficiary", [world.queue[each.by] for each in found])
    times: dict[int, int] = defaultdict(int)
    victims: dict[int, int] = defaultdict(int)
    for each in found:
        times[each.job] += 1
        victims[each.by] += 1
    book.say("disruption.preempted_jobs", len(times))
    pods = sum(world.jobs[row["job"]].held[row["seq"]] for row in world.preempts)
    book.say("disruption.preempted_pods", pods)
    book.say("disruption.repeat_victims", sum(count >= 2 for count in times.values()))
    book.say("disruption.max_preemptions_of_a_job", max(times.values(), default=0))
    arrived = sum(job.submit is not None for job in world.jobs)
    book.ratio("disruption.preemptions_per_1000_jobs", 1000 * len(found), arrived)
    parts: dict[int, tuple[Fraction, int]] = {}
    for place in range(len(world.resources)):
        if whole := world.whole(place):
            held = sum(
                state.length * state.allocated["all"][place] for state in world.states(lambda _: "all")
            )
            parts[place] = Fraction(held, whole), held
    most = max(parts, key=lambda place: (parts[place][0], -place), default=None)
    held_hours = None if most is None else world.hours(parts[most][1], world.resources[most])
    book.ratio("disruption.preemptions_per_1000_hours", 1000 * len(found), held_hours)
    samples = [Sample(Fraction(count)) for count in victims.values()]
    book.spread("disruption.victims_per_preemptor", samples, ("mean", "p95", "max"))


def causes(world: World, book: Book) -> None:
    """Evictions of any cause, and the jobs that they hit."""
    rows = [row for row in world.decisions if row["action"] in ("preempt", "evict")]
    found = {
        (row["time"], row["job"], row["by_job"], cause(row)) for row in rows if row["time"] <= world.until
    }
    hit = {(job, why) for _, job, _, why in found}
    book.say("disruption.evictions", len(found))
    counted(book, "disruption.evictions", "reason", [why for *_, why in found])
    book.say("disruption.evicted_jobs", len({job for job, _ in hit}))
    counted(book, "disruption.evicted_jobs", "reason", [why for _, why in hit])
    failures = sum(why == "failure" for *_, why in found)
    arrived = sum(job.submit is not None for job in world.jobs)
    book.ratio("disruption.failures_per_1000_jobs", 1000 * failures, arrived)


def chains(world: World, book: Book) -> None:
    """Preemptors that had been preempted themselves, and who takes from whom in return."""
    found, mean = world.preemptions, world.mean_duration
    last: dict[int, tuple[int, int]] = {}  # job -> when it was preempted last, and how deep that was
    depths = []
    for each in found:
        time, depth = last.get(each.by, (None, 0))
        deep = 1 + depth if time is not None and each.time - time <= mean else 0
        last[each.job] = each.time, deep
        depths.append(Sample(Fraction(deep)))
    book.spread("disruption.cascade_depth", depths, ("mean", "max"))
    thrash = rework = 0
    holder = world.holder
    for each in found:
        before = [other for other in found if 0 < each.time - other.time <= mean]
        if holder[each.job] == holder[each.by]:
            queue = holder[each.by]
            rework += any(other.by == each.job and holder[other.job] == queue for other in before)
        else:
            thrash += any(
                holder[other.by] == holder[each.job] and holder[other.job] == holder[each.by]
                for other in before
            )
    book.say("disruption.thrash", thrash)
    book.say("disruption.rework", rework)


def lost(world: World, book: Book) -> None:
    """Progress that evictions threw away, and to whose benefit."""
    taken: dict[tuple[int, int], list[tuple[str, Took]]] = defaultdict(list)
    for row in world.preempts:
        took = world.jobs[row["job"]].took[row["seq"]]
        taken[row["job"], row["time"]].append((world.queue[row["by_job"]], took))
    for place, resource in enumerate(world.resources):
        sums: dict[str, Fraction] = defaultdict(Fraction)
        early: dict[str, Fraction] = defaultdict(Fraction)
        for job in world.jobs:
            number = job.number
            scopes = ["all", f"queue={world.queue[number]}"]
            if world.counts_against[number] is not None:
                scopes.append(f"quota={world.counts_against[number]}")
            for span in job.spans:
                if span.lost > world.until:
                    continue
                amount = span.held[place] * (span.end - span.start)
                for scope in (*scopes, f"reason={span.why}"):
                    sums[scope] += amount
                took = taken.get((number, span.lost), []) if span.why == "preemption" else []
                parts = [(queue, each.amounts[place]) for queue, each in took]
                if not any(part for _, part in parts):
                    parts = [(queue, each.time) for queue, each in took]
                for queue, part in parts:
                    if part:
                        sums[f"beneficiary={queue}"] += amount * Fraction(
                            part, sum(each for _, each in parts)
                        )
            for each in job.before:
                for scope in scopes:
                    early[scope] += each.held[place] * each.length
        whole = sum(state.length * state.allocated["all"][place] for state in world.states(lambda _: "all"))
        book.ratio("disruption.lost_of_allocated", sums["all"], whole, resource=resource)
        for scope, amount in sums.items():
            book.say("disruption.lost", world.hours(amount, resource), scope, resource)
        if any(job.row.get("ran_before") is not None for job in world.jobs):
            early["all"] += 0
            for scope, amount in early.items():
                book.say("disruption.lost_before", world.hours(amount, resource), scope, resource)


def restarts(world: World, book: Book) -> None:
    """How long victims need to progress again; without those that were rejected."""
    waits, never = [], 0
    for each in world.preemptions:
        job, back = world.jobs[each.job], each.time
        for row in world.preempts:
            same = Preemption(row["time"], row["job"], row["by_job"]) == each
            if same and row["pod_number"] is not None:
                follower = row["pod_number"], row["successor"] + 1
                at = [time for time, pod, number in job.binds if (pod, number) == follower]
                back = max(back, at[0]) if at else world.until + 1
        runs = [span.start for span in job.spans if span.progress and back <= span.start]
        if back <= world.until and job.finish is not None:
            runs.append(job.finish)
        if runs:
            waits.append(Sample(Fraction(min(runs) - each.time)))
            continue
        never += 1
        if job.reject is None:
            waits.append(Sample(Fraction(world.until - each.time), open=True))
    book.spread("disruption.time_to_restart", waits, ("p50", "p95"), unit=SECOND)
    book.say("disruption.not_restarted", never)


def loops(world: World, book: Book) -> None:
    """Jobs that are admitted again and preempted again by the same one, while neither progresses."""
    latest: dict[int, Preemption] = {}
    held = [0] * len(world.resources)
    victims, winners = [], []
    first: dict[Preemption, int] = {}
    for row in world.preempts:
        first.setdefault(Preemption(row["time"], row["job"], row["by_job"]), row["seq"])
    for each in world.preemptions:
        before = latest.get(each.job)
        latest[each.job] = each
        if before is None or world.holder[before.by] != world.holder[each.by]:
            continue
        sides = world.jobs[each.job], world.jobs[before.by]
        spans = [span for side in sides for span in side.spans if span.progress]
        if any(span.start < each.time and span.end > before.time for span in spans):
            continue
        if not any(first[before] < seq < first[each] for seq in sides[0].again):
            continue
        victims.append(each.job)
        winners.append(each.by)
        for span in sides[0].spans:
            both = max(0, min(span.end, each.time) - max(span.start, before.time))
            for place, amount in enumerate(span.held):
                held[place] += both * amount
    name = "disruption.ping_pong"
    book.say(name, len(victims))
    counted(book, name, "queue", [world.queue[job] for job in victims])
    counted(book, name, "quota", [world.counts_against[job] for job in victims])
    counted(book, name, "beneficiary", [world.queue[job] for job in winners])
    for place, resource in enumerate(world.resources):
        book.say(f"{name}_held", world.hours(held[place], resource), resource=resource)


def budgets(world: World, book: Book) -> None:
    """Disruption budgets broken, as decisions say."""
    evicted: dict[tuple[int, str, str | None], int] = defaultdict(int)
    for row in world.preempts:
        evicted[row["time"], row["by"], row["detail"]] += row["pods"]
    told = []
    for (_, _, detail), pods in evicted.items():
        number = json.loads(detail or "{}").get("pdb_violations")
        told += [] if number is None else [min(number, pods)]
    said = sum(told) if told else None if world.preempts else 0
    book.say("disruption.pdb_violations", said)

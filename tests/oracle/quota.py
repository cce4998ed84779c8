"""Quota: held over what is allowed, held without a node, borrowed and lent, owed and reclaimed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from oracle.book import Book
from oracle.pods import total
from oracle.statistics import Sample
from oracle.world import SECOND, World


def quota(world: World, book: Book) -> None:
    """All rows."""
    held(world, book)
    reclaim(world, book)


def held(world: World, book: Book) -> None:
    """What was held over, unbound, borrowed and lent."""
    width = len(world.resources)
    admits = any(row["action"] == "admit" for row in world.decisions)
    sums: dict[str, dict[str, list[Fraction]]] = {
        metric: {name: [Fraction(0)] * width for name in world.given()}
        for metric in ("over", "held_unbound", "borrowed", "lent")
    }
    for state in world.states(world.holder.__getitem__):
        cluster, known = state.epoch.cluster, state.epoch.cluster["queues"]
        for place, resource in enumerate(world.resources):
            # An ElasticQuota admits nothing: what its bound pods hold is held of it.
            has = {
                name: state.held(name, place) if "limits" in known[name] else state.allocated[name][place]
                for name in known
            }
            for name in known:
                nominal = known[name]["nominal"].get(resource, 0)
                over = max(0, has[name] - max(nominal, usable(cluster, resource, has, name)))
                sums["over"][name][place] += state.length * over
                unbound = has[name] - state.allocated[name][place]
                sums["held_unbound"][name][place] += state.length * unbound
            for flavor in flavors_of(cluster, resource):
                of_flavor = {
                    name: (state.quota[name].get((place, flavor), 0) if flavor else has[name])
                    if ("flavors" in known[name]) == bool(flavor)
                    else 0
                    for name in known
                }
                lent = lent_by(cluster, resource, flavor, of_flavor)
                for name in known:
                    nominal, _ = own_of(known[name], resource, flavor)
                    sums["borrowed"][name][place] += state.length * max(0, of_flavor[name] - nominal)
                    sums["lent"][name][place] += state.length * lent[name]
    known = world.given()
    for metric, of in sums.items():
        there = admits and (metric != "held_unbound" or world.nodes)
        for place, resource in enumerate(world.resources):
            values = {
                name: of[name][place]
                if (there or (metric in ("borrowed", "lent") and "limits" not in known.get(name, {})))
                and resource in known.get(name, {}).get("nominal", {})
                else None
                for name in world.holders()
            }
            every = [value for value in values.values() if value is not None]
            total = sum(every) if every else None
            book.say(f"quota.{metric}", world.hours(total, resource), resource=resource)
            for name, value in values.items():
                book.say(f"quota.{metric}", world.hours(value, resource), world.of(name), resource)


def usable(cluster: Mapping[str, Any], resource: str, held: Mapping[str, int], name: str) -> int:
    """What a queue may use while all others hold what they hold, as Kueue counts in a tree of cohorts.

    A node keeps its lending limit's rest for itself (`kept`); what it lends and does not use itself is its
    parent's to give, and what it may take from there is at most its borrowing limit beyond its nominal quota.
    """
    queues, cohorts = cluster["queues"], cluster["cohorts"]
    nodes = {
        **{("q", each): node for each, node in queues.items()},
        **{("c", c): n for c, n in cohorts.items()},
    }

    def parent(node: tuple[str, str]) -> tuple[str, str] | None:
        above = nodes[node]["cohort"]
        return ("c", above) if above and ("c", above) in nodes else None

    def guaranteed(node: tuple[str, str]) -> int:
        limit = _limit(nodes[node], "lent", resource) if parent(node) else None
        return 0 if limit is None else max(0, subtree(node) - limit)

    def subtree(node: tuple[str, str]) -> int:
        below = sum(subtree(each) - guaranteed(each) for each in nodes if parent(each) == node)
        return (nodes[node]["nominal"] or {}).get(resource, 0) + below

    def usage(node: tuple[str, str]) -> int:
        if node[0] == "q":
            return held[node[1]]
        return sum(max(0, usage(each) - guaranteed(each)) for each in nodes if parent(each) == node)

    def available(node: tuple[str, str]) -> int:
        above = parent(node)
        if above is None:
            return subtree(node) - usage(node)
        own = max(0, guaranteed(node) - usage(node))
        from_above = available(above)
        limit = _limit(nodes[node], "borrowing", resource)
        if limit is not None:
            stored = subtree(node) - guaranteed(node)
            used = max(0, usage(node) - guaranteed(node))
            from_above = min(from_above, stored - used + limit)
        return own + from_above

    return held[name] + available(("q", name))


def flavors_of(cluster: Mapping[str, Any], resource: str) -> list[str]:
    """The flavors of a resource, each lent by itself; "" is of quotas that are not told apart by flavors."""
    every = [*cluster["queues"].values(), *cluster["cohorts"].values()]
    found = {
        flavor for each in every for flavor, amounts in each.get("flavors", {}).items() if resource in amounts
    }
    return ["", *sorted(found)]


def own_of(node: Mapping[str, Any], resource: str, flavor: str) -> tuple[int, int | None]:
    """The nominal quota of a queue or cohort of one flavor, and how much of it is lent; None of all."""
    if not flavor and "flavors" not in node:
        return (node["nominal"] or {}).get(resource, 0), _limit(node, "lent", resource)
    amounts = node.get("flavors", {}).get(flavor, {}).get(resource)
    return (0, None) if amounts is None else (amounts["nominal"], amounts["nominal"] - amounts["kept"])


def lent_by(
    cluster: Mapping[str, Any], resource: str, flavor: str, held: Mapping[str, int]
) -> dict[str, Fraction]:
    """What each queue lends of what its tree borrows: the cohorts' own quota goes first."""
    queues, cohorts = cluster["queues"], cluster["cohorts"]

    def root(cohort: str) -> str:
        above = cohorts.get(cohort, {}).get("cohort")
        return root(above) if above else cohort

    lent = dict.fromkeys(queues, Fraction(0))
    # ElasticQuotas, which have no cohorts, lend to each other.
    tops = {
        name: root(queue["cohort"]) if "limits" in queue else "elastic"
        for name, queue in queues.items()
        if queue["cohort"] or "limits" not in queue
    }
    for tree in set(tops.values()):
        kin = [name for name, top in tops.items() if top == tree]
        nominal = {name: own_of(queues[name], resource, flavor)[0] for name in kin}
        own = sum(own_of(cohorts[each], resource, flavor)[0] for each in cohorts if root(each) == tree)
        rest = max(0, sum(max(0, held[name] - nominal[name]) for name in kin) - own)
        free = {}
        for name in kin:
            _, limit = own_of(queues[name], resource, flavor)
            idle = nominal[name] - held[name]
            free[name] = max(0, idle if limit is None else min(idle, limit))
        for name in kin:
            if free[name]:
                lent[name] = Fraction(rest * free[name], sum(free.values()))
    return lent


def _limit(node: Mapping[str, Any], kind: str, resource: str) -> int | None:
    """A borrowing or lending limit; None where there is none, as of elastic quotas."""
    limit: int | None = node.get("limits", {}).get(kind, {}).get(resource)
    return limit


def reclaim(world: World, book: Book) -> None:
    """Episodes in which a quota has pending demand within its nominal quota."""
    given = world.given()
    asked: dict[str, list[int]] = defaultdict(lambda: [0] * len(world.resources))
    has: dict[str, list[int]] = defaultdict(lambda: [0] * len(world.resources))
    since: dict[str, int] = {}
    episodes: dict[str, list[Sample]] = defaultdict(list)
    of_time: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in world.decisions:
        if row["time"] <= world.until:
            of_time[row["time"]].append(row)
    owed: dict[str, int] = defaultdict(int)
    for time in world.turns:
        of_time.setdefault(time, [])
    for time, rows in sorted(of_time.items()):
        known = world.epoch(time).cluster["queues"]
        # What was given to a quota is asked for from the beginning of that instant on.
        turned = given if time in world.turns else {}
        positive = {*since, *(name for name in turned if waits(world, known, name, asked, has))}
        for row in rows:
            name, parts = world.holder[row["job"]], world.parts[row["job"]]
            moved, _ = world.moved_by[row["seq"]]
            for of, counts in ((has, moved.holding), (asked, moved.asking)):
                for place, amount in enumerate(total(parts, counts)):
                    of[name][place] += amount
            if waits(world, known, name, asked, has):
                positive.add(name)
        for name in positive:
            if waits(world, known, name, asked, has):
                since.setdefault(name, time)
            else:
                began = since.pop(name, time)
                episodes[name].append(Sample(Fraction(time - began)))
                owed[name] += max(0, min(time, world.end) - min(began, world.end))
    for name, began in since.items():
        episodes[name].append(Sample(Fraction(world.until - began), open=True))
        owed[name] += max(0, world.end - min(began, world.end))
    every = [each for of in episodes.values() for each in of]
    book.spread("reclaim_latency", every, ("p50", "p95", "max"), unit=SECOND)
    for name in world.holders():
        book.spread("reclaim_latency", episodes[name], ("p50", "p95", "max"), world.of(name), SECOND)
        length = world.end - world.start
        book.ratio(
            "reclaim.owed", owed[name], length if given.get(name, {}).get("nominal") else None, world.of(name)
        )


def waits(
    world: World,
    known: Mapping[str, Any],
    name: str,
    asked: Mapping[str, Sequence[int]],
    has: Mapping[str, Sequence[int]],
) -> bool:
    """Whether demand within a quota's nominal quota is pending, of any resource."""
    nominal = known.get(name, {}).get("nominal") or {}
    return any(
        min(nominal.get(resource, 0), asked[name][place]) > has[name][place]
        for place, resource in enumerate(world.resources)
    )

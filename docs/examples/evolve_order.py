"""A simple evolutionary loop, which improves the order in which a policy starts jobs.

    python docs/examples/evolve_order.py mix 10

The order depends on a weighted sum of properties that a scheduler sees. Each generation changes the weights
of the best rule at random, and keeps a change if its score is higher. At the end, the loop tests the winner
on other weeks. It needs neither a network nor a language model.
"""

from __future__ import annotations

import sys
from random import Random

import harness

POLICY = """
from harness import Bind

WEIGHTS = {weights}


class Ordered:
    def __init__(self, cluster, view, options):
        self.view, self.nodes = view, list(cluster.nodes)
        self.waiting, self.since, self.held = {{}}, {{}}, {{}}

    def submit(self, job, pods, now):
        self.since.setdefault(job, now)
        self.waiting[job] = sorted([*self.waiting.get(job, ()), *pods])

    def release(self, job, pods, now, why):
        self.held[job.queue] = self.held.get(job.queue, 0) - len(pods)

    def changed(self, change, now):
        self.nodes = list(change.cluster.nodes)
        return ()

    def rank(self, job, now):
        seen = (
            job.priority / 1000,
            (now - self.since[job]) / 3.6e9,
            -sum(job.requests_of(range(job.pods)).values()) / 1e12,
            float(job.gang),
            -self.held.get(job.queue, 0) / 10,
        )
        return sum(weight * each for weight, each in zip(WEIGHTS, seen, strict=True))

    def cycle(self, now):
        order = sorted(self.waiting, key=lambda job: (-self.rank(job, now), job.index))
        full = set()
        for job in order:
            pods = self.waiting[job]
            asks = job.requests_of(range(pods[0], pods[0] + 1))
            kind = (len(pods), *sorted(asks.items()))
            if kind in full:
                continue
            places = self.places(asks, len(pods))
            if places is None:
                full.add(kind)
                continue
            del self.waiting[job]
            self.held[job.queue] = self.held.get(job.queue, 0) + len(pods)
            for pod, node in zip(pods, places, strict=True):
                yield Bind(job, range(pod, pod + 1), node)

    def places(self, asks, count):
        found = []
        for node in self.nodes:
            free = self.view.free_on(node)
            rooms = (free.get(name, 0) // amount for name, amount in asks.items() if amount)
            fits = min(rooms, default=count)
            found += [node] * min(fits, count - len(found))
            if len(found) == count:
                return found
        return None
"""

START = (1.0, 0.0, 0.0, 0.0, 0.0)
"""Weights of priority, hours of waiting, size, gang, and the pods that the queue holds."""


def scored(task: str, weights: tuple[float, ...], **weeks: int) -> float:
    """Return the score of a rule; a rule that fails scores below all others."""
    found = harness.evaluate(POLICY.format(weights=weights), task, twins=1, brief=True, **weeks)
    if found.error:
        print(f"failed: {found.error}")
    return float("-inf") if found.score is None else found.score


def changed(weights: tuple[float, ...], chance: Random) -> tuple[float, ...]:
    """Return weights that differ slightly from the given ones."""
    return tuple(round(weight + chance.gauss(0, 0.5), 3) for weight in weights)


def evolved(task: str, generations: int, chance: Random) -> tuple[float, ...]:
    """Search and return the best weights."""
    best, score = START, scored(task, START)
    print(f"start       {score:6.3f}  {best}")
    for generation in range(1, generations + 1):
        child = changed(best, chance)
        mine = scored(task, child)
        if mine > score:
            best, score = child, mine
            print(f"generation {generation:<3} {score:4.3f}  {best}")
    return best


def main() -> None:
    """Search on the task's weeks; then compare the start and the winner on hidden weeks."""
    task, generations = sys.argv[1], int(sys.argv[2])
    best = evolved(task, generations, Random(1))  # noqa: S311 - a search
    for seed in range(1, 3):
        before, after = scored(task, START, seed=seed), scored(task, best, seed=seed)
        print(f"weeks of seed {seed}: start {before:.3f}, winner {after:.3f}")


if __name__ == "__main__":
    main()

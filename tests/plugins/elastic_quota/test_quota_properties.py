"""What holds for every replay with quotas, whatever the tree, the nodes and the jobs."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quota_worlds import Happened, Jobs, Manifest, auto_happened, cluster, fuzz, leaf, node, tree

from harness.models.elastic.tree import QuotaTree


def world(rng: random.Random, *, capacity: int) -> tuple[list[Manifest], dict[str, tuple[str, ...]], Jobs]:
    """Random quotas in two groups, whose guarantees are all of the capacity, and jobs of theirs."""
    first = rng.randint(0, capacity)
    groups, lines = [], {}
    for name, total in (("p", first), ("q", capacity - first)):
        most = rng.randint(max(1, total), capacity)
        part = rng.randint(0, total)
        leaves = []
        for number, least in enumerate((part, total - part)):
            quota = f"{name}{number}"
            leaves.append(leaf(quota, least, rng.randint(max(1, least), max(1, most))))
            lines[quota] = (quota, name, "root")
        groups.append(leaf(name, total, most, children=leaves))
    jobs = Jobs()
    at = 0
    for number in range(rng.randint(3, 25)):
        at += rng.randint(0, 5)
        jobs.add(
            f"j{number}",
            rng.choice(sorted(lines)),
            rng.randint(1, 4),
            at=at,
            seconds=rng.randint(1, 40),
            pods=rng.choice([1, 1, 2, 3]),
            gang=rng.random() < 0.7,
            priority=rng.choice([0, 0, 5, 9]),
            grace=rng.choice([0, 0, 3]),
        )
    return groups, lines, jobs


class Watch:
    """Follows decisions, and adds up what quotas use, with what is leaving and without."""

    def __init__(self, jobs: Jobs, lines: dict[str, tuple[str, ...]]) -> None:
        self.quota = {job.id: job.queue for job, *_ in jobs.arrivals()}
        self.size = {job.id: job.pod_sets[0].requests["cpu"] // 1000 for job, *_ in jobs.arrivals()}
        self.lines = lines
        self.holds: Counter[str] = Counter()
        self.stays: Counter[str] = Counter()

    def take(self, row: Any) -> None:
        """One decision happened."""
        for quota in self.lines.get(self.quota[row.job], ()):
            amount = row.pods * self.size[row.job]
            if row.action == "bind":
                self.holds[quota] += amount
                self.stays[quota] += amount
            elif row.action == "preempt":
                self.stays[quota] -= amount
            elif row.action == "gone":
                self.holds[quota] -= amount
            elif row.action == "finish":
                self.holds[quota] -= amount
                self.stays[quota] -= amount


SEEDS = st.integers(0, 10**9)


@pytest.mark.parametrize("gang", ["all-or-nothing", "pods"])
@given(seed=SEEDS)
@fuzz(60)
def test_no_quota_ends_above_its_max(gang: str, seed: int) -> None:
    """Of no level of the tree, at no time."""
    rng = random.Random(seed)
    groups, lines, jobs = world(rng, capacity=12)
    where = cluster(*(node(f"n{number}", 4) for number in range(3)), tree(12, *groups))
    watch = Watch(jobs, lines)
    for row in Happened(where, jobs, gang=gang, until=400).decisions.rows:
        watch.take(row)
        for quota, used in watch.holds.items():
            assert used * 1000 <= where.elastic_quotas[quota].max_of("cpu")


@given(seed=SEEDS)
@fuzz(100)
def test_a_quota_at_or_below_its_min_never_loses_a_pod_to_another(seed: int) -> None:
    """Nor does a group of quotas to another group; what is leaving already does not count as used."""
    rng = random.Random(seed)
    groups, lines, jobs = world(rng, capacity=12)
    where = cluster(*(node(f"n{number}", 4) for number in range(3)), tree(12, *groups))
    watch = Watch(jobs, lines)
    for row in auto_happened(where, jobs, until=400).decisions.rows:
        if row.action == "preempt":
            ours, theirs = watch.quota[row.by or ""], watch.quota[row.job]
            if ours != theirs:
                for quota in lines[theirs]:
                    if quota in lines[ours]:
                        break
                    assert watch.stays[quota] * 1000 > where.elastic_quotas[quota].min_of("cpu")
        watch.take(row)


@given(seed=SEEDS)
@fuzz(100)
def test_min_is_always_reclaimable_by_its_owners(seed: int) -> None:
    """On one node, without budgets and strangers, what stays within min gets its room at once.

    The request is the most important of its quota, for otherwise the guarantee is its fellows' first.
    """
    rng = random.Random(seed)
    groups, _, jobs = world(rng, capacity=12)
    where = cluster(node("n", 12), tree(12, *groups))
    least = {name: quota.min_of("cpu") // 1000 for name, quota in where.elastic_quotas.items()}
    calm = Jobs()
    for job, *_ in jobs.arrivals():
        size = job.pod_sets[0].requests["cpu"] // 1000
        calm.add(job.id, job.queue, size, at=job.submit / 10**6, seconds=10**6, priority=job.priority)
    last = calm.arrivals()[-1][0].submit / 10**6
    used = Happened(where, calm, until=last).used
    claimants = [name for name in ("p0", "p1", "q0", "q1") if least[name] > used[name]]
    if not claimants:
        return
    claimant = rng.choice(claimants)
    asked = rng.randint(1, least[claimant] - used[claimant])
    happened = Happened(where, calm.add("claim", claimant, asked, at=last + 1, priority=100), until=last + 1)
    assert f"{int(last) + 1} bind claim on n" in happened.lines("bind")


@given(seed=SEEDS)
@fuzz(60)
def test_gangs_are_bound_whole(seed: int) -> None:
    """Its first pods are bound in one instant; later only those that were evicted come back."""
    rng = random.Random(seed)
    groups, _, jobs = world(rng, capacity=12)
    where = cluster(*(node(f"n{number}", 4) for number in range(3)), tree(12, *groups))
    gangs = {job.id: job.pods for job, *_ in jobs.arrivals() if job.gang}
    first: dict[str, list[int]] = {}
    for row in Happened(where, jobs, until=400).decisions.of("bind"):
        if row.job in gangs:
            first.setdefault(row.job, []).append(row.time)
    for name, times in first.items():
        assert len(set(times[: gangs[name]])) == 1


@given(seed=SEEDS)
@fuzz(30)
def test_the_same_world_gives_the_same_decisions(seed: int) -> None:
    """Nothing depends on chance."""
    rows = []
    for _ in range(2):
        groups, _, jobs = world(random.Random(seed), capacity=12)
        where = cluster(*(node(f"n{number}", 4) for number in range(3)), tree(12, *groups))
        rows.append(Happened(where, jobs, until=400).decisions.rows)
    assert rows[0] == rows[1]


@given(
    charges=st.lists(st.tuples(st.sampled_from(["p0", "p1", "q0", "q1"]), st.integers(0, 9)), max_size=20),
    seed=SEEDS,
)
def test_usage_adds_up_and_a_refund_undoes_a_charge(charges: list[tuple[str, int]], seed: int) -> None:
    """A quota above uses what those below it use together."""
    groups, _, _ = world(random.Random(seed), capacity=12)
    made = QuotaTree(cluster(tree(12, *groups)).elastic_quotas, hierarchical=True)
    for name, amount in charges:
        made.charge(made.leaves[name], {"cpu": amount})
    used = {name: quota.used.get("cpu", 0) for name, quota in made.quotas.items()}
    assert used["p"] == used["p0"] + used["p1"]
    assert used["root"] == used["p"] + used["q"] == sum(amount for _, amount in charges)
    for name, amount in charges:
        made.charge(made.leaves[name], {"cpu": amount}, -1)
    assert not any(amount for quota in made.quotas.values() for amount in quota.used.values())

"""What dry runs reckon with stands for taking pods out of the quota tree and asking it again."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from quota_worlds import cluster, leaf, tree

from harness.models.elastic.lent import Lent
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.tree import QuotaTree
from harness_plugins.elastic_quota.dry_run import Shortfall

RESOURCES = ("cpu", "memory")
Pods = list[tuple[Quota, Amounts]]


def amounts(rng: random.Random, most: int) -> dict[str, int]:
    """Amounts of some resources, 0 among them."""
    return {each: rng.randint(0, most) for each in rng.sample(RESOURCES, rng.randint(1, 2))}


def quotas(rng: random.Random) -> tuple[QuotaTree, Pods]:
    """Four leaves, two of them below a quota of their own, charged by pods."""
    team = leaf(
        "team", 6, rng.randint(12, 20), children=[leaf("q2", 3, 12), leaf("q3", 3, rng.randint(3, 12))]
    )
    two = [leaf("q0", rng.randint(0, 6), 20), leaf("q1", rng.randint(0, 6), rng.randint(6, 20))]
    found = QuotaTree(cluster(tree(rng.randint(20, 40), *two, team)).elastic_quotas, hierarchical=True)
    pods = [(rng.choice(list(found.leaves.values())), amounts(rng, 6000)) for _ in range(rng.randint(1, 12))]
    for leaf_of, asked in pods:
        found.charge(leaf_of, asked)
    return found, pods


@given(seed=st.integers(0, 10**6))
def test_a_shortfall_is_covered_when_the_tree_lets_the_pod_in(seed: int) -> None:
    """Whichever pods are taken away and put back, all bounds are asked; nominated pods count in some."""
    rng = random.Random(seed)
    found, pods = quotas(rng)
    asking = rng.choice(list(found.leaves.values()))
    asked, more = amounts(rng, 6000), amounts(rng, 2000)
    shared = {rng.choice(asking.line[1:]): amounts(rng, 6000)} if rng.random() < 0.7 else {}
    in_all = {each: asked.get(each, 0) + more.get(each, 0) for each in (*asked, *more)}
    short = Shortfall(found.excesses(asking, asked, shared, in_all))
    gone: Pods = []
    for _ in range(12):
        lets_in = found.over_max(asking, asked, shared) is None and found.over_guaranteed(in_all) is None
        assert short.is_covered() == lets_in
        if gone and rng.random() < 0.4:
            leaf_of, each = gone.pop(rng.randrange(len(gone)))
            found.charge(leaf_of, each)
            short.change(leaf_of, each, 1)
        elif len(gone) < len(pods):
            leaf_of, each = rng.choice([pod for pod in pods if not any(pod is other for other in gone)])
            gone.append((leaf_of, each))
            pods = [pod for pod in pods if pod != (leaf_of, each)]
            found.charge(leaf_of, each, -1)
            short.change(leaf_of, each, -1)


def may_lose(quota: Quota, claimant: Quota) -> bool:
    """The rule itself, of the tree as it is: all up to a common quota use more than they are guaranteed."""
    apart = [each for each in quota.line if each not in claimant.line]
    return all(any(used > each.min.get(name, 0) for name, used in each.used.items()) for each in apart)


@given(seed=st.integers(0, 10**6))
def test_what_is_lent_is_what_the_tree_says_without_the_pods_that_are_taken(seed: int) -> None:
    """A quota loses pods to a claimant as long as it borrows, and those above it up to a common one."""
    rng = random.Random(seed)
    found, pods = quotas(rng)
    claimant = rng.choice(list(found.leaves.values()))
    lent = Lent(claimant)
    for leaf_of, each in rng.sample(pods, len(pods)):
        for other in found.leaves.values():
            assert lent.may_lose(other) == may_lose(other, claimant)
        if leaf_of is not claimant and lent.may_lose(leaf_of):
            lent.take(leaf_of, each)
            found.charge(leaf_of, each, -1)

"""A cycle counts the targets of earlier entries as gone: jobs are admitted while those are leaving."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kueue_fuzz import fuzz
from kueue_worlds import Happened, Jobs, cluster, manifest, pod_set, queue, quota

from harness import Cluster, Job
from harness.models.quota import QuotaTree
from harness.testing import Row

ANY = {"reclaimWithinCohort": "Any"}
QUEUES = [queue(name, cpu=cpu, preemption=ANY) for name, cpu in {"a": 3, "b": 2, "c": 0, "d": 1}.items()]


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_an_entry_that_fits_once_victims_are_gone_is_admitted_and_starts_then(plugin: str) -> None:
    """P takes V's 4 cores back; 2 of the 6 are left when V is gone, X has 1 and F gets the other ones.

    P itself is admitted when Kueue knows that V is gone.
    """
    jobs = Jobs().add("V", "b", 4, grace=30)
    jobs.add("X", "d", 1, at=10).add("P", "a", 3, at=10).add("F", "c", 2, at=10)
    happened = Happened(cluster(*QUEUES), jobs, plugin=plugin)
    assert happened.lines("admit", "start", "preempt", "gone") == [
        "0 admit V",
        "10 admit X",
        "10 preempt V by P: InCohortReclamation",
        "10 admit F",
        "40 gone V",
        "40 start F",
        "41 admit P",
    ]


def crowded(seed: int) -> tuple[Cluster, Jobs]:
    """Queues that lend to each other, of which two borrow when jobs come to all of them at once."""
    random = Random(seed)
    names = [f"q{number}" for number in range(random.randint(4, 8))]
    cohorts = random.choice((["all"], ["all"], ["left", "right"]))
    manifests = [manifest("Cohort", name, parentName="top") for name in cohorts if name != "all"]
    for name in names:
        nominal = random.choice((0, 1, 2, 3, 4))
        lend = random.choice((None, None, None, None, min(1, nominal)))
        cpu = quota(nominal, borrow=random.choice((None, None, None, 2)), lend=lend)
        preemption = {"reclaimWithinCohort": random.choice(("Any", "Any", "Any", "LowerPriority"))}
        manifests.append(queue(name, cohort=random.choice(cohorts), cpu=cpu, preemption=preemption))
    jobs = Jobs()
    for burst, at in enumerate((0, 0, 0, 10, 14, 21, 40)):
        for name in names[: 2 if at == 0 else None]:
            sets = (pod_set("p", random.randint(1, 2), random.randint(1, 3), least=1),)
            jobs.add(
                f"{name}-{burst}",
                name,
                at=at,
                pod_sets=sets,
                grace=random.choice((0, 3, 10, 30)),
                seconds=random.choice((5, 20, 100)),
                priority=random.randint(0, 2),
            )
    return cluster(*manifests), jobs


@fuzz(60)
@given(st.integers(0, 2**32), st.sampled_from(["kueue-classic", "fairsharing"]))
def test_quotas_hold_after_every_decision_once_those_who_are_leaving_are_gone(seed: int, plugin: str) -> None:
    """Kept from the rows alone, in every flavor, cohort and queue; and what is held fits the cluster."""
    where, jobs = crowded(seed)
    known = {job.id: job for chunk in jobs.chunks() for job, *_ in chunk}
    happened = Happened(where, jobs, plugin=plugin, until=200)
    tree = QuotaTree(where.cluster_queues, where.cohorts)
    held: dict[str, list[tuple[int, int]]] = {}
    asks: dict[str, dict[str, int]] = {}
    runs: set[str] = set()
    for row in happened.decisions.rows:
        node = tree.queues[known[row.job].queue]
        if row.action == "admit":
            asks[row.job], amounts = _admitted(row, known[row.job], tree)
            held[row.job] = amounts
            tree.charge(node, amounts)
            assert tree.covers(node, amounts), row
        elif row.action in ("preempt", "evict", "finish") and row.job in held:
            tree.refund(node, held.pop(row.job))
        if row.holding > 0:
            runs.add(row.job)
        elif row.holding < 0:
            runs.remove(row.job)
        for resource, limit in where.capacity.items():
            assert sum(asks[name].get(resource, 0) for name in runs) <= limit, row


def _admitted(row: Row, job: Job, tree: QuotaTree) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """What an admission gives to a job: by resource, and by number of the flavor-resource."""
    fewer = (row.detail or {}).get("counts", {})
    amounts: dict[str, int] = {}
    cells: dict[int, int] = {}
    for each in job.pod_sets:
        chosen = (row.flavors or {}).get(each.name, {})
        for resource, amount in each.requests.items():
            more = amount * fewer.get(each.name, each.count)
            amounts[resource] = amounts.get(resource, 0) + more
            if resource in chosen and more:
                cell = tree.cell(chosen[resource], resource)
                assert cell is not None
                cells[cell] = cells.get(cell, 0) + more
    return amounts, list(cells.items())

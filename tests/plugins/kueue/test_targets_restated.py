"""Preemption targets and shares as the plugin finds them, and as the rules say word by word.

`plain_quotas` says the rules once more without any of the plugin's care for speed. It answers recorded cases
as the real code did, so both can be trusted where they agree on worlds that nobody recorded.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random

import plain_targets
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kueue_fuzz import STRATEGIES, fuzz
from plain_quotas import Holder, Node, Snapshot, nodes_of
from targets_fuzz import case

from harness_plugins.kueue.conformance.targets import question
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.state.cache import Cache

RECORDED = Path(__file__).parents[2] / "conformance" / "kueue-targets-random-dev-first-200.jsonl.gz"
NOT_RESTATED = {"unlimited-quota", "reclaimablePods", "priority-boost"}


def test_the_restatement_answers_recorded_cases_as_the_real_code_did() -> None:
    """Targets, their order and their reasons; what it leaves out is said by the cases' features."""
    with gzip.open(RECORDED, "rt") as lines:
        recorded = [each for each in map(json.loads, lines) if not NOT_RESTATED & set(each["features"])]
    assert len(recorded) > 150
    for each in recorded:
        assert plain_targets.answer(each) == each["expect"]["targets"], each["id"]


@pytest.mark.parametrize("strategies", [None, *STRATEGIES])
def test_targets_are_those_of_the_restatement(strategies: str | None) -> None:
    """In trees of three levels and more, with limits on the way, weights of zero and many equal shares."""

    @fuzz(70)
    @given(seed=st.integers(0, 2**32), holders=st.integers(1, 35))
    def agrees(seed: int, holders: int) -> None:
        asked = case(seed, holders, strategies)
        cache, incoming, search = question(asked)
        before = list(cache.tree.usage)
        found = [
            {"workload": target.workload.name, "reason": target.reason}
            for target in search.find_targets(incoming)
        ]
        assert found == plain_targets.answer(asked)
        assert cache.tree.usage == before

    agrees()


@fuzz(40)
@given(seed=st.integers(0, 2**32), holders=st.integers(1, 25))
def test_shares_are_the_same_doubles_however_usage_came_about(seed: int, holders: int) -> None:
    """Kept up to date while workloads come and go, and worked out from scratch: equal in every bit."""
    asked = case(seed, holders, STRATEGIES[0])
    cache, _, search = question(asked)
    assert isinstance(search, FairSharing)
    nodes = nodes_of(asked["objects"])
    names = {("ClusterQueue", name): at for name, at in cache.tree.queues.items()}
    names |= {("Cohort", name): at for name, at in cache.tree.cohorts.items()}
    random = Random(seed)
    everybody = [each for queue in cache.queues.values() for each in cache.holders[queue.node].workloads]
    for workload in random.sample(everybody, min(len(everybody), 8)):
        queue, usage, uses = workload.cluster_queue, workload.usage, workload.uses
        cache.drop(workload)
        if random.random() < 0.5:
            cache.hold(workload, queue, usage, uses, workload.reserved)
        snapshot = Snapshot(_plainly(cache, nodes))
        for key, node in names.items():
            borrows, (infinite, value) = search.shares.of(node)
            expected_borrows, (expected_infinite, expected) = snapshot.share(nodes[key])
            assert (borrows, infinite) == (expected_borrows, expected_infinite)
            assert value.hex() == expected.hex()


def _plainly(cache: Cache, nodes: dict[tuple[str, str], Node]) -> list[Holder]:
    """Who holds what now, in the words of the restatement."""
    found = []
    for queue in cache.queues.values():
        for workload in cache.holders[queue.node].workloads:
            holder = Holder(workload.name, workload.uid, workload.priority, workload.timestamp)
            holder.queue = nodes["ClusterQueue", queue.name]
            holder.usage = {tuple(cache.tree.flavor_resources[cell]): value for cell, value in workload.usage}
            found.append(holder)
    return found

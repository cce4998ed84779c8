"""Which criterion is said to have decided between the nodes on which a preemption would help."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from kube_worlds import manifest, node

from harness.cluster.kinds.pod_reading import read_pod
from harness.cluster.load import cluster_from
from harness.cluster.yaml.fields import Fields
from harness.models.kube.cache import Cache
from harness.models.kube.pod import PodInfo, Templates
from harness.models.kube.preemption.evaluator import CRITERIA, deciding_criterion
from harness.models.kube.preemption.victims import Candidate


def decided_by(candidates: list[Candidate]) -> str:
    """The rule itself: each criterion leaves those that are best by it, until one is left."""
    left = [candidate.key for candidate in candidates]
    for number, criterion in enumerate(CRITERIA):
        least = min(key[number] for key in left)
        left = [key for key in left if key[number] == least]
        if len(left) == 1:
            return criterion
    return CRITERIA[-1]


@given(st.integers(0, 10**6))
def test_the_first_criterion_that_leaves_one_candidate_decides(seed: int) -> None:
    """Candidates are told apart one criterion after the other, however many there are."""
    rng = random.Random(seed)
    cache = Cache(cluster_from([node(f"n{number}") for number in range(8)], "test"))
    read = read_pod(Fields(manifest("p", {"cpu": 1}, None), "p", []))
    template = Templates(cache.resources, lambda *_: ()).of("default", read.labels, read.spec)
    candidates = []
    for place in rng.sample(cache.nodes, rng.randint(2, 8)):
        victims = [PodInfo("p", template, rng.randint(0, 1), True) for _ in range(rng.randint(1, 2))]
        for victim in victims:
            victim.start = rng.randint(0, 1)
        victims.sort(key=lambda victim: (-victim.priority, victim.start))
        candidates.append(Candidate(place, tuple(victims), rng.choice([0, 0, 1]), budgeted=False))
    assert deciding_criterion(candidates) == decided_by(candidates)

"""The plugin `backfill` on nodes that change: what goes, what is known before, and what is planned then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from batch_jobs import Batch, backfilled
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness import Cluster
from harness.base.errors import ClusterError
from harness.base.units import SECOND
from harness.cluster.changes.over_time import unrolled
from harness.cluster.load import cluster_from
from harness.testing import Decisions
from harness.testing.worlds import random_world

ALGORITHMS = ["easy", "conservative"]


def node(name: str, cpu: int = 4, **spec: Any) -> dict[str, Any]:
    """A node of so many cores."""
    has = {"cpu": cpu, "pods": 110}
    kind = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return {**kind, "spec": spec, "status": {"allocatable": has}}


def over(
    name: str, begin: int, until: int | None = None, *, announced: bool = False, **patch: Any
) -> dict[str, Any]:
    """A patch of a node for a while; without anything else it is gone."""
    times = {"harness/from": f"{begin}s", **({} if until is None else {"harness/until": f"{until}s"})}
    times |= {"harness/announced": "true"} if announced else {}
    kind = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": times}}
    return {**kind, **(patch or {"$patch": "delete"})}


def changing(*manifests: dict[str, Any]) -> Cluster:
    return unrolled(cluster_from(list(manifests), "test"), None)


def about(happened: Decisions, *actions: str) -> list[str]:
    """Rows of some actions, such as `5 evict a: NodeFail`."""
    rows = happened.of(*actions)
    return [
        f"{row.time // SECOND} {row.action} {row.job}{f': {row.reason}' if row.reason else ''}"
        for row in rows
    ]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_job_that_loses_a_pod_goes_as_a_whole_and_waits_at_its_place(algorithm: str) -> None:
    """n2 fails at 10 s: `a` loses one pod there, and the other one at n1; it comes before `b` again."""
    where = changing(node("n1"), node("n2"), over("n2", 10, 50))
    jobs = Batch().asks("a", cpu=3000, pods=2, seconds=30).asks("b", at=5, cpu=4000, pods=2, seconds=10)
    happened = backfilled(jobs, where, algorithm=algorithm)
    assert about(happened, "evict") == ["10 evict a: DeletionByPodGC", "10 evict a: NodeFail"]
    assert about(happened, "bind", "finish") == [
        "0 bind a",
        "0 bind a",
        "50 bind a",
        "50 bind a",
        "80 finish a",
        "80 bind b",
        "80 bind b",
        "90 finish b",
    ]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_failure_is_not_known_before_and_maintenance_is(algorithm: str) -> None:
    """n1 goes from 50 to 80 s. Who asks for 60 s starts and is lost, or waits until the node is back.

    `short` is over before, so that it passes.
    """
    jobs = Batch().asks("long", cpu=4000, seconds=60).asks("short", at=1, cpu=4000, seconds=40)
    fails = backfilled(jobs, changing(node("n1"), over("n1", 50, 80)), algorithm=algorithm)
    assert about(fails, "bind", "evict")[:2] == ["0 bind long", "50 evict long: DeletionByPodGC"]
    known = backfilled(jobs, changing(node("n1"), over("n1", 50, 80, announced=True)), algorithm=algorithm)
    assert known.starts() == {"short": 1, "long": 80}
    assert about(known, "evict") == []
    assert about(known, "refuse")[0] == "0 refuse long: ReqNodeNotAvail"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_reservation_counts_on_a_node_only_while_it_is_there(algorithm: str) -> None:
    """`first` needs both nodes for 20 s; n2 is away from 30 to 60 s, and `runs` holds n1 until 15 s.

    At 15 s it would not be over in time, so it is reserved for 60 s. `fits` may run until then, `wide` not.
    """
    where = changing(node("n1"), node("n2"), over("n2", 30, 60, announced=True))
    jobs = Batch().asks("runs", cpu=4000, seconds=15).asks("first", at=1, cpu=4000, pods=2, seconds=20)
    jobs.asks("fits", at=2, cpu=4000, seconds=28).asks("wide", at=3, cpu=4000, seconds=50)
    happened = backfilled(jobs, where, algorithm=algorithm)
    assert happened.starts() == {"runs": 0, "fits": 2, "first": 60, "wide": 80}
    assert about(happened, "evict") == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_node_that_is_announced_to_come_is_reserved_before_it_is_there(algorithm: str) -> None:
    """`large` fits n2 alone, which comes at 40 s: nobody takes it, and nobody waits for anything else."""
    coming = over("n2", 40, announced=True, **{key: node("n2", 8)[key] for key in ("spec", "status")})
    jobs = Batch().asks("large", cpu=8000, seconds=10).asks("small", at=1, cpu=4000, seconds=100)
    happened = backfilled(jobs, changing(node("n1"), coming), algorithm=algorithm)
    assert happened.starts() == {"small": 1, "large": 40}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_node_that_is_announced_to_shrink_takes_what_fits_it_then(algorithm: str) -> None:
    """It has 1 core from 30 s on: 3 for 20 s may start, and 4 for 40 s never does.

    1 core for 40 s starts beside nobody, since all that is there counts as if it were there then.
    """
    small = over("n1", 30, announced=True, status={"allocatable": {"cpu": 1}})
    jobs = Batch().asks("long", cpu=4000, seconds=40).asks("short", at=1, cpu=3000, seconds=20)
    jobs.asks("little", at=2, cpu=1000, seconds=40)
    happened = backfilled(jobs, changing(node("n1"), small), algorithm=algorithm)
    assert happened.starts() == {"short": 1, "little": 21}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_no_execute_taint_evicts_jobs_that_do_not_tolerate_it(algorithm: str) -> None:
    """As a whole, also with pods elsewhere; who tolerates it for 20 s goes then."""
    where = changing(
        node("n1", 2),
        node("n2", 2),
        over("n2", 10, 60, spec={"taints": [{"key": "x", "effect": "NoExecute"}]}),
    )
    jobs = Batch().asks("pair", cpu=2000, pods=2, seconds=30)
    happened = backfilled(jobs, where, algorithm=algorithm)
    assert about(happened, "evict", "finish") == [
        "10 evict pair: DeletionByTaintManager",
        "10 evict pair: DeletionByTaintManager",
        "90 finish pair",
    ]


@pytest.mark.parametrize(
    ("kind", "announced", "fault"),
    [
        ("Node", "perhaps", "'perhaps' is neither true nor false"),
        ("ClusterQueue", "true", "harness/announced is for Node and NodePool"),
    ],
)
def test_what_cannot_be_announced_is_a_fault(kind: str, announced: str, fault: str) -> None:
    """A word that is no answer, and a kind that nobody plans."""
    document = over("x", 1) | {"kind": kind}
    document["metadata"]["annotations"]["harness/announced"] = announced
    with pytest.raises(ClusterError, match=fault):
        changing(node("n1"), node("x"), document)


@examples(40)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 15), st.integers(1, 4), st.integers(1, 2)),
        min_size=1,
        max_size=12,
    ),
    windows=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50), st.integers(1, 20)), max_size=4),
    algorithm=st.sampled_from(ALGORITHMS),
)
def test_nobody_is_lost_to_what_is_announced_and_everybody_ends(
    jobs: list[tuple[int, int, int, int]], windows: list[tuple[int, int, int]], algorithm: str
) -> None:
    """Where jobs run as long as expected; whenever nodes are away, and for however many pods."""
    away = [over(f"n{number}", at, at + span, announced=True) for number, at, span in windows]
    batch = Batch()
    for number, (at, seconds, cpu, pods) in enumerate(sorted(jobs)):
        batch.asks(f"j{number}", at=at, seconds=seconds, cpu=1000 * cpu, pods=pods)
    happened = backfilled(
        batch, changing(*(node(f"n{number}") for number in range(3)), *away), algorithm=algorithm
    )
    assert about(happened, "evict") == []
    assert len(about(happened, "finish")) == len(jobs)


@examples(12)
@given(seed=st.integers(0, 10**6), algorithm=st.sampled_from(ALGORITHMS))
def test_nothing_is_wrong_in_random_worlds(
    tmp_path_factory: pytest.TempPathFactory, seed: int, algorithm: str
) -> None:
    """Nodes hold no more than they have, and all jobs keep to the rules of the engine; by the checker."""
    world = random_world(seed, node_events=True)
    if world.uses_nodes("backfill"):
        folder: Path = tmp_path_factory.mktemp("runs")
        run = world.replay("backfill", folder, options={"algorithm": algorithm, "estimate": "actual"})
        assert not world.faults(run, rules=("placement",))

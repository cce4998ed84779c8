"""Each threshold of findings separates planted faults from records without any.

A record without a fault is not what the simulation does: its pods take minutes until they are ready, which
the simulation does not know. What is named there beside late starts is a false alarm. Most thresholds are
tried with -m slow; tests/test_validate.py finds faults of the same kinds with the thresholds as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from planted_faults import POOLS, QUEUES, cluster_of, held, jobs_of, validated

from harness.analysis.validation import Validation, findings
from harness.analysis.validation.findings import LATE, Finding, findings_of
from harness.base.units import DAY, SECOND

Worlds = list[Validation]


def world(folder: Path, seed: int, *, nodes: bool = False, **more: Any) -> Validation:
    """A week of 500 jobs on three queues of 72 cores, or on two pools of 5 and 4 nodes of 8."""
    folder.mkdir()
    rows = jobs_of(500, seed, 7, 0.95, list(POOLS) if nodes else ())
    cluster = cluster_of({} if nodes else QUEUES, POOLS if nodes else {})
    plugin = "default-preemption" if nodes else "kueue-classic"
    return validated(folder, rows, cluster, plugin, **more)


def named(of: Validation, **thresholds: float) -> list[Finding]:
    """What is found beside late starts, with some thresholds changed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in thresholds.items():
            patch.setattr(findings, name, value)
        found = findings_of(of.trace, of.cluster, of.recorded, of.simulated, of.pairs)
    return [each for each in found if each.kind != LATE]


def alarms(worlds: Worlds, **thresholds: float) -> int:
    """In how many worlds something is found."""
    return sum(bool(named(each, **thresholds)) for each in worlds)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Validation]:
    """Makes worlds; each is made once."""
    known: dict[str, Validation] = {}

    def made(seed: int, **more: Any) -> Validation:
        key = f"{seed} {more}"
        if key not in known:
            known[key] = world(tmp_path_factory.mktemp("world") / "in", seed, **more)
        return known[key]

    return made


@pytest.fixture(scope="module")
def faultless(make: Callable[..., Validation]) -> Worlds:
    """Three records of queues without a fault."""
    return [make(seed, startup="600s") for seed in range(3)]


def test_few_spans_of_evidence_come_by_chance(faultless: Worlds, make: Callable[..., Validation]) -> None:
    """One span raises an alarm in every record without a fault, six in none; 3 hours of outage have them."""
    assert alarms(faultless, _EVIDENCE=1) == len(faultless)
    assert alarms(faultless) == 0
    (found,) = named(make(0, unseen=held(24, "a", 2 * DAY, DAY // 8)))
    assert abs(found.start - 2 * DAY) < DAY // 24


def test_a_period_ends_where_what_was_missing_was_there(
    faultless: Worlds, make: Callable[..., Validation]
) -> None:
    """If nothing contradicted, chance evidence would add up; if anything did, one outage would be several."""
    assert alarms(faultless, _CONTRADICTS=0) == len(faultless)
    outage = make(1, unseen=held(8, "a", 2 * DAY, 2 * DAY), startup="600s")
    assert len(named(outage, _CONTRADICTS=1)) == 2
    (found,) = named(outage)
    assert abs(found.end - found.start - 2 * DAY) < DAY // 5


@pytest.mark.slow
def test_less_than_one_and_a_half_per_cent_comes_out_in_pieces(make: Callable[..., Validation]) -> None:
    """One of 72 cores for three days is not found as that whatever the least part is; two cores are."""
    for seed in range(1):
        one = named(make(seed, unseen=held(1, "a", 2 * DAY, 3 * DAY)), _LEAST=0)
        assert not any(abs(each.end - each.start - 3 * DAY) < 3 * DAY // 5 for each in one[1:])
        assert len(one) == 2
        (two,) = named(make(seed, unseen=held(2, "a", 2 * DAY, 3 * DAY)))
        assert two.amount == 2000
        assert abs(two.end - two.start - 3 * DAY) < 3 * DAY // 5


@pytest.mark.slow
def test_what_a_queue_has_lost_and_what_all_have_lost_are_told_apart(make: Callable[..., Validation]) -> None:
    """Nine tenths of the evidence is of the queue that lost quota, and never of one of several that did."""
    for seed in (13, 14):
        unseen = [
            {**row, "job_id": f"{row['job_id']}{queue}"}
            for queue, count in (("a", 4), ("b", 3), ("c", 2))
            for row in held(count, queue, 2 * DAY, 2 * DAY)
        ]
        assert named(make(seed, unseen=unseen))[0].object == "whole"
    assert named(make(14, unseen=unseen), _MINE=0.7)[0].object == "queue"
    for seed, queue in enumerate("ac"):
        assert named(make(seed, unseen=held(8, queue, 2 * DAY, 2 * DAY)))[0].name == queue


@pytest.mark.slow
def test_outages_are_told_apart_from_a_load_that_is_there_all_the_time(
    make: Callable[..., Validation],
) -> None:
    """Three outages within 36 % of the time are three; load missing everywhere is one, not its pieces."""
    unseen = [
        {**row, "job_id": f"{row['job_id']}-{day}"}
        for day in (2, 3, 4)
        for row in held(12, "a", day * DAY, DAY // 2)
    ]
    outages = make(3, unseen=unseen)
    assert [each.start // DAY for each in sorted(named(outages), key=lambda each: each.start)] == [2, 3, 4]
    assert len(named(outages, _EVERYWHERE=0)) == 1
    random = Random(1)
    gone = [row["job_id"] for row in jobs_of(500, 1, 7, 0.95) if random.random() < 0.05]
    load = make(1, without=gone)
    (found,) = named(load)
    assert found.object == "whole"
    assert len(named(load, _EVERYWHERE=1)) > 2


@pytest.mark.slow
def test_a_quarter_of_nodes_may_be_free_in_pieces(make: Callable[..., Validation]) -> None:
    """With a tenth half of four records without a fault raise an alarm, with a quarter none does.

    Half a pool that is down for a day is found.
    """
    faultless = [make(seed, nodes=True, startup="90s") for seed in range(4)]
    assert alarms(faultless) == 0
    assert alarms(faultless, IN_PIECES=0.1) >= len(faultless) / 2
    (found,) = named(make(2, nodes=True, unseen=held(16, "b", 2 * DAY, DAY, "y")))
    assert (found.name, found.amount) == ("pool=y", 16_000)
    assert abs(found.end - found.start - DAY) < DAY // 5


@pytest.mark.slow
def test_false_alarms_are_rare(make: Callable[..., Validation]) -> None:
    """Of 64 records without a fault, on queues and on nodes, at most one of twenty raises an alarm."""
    faultless = [
        make(seed, nodes=nodes, startup=startup)
        for nodes in (False, True)
        for startup in ("90s", "600s")
        for seed in range(16)
    ]
    assert alarms(faultless) <= len(faultless) / 20


def late(waits: list[float]) -> bool:
    """Whether starts are called late, of jobs that start at once in the simulation."""
    pairs = pl.DataFrame({"wait": [int(each * SECOND) for each in waits], "simulated_wait": 0})
    run: Any = SimpleNamespace(window=(0, DAY))
    return bool(list(findings._late(pairs, run)))


@pytest.mark.parametrize(("delay", "is_late"), [(0.5, False), (1.0, False), (2.0, True), (5.0, True)])
def test_a_second_may_be_that_records_are_in_seconds(delay: float, *, is_late: bool) -> None:
    """Of 200 records in whole seconds all or none, by how late starts are."""
    for seed in range(200):
        random = Random(seed)
        assert late([int(delay + random.random()) for _ in range(40)]) is is_late


def test_twenty_jobs_tell_a_delay_from_waits_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponential waits are called a delay in at most 5 % of records, of ten jobs in more than 10 %.

    A delay of a minute that varies by a quarter is found in at least 99 %.
    """

    def share(count: int, draw: Callable[[Random], float]) -> float:
        seeds = range(300)
        return sum(late([draw(random) for _ in range(count)]) for random in map(Random, seeds)) / len(seeds)

    def by_chance(random: Random) -> float:
        return random.expovariate(1 / 600)

    assert share(20, by_chance) <= 0.05
    assert share(20, lambda random: random.gauss(60, 15)) >= 0.99
    monkeypatch.setattr(findings, "_SURE", 10)
    assert share(10, by_chance) > 0.1

"""Twins that lack a value: what is not reached in some of them is not averaged over the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean

import pytest
from small_clusters import queues

import harness
from harness.comparison.changes import Ground, Verdict
from harness.comparison.recommendation import recommendation
from harness.errors import RunError
from harness.statistics.significance import of_pairs

TWINS = 6
SHAKE = f"{TWINS},arrivals=5s"
MEDIAN = "wait.first_start.p50"
RESTART = "disruption.time_to_restart.p50"


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., harness.Run]:
    """Ten jobs of 10 s that arrive together a minute after the origin, on so many cores."""
    trace = write_trace(*({"queue": "a", "submit_time": 60, "duration": 10} for _ in range(10)))

    def run(label: str, cores: int, *, until: str | None = None) -> harness.Run:
        """On one core the fifth job starts after 95 to 98 s, as the first one arrived."""
        cluster = tmp_path / f"{cores}.yaml"
        cluster.write_text(queues({"a": {"cpu": str(cores)}}))
        return harness.replay(trace, cluster=cluster, label=label, until=until, output=tmp_path / "results")

    return run


def values_of(run: harness.Run, metric: str) -> list[float | None]:
    """What each of its twins has."""
    folders = (run.path.parent / ".twins" / run.path.name).iterdir()
    twins = sorted(map(harness.Run.open, folders), key=lambda twin: twin.info["settings"]["twin"])
    return [twin.metrics.filter(metric=metric, scope="all")["value"].item() for twin in twins]


def test_what_some_twins_have_not_reached_has_neither_mean_nor_verdict(
    replayed: Callable[..., harness.Run],
) -> None:
    """Those that have not are the worst ones; the note says in how many of which run."""
    few, many = replayed("few", 1, until="96s"), replayed("many", 3, until="96s")
    comparison = harness.compare([few, many], shake=SHAKE, workers=1)
    missing = values_of(few, MEDIAN).count(None)
    assert 0 < missing < TWINS - 1
    assert None not in values_of(many, MEDIAN)
    (row,) = comparison.rows(MEDIAN)
    assert row.values[0] is None
    assert row.values[1] is not None
    (change,) = row.changes
    assert (change.ground, change.verdict, change.interval) == (Ground.UNREACHED, Verdict.UNKNOWN, None)
    told = f"- of {MEDIAN}: not reached in {missing} of {TWINS} twins of few, since too many jobs had not"
    assert told in comparison.table(MEDIAN)


def test_a_condition_on_it_cannot_be_decided(replayed: Callable[..., harness.Run]) -> None:
    """Neither of the value nor of the change; of how many twins that is, it says."""
    few, many = replayed("few", 1, until="96s"), replayed("many", 3, until="96s")
    comparison = harness.compare([many, few], shake=SHAKE, workers=1)
    missing = values_of(few, MEDIAN).count(None)
    for condition in (f"{MEDIAN} > 1h", f"{MEDIAN} > +5%"):
        with pytest.raises(RunError, match=f"in few: not reached in {missing} of {TWINS} twins, since"):
            comparison.check(condition)
    (check,) = harness.compare([few, many], shake=SHAKE, workers=1).check(f"{MEDIAN} > 1h")
    assert not check.holds


def test_a_run_that_lacks_values_does_not_change_those_of_others(
    replayed: Callable[..., harness.Run],
) -> None:
    """Neither means nor intervals."""
    few, more, many = (
        replayed(name, cores, until="96s") for name, cores in (("few", 1), ("more", 2), ("many", 3))
    )
    two = harness.compare([more, many], shake=SHAKE, workers=1).rows(MEDIAN)[0]
    three = harness.compare([more, many, few], shake=SHAKE, workers=1).rows(MEDIAN)[0]
    assert three.values == [*two.values, None]
    assert three.changes[0].interval == two.changes[0].interval is not None
    assert three.changes[0].interval.size == TWINS


def test_runs_are_judged_by_what_all_twins_have(replayed: Callable[..., harness.Run]) -> None:
    """Not by a percentile that some of them have reached: the mean delay is there."""
    few, many = replayed("few", 1, until="150s"), replayed("many", 3, until="150s")
    comparison = harness.compare([few, many], shake=f"{TWINS},arrivals=0s,durations=20%", workers=1)
    assert 0 < values_of(few, "wait.first_start.p95").count(None) < TWINS
    found = recommendation(comparison)
    assert found is not None
    assert found.carried
    assert "take “many”: it has a mean delay of " in found.sentence


def test_where_some_twins_have_no_such_event_the_others_count(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Their number is said; the change is over the twins where both runs have one."""
    (tmp_path / "c.yaml").write_text(queues({"a": {"cpu": "1"}}))
    first = {"queue": "a", "submit_time": 60, "duration": 20, "priority": 0}
    then = {"queue": "a", "submit_time": 76, "duration": 5, "priority": 1}  # preempts the first if that runs
    trace = write_trace(first, then)
    choices = [("whole", "1s", None), ("cut", "2s", "85s")]
    runs = [
        harness.replay(
            trace, plugin="kueue-classic", cluster=tmp_path / "c.yaml", label=label, grace_period=grace,
            until=until, output=tmp_path / "results",
        )
        for label, grace, until in choices
    ]  # fmt: skip
    comparison = harness.compare(runs, shake=f"{SHAKE},durations=40%", workers=1)
    whole, cut = (values_of(run, RESTART) for run in runs)
    both = [(mine, theirs) for mine, theirs in zip(whole, cut, strict=True) if mine and theirs]
    count = [sum(value is not None for value in values) for values in (whole, cut)]
    assert 1 < len(both) == count[1] < count[0] < TWINS
    (row,) = comparison.rows(RESTART)
    (change,) = row.changes
    base, other = zip(*both, strict=True)
    assert change.interval == of_pairs(base, other, ratio=True)
    assert row.values == [pytest.approx(geometric_mean(filter(None, of))) for of in (whole, cut)]
    assert change.difference == pytest.approx(geometric_mean(other) - geometric_mean(base))
    told = f"{RESTART}: over {count[0]} of {TWINS} twins of whole, {count[1]} of {TWINS} twins of cut, as in"
    assert told in comparison.table(RESTART)
    (check,) = comparison.check(f"{RESTART} > 1h")
    assert f"in cut (over {count[1]} of {TWINS} twins)" in check.text

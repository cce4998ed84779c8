"""Twins that lack a value: the others count, and how many these are is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean

import pytest
from small_clusters import queues

import harness
from harness.analysis.comparison.statistics.significance import of_pairs

TWINS = 6
SHAKE = f"{TWINS},arrivals=5s"
RESTART = "disruption.time_to_restart.p50"


def values_of(run: harness.Run, metric: str) -> list[float | None]:
    """What each of its twins has."""
    folders = (run.path.parent / ".twins" / run.path.name).iterdir()
    twins = sorted(map(harness.Run.open, folders), key=lambda twin: twin.info["settings"]["twin"])
    return [twin.metrics.filter(metric=metric, scope="all")["value"].item() for twin in twins]


def test_where_some_twins_have_no_such_event_the_others_count(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Their number is said; the change is over the twins where both runs have one."""
    (tmp_path / "c.yaml").write_text(queues({"a": {"cpu": "1"}}))
    first = {"queue": "a", "submit_time": 60, "duration": 16, "priority": 0}
    then = {"queue": "a", "submit_time": 76, "duration": 5, "priority": 1}  # preempts the first if that runs
    trace = write_trace(first, then)
    choices = [("slow", "4s"), ("quick", "0s")]  # what starts up for longer is preempted in more twins
    runs = [
        harness.replay(
            trace, plugin="kueue-classic", cluster=tmp_path / "c.yaml", label=label, grace_period="1s",
            startup=startup, output=tmp_path / "results",
        )
        for label, startup in choices
    ]  # fmt: skip
    comparison = harness.compare(runs, shake=f"{SHAKE},durations=40%", workers=1)
    slow, quick = (values_of(run, RESTART) for run in runs)
    both = [(mine, theirs) for mine, theirs in zip(slow, quick, strict=True) if mine and theirs]
    count = [sum(value is not None for value in values) for values in (slow, quick)]
    assert 1 < len(both) == count[1] < count[0] < TWINS
    (row,) = comparison.rows(RESTART)
    (change,) = row.changes
    base, other = zip(*both, strict=True)
    assert change.interval == of_pairs(base, other, ratio=True)
    assert row.values == [pytest.approx(geometric_mean(filter(None, of))) for of in (slow, quick)]
    assert change.difference == pytest.approx(geometric_mean(other) - geometric_mean(base))
    told = (
        f"{RESTART}: mean over {count[0]} of {TWINS} twins of slow, {count[1]} of {TWINS} twins of quick; the"
    )
    assert told in comparison.table(RESTART)
    (check,) = comparison.check(f"{RESTART} > 1h")
    assert f"in quick (over {count[1]} of {TWINS} twins)" in check.text

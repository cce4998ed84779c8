"""Seeds that lack a value: the others count, and how many these are is said."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from small_clusters import queues

import harness
from harness.analysis.comparison.statistics.significance import of_pairs
from harness.studies.experiments.compared import Compared
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.objectives import Judged
from harness.studies.experiments.table import show

SEEDS = 6
NEVER = "wait.never_started"
RESTART = "disruption.time_to_restart.p50"


@pytest.fixture
def swept(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., Experiment]:
    """Ten jobs of 10 s that arrive together a minute after the origin, on so many cores."""
    write_trace(*({"queue": "a", "submit_time": 60, "duration": 10} for _ in range(10)))

    def sweep(*cores: int, until: str = "96s", **fields: Any) -> Experiment:
        """On one core the fifth job starts after 95 to 98 s, as the first one arrived."""
        clusters = {f"c{count}": str(tmp_path / f"{count}.yaml") for count in cores}
        for count in cores:
            (tmp_path / f"{count}.yaml").write_text(queues({"a": {"cpu": str(count)}}))
        spec = {
            "experiment": "swept",
            "trace": str(tmp_path / "trace.parquet"),
            "clusters": clusters,
            "plugins": ["none"],
            "settings": {"until": until},
            "seeds": {"count": SEEDS, "shake": "arrivals=5s"},
            **fields,
        }
        return harness.sweep(spec, output=tmp_path / "results", workers=1)

    return sweep


def values_of(experiment: Experiment, item: int, metric: str) -> list[float | None]:
    """What each seed of the setting that begins with an item has."""
    table = experiment.to_polars().filter(metric=metric, scope="all")
    rows = dict(table.select("item", "value").iter_rows())
    return [rows.get(each) for each in range(item, item + SEEDS)]


def line_of(told: str, begin: str) -> str:
    """The only line that begins so."""
    (line,) = (line for line in told.split("\n") if line.startswith(begin))
    return line


def test_where_some_seeds_have_no_such_event_the_others_count(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Their number is said; a change is over the seeds where both settings have one."""
    (tmp_path / "c.yaml").write_text(queues({"a": {"cpu": "1"}}))
    first = {"queue": "a", "submit_time": 60, "duration": 16, "priority": 0}
    then = {"queue": "a", "submit_time": 76, "duration": 5, "priority": 1}  # preempts the first if that runs
    spec = {
        "experiment": "preempting",
        "trace": str(write_trace(first, then)),
        "cluster": str(tmp_path / "c.yaml"),
        "plugins": ["kueue-classic"],
        "vary": {"startup": ["4s", "0s"]},  # what starts up for longer is preempted in more seeds
        "seeds": {"count": SEEDS, "shake": "arrivals=5s,durations=40%"},
    }
    experiment = harness.sweep(spec, output=tmp_path / "results", workers=1)
    judged = Judged(experiment, [RESTART])
    slow, quick = (values_of(experiment, item, RESTART) for item in (0, SEEDS))
    both = [(mine, theirs) for mine, theirs in zip(slow, quick, strict=True) if mine and theirs]
    count = [sum(value is not None for value in values) for values in (slow, quick)]
    assert 1 < len(both) == count[1] < count[0] < SEEDS
    told = Compared(judged, [0, SEEDS], [RESTART]).text()
    interval = of_pairs(*zip(*both, strict=True), ratio=True)
    assert interval is not None
    ends = f"[{100 * (interval.low - 1):+,.1f}, {100 * (interval.high - 1):+,.1f}]"
    assert ends in line_of(told, f"{RESTART} ")
    over = (
        f"{RESTART}: mean over {count[0]} of {SEEDS} seeds of item 0, "
        f"{count[1]} of {SEEDS} seeds of item 6; the"
    )
    assert over in told
    (row,) = judged.objectives
    means = [mean for mean in judged.estimates(row).values() if mean is not None]
    assert [mean.value for mean in means] == [
        pytest.approx(fsum(filter(None, of)) / of_count)
        for of, of_count in zip((slow, quick), count, strict=True)
    ]
    assert [mean.partly for mean in means] == [f"over {each} of {SEEDS} seeds" for each in count]
    shown = show(judged)
    assert over in shown
    assert line_of(shown, f"worst {RESTART}").endswith(f"] over {count[0]} of {SEEDS} seeds")


def test_items_that_were_not_made_are_counted(swept: Callable[..., Experiment]) -> None:
    """A mean over those that were says over how many it is, and why."""
    experiment = swept(2, 3)
    for key in experiment.items["key"][:2]:
        next((experiment.root / "items").glob(f"*/{key}.parquet")).unlink()
    judged = Judged(Experiment.open(experiment.root), [NEVER])
    mean = judged.estimates(judged.objectives[0])[2]
    assert mean is not None
    assert (mean.values, mean.partly) == (SEEDS - 2, f"over {SEEDS - 2} of {SEEDS} seeds")
    told = " ".join(Compared(judged, [2, SEEDS], [NEVER]).text().split())
    assert f"{NEVER}: mean over {SEEDS - 2} of {SEEDS} seeds of item 2; the other seeds had" in told
    assert "no such job or event, or were not replayed;" in told


def test_where_one_seed_has_both_nothing_can_be_said(swept: Callable[..., Experiment]) -> None:
    """A difference of two draws may be luck."""
    experiment = swept(2, 3)
    for key in experiment.items["key"][1:SEEDS]:
        next((experiment.root / "items").glob(f"*/{key}.parquet")).unlink()
    told = Compared(Judged(Experiment.open(experiment.root), [NEVER]), [0, SEEDS], ["delay.mean"]).text()
    assert line_of(told, "delay.mean ").endswith("?")
    assert "?: no verdict: fewer than 2 seeds have a value in both settings" in told
    assert "95 % interval" not in told


def test_means_of_jobs_that_go_on_are_the_least_that_they_can_become(
    swept: Callable[..., Experiment],
) -> None:
    """Two of ten jobs go on where the replay ends on one core, on five cores none does."""
    judged = Judged(swept(1, 5), ["delay.mean"])
    told = line_of(Compared(judged, [0, SEEDS], ["delay.mean"]).text(), "delay.mean ")
    assert told.split()[1] == "≥"
    assert told.count("≥") == 1
    assert "≥ " in line_of(show(judged), "worst delay.mean")
    assert "≥ " not in line_of(show(judged), "best delay.mean")
    first = [line for line in show(judged).split("\n") if re.match(r"\S+=\S+ +\S+ +≥ \S+ +[+−-]", line)]
    assert len(first) == 1, "the first value of an effect"
    assert re.search(r" a ≥ \S+ to [^≥]+$", show(judged), re.MULTILINE), "how long a queue waits"

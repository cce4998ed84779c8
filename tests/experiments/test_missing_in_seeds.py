"""Seeds that lack a value: what is not reached in some of them is not averaged over the others."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from small_clusters import queues

import harness
from harness.experiments.effects import effects
from harness.experiments.experiment import Experiment
from harness.experiments.frontier import outcomes
from harness.experiments.objectives import Judged
from harness.experiments.reporting import report
from harness.experiments.telling import compare, show
from harness.report import Figure, Points
from harness.statistics.significance import of_pairs

SEEDS = 6
MEDIAN, NEVER = "wait.first_start.p50", "wait.never_started"
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


def test_what_some_seeds_have_not_reached_has_neither_mean_nor_verdict(
    swept: Callable[..., Experiment],
) -> None:
    """Those that have not are the worst ones; the note says in how many of which setting."""
    experiment = swept(1, 3)
    missing = values_of(experiment, 0, MEDIAN).count(None)
    assert 0 < missing < SEEDS - 1
    assert None not in values_of(experiment, SEEDS, MEDIAN)
    told = compare(Judged(experiment), [0, SEEDS], [MEDIAN])
    assert line_of(told, MEDIAN).split()[1] == "-"
    assert not set("▲▼~") & set(line_of(told, MEDIAN))
    assert f"- of {MEDIAN}: not reached in {missing} of {SEEDS} seeds of item 0, since too many jobs" in told


def test_a_setting_that_lacks_values_does_not_change_those_of_others(
    swept: Callable[..., Experiment],
) -> None:
    """Neither means nor intervals: the line of two is that of three without the third."""
    judged = Judged(swept(2, 3, 1))
    two = line_of(compare(judged, [0, SEEDS], [MEDIAN]), MEDIAN)
    three = line_of(compare(judged, [0, SEEDS, 2 * SEEDS], [MEDIAN]), MEDIAN)
    values = [values_of(judged.experiment, item, MEDIAN) for item in (0, SEEDS, 2 * SEEDS)]
    assert None in values[2]
    interval = of_pairs(values[0], values[1], ratio=True)  # type: ignore[arg-type]
    assert interval is not None
    assert f"{100 * (interval.low - 1):+,.1f}" in two
    assert three.split()[:-1] == two.split()
    assert three.split()[-1] == "-"


def test_it_is_not_best_by_the_seeds_that_have_reached_it(swept: Callable[..., Experiment]) -> None:
    """Neither in the lists of settings nor on the frontier; it is said in how many seeds that is so."""
    judged = Judged(swept(1, 3), [MEDIAN])
    missing = values_of(judged.experiment, 0, MEDIAN).count(None)
    assert judged.estimates(judged.objectives[0])[0] is None
    assert [(each.setting.item, each.best) for each in outcomes(judged)] == [(SEEDS, True)]
    told = show(judged)
    assert f"- of {MEDIAN}: not reached in {missing} of {SEEDS} seeds of item 0, since too many" in told
    assert "neither best or worst nor on the frontier, as not all objectives are known: item 0" in told


def test_an_objective_that_all_seeds_have_ranks_all_settings(swept: Callable[..., Experiment]) -> None:
    """The part that never started is there in all of them; nothing is said to be missing."""
    judged = Judged(swept(1, 3), [NEVER])
    assert len(outcomes(judged)) == 2
    assert "not reached" not in show(judged)
    assert "neither best" not in show(judged)


def test_an_effect_on_what_is_not_reached_is_not_known(swept: Callable[..., Experiment]) -> None:
    """It would be that of the seeds in which it is smallest."""
    judged = Judged(swept(3, 1), [MEDIAN])
    missing = values_of(judged.experiment, SEEDS, MEDIAN).count(None)
    (effect,) = effects(judged, judged.objectives[0])
    assert (effect.difference, effect.base, effect.least, effect.most) == (None, None, None, None)
    assert effect.lack == (missing, 0, SEEDS, "pairs of items")
    assert f"not reached in {missing} of {SEEDS} pairs of items" in line_of(show(judged), "cluster=c1")


def test_the_report_says_so_too(swept: Callable[..., Experiment]) -> None:
    """In the chapters of the frontier and of the effects; its maps are empty there."""
    judged = Judged(swept(3, 1, vary={"startup": ["0s", "1s"]}), [MEDIAN])
    made = report(judged)
    blocks = {chapter.name: chapter.blocks for chapter in made.chapters}
    (told,) = (block for block in blocks["frontier"] if isinstance(block, Points))
    assert f"of {SEEDS} seeds of item {2 * SEEDS}" in told.items[0]
    (unknown,) = (block for block in blocks["effects"] if isinstance(block, Points))
    assert unknown.items[0].startswith("cluster=c1 instead of c3: not reached in ")
    (map_of,) = (block for block in blocks["pairs"] if isinstance(block, Figure))
    assert "cluster=c3" in map_of.words
    assert "cluster=c1" not in map_of.words


def test_without_seeds_a_setting_has_not_reached_it_at_all(swept: Callable[..., Experiment]) -> None:
    """It is said of no seeds."""
    judged = Judged(swept(1, 3, until="90s", seeds=None), [MEDIAN])
    assert line_of(show(judged), "- of ").startswith(f"- of {MEDIAN}: not reached, since too many jobs")
    told = compare(judged, [0, 1], [MEDIAN])
    assert f"- of {MEDIAN}: not reached, since too many jobs" in told
    assert "without seeds, one replay does not say" in told


def test_where_some_seeds_have_no_such_event_the_others_count(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Their number is said; a change is over the seeds where both settings have one."""
    (tmp_path / "c.yaml").write_text(queues({"a": {"cpu": "1"}}))
    first = {"queue": "a", "submit_time": 60, "duration": 20, "priority": 0}
    then = {"queue": "a", "submit_time": 76, "duration": 5, "priority": 1}  # preempts the first if that runs
    spec = {
        "experiment": "preempting",
        "trace": str(write_trace(first, then)),
        "cluster": str(tmp_path / "c.yaml"),
        "plugins": ["kueue-classic"],
        "zip": [{"grace-period": ["1s", "2s"], "until": ["10m", "85s"]}],
        "seeds": {"count": SEEDS, "shake": "arrivals=5s,durations=40%"},
    }
    experiment = harness.sweep(spec, output=tmp_path / "results", workers=1)
    judged = Judged(experiment, [RESTART])
    whole, cut = (values_of(experiment, item, RESTART) for item in (0, SEEDS))
    both = [(mine, theirs) for mine, theirs in zip(whole, cut, strict=True) if mine and theirs]
    count = [sum(value is not None for value in values) for values in (whole, cut)]
    assert 1 < len(both) == count[1] < count[0] < SEEDS
    told = compare(judged, [0, SEEDS], [RESTART])
    interval = of_pairs(*zip(*both, strict=True), ratio=True)
    assert interval is not None
    ends = f"[{100 * (interval.low - 1):+,.1f}, {100 * (interval.high - 1):+,.1f}]"
    assert ends in line_of(told, f"{RESTART} ")
    over = f"{RESTART}: over {count[0]} of {SEEDS} seeds of item 0, {count[1]} of {SEEDS} seeds of item 6, as"
    assert over in told
    (row,) = judged.objectives
    means = [mean for mean in judged.estimates(row).values() if mean is not None]
    assert [mean.value for mean in means] == [
        pytest.approx(fsum(filter(None, of)) / of_count)
        for of, of_count in zip((whole, cut), count, strict=True)
    ]
    assert [mean.partly for mean in means] == [f"over {each} of {SEEDS} seeds" for each in count]
    shown = show(judged)
    assert over in shown
    assert line_of(shown, f"worst {RESTART}").endswith(f"] over {count[1]} of {SEEDS} seeds")


def test_items_that_were_not_made_are_counted(swept: Callable[..., Experiment]) -> None:
    """A mean over those that were says over how many it is, and why."""
    experiment = swept(2, 3)
    for key in experiment.items["key"][:2]:
        next((experiment.root / "items").glob(f"*/{key}.parquet")).unlink()
    judged = Judged(Experiment.open(experiment.root), [NEVER])
    mean = judged.estimates(judged.objectives[0])[2]
    assert mean is not None
    assert (mean.values, mean.partly) == (SEEDS - 2, f"over {SEEDS - 2} of {SEEDS} seeds")
    told = compare(judged, [2, SEEDS], [NEVER])
    assert f"{NEVER}: over {SEEDS - 2} of {SEEDS} seeds of item 2, as in the others" in told
    assert "no such job or event, or they were not made;" in told


def test_where_one_seed_has_both_nothing_can_be_said(swept: Callable[..., Experiment]) -> None:
    """A difference of two draws may be luck."""
    experiment = swept(2, 3)
    for key in experiment.items["key"][1:SEEDS]:
        next((experiment.root / "items").glob(f"*/{key}.parquet")).unlink()
    told = compare(Judged(Experiment.open(experiment.root), [NEVER]), [0, SEEDS], ["delay.mean"])
    assert line_of(told, "delay.mean ").endswith("?")
    assert "?: fewer than 2 seeds have a value in both settings: nothing can be said" in told
    assert "95 % interval" not in told

"""Tuning: quotas that share a sum, found on some weeks and tried on others, and written as a patch."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
import yaml
from cli_environment import called
from small_clusters import queues

import harness
from harness.base.errors import SpecError
from harness.cluster.changes.difference_patch import difference_patch
from harness.cluster.load import load_cluster
from harness.studies.tuning.specification import EXAMPLE, load_tuning, tuning_of

HOUR = 3600
A, B = "ClusterQueue/a.quota[cpu]", "ClusterQueue/b.quota[cpu]"
SPACE = {name: {"low": 1, "high": 11} for name in (A, B)}


@pytest.fixture
def tuning(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """Two days of equal work in two queues that lend nothing: a's jobs take an hour, b's four."""

    def write(**fields: Any) -> Path:
        trace = [
            {
                "job_id": f"{day}-{queue}-{number}",
                "submit_time": day * 24 * 10 * HOUR,
                "duration": hours * HOUR,
                "queue": queue,
            }
            for day in (0, 1)
            for number in range(30)
            for queue, hours in (("a", 1), ("b", 4))
        ]
        write_trace(*trace)
        text = queues({"a": {"cpu": "6"}, "b": {"cpu": "6"}}).replace("cohortName: all", "cohortName: ''")
        (tmp_path / "cluster.yaml").write_text(text)
        path = tmp_path / "tune.yaml"
        tune = {
            "trials": 10,
            "search": "0d..5d",
            "held-out": "5d..",
            "objectives": ["wait.first_start.mean"],
            "space": SPACE,
            "sums": [{"of": [A, B], "is": 12}],
            **fields,
        }
        content = {
            "trace": "trace.parquet",
            "cluster": "cluster.yaml",
            "plugins": ["kueue-classic"],
            "metrics": ["waiting"],
            "tune": tune,
        }
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    return write


def test_a_better_split_is_written_as_a_patch(
    tuning: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is better on the held-out days too, and its quotas add up to what they are today."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    output = tmp_path / "results"
    assert called(["tune", str(tuning()), "-o", str(output), "--workers", "1"]) == 0
    told = capsys.readouterr().out
    assert "10 trials, 0 failed" in told
    assert "100 % of the gain remains on the held-out weeks" in told
    patch = output / "tune" / "winner.patch.yaml"
    cluster = load_cluster(tmp_path / "cluster.yaml")
    found = cluster.patched(patch).knobs("*.quota[cpu]")
    assert sum(value or 0 for value in found.values()) == 12
    assert (found[B] or 0) > (found[A] or 0)
    made = sorted(path.stat().st_mtime_ns for path in (output / "tune" / "items").rglob("*.parquet"))
    assert called(["tune", str(tmp_path / "tune.yaml"), "-o", str(output), "--workers", "1"]) == 0
    assert capsys.readouterr().out == told
    assert sorted(path.stat().st_mtime_ns for path in (output / "tune" / "items").rglob("*.parquet")) == made
    assert called(["experiment", "show", str(output / "tune"), "--objective", "wait.first_start.mean"]) == 0


def test_values_of_jobs_that_still_run_are_told_as_the_least(
    tuning: Callable[..., Path], tmp_path: Path
) -> None:
    """After 12 h half of b's jobs are not over; values beside each other have one number of digits."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    spec = tuning(objectives=["slowdown.bounded.mean"])
    spec.write_text(f"{spec.read_text()}settings: {{until: 12h}}\n")
    told = str(harness.tune(spec, output=tmp_path / "results", workers=1))
    rows = re.findall(r"slowdown.bounded.mean +\S+ +≥ (\S+) +≥ (\S+) ", told)
    assert len(rows) == 2, told
    for row in rows:
        assert len({len(value.partition(".")[2]) for value in row}) == 1


KILLED = """
import sys
import harness

if __name__ == "__main__":
    print(harness.tune("tune.yaml", output=sys.argv[1], workers=int(sys.argv[2])))
"""


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_with_the_same_points(
    tuning: Callable[..., Path], tmp_path: Path
) -> None:
    """Ended at five random moments it tries the points of one that was not, and none of them twice."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    spec = tuning(trials=30, **{"at-once": 2, "prune": ["0d..1d"]})
    (tmp_path / "killed.py").write_text(KILLED)
    whole = harness.tune(spec, output=tmp_path / "whole", workers=1)
    items, draw, kept = tmp_path / "parts" / "tune" / "items", Random(7), list[int]()

    def command(workers: int) -> list[str]:
        return [sys.executable, "killed.py", "parts", str(workers)]

    for attempt in range(5):
        before = len(list(items.rglob("*.parquet")))
        wanted = before + draw.randrange(1, 6)
        process = subprocess.Popen(command(1 + attempt % 2), cwd=tmp_path)
        while process.poll() is None and len(list(items.rglob("*.parquet"))) < wanted:
            time.sleep(0.01)
        process.kill()
        process.wait()
        kept.append(len(list(items.rglob("*.parquet"))))
    assert kept == sorted(set(kept))
    before_last = {path: path.stat().st_mtime_ns for path in items.rglob("*.parquet")}
    told = subprocess.run(command(1), cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert told == f"{whole}\n".replace(str(tmp_path / "whole"), "parts")
    assert all(path.stat().st_mtime_ns == then for path, then in before_last.items())
    one, two = (tmp_path / name / "tune" / "experiment.parquet" for name in ("whole", "parts"))
    assert one.read_bytes() == two.read_bytes()


def test_what_does_worse_than_others_on_a_part_is_not_replayed_on_the_whole(
    tuning: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same split wins with less to replay, and the output says how many were given up."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    output = tmp_path / "results"
    spec = tuning(prune=["0d..1d"], trials=20)
    assert called(["tune", str(spec), "-o", str(output), "--workers", "1"]) == 0
    told = capsys.readouterr().out
    (pruned,) = re.findall(r"^20 trials, (\d+) pruned, 0 failed", told)
    assert int(pruned) > 5
    items = pl.read_parquet(output / "tune" / "items.parquet")["window"].to_list()
    points = items.count("0d..1d")  # the search may ask for one of them twice
    assert points - int(pruned) <= items.count("0d..5d") < points
    assert "100 % of the gain remains on the held-out weeks" in told


def test_new_queues_can_be_searched(tuning: Callable[..., Path], tmp_path: Path) -> None:
    """The files that they are read from are the tuning's, beside its own, though today names none of them."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    for name, queue in (("all", "b"), ("none", "a")):
        (tmp_path / f"{name}.csv").write_text(f"queue,local_queue\na,{queue}\n")
    maps = ["map:all.csv", "map:none.csv"]
    found = harness.tune(
        tuning(space={"tenants": maps}, sums=[], trials=6), output=tmp_path / "results", workers=1
    )
    assert found.today["tenants"] is None
    assert {each.point["tenants"] for each in found.trials} == {None, *maps}
    assert all(each.found is not None for each in found.trials)


def test_what_was_printed_replays_what_was_tuned(
    tuning: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the settings and options of the tuning, from any folder; a patch of an earlier search is gone."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    spec, output = tuning(), tmp_path / "results"
    (tmp_path / "map.csv").write_text("queue,local_queue\nb,b\n")
    settings = {"until": "9d", "on-preemption": "resume", "tenants": "map:map.csv"}
    plugins = [{"kueue-classic@ours": {"evictionLatency": "10s"}}]
    fields = {**yaml.safe_load(spec.read_text()), "settings": settings, "plugins": plugins}
    spec.write_text(yaml.safe_dump(fields, sort_keys=False))
    line = ["tune", str(spec), "-o", str(output), "--workers", "1"]
    assert called(line) == 0
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert command[:2] == ["harness", "replay"]
    assert called([*command[1:], "-o", str(tmp_path / "runs"), "-q"]) == 0
    runs = [harness.Run.open(path.parent) for path in (tmp_path / "runs").glob("*/*/run.json")]
    assert {run.label for run in runs} == {"ours@base", "ours@winner"}
    for run in runs:
        told = run.info["settings"]
        assert (told["until_us"], told["on_preemption"]) == (9 * 24 * HOUR * 1_000_000, "resume")
        assert told["calibration"] == {"tenants": f"map:{tmp_path / 'map.csv'}"}
        assert run.info["policy"]["options"]["evictionLatency"] == 10_000_000
    patch = output / "tune" / "winner.patch.yaml"
    assert patch.exists()
    fields["tune"] |= {"space": {A: [6], B: [6]}, "sums": [], "trials": 2}
    spec.write_text(yaml.safe_dump(fields, sort_keys=False))
    assert called(line) == 0
    assert "no setting is better than the present configuration" in capsys.readouterr().out
    assert not patch.exists()


def test_what_the_command_does_not_replay_is_named(
    tuning: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A patch has knobs only; today's settings are shown as one writes them, not as 0 or in microseconds."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    space = {A: [3], B: [9], "scale-arrivals": [0.5], "evictionLatency": ["3s"], "grace-period": ["9s"]}
    spec = tuning(space=space, sums=[], trials=2)
    assert called(["tune", str(spec), "-o", str(tmp_path / "results"), "--workers", "1"]) == 0
    told = capsys.readouterr().out
    assert (
        "to replay them beside today's knobs, without the other changes of the winner (scale-arrivals "
        "from 1 to 0.5, evictionLatency from 1s to 3s, grace-period from 30s to 9s):\n"
    ) in told


def test_what_is_as_today_is_not_tried_again(tuning: Callable[..., Path], tmp_path: Path) -> None:
    """An option's default is written in the space as a duration."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    spec = tuning(space={"evictionLatency": ["1s"], "startup": ["0s"]}, sums=[], trials=3)
    found = harness.tune(spec, output=tmp_path / "results", workers=1)
    assert {tuple(each.point.items()) for each in found.trials} == {tuple(found.today.items())}


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        ("wait.first_start.max <= 10h", "it violates a constraint: wait.first_start.max <= 10h"),
        ("wait.first_start.max <= +0%", ""),
        ("makespan <= 90d", "an objective or a constraint has no value"),
    ],
)
def test_constraints_are_held_against_the_held_out_weeks(
    constraint: str, told: str, tuning: Callable[..., Path], write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """There is three times as much to do there; a change is against today's configuration on these weeks."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    spec = tuning(constraints=[constraint], trials=6)
    jobs: list[dict[str, Any]] = [
        {"job_id": f"{day}-{number}", "submit_time": day * 24 * HOUR, "duration": HOUR, "queue": queue}
        for day, times in ((0, 1), (10, 3))
        for number, queue in enumerate(("a", "b", "b") * 30 * times)
    ]
    if constraint.endswith("90d"):  # half of the held-out jobs have not started then
        spec.write_text(f"{spec.read_text()}settings: {{until: 12h}}\n")
    write_trace(*jobs)
    text = str(harness.tune(spec, output=tmp_path / "results", workers=1))
    assert "no setting is better" not in text
    assert "cannot be replayed" not in text
    told = told and f"on the held-out weeks {told}"
    assert told in text
    assert ("on the held-out weeks it violates" in text) is ("violates" in told)


@pytest.mark.parametrize(
    ("objective", "constraint", "where"),
    [
        ("makespan", "jct.mean <= 9d", "tune.objectives[0]"),
        ("jct.mean", "makespan <= +5%", "tune.constraints[0]"),
    ],
)
def test_what_today_has_no_value_of_is_told_before_anything_is_tried(
    objective: str, constraint: str, where: str, tuning: Callable[..., Path], tmp_path: Path
) -> None:
    """Nothing could be better than it; that was told, as if nothing were."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    spec = tuning(objectives=[objective], constraints=[constraint, "jct.p95 <= 9d"])
    fields = {**yaml.safe_load(spec.read_text()), "settings": {"until": "6h"}}
    spec.write_text(yaml.safe_dump(fields, sort_keys=False))
    with pytest.raises(SpecError) as caught:
        harness.tune(spec, output=tmp_path / "results", workers=1)
    assert [str(each) for each in caught.value.faults] == [
        f"{where}: the present configuration has no value for makespan on 0d..5d"
    ]
    assert "choose another metric, or a later 'until'" in str(caught.value.hint)
    assert len(list((tmp_path / "results" / "tune" / "items").rglob("*.parquet"))) == 1


def test_python_tunes_as_the_command_does(
    tuning: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a file, and by its fields; what was found can be printed, and is a value."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    spec = tuning()
    assert called(["tune", str(spec), "-o", str(tmp_path / "one"), "--workers", "1"]) == 0
    told = capsys.readouterr().out
    found = harness.tune(spec, output=tmp_path / "two", workers=1)
    assert told.startswith(f"{found}\n")
    assert found.winner is not None
    assert found.held_out is not None
    patched = load_cluster(tmp_path / "cluster.yaml").patched(found.patch)
    assert patched.knobs("*.quota[cpu]") == {name: found.winner.point[name] for name in (A, B)}
    changed = {name for name, value in found.winner.point.items() if value != found.today[name]}
    assert {f"ClusterQueue/{each['metadata']['name']}.quota[cpu]" for each in found.patch} == changed
    fields = yaml.safe_load(spec.read_text())
    fields |= {name: str(tmp_path / fields[name]) for name in ("trace", "cluster")}
    again = harness.tune({**fields, "experiment": "tune"}, output=tmp_path / "two", workers=1)
    assert (again.trials, again.patch) == (found.trials, found.patch)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"space": {A: {"low": 1}}, "sums": []}, "tune.space.ClusterQueue/a.quota[cpu]: needs low and high"),
        ({"sums": [{"of": [A, B], "is": 40}]}, "tune.sums[0].is: cannot be reached"),
        ({"sums": [{"of": [A], "is": 6}]}, "must name two or more ranges of the space"),
        ({"constraints": ["wait < soon"]}, "tune.constraints[0]: condition 'wait < soon'"),
        ({"held-out": None}, "tune.held-out: must be given if and only if tune.search is given"),
        ({"held-out": "4d.."}, "tune.held-out: 4d.. overlaps with tune.search, 0d..5d"),
        ({"held-out": "..1d"}, "tune.held-out: ..1d overlaps with tune.search, 0d..5d"),
        (
            {"held-out": "2020-01-05.."},
            "2020-01-05.. and tune.search, 0d..5d, must both be dates, or durations",
        ),
        ({"prune": ["0d..6d"]}, "tune.prune[0]: 0d..6d is not within tune.search, 0d..5d"),
        ({"prune": ["2020-01-01.."]}, "tune.prune[0]: 2020-01-01.. is not within tune.search, 0d..5d"),
        ({"prune": ["soon"]}, "tune.prune[0]: --window 'soon' is not understood"),
        (
            {"prune": ["0d..1d"], "objectives": ["wait.first_start.mean", "jct.mean"]},
            "needs a single objective",
        ),
        (
            {"prune": ["0d..1d"], "search": None, "held-out": None},
            "tune.prune: has windows within tune.search",
        ),
        ({"sampler": "grid"}, "tune.sampler: 'grid' is not one of tpe, nsga2, gp"),
        ({"trials": 1}, "tune.trials: 1 is out of range"),
        ({"trails": 5}, "tune.trails: is not a known field"),
    ],
)
def test_a_faulty_tuning_is_refused(fields: dict[str, Any], told: str, tuning: Callable[..., Path]) -> None:
    """Every fault has its field."""
    with pytest.raises(SpecError) as caught:
        load_tuning(tuning(**fields))
    assert told in str(caught.value)


def test_what_was_not_measured_is_told_with_its_field_after_one_replay(
    tuning: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All at once: an objective that does not exist, one of no such queue, and a bound of another unit."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    spec = tuning(
        objectives=["wait.first_start.men", "wait.first_start.mean{queue=c}"],
        constraints=["wait.first_start.p95 <= 80%", "wait.first_start.p95{resource=cpu} <= 1h"],
    )
    assert called(["tune", str(spec), "-o", str(tmp_path / "results"), "--workers", "1"]) == 2
    told = capsys.readouterr().err
    for sentence in (
        "tune.yaml: 4 faults",
        "tune.objectives[0]: wait.first_start.men was not measured; did you mean 'wait.first_start.mean'?",
        "tune.objectives[1]: wait.first_start.mean was not measured for queue=c; ",
        "tune.constraints[0]: condition 'wait.first_start.p95 <= 80%': '80%' is not a duration",
        "tune.constraints[1]: wait.first_start.p95 has no resource; leave out resource=cpu",
    ):
        assert sentence in told
    assert len(list((tmp_path / "results" / "tune" / "items").rglob("*.parquet"))) == 1


@pytest.mark.parametrize("sampler", ["tpe", "nsga2", "gp"])
def test_the_sampler_that_is_named_chooses_what_is_tried(
    sampler: str, tuning: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Equal seeds try equal points; what it needs and is not there is told before the first replay."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    spec, output = tuning(sampler=sampler, trials=14), tmp_path / "results"
    if sampler == "gp" and find_spec("torch") is None:
        assert called(["tune", str(spec), "-o", str(output), "--workers", "1"]) == 2
        told = capsys.readouterr().err
        assert "tune.sampler: gp needs torch, which is not installed" in told
        assert "pip install torch" in told
        assert not output.exists()
        return
    found = harness.tune(spec, output=output, workers=1)
    assert found.winner is not None
    assert found.trials == harness.tune(spec, output=tmp_path / "again", workers=1).trials


def test_a_difference_is_a_patch_of_what_changed(tuning: Callable[..., Path], tmp_path: Path) -> None:
    """It names objects and items, and only the fields that differ; of equal clusters there is none."""
    tuning()
    cluster = load_cluster(tmp_path / "cluster.yaml")
    other = cluster.with_values({A: 5, "ClusterQueue/b.weight": 2})
    first, second = difference_patch(cluster, other)
    assert first["metadata"] == {"name": "a"}
    assert first["spec"] == {
        "resourceGroups": [{"flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 5}]}]}]
    }
    assert second["spec"] == {"fairSharing": {"weight": 2}}
    assert difference_patch(cluster, cluster) == []


def test_a_refusal_shows_an_example_that_is_right() -> None:
    """Of a file without the field, and of one with a field that is faulty."""
    given = {"traces": ["t.parquet"], "plugins": ["kueue-classic"]}
    for faulty in ({}, {"tune": {"space": {"evictionLatency": 3}}}):
        with pytest.raises(SpecError) as told:
            tuning_of({**given, **faulty}, source="tuning.yaml")
        assert EXAMPLE in str(told.value.hint)
    found = tuning_of({**given, **yaml.safe_load(EXAMPLE)}, source="tuning.yaml")
    assert [each.name for each in found.space.ranges] == ["ClusterQueue/a.quota[cpu]"]
    assert found.trials == 50

"""The story of docs/live-dump.md: each answer can be computed by hand, and the page shows what is printed."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from cli_environment import called
from command_lines import carried_out
from doc_pages import ROOT, commands

import harness
from harness import Forecast
from harness.base.units import HOUR, MINUTE
from harness.cluster.load import load_cluster

PAGE = "docs/live-dump.md"
FUTURES = {"futures": 3, "workers": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the script has written its files."""
    place = tmp_path_factory.mktemp("story")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "scripts")
        importlib.import_module("team_dump").write(place)
    return place


def served(servers: Sequence[int], arrivals: Sequence[int], run_time: int = 6 * 60) -> list[int]:
    """When jobs start that are served in the order of their arrival, each by the server that is free first.

    Args:
        servers: when each is free, minutes.
        arrivals: when each job comes, minutes.
        run_time: how long each takes, minutes.
    """
    free, found = sorted(servers), []
    for arrival in arrivals:
        start = max(free.pop(0), arrival)
        found.append(start)
        free = sorted([*free, start + run_time])
    return found


COMING = [240 * number for number in range(12)]
"""When the jobs of `c` come, minutes."""


def starts(c: Sequence[int]) -> dict[str, int]:
    """When each that waits starts, minutes, where the nodes of `c` that its quota is for are free by then."""
    of_b = [180 + 10 * node for node in range(10)]
    of_teams = {
        "a": served([60 + 20 * node for node in range(15)], [0] * 6),
        "b": served(of_b, [0] * 5),
        "c": served(c, [0] * 4),
    }
    return {
        f"default/{team}-waits-{number}": start
        for team, several in of_teams.items()
        for number, start in enumerate(several)
    }


def minutes(found: Forecast) -> dict[str, set[Any]]:
    """All quantiles of each start, minutes."""
    return {
        each.name: {None if time is None else time / MINUTE for time in each.times} for each in found.starts
    }


def test_the_dump_is_as_large_as_the_page_says(folder: Path) -> None:
    """30 nodes, 300 Workloads, and a Pod for each that runs."""
    items = json.loads((folder / "dump.json").read_text())["items"]
    count = {kind: sum(item["kind"] == kind for item in items) for kind in ("Node", "Workload", "Pod")}
    assert count == {"Node": 30, "Workload": 300, "Pod": 38}


def test_forecasts_are_what_can_be_computed(folder: Path) -> None:
    """In every future; on node pools whose quota, or nodes, are free at known times."""
    found = harness.forecast(folder / "dump.json", **FUTURES)
    assert minutes(found) == {name: {time} for name, time in starts([120, 180, 240]).items()}
    assert (len(found.world.now.running), found.risks) == (38, [])


def test_a_patch_lets_those_start_earlier_whose_nodes_are_free(folder: Path) -> None:
    """8 GPUs more are another server for `c`; for `b` there is no node."""
    cluster = load_cluster(folder / "dump.json")
    others = {name: cluster.patched(folder / f"{name}.yaml") for name in ("c-plus-8", "b-plus-8")}
    found = harness.forecast(cluster, others=others, **FUTURES)
    before, after = starts([120, 180, 240]), starts([0, 120, 180, 240])
    assert minutes(found.others["c-plus-8"]) == {name: {time} for name, time in after.items()}
    changed = {row.name: row.shift for row in found.shifts["c-plus-8"] if row.changed}
    assert changed == {
        name: (after[name] - time) * MINUTE for name, time in before.items() if after[name] != time
    }
    assert len(changed) == 4
    assert not any(row.changed for row in found.shifts["b-plus-8"])


def test_an_urgent_job_displaces_whom_it_must(folder: Path) -> None:
    """It has the node of the youngest of `c` for 6 h; that one begins anew before those that wait."""
    found = harness.forecast(folder / "dump.json", submit=folder / "urgent.yaml", **FUTURES)
    assert found.submitted is not None
    start = found.submitted.times[1]
    assert start is not None
    assert start / MINUTE == pytest.approx(0.5, abs=0.02)
    victim, *late = served([120, 180, start / MINUTE + 360], [0] * 5)
    assert victim == 120
    rows = {row.name: row for row in found.displaced}
    assert rows.pop("default/c-runs-2-0")[3:] == (1, 1, 0, None, (("default/urgent", 1),))
    expected = dict(zip([f"default/c-waits-{number}" for number in range(4)], late, strict=True))
    before = starts([120, 180, 240])
    assert {name: row.delay / MINUTE for name, row in rows.items() if row.delay is not None} == {
        name: pytest.approx(time - before[name]) for name, time in expected.items()
    }
    assert len(rows) == 4


def test_a_replay_from_the_dump_has_the_waits_that_can_be_computed(folder: Path) -> None:
    """Of all jobs, and of those of `c` with 3 and 4 servers."""
    cluster = load_cluster(folder / "dump.json")
    for where, servers in (
        (cluster, [120, 180, 240]),
        (cluster.patched(folder / "c-plus-8.yaml"), [0, 120, 180, 240]),
    ):
        run = harness.replay(
            folder / "coming.parquet", plugin="kueue-classic", cluster=where, output=folder / "results"
        )
        arrivals = [0] * 4 + COMING
        waits = [start - came for start, came in zip(served(servers, arrivals), arrivals, strict=True)]
        known = run.micros("jobs").filter((pl.col("queue") == "c") & ~pl.col("job_id").str.contains("runs"))
        seen = known.select((pl.col("start_time") - pl.col("submit_time")) / MINUTE).collect().to_series()
        assert seen.to_list() == waits
        figures = {(row["metric"], row["scope"]): row["value"] for row in run.metrics.iter_rows(named=True)}
        others = sum(time for name, time in starts(servers).items() if "/c-" not in name)
        assert figures["delay.mean", "all"] == pytest.approx((sum(waits) + others) * 60 / 65)
        of_c = pl.Series([0] * 3 + waits).quantile(0.95, "linear")
        assert of_c is not None
        assert figures["wait.first_start.p95", "queue=c"] == pytest.approx(of_c * 60)
        assert (figures["jobs.at_start", "all"], figures["jobs.finished", "all"]) == (53, 65)
        ends = run.micros("jobs").filter(pl.col("job_id") == "default/a-runs-0-0").collect()
        assert ends["finish_time"].item() - ends["submit_time"].item() == HOUR


def test_the_gate_fails_the_other_way_round(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And cannot be decided where nobody knows run times."""
    monkeypatch.chdir(tmp_path)
    replay = ["replay", f"{folder}/coming.parquet", "--cluster", f"{folder}/dump.json", "-q"]
    replay += ["--patch", f"{folder}/c-plus-8.yaml", "-p", "kueue-classic"]
    for unfinished, codes in (("draw", (0, 1)), ("limit", (2, 2))):
        assert called([*replay, "--unfinished", unfinished, "-o", unfinished]) == 0
        runs = sorted(map(str, Path(unfinished, "coming").glob("kueue*")))
        gate = [
            "compare",
            *runs,
            "--fail-on-values",
            "--fail-on",
            "wait.first_start.p95{queue=c} > +5%",
            "--baseline",
        ]
        for baseline, code in zip(("base", "c-plus-8"), codes, strict=True):
            assert called([*gate, f"kueue-classic@{baseline}"]) == code, capsys.readouterr()
    assert "cannot be decided: the run times of 53 Workloads" in capsys.readouterr().err


@pytest.mark.parametrize(("futures", "twins"), [(2, 3), pytest.param(20, 10, marks=pytest.mark.nightly)])
def test_the_page_shows_what_its_commands_print(
    futures: int,
    twins: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every line that is no command. All futures are the same, so a few of them print the same lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    of_page = [each for each in commands(PAGE) if not each.startswith("kubectl ")]
    said = []
    for command in of_page:
        less = command.replace("--futures 20", f"--futures {futures}").replace(
            "--shake 10", f"--shake {twins}"
        )
        code, out, err = carried_out(less, capsys)
        assert code == 0, err
        out = out.replace(f" {futures} simulated futures ", " 20 simulated futures ")
        said += [re.sub(r" +", " ", line).strip() for line in (out + err).splitlines()]
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    lines = [line.strip() for line in re.findall(r"^    \S.*", text, re.MULTILINE)]
    shown = [line for line in lines if not line.startswith(("harness ", "python ", "kubectl "))]
    missing = [line for line in shown if re.sub(r" +", " ", line) not in said]
    assert len(shown) > 15
    assert not missing, missing

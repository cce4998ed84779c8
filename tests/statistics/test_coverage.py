"""The script that measures coverage: its queues are those that the engine replays, and its tables hold."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from small_clusters import queues

import harness
from harness.analysis.comparison.headlines import HEADLINES

SCRIPT = Path(__file__).parents[2] / "scripts" / "coverage_of_intervals.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("coverage_of_intervals", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_lindleys_recursion_gives_the_waits_of_the_engine(
    script: ModuleType, kind: int, write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """One job at a time, first come first served: each waits for what is left of the work before it."""
    services, between = script.QUEUES[kind].jobs(np.random.default_rng(kind), 200)
    services, between = np.rint(80e6 * services) + 1, np.rint(100e6 * between)
    arrivals = np.concatenate([[0.0], np.cumsum(between)[:-1]])
    rows = (
        {"submit_time": arrival / 1e6, "duration": service / 1e6, "queue": "a"}
        for arrival, service in zip(arrivals, services, strict=True)
    )
    (tmp_path / "c.yaml").write_text(queues({"a": {"cpu": "1"}}))
    run = harness.replay(
        write_trace(*rows),
        cluster=tmp_path / "c.yaml",
        options={"blocking": "strict"},
        output=tmp_path / "results",
    )
    jobs = run.micros("jobs").collect()
    found = (jobs["start_time"] - jobs["submit_time"]).to_numpy()
    assert np.abs(found - script.waits(services, between)).max() <= len(rows_of(run))  # a microsecond a job


def rows_of(run: harness.Run) -> range:
    """A number for each of its jobs."""
    return range(run.jobs.height)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_mean_waits_are_those_of_the_formulas(script: ModuleType, kind: int) -> None:
    """Of Pollaczek and Khinchine, at half the load that a server can take."""
    queue = script.QUEUES[kind]
    services, between = queue.jobs(np.random.default_rng(3), 2_000_000)
    assert services.mean() == pytest.approx(1, rel=0.01)
    assert between.mean() == pytest.approx(1, rel=0.01)
    assert script.waits(0.5 * services, between).mean() == pytest.approx(0.5 * queue.wait(0.5), rel=0.03)


@pytest.mark.slow
def test_intervals_over_twins_cover_the_truth_as_often_as_they_say(script: ModuleType) -> None:
    """In 93 to 97 % of 2,000 repetitions, at every load, as docs/statistics.md says."""
    assert [row for row in script.twin_rows(2_000, 20_000) if not 0.93 <= row[3] <= 0.97] == []


@pytest.mark.slow
def test_skewness_breaks_what_more_twins_mend(script: ModuleType) -> None:
    """Of one shorter trace ten twins cover less often; twenty and forty as often as wanted."""
    for count, least, most in ((10, 0.915, 0.93), (20, 0.93, 0.97), (40, 0.935, 0.97)):
        rows = script.twin_rows(20_000 // count, 5_000, [0.8], twins=count)
        ((covered, skew),) = (row[3:] for row in rows if row[0] == script.QUEUES[1].name and row[2] == "mean")
        assert least <= covered <= most
        assert skew < -1.5


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.8, 0.98])
def test_intervals_of_every_headline_cover_the_truth(script: ModuleType, tmp_path: Path, load: float) -> None:
    """In 93 to 97 % of 10,000 sets of ten twins; each policy is hardly ever called different from itself."""
    pools = script.pools_of(tmp_path, load, 1_000, 200)
    covered = [share for _, share, _ in script.coverage(pools, 10_000) if share is not None]
    assert len(covered) >= len(HEADLINES) - 1
    assert [share for share in covered if not 0.93 <= share <= 0.97] == []
    assert all(script.calls(of_policy, 400) <= 20 for of_policy in pools)


@pytest.mark.slow
def test_intervals_of_one_replay_cover_where_they_are_printed(script: ModuleType) -> None:
    """In at least 90 % of those repetitions in which they are printed, at every load; else refused."""
    rows = list(script.replay_rows(2_000, 82_247))
    assert not [row for row in rows if row[4] is not None and row[4] < 0.9]
    assert all(row[3] < 0.005 for row in rows if row[1] >= 0.8)
    assert next(row[3] for row in rows) > 0.4


@pytest.mark.slow
def test_a_policy_is_hardly_ever_called_different_from_itself(script: ModuleType, tmp_path: Path) -> None:
    """Of 200 pairs of ten twins of `mix` under four policies, at most 5 % have a call among the headlines."""
    trace = SCRIPT.parents[1] / "traces" / "mix.parquet"
    for plugin in ("none", "default-preemption", "kueue-classic", "fairsharing"):
        run = harness.replay(trace, plugin=plugin, output=tmp_path)
        harness.compare([run], shake=100)
        twins = run.path.parent / ".twins" / run.path.name
        assert script.calls(script.pools_in([twins]), 200) <= 10, plugin


def test_pools_of_small_traces_are_measured_over_shared_windows(script: ModuleType, tmp_path: Path) -> None:
    """Both policies have the same twins; who ends first lacks nothing of the demand."""
    pools = script.pools_of(tmp_path, 0.95, 60, 3)
    assert [{key[0] for key in of_policy} for of_policy in pools] == [set(HEADLINES)] * 2
    base, other = (of_policy["goodput.of_demand", "all", "cpu"] for of_policy in pools)
    assert (base.unit, len(base.values), len(other.values)) == ("share", 3, 3)
    assert [max(pair) for pair in zip(base.values, other.values, strict=True)] == [1.0, 1.0, 1.0]


def test_coverage_is_of_what_differs_and_calls_are_few_of_what_does_not(script: ModuleType) -> None:
    """Normal differences are covered as often as promised; equal values are none that could be covered."""
    draw = np.random.default_rng(1)
    base, noise = np.exp(draw.normal(size=(2, 200)))
    pools = [
        {(name, "all", ""): script.Pool("s", values.tolist()) for name in HEADLINES}
        for values in (base, base * noise)
    ]
    rare = [0.0] * 170 + [1.0] * 30
    for of_policy, values in zip(pools, ([0.0] * 200, rare), strict=True):
        of_policy["starvation", "all", ""] = script.Pool("count", values)
    found = {metric: of_metric for metric, *of_metric in script.coverage(pools, 1_000)}
    assert found.pop("starvation") == [None, 0.85]
    assert all(0.93 <= covered <= 0.97 and not alike for covered, alike in found.values())
    assert all(script.calls(of_policy, 200) <= 10 for of_policy in pools)

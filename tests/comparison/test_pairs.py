"""Which jobs are compared: those that runs have in common; and which runs have too few of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from older_runs import as_schema_2

import harness
from harness.analysis.comparison.changes import Ground
from harness.base.errors import RunError

WriteTrace = Callable[..., Path]


def jobs(count: int, **fields: Any) -> list[dict[str, Any]]:
    """So many jobs that arrive a second apart and wait for each other."""
    return [{"submit_time": number, "queue": "ab"[number % 2], **fields} for number in range(count)]


@pytest.fixture
def replayed(write_trace: WriteTrace, tmp_path: Path) -> Callable[..., harness.Run]:
    """Replays rows, or a trace written before, under a label."""

    def run(label: str, rows: list[dict[str, Any]] | None = None, **choices: Any) -> harness.Run:
        trace = tmp_path / "trace.parquet" if rows is None else write_trace(*rows, name=f"{label}.parquet")
        return harness.replay(trace, label=label, output=tmp_path / "results", **choices)

    return run


def values(comparison: harness.Comparison, metric: str, scope: str = "all") -> list[float | None]:
    ((_, found),) = comparison.select(metric, scope=scope)
    return found


def test_a_sample_compares_with_the_whole_over_the_jobs_of_the_sample(
    replayed: Callable[..., harness.Run],
) -> None:
    """Waits are of the common jobs in both runs, by queue too; what counts all jobs counts each run's own."""
    whole = replayed("whole", jobs(40))
    from harness.trace.calibration import Calibration

    sample = harness.replay(
        whole.info["provenance"]["trace"],
        label="sample",
        output=whole.path.parents[1],
        calibration=Calibration.parse(sample="0.5"),
    )
    comparison = harness.compare([whole, sample])
    kept = sample.jobs["job_id"]
    assert comparison.pairs.count == len(kept) < 40
    own = whole.micros("jobs").filter(pl.col("job_id").is_in(kept.implode())).collect()
    wait = (own["start_time"] - own["submit_time"]).mean()
    assert isinstance(wait, float)
    assert values(comparison, "wait.first_start.mean")[0] == pytest.approx(wait / 1e6)
    of_a = own.filter(queue="a")
    wait = (of_a["start_time"] - of_a["submit_time"]).max()
    assert values(comparison, "wait.first_start.max", "queue=a")[0] == wait / 1e6
    assert values(comparison, "jobs.finished") == [40, len(kept)]
    assert f"not {40 - len(kept)} jobs that only whole has" in comparison.table()
    assert comparison.window is None
    assert "arrivals differ, so each run is measured over its own window" in comparison.table()


def test_the_other_way_round_it_is_the_same_jobs(replayed: Callable[..., harness.Run]) -> None:
    """A trace of other rows, in another order of arrival, compares with any other that holds the jobs."""
    rows = jobs(20)
    first = replayed("first", [{**row, "job_id": f"j{number}"} for number, row in enumerate(rows)])
    moved = [{**row, "job_id": f"j{number}", "submit_time": 40 - number} for number, row in enumerate(rows)]
    second = replayed("second", [*moved, {"job_id": "new", "submit_time": 3}])
    comparison = harness.compare([second, first])
    assert (comparison.pairs.count, comparison.pairs.jobs) == (20, [21, 20])
    both = zip(comparison.runs, comparison.pairs.rows, strict=True)
    ids = [run.jobs["job_id"].gather(rows).to_list() for run, rows in both]
    assert ids[0] == ids[1]
    assert not comparison.pairs.same_arrivals


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"request.cpu": 2000}, "differ in cpu (12)"),
        ({"duration": 11}, "differ in duration (12)"),
        ({"pods": 2, "request.cpu": 500}, "differ in pods (12)"),
        ({"request.gpu": 1}, "differ in gpu (12)"),
    ],
)
def test_jobs_that_ask_for_something_else_are_other_jobs(
    change: dict[str, Any], said: str, replayed: Callable[..., harness.Run]
) -> None:
    """The same ids are not enough; the message says in what jobs of one id differ."""
    one, other = replayed("one", jobs(20)), replayed("other", [*jobs(8), *jobs(20, **change)[8:]])
    with pytest.raises(RunError) as error:
        harness.compare([one, other])
    text = str(error.value)
    assert text.startswith(
        f"these runs cannot be compared with {one.path} (20 jobs):\n  {other.path}: 8 of its 20 "
    )
    assert f"20 have the id of a job in the baseline, but {said}; another trace: other (20 jobs" in text


def test_half_of_the_smaller_run_is_enough(replayed: Callable[..., harness.Run]) -> None:
    """Exactly half of the smaller run's jobs; one fewer is too few."""
    one = replayed("one", jobs(20))
    enough = replayed("enough", [*jobs(5), *jobs(10, duration=11)[5:]])
    assert harness.compare([one, enough]).pairs.count == 5
    few = replayed("few", [*jobs(4), *jobs(10, duration=11)[4:]])
    with pytest.raises(RunError, match="4 of its 10 jobs are the same: 10 have the id"):
        harness.compare([one, few])


def test_a_run_that_ended_before_its_first_job_has_nothing_to_compare(
    replayed: Callable[..., harness.Run],
) -> None:
    """Its ids do not differ from those of the others, because it has none."""
    rows = [{"submit_time": 0, "duration": 5}, {"submit_time": 100}]
    one = replayed("one", rows)
    none = replayed("none", [{**row, "submit_time": 100} for row in rows], until="50s")
    with pytest.raises(RunError, match=f"^no job arrived in {none.path}, so these runs cannot") as raised:
        harness.compare([one, none])
    assert raised.value.hint == "choose a later --until, or another --window"


def test_runs_of_parts_that_do_not_meet_compare_with_the_whole_alone(
    replayed: Callable[..., harness.Run],
) -> None:
    """Each of two halves compares with the whole, but not all three at once."""
    whole = replayed("whole", jobs(20))
    parts = [
        replayed(
            name, [{**row, "job_id": f"j{number}"} for number, row in enumerate(jobs(20))][start : start + 10]
        )
        for name, start in (("early", 0), ("late", 10))
    ]
    for part in parts:
        assert harness.compare([whole, part]).pairs.count == 10
    with pytest.raises(RunError, match="have only 0 jobs in common; the smallest run has 10"):
        harness.compare([whole, *parts])


def test_scaled_arrivals_are_measured_over_each_runs_own_window(replayed: Callable[..., harness.Run]) -> None:
    """The values are those that each run has alone, and what changed is of the same jobs."""
    slow = replayed("slow", jobs(64))
    fast = harness.replay(
        slow.info["provenance"]["trace"], label="fast", scale_arrivals=4, output=slow.path.parents[1]
    )
    comparison = harness.compare([slow, fast])
    assert comparison.pairs.whole
    assert comparison.window is None
    for metric in ("utilization.allocated", "wait.first_start.mean", "fairness.jain_slowdown"):
        alone = [values(harness.compare([run]), metric)[0] for run in (slow, fast)]
        assert values(comparison, metric) == alone
    (row,) = comparison.rows("wait.first_start.mean")
    assert row.changes[0].ground is Ground.FEW
    assert comparison.to_json()["common_window"] is None


def test_a_run_of_the_schema_before_compares_by_id_pods_and_duration(
    replayed: Callable[..., harness.Run],
) -> None:
    """It does not say what jobs ask for, so that cannot tell them apart."""
    new = replayed("new", jobs(20))
    old = replayed("old", jobs(20, **{"request.cpu": 2000}))
    as_schema_2(old.path)
    comparison = harness.compare([new.path, old.path])
    assert comparison.pairs.count == 20
    assert not comparison.pairs.know_requests

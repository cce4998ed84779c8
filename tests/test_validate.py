"""`harness validate`: a closed loop has no error, and planted faults are named with object and period."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import polars as pl
import pytest
from cli_environment import called
from planted_faults import PLUGINS, POOLS, QUEUES, cluster_of, held, jobs_of, validated, write

import harness
from harness.analysis.report import Figure, Table
from harness.analysis.validation import Validation
from harness.analysis.validation.calibrate import calibrate
from harness.analysis.validation.errors import errors_of
from harness.analysis.validation.findings import EVICTIONS, LATE, LESS, Finding
from harness.analysis.validation.text import text
from harness.base.units import DAY, HOUR, MINUTE, SECOND
from harness.cluster.load import cluster_from
from harness.cluster.manifests import dump_yaml
from harness.runs.request import Request
from harness.trace.trace import open_trace


def within(found: float, planted: float, part: float = 0.2) -> bool:
    return abs(found - planted) <= part * planted


def the_only(findings: Sequence[Finding]) -> Finding:
    (finding,) = findings
    return finding


@pytest.mark.parametrize("plugin", ["kueue-classic", "default-preemption"])
def test_a_closed_loop_has_no_error(tmp_path: Path, plugin: str) -> None:
    """Also where jobs wait for nodes although there is room in pieces."""
    on_nodes = plugin == "default-preemption"
    cluster = cluster_of({} if on_nodes else QUEUES, POOLS if on_nodes else {})
    rows = jobs_of(500, 5, 7, 0.95, list(POOLS) if on_nodes else ())
    validation = validated(tmp_path, rows, cluster, plugin)
    errors = validation.errors
    assert errors.jobs == 500
    assert set(errors.quantiles) == {0}
    assert (errors.absolute, errors.within_tenth, errors.rank) == (0, 1, pytest.approx(1))
    assert errors.recorded_wait == errors.simulated_wait > 0
    assert validation.use_difference == pytest.approx(0, abs=1e-4)  # a gang may hold before it runs
    assert not validation.findings
    assert not list(validation.largest())
    assert validation.verdict.startswith("close: ")


def test_a_queue_with_a_quarter_less_quota_for_three_days_is_named(tmp_path: Path) -> None:
    unseen = held(8, "a", 5 * DAY, 3 * DAY)
    validation = validated(tmp_path, jobs_of(700, 1, 14, 0.95), cluster_of(QUEUES, {}), unseen=unseen)
    found = the_only(validation.findings)
    assert (found.kind, found.object, found.name, found.resource) == (LESS, "queue", "a", "cpu")
    assert within(found.amount, 8000)
    assert within(found.end - found.start, 3 * DAY)
    assert abs(found.start - 5 * DAY) < 0.2 * 3 * DAY
    assert "of the 32 cpu of ClusterQueue a (25%)" in validation.told(found)
    assert any(each.because for each in validation.largest())


def test_a_pool_of_nodes_that_is_down_for_a_day_is_named(tmp_path: Path) -> None:
    unseen = held(32, "b", 6 * DAY, DAY, "y")
    rows = jobs_of(900, 1, 14, 0.85, list(POOLS))
    validation = validated(tmp_path, rows, cluster_of({}, POOLS), "default-preemption", unseen)
    found = the_only(validation.findings)
    assert (found.kind, found.object, found.name) == (LESS, "nodes", "pool=y")
    assert within(found.amount, 32_000)
    assert within(found.end - found.start, DAY)
    assert abs(found.start - 6 * DAY) < 0.2 * DAY


def test_load_that_the_trace_does_not_have_is_named(tmp_path: Path) -> None:
    """One job of twenty is not in the record."""
    rows = jobs_of(1000, 1, 14, 0.95)
    random = Random(1)
    gone = [row for row in rows if random.random() < 0.05]
    work = [sum(row["duration"] * row["request.cpu"] for row in some) for some in (gone, rows)]
    assert 0.04 < work[0] / work[1] < 0.06
    names = [row["job_id"] for row in gone]
    validation = validated(tmp_path, rows, cluster_of(QUEUES, {}), without=names)
    found = validation.findings[0]
    assert (found.kind, found.object, found.name) == (LESS, "whole", "all")
    assert within(found.amount, work[0] / (14 * DAY))
    assert within(found.end - found.start, 14 * DAY)
    assert "load that is not in the trace" in validation.told(found)


def test_starts_that_are_all_a_minute_late_are_named_and_calibrated(tmp_path: Path) -> None:
    cluster = cluster_of(QUEUES, {})
    validation = validated(tmp_path, jobs_of(200, 2, 7, 0.8), cluster, startup="60s")
    found = the_only(validation.findings)
    assert found.kind == LATE
    assert within(found.amount, MINUTE)
    assert validation.told(found).startswith("starts are 1m00s late: ")
    request = Request(
        tmp_path / "record.parquet", plugin="kueue-classic", cluster=cluster, output=tmp_path, keep="all"
    )
    fit = calibrate(validation, request, PLUGINS)
    assert fit.startup == MINUTE
    assert fit.capacity == 1
    assert (fit.before.absolute or 0) >= MINUTE
    assert fit.after.absolute == 0


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Validation:
    """A validation of five jobs, for tests that say themselves how far jobs are off."""
    return validated(tmp_path_factory.mktemp("small"), jobs_of(5, 1, 1, 0.5), cluster_of(QUEUES, {}))


def verdict_on(of: Validation, found: pl.DataFrame) -> str:
    """The verdict, were jobs off by so much."""
    of.pairs = found
    vars(of).pop("errors", None)  # worked out before, of other pairs
    return of.verdict


def pairs(*errors: int | None, wait: int = HOUR) -> pl.DataFrame:
    """Jobs that waited an hour or little more, and start so much later in the simulation; None for never."""
    ours = [wait + number * SECOND for number in range(len(errors))]
    theirs = [None if error is None else one + error for one, error in zip(ours, errors, strict=True)]
    columns = {"wait": ours, "simulated_wait": theirs, "error": errors}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64))
    return frame.with_columns(recorded_evictions=0, simulated_evictions=0)


def test_jobs_that_never_start_are_within_no_time(tmp_path: Path) -> None:
    """They are in the shares, and in no error; of no jobs, and where none starts, nothing is told."""
    found = errors_of(pairs(0, 5 * MINUTE, None, None))
    assert (found.jobs, found.unstarted) == (4, 2)
    assert (found.within_minute, found.within_ten_minutes, found.within_tenth) == (0.25, 0.5, 0.5)
    assert found.absolute == 2.5 * MINUTE
    assert found.told == (
        "2 of 4 jobs never start in the simulation; half of the others start within 2m30s of their recorded "
        "start, 50% of all within 10 minutes"
    )
    assert errors_of(pairs(None)).within_ten_minutes == 0
    assert errors_of(pairs(None)).told == ""
    assert errors_of(pairs()).within_ten_minutes is None


def test_unrelated_waits_are_poor_however_near_starts_are(small: Validation) -> None:
    """Who waits is what a simulation is asked for: a rank correlation under 0.3 is never fair."""
    assert verdict_on(small, pairs(2 * SECOND, 0, -2 * SECOND)).startswith("poor: ")
    assert verdict_on(small, pairs(0, 0, 0)).startswith("close: ")


def test_a_short_record_has_no_shares_within_ten_minutes(tmp_path: Path) -> None:
    """Ten minutes are a large part of it; a tenth of each wait is judged instead."""
    rows = [{**row, "duration": MINUTE} for row in jobs_of(9, 1, 1, 0.01)]
    rows = [{**row, "submit_time": row["submit_time"] // 24} for row in rows]
    validation = validated(tmp_path, rows, cluster_of(QUEUES, {}))
    assert validation.short
    assert validation.errors.within_ten_minutes is None
    assert validation.verdict.startswith("close: ")
    assert "within 10 minutes" not in validation.verdict
    assert verdict_on(validation, pairs(*[9 * MINUTE] * 10, wait=30 * MINUTE)).startswith("fair: ")
    assert validation.errors.within_tenth == 0


@pytest.mark.parametrize(
    ("errors", "waits", "word"),
    [
        ([0] * 9 + [None], None, "close"),
        ([0] * 8 + [None] * 2, None, "fair"),
        ([HOUR // 2 - MINUTE] * 6 + [None] * 4, None, "fair"),
        ([HOUR] * 6 + [None] * 4, None, "poor"),
        ([HOUR] * 5 + [None] * 5, None, "poor"),
        ([None] * 2, None, "no verdict"),
        ([0] * 10, 0, "close"),
        ([-MINUTE] * 10, 0, "poor"),
        ([-MINUTE] * 5 + [-HOUR] * 5, 0, "poor"),
    ],
)
def test_a_verdict_is_of_all_jobs(
    errors: list[int | None], waits: int | None, word: str, small: Validation
) -> None:
    """Never to start is far from the record, and so are waits that differ by more than a half in all."""
    found = pairs(*errors)
    if waits is not None:
        found = found.with_columns(simulated_wait=waits, wait=-pl.col("error"))
    assert verdict_on(small, found).startswith(f"{word}: ")


def test_more_than_there_was_is_named(tmp_path: Path) -> None:
    """Jobs that started although all was taken."""
    rows = jobs_of(40, 3, 1, 0.5)
    frame = pl.read_parquet(write(tmp_path / "t.parquet", rows))
    frame = frame.with_columns(
        recorded_start=pl.col("submit_time"), recorded_end=pl.col("submit_time") + pl.duration(hours=20)
    )
    frame.with_columns(pl.col("recorded_end").cast(pl.Duration("us"))).write_parquet(tmp_path / "t.parquet")
    cluster = cluster_of({"a": 8, "b": 8, "c": 4}, {})
    runs = [
        harness.replay(tmp_path / "t.parquet", plugin=name, cluster=cluster, output=tmp_path)
        for name in ("recorded", "kueue-classic")
    ]
    validation = Validation(open_trace(tmp_path / "t.parquet", PLUGINS), cluster, *runs)
    found = validation.findings[0]
    assert (found.kind, found.object, found.name, found.capacity) == ("more", "whole", "all", 20_000)
    assert "the capacity was larger then" in validation.told(found)


def test_preemptions_that_only_the_record_has_are_named(tmp_path: Path) -> None:
    """They explain the largest differences if nothing else does."""
    base = {"duration": HOUR, "queue": "a", "request.cpu": 1000, "pool": None}
    rows = [{**base, "job_id": f"j{n}", "submit_time": n * SECOND, "priority": n // 8} for n in range(16)]
    record = validated(tmp_path, rows, cluster_of({"a": 8}, {})).recorded
    manifests = json.loads(json.dumps(cluster_of({"a": 8}, {}).manifests).replace("LowerPriority", "Never"))
    never, trace = cluster_from(manifests, "never"), tmp_path / "record.parquet"
    simulated = harness.replay(trace, plugin="kueue-classic", cluster=never, output=tmp_path)
    validation = Validation(open_trace(trace, PLUGINS), never, record, simulated)
    found = the_only(validation.findings)
    assert (found.kind, found.amount) == (EVICTIONS, 8)
    assert validation.told(found).startswith("the record has 8 evictions, and the simulation 0: ")
    assert all(each.because for each in validation.largest())


def test_the_command_prints_tables_json_and_where_the_runs_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = cluster_of(QUEUES, {})
    validation = validated(tmp_path, jobs_of(120, 2, 3, 0.9), cluster, startup="60s")
    (tmp_path / "cluster.yaml").write_text(dump_yaml(cluster.manifests))
    line = ["validate", str(tmp_path / "record.parquet"), "--cluster", str(tmp_path / "cluster.yaml")]
    line += ["-p", "kueue-classic", "-o", str(tmp_path / "runs")]
    assert called(line) == 0
    told = capsys.readouterr()
    assert told.out.rstrip() == text(validation)
    assert "harness report" in told.err
    assert max(map(len, text(validation, 80).splitlines())) <= 80
    assert called([*line, "--json", "-q", "--calibrate"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == validation.verdict
    assert document["findings"][0]["kind"] == "late"
    assert document["calibration"]["startup"] == MINUTE
    assert document["use"]["rows"][0][0] <= HOUR
    assert called([*line, "--json", "-q", "--window", "0d..1d"]) == 0
    first_day = validation.pairs.filter(pl.col("submit") < DAY).height
    assert json.loads(capsys.readouterr().out)["errors"]["jobs"] == first_day < 120
    assert called([*line, "-p", "recorded"]) == 2
    assert "not a simulation" in capsys.readouterr().err
    write(tmp_path / "bare.parquet", jobs_of(5, 1, 1, 0.5))
    line[1] = str(tmp_path / "bare.parquet")
    assert called(line) == 2
    assert "recorded_start" in capsys.readouterr().err


def test_work_of_the_manifests_is_in_neither_run_and_changes_are_in_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if work was created while the jobs of the record ran, as in a dump and its own history."""
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        {"job_id": f"j{number}", "submit_time": begin + timedelta(hours=number), "queue": "a"}
        for number in range(3)
    ]
    frame = pl.DataFrame(rows).with_columns(
        pl.lit(timedelta(hours=1)).alias("duration"),
        pl.lit(1000).alias("request.cpu"),
        recorded_start="submit_time",
        recorded_end=pl.col("submit_time") + timedelta(hours=1),
    )
    frame.write_parquet(tmp_path / "t.parquet")
    pods = [{"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": 1}}}]}}}]
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default", "creationTimestamp": "2026-01-01T01:00:00Z"},
        "spec": {"queueName": "a", "podSets": pods},
    }
    flavor, queue = cluster_of({"a": 8}, {}).manifests
    late = {**queue, "metadata": {"name": "late", "annotations": {"harness/from": "1h"}}}
    manifests = [flavor, queue, late, workload]
    (tmp_path / "c.yaml").write_text(dump_yaml(manifests))
    line = ["validate", str(tmp_path / "t.parquet"), "--cluster", str(tmp_path / "c.yaml")]
    line += ["-p", "kueue-classic", "-o", str(tmp_path / "runs")]
    assert called(line) == 0
    told = capsys.readouterr()
    assert told.out.startswith("close: ")
    assert "kueue-classic: 3 jobs" in told.err
    assert "note: both runs leave out the Workloads and Pods of the manifests" in told.err
    assert called([*line, "--write-events", str(tmp_path / "e.csv"), "-q"]) == 0


def test_a_report_with_a_record_draws_simulated_against_recorded_waits(tmp_path: Path) -> None:
    """One run that is a record, and one that is not; without a record the section is left out."""
    rows = jobs_of(60, 2, 1, 0.9)
    frame = pl.read_parquet(write(tmp_path / "t.parquet", rows))
    late = pl.duration(seconds=90, time_unit="us")
    start = pl.col("submit_time") + late
    frame.with_columns(recorded_start=start, recorded_end=start + pl.col("duration")).write_parquet(
        tmp_path / "t.parquet"
    )
    cluster = cluster_of(QUEUES, {})
    runs = [
        harness.replay(tmp_path / "t.parquet", plugin=name, cluster=cluster, output=tmp_path)
        for name in ("recorded", "kueue-classic")
    ]
    report = harness.make_report(runs)
    (chapter,) = [each for each in report.chapters if each.name == "record"]
    table, points, line = [each for each in chapter.blocks if isinstance(each, (Table, Figure))]
    assert isinstance(table, Table)
    assert ["median error", "-1m30s"] in [list(row) for row in table.rows]
    for figure in (points, line):
        assert isinstance(figure, Figure)
        assert figure.draw(700).to_dict()["layer"]
    assert "kueue-classic: half of 60 jobs start within 1m30s of their recorded start" in report.markdown()
    assert "record" not in [each.name for each in harness.make_report(runs[1:]).chapters]

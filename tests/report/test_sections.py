"""Sections: which there are, when they say nothing, and those of third parties."""

from __future__ import annotations

import itertools
import json
import re
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import small_clusters
from policies import Greedy, Priority, scripted
from report_runs import cut, write

import harness
from harness.analysis.explanation.clock import Clock
from harness.analysis.metrics.levels import holders
from harness.analysis.report import (
    Block,
    Cell,
    Figure,
    Key,
    Points,
    Register,
    Scores,
    SectionSpec,
    Table,
    Text,
    drawing,
)
from harness.analysis.report.amounts import number
from harness.analysis.report.material import Material, distinct
from harness.analysis.report.report import Report
from harness.analysis.report.sections.domains import capacities, levels_of
from harness.analysis.report.sections.fairness import ONE, deviation
from harness.analysis.report.waits import Waited, Waits
from harness.base.errors import HarnessError, PluginError
from harness.base.units import HOUR, MINUTE, SECOND, format_duration
from harness.cluster.load import load_cluster
from harness.plugins import loading as plugins
from harness.trace.calibration import Calibration


def chapters(report: Report) -> list[str]:
    return [chapter.name for chapter in report.chapters]


def blocks(report: Report, name: str) -> list[Block]:
    return next(list(chapter.blocks) for chapter in report.chapters if chapter.name == name)


def with_section(make: Any, block: Sequence[str] = (), **settings: Any) -> plugins.Plugins:
    """The installed plugins but for some, and one with a section."""

    def hook(register: Register[SectionSpec]) -> None:
        register(SectionSpec("mine", make, title="My own", help="what I want to see", **settings))

    own = types.SimpleNamespace(harness_register_sections=harness.hookimpl(hook))
    return plugins.load(block=block, extra={"third": own})


def test_the_built_in_sections_stand_in_their_order(report: Report, runs: list[harness.Run]) -> None:
    """From the headlines to what it all rests on; a Gantt chart only for small runs."""
    found = chapters(report)
    assert found == [
        "headlines",
        "frontier",
        "losses",
        "waiting",
        "allocation",
        "fairness",
        "disruption",
        "metrics",
        "assumed",
    ]


def test_small_runs_are_shown_job_by_job(hostile: list[harness.Run]) -> None:
    """A bar for each span in which a job held resources."""
    (figure,) = blocks(harness.make_report(hostile), "gantt")
    assert isinstance(figure, Figure)
    assert "25 of 25 jobs finished" in figure.words


def test_a_part_of_any_run_is_shown_job_by_job(runs: list[harness.Run]) -> None:
    """Of many jobs those that held most in it, the same ones of all runs; it is said of how many."""
    (figure,) = blocks(harness.make_report(runs, gantt="200s..250s"), "gantt")
    assert isinstance(figure, Figure)
    there, held = set(), {}
    for run in runs:
        jobs, stints = run.micros("jobs").collect(), run.micros("stints").collect()
        inside = (pl.col("submit_time") < 250 * SECOND) & (pl.col("finish_time") > 200 * SECOND)
        there |= set(jobs.filter(inside)["job_id"])
        for job, start, end, amount in stints.select("job", "start", "end", "request.cpu").iter_rows():
            span = min(end, 250 * SECOND) - max(start, 200 * SECOND)
            held[jobs["job_id"][job]] = held.get(jobs["job_id"][job], 0) + max(0, span) * amount
    assert len(there) > 60
    which = f"Shown are the 60 of {len(there)} jobs that held the most core·h."
    assert figure.note.startswith(f"{which} A tick marks ")
    most = sorted((held[job] for job in there), reverse=True)[59]
    chart = drawing.specification(figure, 900)
    names = {row["name"] for rows in chart["datasets"].values() for row in rows if "name" in row}
    assert {job for job in there if held[job] > most} <= names
    assert len(names) <= 60
    assert figure.words == " ".join([which, *(part_in_words(run, names) for run in runs)])


def part_in_words(run: harness.Run, shown: set[str]) -> str:
    """What is told of some jobs between 200 and 250 s."""
    jobs = run.micros("jobs").filter(pl.col("job_id").is_in(shown)).collect()
    starts = jobs["start_time"].filter(jobs["start_time"].is_between(200 * SECOND, 250 * SECOND)).sort()
    first, last = Clock(run).text(starts[0]), Clock(run).text(starts[-1])
    stints = run.micros("stints").filter(pl.col("job_id").is_in(shown)).collect()
    there = stints.filter(pl.col("start") < 250 * SECOND, pl.col("end") > 200 * SECOND)
    crosses = there.filter(pl.col("lost") > 0, pl.col("end") <= 250 * SECOND).height
    assert (crosses > 0) == (run.label == "rough")
    return (
        f"{run.label}: {there['job_id'].n_unique()} held resources; {len(starts)} started, from {first} to "
        f"{last}; evictions that threw progress away: {crosses}."
    )


@pytest.mark.parametrize("dated", [False, True])
def test_a_window_stands_at_its_time_beside_the_whole(dated: bool, charts: None, tmp_path: Path) -> None:
    """In charts over time, and in the part of the time that is shown job by job."""
    path = tmp_path / "trace.parquet"
    rows = [{"submit_time": 1800 * (number // 2), "queue": "a", "duration": 1500} for number in range(16)]
    write(path, rows)
    if dated:
        midnight = pl.datetime(2024, 5, 1, time_unit="us")
        frame = pl.read_parquet(path)
        frame.with_columns(submit_time=midnight + pl.col("submit_time")).write_parquet(path)
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(small_clusters.queues({"a": {"cpu": "1"}, "b": {"cpu": "1"}}))
    whole, part = (
        harness.replay(
            path,
            cluster=cluster,
            calibration=Calibration.parse(window=window),
            label=window or "whole",
            output=tmp_path / "results",
        )
        for window in (None, "2h..")
    )
    two_hours = 2 * HOUR
    assert part.info["trace"]["origin_us"] - whole.info["trace"]["origin_us"] == two_hours
    material = Material(harness.compare([whole, part]), part="2h30m..3h")
    assert material.windows == [whole.window, (two_hours, part.window.end + two_hours)]
    assert material.window == (0, max(window.end for window in material.windows))
    levels = material.per_pixel("allocated", 1000, together=True)[1]
    assert levels["time"].to_list()[0] >= two_hours, "of the time before it says nothing"
    first = levels.filter(pl.col("high") > 0)["time"].min()
    assert isinstance(first, int)
    assert abs(first - two_hours) <= material.window.end // 1000
    report = harness.make_report([whole, part], gantt="2h30m..3h")
    (figure,) = blocks(report, "gantt")
    assert isinstance(figure, Figure)
    chart = drawing.specification(figure, 900)
    for run, origin, panel in zip((whole, part), (0, two_hours), chart["vconcat"], strict=True):
        stints = run.micros("stints").collect().with_columns(pl.col("start", "end") + origin)
        inside = stints.filter((pl.col("start") < 3 * HOUR) & (pl.col("end") > 2.5 * HOUR))
        held = set(inside["job_id"]) & set(part.jobs["job_id"])
        bars = chart["datasets"][panel["layer"][0]["data"]["name"]]
        assert {row["name"] for row in bars} == held
        assert held
    (waited,) = (
        block
        for block in blocks(report, "waiting")
        if isinstance(block, Figure) and block.title.startswith("Jobs that had started")
    )
    assert waited.note is not None
    own = " Figures cover all jobs of each run (whole 16, 2h.. 8); 8 of them are in all runs."
    assert waited.note.endswith(own)


def test_axes_of_time_say_that_they_are_in_utc_where_texts_are_not(charts: None, tmp_path: Path) -> None:
    """Headings have the trace's time zone, as its tables do."""
    write(tmp_path / "plain.parquet", [{"submit_time": 0, "queue": "a", "duration": 3600}])
    plain = pl.read_parquet(tmp_path / "plain.parquet")
    for zone, begun, title in (
        ("UTC", "2024-05-01 00:00:00", None),
        ("Europe/Berlin", "2024-05-01 00:00:00+02:00", "UTC"),
    ):
        morning = pl.datetime(2024, 5, 1, time_unit="us", time_zone=zone) + pl.col("submit_time")
        plain.with_columns(submit_time=morning).write_parquet(tmp_path / "dated.parquet")
        run = harness.replay(tmp_path / "dated.parquet", output=tmp_path / "results")
        (figure,) = blocks(harness.make_report([run], gantt="0s..30m"), "gantt")
        assert isinstance(figure, Figure)
        assert figure.title.startswith(f"When jobs held resources, from {begun} to ")
        axis = drawing.specification(figure, 900)["vconcat"][0]["layer"][0]["encoding"]["x"]["axis"]
        assert axis.get("title") == title


@pytest.mark.parametrize(
    ("part", "said"),
    [("soon", "'soon' is not understood"), ("90d..", "no part of the run is within 90d.."), ("x..", "x")],
)
def test_a_part_that_is_none_is_refused(part: str, said: str, runs: list[harness.Run]) -> None:
    """With what the run spans."""
    with pytest.raises(HarnessError, match=re.escape(said)):
        harness.make_report(runs, gantt=part)


def test_one_run_is_reported_without_comparison(runs: list[harness.Run]) -> None:
    """No trade-off, nothing to take and no verdicts, all else is there."""
    report = harness.make_report(runs[1:])
    assert "frontier" not in chapters(report)
    scores, costs = blocks(report, "headlines")
    assert isinstance(costs, Table)
    assert {len(row) for row in costs.rows} == {2}
    assert isinstance(scores, Scores)
    assert [score.topic for score in scores.scores] == ["Utilization", "Fairness", "Disruption", "Waiting"]
    assert {change.text for score in scores.scores for _, _, change in score.values} == {""}


def test_verdicts_follow_the_comparison(report: Report, runs: list[harness.Run]) -> None:
    """What one replay cannot carry is not judged, in the card and in the sentence; over twins it is."""
    answer, *_, scores, costs = blocks(report, "headlines")
    assert isinstance(answer, Text)
    assert answer.lead
    assert answer.text.startswith("No recommendation: one replay of each run ")
    assert isinstance(scores, Scores)
    assert [change.verdict for _, _, change in scores.scores[2].values] == ["", "open"]
    assert isinstance(costs, Table)
    lost = next(row for row in costs.rows if row[0] == "core·h lost to evictions")
    hours = runs[1].metrics.filter(metric="disruption.lost", scope="all", resource="cpu")["value"][0]
    assert lost[2] == f"{hours:,.2f} core·h"
    over_twins = harness.compare(runs, shake="2,arrivals=5s", workers=1)
    answer, *_, scores, _ = blocks(harness.make_report(over_twins), "headlines")
    assert isinstance(answer, Text)
    assert answer.text.startswith("If preempted jobs lose all their progress, ")
    assert isinstance(scores, Scores)
    assert scores.scores[2].values[1][2].verdict in ("better", "worse", "same")


def test_hours_waited_are_those_of_the_jobs(report: Report, runs: list[harness.Run]) -> None:
    """By queue, with a bar to the left where the jobs wait fewer hours than under the baseline."""
    table = next(block for block in blocks(report, "losses") if isinstance(block, Table))
    assert sorted(str(row[0]) for row in table.rows) == ["blue", "green", "red"]
    hours = []
    for run in runs:
        jobs = run.micros("jobs").collect().with_columns(wait=pl.col("start_time") - pl.col("submit_time"))
        hours.append(dict(jobs.group_by("queue").agg(pl.col("wait").sum() / HOUR).iter_rows()))
    bars = []
    for queue, before, after, change in table.rows:
        assert before == number(hours[0][str(queue)])
        assert after == number(hours[1][str(queue)])
        assert isinstance(change, Cell)
        assert change.bar is not None
        difference = hours[1][str(queue)] - hours[0][str(queue)]
        assert (change.bar > 0) == (difference > 0)
        bars.append(abs(change.bar))
    assert max(bars) == 1.0


def test_a_pair_of_queues_names_its_row(report: Report) -> None:
    """Both names are in the first column, because all other columns have numbers."""
    table = [each for each in blocks(report, "losses") if isinstance(each, Table)][-1]
    assert table.caption.startswith("Preemptions by pair of queues")
    assert all(len(str(row[0]).split(" → ")) == 2 for row in table.rows)
    assert all(str(cell).replace(",", "").isdecimal() for row in table.rows for cell in row[1:])


def test_hours_waited_are_those_of_the_jobs_that_both_runs_have_and_took(tmp_path: Path) -> None:
    """The means are of these; rejected jobs have no waits, and a window lacks others."""
    rows = [{"submit_time": 3600 * (number // 4), "queue": "a", "duration": 3600} for number in range(12)]
    rows = [{**row, "request.cpu": 5000 if number % 4 == 3 else 4000} for number, row in enumerate(rows)]
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(small_clusters.queues({"a": {"cpu": "8"}}, nodes=2))
    trace = write(tmp_path / "trace.parquet", rows)
    whole, part = (
        harness.replay(
            trace,
            cluster=cluster,
            calibration=Calibration.parse(window=window),
            label=window or "whole",
            output=tmp_path / "results",
        )
        for window in (None, "0s..2h")
    )
    for chosen, told in (([whole], ["7"]), ([whole, part], ["3", "3"])):
        scores = blocks(harness.make_report(chosen), "headlines")
        costs = next(block for block in scores if isinstance(block, Table))
        (row,) = (row for row in costs.rows if row[0] == "hours that jobs waited for their start")
        jobs = [run.micros("jobs").collect() for run in chosen]
        started = [each.filter(pl.col("job_id").is_in(jobs[-1]["job_id"].implode())) for each in jobs]
        waits = [(each["start_time"] - each["submit_time"]).drop_nulls().sum() for each in started]
        assert all(each["state"].is_in(["rejected"]).any() for each in jobs)
        shown = [cell.text if isinstance(cell, Cell) else cell for cell in row[1:]]
        assert shown[: len(chosen)] == [number(wait / HOUR) for wait in waits] == told


def test_a_run_may_lack_the_queues_of_another_run(tmp_path: Path) -> None:
    """As a window of the trace does, or a plugin that takes over other work of the manifests."""
    rows = [{"submit_time": 1800 * number, "queue": "aab"[number], "duration": 3000} for number in range(3)]
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(small_clusters.queues({"a": {"cpu": "1"}, "b": {"cpu": "1"}}))
    runs = [
        harness.replay(
            write(tmp_path / "trace.parquet", rows),
            cluster=cluster,
            calibration=Calibration.parse(window=window),
            label=window or "whole",
            output=tmp_path / "results",
        )
        for window in (None, "0s..1h")
    ]
    names = [[each.name for each in holders(run)] for run in runs]
    assert names == [["a", "b"], ["a"]]
    assert {"waiting", "gantt"} <= {*chapters(harness.make_report(runs, gantt="0s..2h"))}


def test_figures_say_which_jobs_they_are_of_where_runs_have_different_ones(tmp_path: Path) -> None:
    """What comes from values of jobs is of those that all runs have, all else of each run's own."""
    rows = [
        {"submit_time": 1800 * number, "queue": "ab"[number % 2], "priority": number, "duration": 3000}
        for number in range(12)
    ]
    trace = write(tmp_path / "trace.parquet", rows)
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(small_clusters.queues({"a": {"cpu": "1"}, "b": {"cpu": "0"}}))
    whole, part = (
        harness.replay(
            trace,
            plugin=Priority,
            cluster=cluster,
            calibration=Calibration.parse(window=window),
            label=window or "whole",
            output=tmp_path / "results",
            until="5h",
        )
        for window in (None, "0s..4h")
    )
    (table,) = (each for each in blocks(harness.make_report([whole]), "headlines") if isinstance(each, Table))
    assert table.head[0] == "of all jobs"
    common = "of the 8 jobs that all runs have"
    own = " Figures cover all jobs of each run (whole 11, 0s..4h 8); 8 of them are in all runs."
    report = harness.make_report([whole, part])
    found = blocks(report, "headlines")
    of_common, of_each = (each for each in found if isinstance(each, Table))
    assert [of_common.head[0], of_each.head[0]] == [common, "of all jobs of each run"]
    assert [row[0] for row in (*of_common.rows, *of_each.rows)] == [
        "hours that jobs waited for their start (so far)",
        "95 of 100 jobs started within",
        "mean time of a job, as a multiple of its run time",
        "core·h lost to evictions",
        "core·h lost, as a share of what was allocated",
        "preemptions",
        "core·h of work of finished jobs",
    ]
    assert len(of_common.rows) == 4
    (text,) = (each.text for each in found if isinstance(each, Text) and "not started" in each.text)
    assert text.startswith(f"Jobs that had not started when the replay ended, {common}: whole ")
    (scores,) = (each for each in found if isinstance(each, Scores))
    assert [each.topic for each in scores.scores if common in each.meaning] == ["Waiting"]
    hours, *_ = (each for each in blocks(report, "losses") if isinstance(each, Table))
    assert hours.caption.endswith(f"by queue, {common}")
    notes = {
        name: [each.note for each in blocks(report, name) if isinstance(each, Figure)]
        for name in ("losses", "disruption", "frontier")
    }
    for note in (*notes["losses"], *notes["disruption"]):
        assert note.endswith(own)
    assert [note.endswith(f" Waits and lost work cover {common[3:]}.") for note in notes["frontier"]] == [
        True
    ]


@pytest.fixture
def uneven(tmp_path: Path) -> list[harness.Run]:
    """The same jobs of an hour, 2 and 6 at a time: the second run ends after a third of the first one."""
    trace = write(tmp_path / "trace.parquet", [{"submit_time": 0, "queue": "a", "duration": 3600}] * 12)
    found = []
    for quota in ("2", "6"):
        cluster = tmp_path / f"{quota}.yaml"
        cluster.write_text(small_clusters.queues({"a": {"cpu": quota}}))
        found.append(harness.replay(trace, cluster=cluster, label=quota, output=tmp_path / "results"))
    return found


def test_levels_in_words_are_over_each_runs_own_time(uneven: list[harness.Run]) -> None:
    """Also of a run that ends long before the others."""
    report = harness.make_report(uneven)
    depth, *_ = (block for block in blocks(report, "waiting") if isinstance(block, Figure))
    assert depth.words == ("2: 5 jobs waited on average, at most 10. 6: 3 jobs waited on average, at most 6.")
    held, *_ = (block for block in blocks(report, "allocation") if isinstance(block, Figure))
    assert held.words == (
        "2: on average 2 of 2 cores were held (100.0 %), at most 2. These held the most: a 2. "
        "6: on average 6 of 6 cores were held (100.0 %), at most 6. These held the most: a 6."
    )


def test_the_frontier_marks_what_no_other_run_beats(report: Report, runs: list[harness.Run]) -> None:
    """The run that loses nothing is not beaten; the other one is, unless its jobs wait less."""
    (figure,) = blocks(report, "frontier")
    assert isinstance(figure, Figure)
    waits = [run.metrics.filter(metric="wait.first_start.p95", scope="all")["value"][0] for run in runs]
    best = "calm, rough" if waits[1] < waits[0] else "calm"
    assert figure.words.endswith(f"No other run beats: {best}.")


def test_chains_add_up_to_the_metric(report: Report, runs: list[harness.Run]) -> None:
    """Every preemption is in one row by how many led to it, whose mean is `disruption.cascade_depth.mean`."""
    _, table, longest = blocks(report, "disruption")
    assert isinstance(table, Table)
    counts = [int(str(row[2]).replace(",", "")) for row in table.rows]
    value = {
        name: runs[1].metrics.filter(metric=f"disruption.{name}", scope="all")["value"][0]
        for name in ("preemptions", "cascade_depth.mean", "cascade_depth.max")
    }
    assert sum(counts) == value["preemptions"]
    if value["cascade_depth.max"] < 5:
        mean = sum(depth * count for depth, count in enumerate(counts)) / sum(counts)
        assert mean == pytest.approx(value["cascade_depth.mean"])
    assert isinstance(longest, Points)
    (chain,) = longest.items
    links = [
        part.split(" was preempted for ")
        for part in chain.removeprefix("rough: ").split(", ")
        if " was preempted for " in part
    ]
    assert len(links) == min(6, value["cascade_depth.max"] + 1)
    assert all(victim == then for (victim, _), (_, then) in itertools.pairwise(links))


def test_waits_and_slowdowns_are_those_of_the_metrics(report: Report, runs: list[harness.Run]) -> None:
    """Half of the jobs, by size and in all, whichever section says so."""
    *_, slow, sizes = blocks(report, "waiting")
    assert isinstance(slow, Figure)
    assert isinstance(sizes, Figure)
    jobs = runs[0].micros("jobs").collect()
    wait, asked = pl.col("start_time") - pl.col("submit_time"), pl.col("request.cpu")
    for most, least in ((1, 0), (2, 1), (4, 2)):
        waits = jobs.filter((asked > least * 1000) & (asked <= most * 1000)).select(wait).to_series().sort()
        half = format_duration(waits[(len(waits) + 1) // 2 - 1])
        assert f"≤ {most} ({len(waits)} jobs): calm {half} and " in sizes.words
    finish, length = pl.col("finish_time") - pl.col("submit_time"), pl.col("duration")
    slowdowns = jobs.select(pl.max_horizontal(finish / length, 1.0)).to_series().sort()
    assert f"calm: 50 of 100 at most {number(slowdowns[149])} times" in slow.words


@pytest.fixture(scope="module")
def against_record(tmp_path_factory: pytest.TempPathFactory) -> list[harness.Run]:
    """A record of jobs an hour apart of which the first half starts 90 s late, and a run where none waits."""
    folder = tmp_path_factory.mktemp("record")
    trace, cluster = folder / "trace.parquet", folder / "cluster.yaml"
    write(trace, [{"submit_time": 3600 * number, "queue": "a"} for number in range(10)])
    late = pl.when(pl.int_range(10) < 5).then(90).otherwise(0) * SECOND
    start = pl.col("submit_time") + late.cast(pl.Duration("us"))
    frame = pl.read_parquet(trace)
    frame.with_columns(recorded_start=start, recorded_end=start + pl.col("duration")).write_parquet(trace)
    cluster.write_text(small_clusters.queues({"a": {"cpu": "1"}}))
    return [
        harness.replay(trace, plugin=policy, label=label, cluster=cluster, output=folder / "results")
        for policy, label in (("recorded", "record"), (Greedy, "greedy"))
    ]


def test_the_error_over_time_is_told_with_its_ends(against_record: list[harness.Run]) -> None:
    """Markdown has no other figures of it."""
    *_, figure = blocks(harness.make_report(against_record), "record")
    assert isinstance(figure, Figure)
    words = "Medians of the errors in 60 equal parts of the time. greedy: between 1m30s earlier and 0s."
    assert figure.words == words


@pytest.mark.parametrize(
    ("of", "gantt"),
    [("runs", "200s..250s"), ("hostile", None), ("in_racks", None), ("against_record", "30m..2h30m")],
)
def test_every_chart_is_told_with_figures_of_each_run(
    of: str, gantt: str | None, request: pytest.FixtureRequest
) -> None:
    """After a run's name stands a number, or that there was nothing; of a record, where others are judged."""
    found = request.getfixturevalue(of)
    chosen = found if isinstance(found, list) else [found]
    told = 0
    for chapter in harness.make_report(chosen, gantt=gantt).chapters:
        names = [run.label for run in chosen if chapter.name != "record" or not run.is_record]
        for figure in (each for each in chapter.blocks if isinstance(each, Figure)):
            _, *parts = re.split(f"({'|'.join(names)})[ :]", figure.words)
            assert set(parts[::2]) == set(names), figure.title
            assert all(re.search(r"\d|none|nothing", part) for part in parts[1::2]), figure.words
            told += 1
    assert told >= 6


def test_of_runs_that_are_alike_nothing_is_traded(tmp_path: Path) -> None:
    """Where no run loses any work, all points would lie on one line."""
    rows = [{"submit_time": n, "queue": "ab"[n % 2], "priority": n % 2, "duration": 10 + n} for n in range(9)]
    trace = write(tmp_path / "trace.parquet", rows)
    both = [
        harness.replay(trace, plugin=policy, label=label, output=tmp_path / "results")
        for policy, label in ((Greedy, "one"), (Greedy, "two"))
    ]
    (said,) = blocks(harness.make_report(both), "frontier")
    assert isinstance(said, Text)
    assert "no trade-off" in said.text


def test_a_plugin_adds_a_section(runs: list[harness.Run]) -> None:
    """It gets the runs, and stands where it asks to."""

    def make(material: Material) -> Iterable[Block]:
        yield Text(f"{len(material.runs)} runs of {material.resource}")
        yield Table("Mine", ["run", "jobs"], [[run.label, str(run.jobs.height)] for run in material.runs])

    report = harness.make_report(runs, plugins=with_section(make, place=150))
    assert chapters(report)[:3] == ["headlines", "mine", "frontier"]
    assert blocks(report, "mine")[0] == Text("2 runs of cpu")
    assert "| rough | 300 |" in report.markdown()
    unplaced = harness.make_report(runs, plugins=with_section(make))
    assert chapters(unplaced)[-2:] == ["mine", "assumed"]


def test_a_section_that_says_nothing_is_left_out(runs: list[harness.Run]) -> None:
    """No heading without anything below it."""
    assert "mine" not in chapters(harness.make_report(runs, plugins=with_section(lambda material: ())))


@pytest.mark.parametrize("failure", [ZeroDivisionError, SystemExit])
def test_a_section_that_fails_names_its_plugin(failure: type[BaseException], runs: list[harness.Run]) -> None:
    """The report is not written, and the error says how to write it without that section."""

    def make(material: Material) -> Iterable[Block]:
        raise failure

    with pytest.raises(
        PluginError, match=f"section 'mine' of plugin 'third' failed: {failure.__name__}"
    ) as error:
        harness.make_report(runs, plugins=with_section(make))
    assert "--no-plugin third" in str(error.value.hint)


def test_charts_are_as_vega_lite_wants_them(charts: None, hostile: list[harness.Run]) -> None:
    """Its schema is asked here, and not each time that a page is written."""
    drawn = 0
    for chapter in harness.make_report(hostile).chapters:
        for block in chapter.blocks:
            if isinstance(block, Figure):
                block.draw(drawing.NARROW).to_dict(validate=True)
                drawn += 1
    assert drawn >= 9


def test_charts_that_cannot_move_are_not_bound_to_do_so(charts: None, report: Report) -> None:
    """Sizes of jobs are names: Vega-Lite would warn of them in the browser's console."""
    figures = {each.title: each for each in blocks(report, "waiting") if isinstance(each, Figure)}
    assert drawing.live(figures["Waiting jobs"])["params"]
    assert "params" not in drawing.live(figures["Waits by requested cores"])


def test_lines_of_waits_are_broken_where_a_size_has_none(charts: None, runs: list[harness.Run]) -> None:
    """A line past it would look as though its wait were known, and short."""
    from harness.analysis.report.charts.waits import by_size

    minute, never = Waited(1, pl.Series([MINUTE])), Waited(2, pl.Series([], dtype=pl.Int64))
    found = Waits(["≤ 1", "≤ 2", "≤ 4"], [[minute, never, minute]] * 2)
    chart = by_size(Material(harness.compare(runs)), found, {50: "half"}, width=900, title="cores").to_dict()
    (rows,) = chart["datasets"].values()
    assert [row["wait"] for row in rows if row["run"] == "calm"] == [1.0, None, 1.0]


def test_lines_of_settings_are_broken_where_one_has_no_value(charts: None) -> None:
    """In small multiples; the places keep their order."""
    from harness.analysis.report.charts.factors import Dot, multiples

    dots = [Dot(0, place, 0, 1.0, None, None, place) for place in ("restart", "checkpoint=30m")]
    places, keys = ["restart", "resume", "checkpoint=30m"], [Key("all", "#000000")]
    chart = multiples(dots, [""], places, keys, titles=("x", "y"), shown_as="", width=900).to_dict()
    rows = next(rows for rows in chart["datasets"].values() if rows)
    assert [(row["place"], row["value"]) for row in rows] == [
        ("restart", 1.0),
        ("resume", None),
        ("…point=30m", 1.0),
    ]


def test_charts_tell_names_apart_that_differ_at_the_end(charts: None) -> None:
    """Vega cuts names there; where all that fits is the same they are numbered."""
    from harness.analysis.report.charts import axes
    from harness.analysis.report.charts.bars import grouped

    names = ["team-computer-vision-training", "team-computer-vision-inference"]
    for width in (drawing.WIDE, drawing.NARROW):
        chart = grouped([(0, 0, 1.0), (1, 0, 2.0)], names, [Key("k", "#000000")], width=width, title="hours")
        first, second = chart.to_dict()["layer"][0]["encoding"]["y"]["sort"]
        assert first.endswith("training")
        assert second.endswith("inference")
    assert axes.endings(["one-same", "two-same", "short"], 5) == ["…same", "…same (2)", "short"]


def test_what_had_not_started_is_said(tmp_path: Path) -> None:
    """Where jobs had not started when the replay ended, the hours that they waited are so far."""
    rows = [{"submit_time": number, "queue": "ab"[number % 2], "duration": 60} for number in range(40)]
    trace, cluster = write(tmp_path / "trace.parquet", rows), tmp_path / "cluster.yaml"
    cluster.write_text(small_clusters.queues({"a": {"cpu": "1"}, "b": {"cpu": "1"}}))
    for until, said in (
        ("2m", ["Jobs that had not started when the replay ended: Greedy 87.5 %."]),
        (None, []),
    ):
        run = harness.replay(trace, plugin=Greedy, cluster=cluster, until=until, output=tmp_path / "results")
        report = harness.make_report([run])
        texts = [each.text for each in blocks(report, "headlines") if isinstance(each, Text)]
        assert [text.partition(" Their waits count")[0] for text in texts if "not started" in text] == said
        of_all, of_queues = (
            next(each for each in blocks(report, name) if isinstance(each, Table))
            for name in ("headlines", "losses")
        )
        hours = "hours that jobs waited for their start" + (" (so far)" if said else "")
        assert of_all.rows[0][0] == hours
        assert of_queues.caption == f"{hours.capitalize()}, by queue"


def no_chart(width: int) -> Any:
    raise ZeroDivisionError(width)


@pytest.mark.parametrize(
    ("block", "said", "fails"),
    [
        (Figure("t", "w", no_chart), "ZeroDivisionError: 900", ("html",)),
        (Text(7), "TypeError: ", ("html", "markdown")),  # type: ignore[arg-type]
        ("a text", "TypeError: 'a text' is not a block", ("html", "markdown")),
    ],
)
def test_a_section_that_cannot_be_written_names_its_plugin(
    block: Any, said: str, fails: tuple[str, ...], runs: list[harness.Run]
) -> None:
    """Charts are drawn when the page is written, long after the section has said what is to stand there."""
    alone = with_section(lambda _: [block], block=["report"])  # no other charts, which take seconds
    for form in ("html", "markdown"):
        if form not in fails:
            assert "**t.** w" in harness.make_report(runs, plugins=alone).markdown()
            continue
        with pytest.raises(PluginError) as error:
            getattr(harness.make_report(runs, plugins=alone), form)()
        assert f"section 'mine' of plugin 'third' failed: {said}" in str(error.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (["a"], "ValueError: a row has 1 cell, but head has 2"),
        (["a", "b", "c"], "ValueError: a row has 3 cells, but head has 2"),
        (["a", 5], "TypeError: the cell 5 is neither text nor a Cell"),
    ],
)
def test_a_table_has_cells_of_text_for_each_column(
    row: list[Any], said: str, runs: list[harness.Run]
) -> None:
    """Otherwise, figures would stand below the name of another column."""
    alone = with_section(lambda _: [Table("caption", ["x", "y"], [row])], block=["report"])
    with pytest.raises(PluginError) as error:
        harness.make_report(runs, plugins=alone)
    assert f"section 'mine' of plugin 'third' failed: {said}" in str(error.value)


def test_two_sections_of_one_name_clash() -> None:
    """As with everything that plugins register."""

    def hook(register: Register[SectionSpec]) -> None:
        register(SectionSpec("waiting", lambda material: (), title="", help=""))

    own = types.SimpleNamespace(harness_register_sections=harness.hookimpl(hook))
    with pytest.raises(PluginError, match="section 'waiting' is registered by both 'report' and 'third'"):
        plugins.load(extra={"third": own})


def test_of_many_queues_those_that_hold_most_are_shown(tmp_path: Path) -> None:
    """The rest is one lane, and no queue is lost or counted twice."""
    rows = [
        {"submit_time": 0, "queue": f"q{number:03}", "duration": 10 + number, "request.cpu": 1000}
        for number in range(300)
    ]
    run = harness.replay(write(tmp_path / "trace.parquet", rows), plugin=Greedy, output=tmp_path / "results")
    material = Material(harness.compare([run]))
    assert [lane.name for lane in material.lanes] == [
        *(f"q{n:03}" for n in range(299, 290, -1)),
        "291 others",
    ]
    assert sorted(name for lane in material.lanes for name in lane.holders) == [row["queue"] for row in rows]
    used = run.metrics.filter(metric="utilization.allocated", resource="cpu")["value"][0]
    assert sum(material.held[0]) == pytest.approx(used * run.capacity["cpu"])


def test_the_deviation_over_time_comes_to_the_metric(runs: list[harness.Run]) -> None:
    """`fairness.share_deviation` is the integral of what is drawn, divided by that of all ideal shares."""
    for run in runs:
        found = deviation(run)
        span = found.changes["time"].shift(-1, fill_value=run.window.end) - found.changes["time"]
        off = (found.changes["level"] * span).sum() / ONE
        share = run.metrics.filter(metric="fairness.share_deviation")["value"][0]
        # What queues have beyond ideal shares comes to what is held, less the ideal shares.
        timeline = run.micros("timeline").filter(resource="cpu").collect()
        assert timeline.height
        total = (run.window.end - run.window.start) * (
            sum(_held_share(run).values()) - sum(found.excess.values())
        )
        assert off / total == pytest.approx(share, rel=1e-6)


def _held_share(run: harness.Run) -> dict[str, float]:
    """Queue -> its dominant share, on average over the window."""
    rows = run.micros("timeline").filter(resource="cpu").collect()
    found = {}
    for (queue,), own in rows.group_by("queue"):
        span = own["time"].shift(-1, fill_value=run.window.end) - own["time"]
        found[str(queue)] = (own["share"] * span).sum() / (run.window.end - run.window.start)
    return found


def test_a_run_without_length_or_preemption_is_reported(tmp_path: Path) -> None:
    """Jobs that take no time leave nothing to draw, and no error."""
    rows = [{"submit_time": 0, "duration": 0, "queue": "q"}]
    run = harness.replay(write(tmp_path / "trace.parquet", rows), output=tmp_path / "results")
    report = harness.make_report([run])
    assert report.summary == "1 job replayed; one run"
    assert blocks(report, "disruption") == [Text("Nothing was preempted.")]
    assert report.html().startswith("<!doctype html>")


def test_names_that_look_alike_are_told_apart() -> None:
    """Control characters and length may make two names the same; a number sets them apart."""
    assert distinct(["a\x00", "a\x01", "x" * 100, "x" * 101, "x" * 102]) == [
        "a\N{REPLACEMENT CHARACTER}",
        "a\N{REPLACEMENT CHARACTER} (2)",
        "x" * 100,
        f"{'x' * 50}…{'x' * 49}",
        f"{'x' * 48}…{'x' * 47} (2)",
    ]


@pytest.fixture(scope="module")
def in_racks(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """Two racks of one node with 4 cores each: 3 cores of one for 10 s, 1 of the other for the first 5 s."""
    folder = tmp_path_factory.mktemp("racks")
    spec = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    cores = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 8}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": cores}]
    pools = [
        ("harness/v1", "NodePool", f"n{number}", {"count": 1, "template": template})
        for number in range(2)
        for template in [{"allocatable": {"cpu": 4}, "metadata": {"labels": {"rack": f"r{number}"}}}]
    ]
    kueue = "kueue.x-k8s.io/v1beta2"
    objects = [
        *pools,
        (kueue, "Topology", "t", {"levels": spec}),
        (kueue, "ResourceFlavor", "f", {"topologyName": "t"}),
        (kueue, "ClusterQueue", "q", {"namespaceSelector": {}, "resourceGroups": groups}),
    ]
    cluster = folder / "cluster.json"
    cluster.write_text(
        "\n".join(
            json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
            for version, kind, name, spec in objects
        )
    )
    rows = [
        {"submit_time": 0, "pods": 3, "duration": 10, "queue": "q", "topology_required": "rack"},
        {"submit_time": 0, "pods": 2, "duration": 5, "queue": "q", "topology_required": "rack"},
    ]
    trace = write(folder / "trace.parquet", rows)
    return harness.replay(trace, plugin="kueue-classic", cluster=cluster, output=folder / "results")


def test_occupancy_is_drawn_for_each_domain_of_a_level(in_racks: harness.Run) -> None:
    """Three of four cores for the whole of it, and two of four for half of it, by which rack that was."""
    (figure,) = blocks(harness.make_report([in_racks]), "domains")
    assert isinstance(figure, Figure)
    assert figure.title == "cores held in each rack of topology t"
    assert "r0: kueue-classic 3 of 4 (75.0 %)" in figure.words
    assert "r1: kueue-classic 1 of 4 (25.0 %)" in figure.words


def test_occupancy_is_of_what_pod_sets_ask_for(in_racks: harness.Run, tmp_path: Path) -> None:
    """A worker of 3 cores on one node and a launcher of one on the other, not 2 cores on both."""
    rows = [
        {"job_id": "m", "pod_set": name, "submit_time": 0, "duration": 10, "queue": "q", "request.cpu": cpu}
        for name, cpu in (("worker", 3000), ("launcher", 1000))
    ]
    places = {0: [("admit", "m"), ("bind", "m", 0, "n0-0"), ("bind", "m", 1, "n1-0")]}
    cluster = in_racks.path.parents[1].with_name("cluster.json")
    trace = write(tmp_path / "trace.parquet", rows)
    run = harness.replay(trace, plugin=scripted(places), cluster=cluster, output=tmp_path / "results")
    (figure,) = blocks(harness.make_report([run]), "domains")
    assert isinstance(figure, Figure)
    assert "3 of 4 (75.0 %)" in next(line for line in figure.words.splitlines() if "r0" in line)
    assert "1 of 4 (25.0 %)" in next(line for line in figure.words.splitlines() if "r1" in line)


def test_the_room_of_a_domain_is_what_its_nodes_have_over_time(in_racks: harness.Run, tmp_path: Path) -> None:
    """Of ten seconds the node of the second rack is gone for two, and has 2 of 4 cores for other two."""
    cluster = load_cluster(in_racks.path.parents[1].with_name("cluster.json"))
    columns = ("time", "until", "kind", "name", "field", "value")
    rows = [
        dict(zip(columns, row, strict=True))
        for row in (("6s", "8s", "Node", "n1-0", "remove", ""), ("8s", "", "Node", "n1-0", "resize", "cpu=2"))
    ]
    trace = in_racks.path.parents[1].with_name("trace.parquet")
    run = harness.replay(
        trace, plugin="kueue-classic", cluster=cluster.patched(rows), output=tmp_path / "results"
    )
    (figure,) = blocks(harness.make_report([run]), "domains")
    assert isinstance(figure, Figure)
    assert "r0: kueue-classic 3 of 4 (75.0 %)" in figure.words
    assert "r1: kueue-classic 1 of 2.80 (35.7 %)" in figure.words
    (level,) = levels_of(run)
    course = [(0 if at < 0 else at // SECOND, amount) for at, amount in capacities(run, level, "cpu")["r1"]]
    assert course == [(0, 4000), (6, 0), (8, 2000)]


def test_without_a_topology_no_domains_are_drawn(report: Report) -> None:
    """The section is left out."""
    assert "domains" not in chapters(report)


def test_panels_of_domains_can_be_drawn(in_racks: harness.Run, charts: None) -> None:
    """In the page, with the room of the nodes as a dashed line."""
    assert "held in each rack" in cut(harness.make_report([in_racks]), "domains").html()


def test_what_plugins_assume_stands_where_it_says_what_a_report_rests_on(tmp_path: Path) -> None:
    """Once, also where two runs assume it."""
    trace = write(tmp_path / "trace.parquet", [{"queue": "blue", "submit_time": at} for at in (0, 5)])
    (tmp_path / "cluster.yaml").write_text(small_clusters.queues({"blue": {"cpu": "4", "memory": "8Gi"}}))
    found = [
        harness.replay(trace, plugin=plugin, cluster=tmp_path / "cluster.yaml", output=tmp_path / "results")
        for plugin in ("kueue-classic", "fairsharing")
    ]
    (told,) = [
        block
        for block in blocks(harness.make_report(found), "assumed")
        if isinstance(block, Points) and block.title == "Assumed by plugins"
    ]
    release, ready = map(str, told.items)
    assert "Kueue" in release
    assert ready.startswith("waitForPodsReady is on, which is Kueue's default")

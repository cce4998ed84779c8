"""Comparisons: how values and changes read, which windows are measured, and what a notebook shows."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import Greedy

import harness
from harness.comparison.changes import Chance, Change, Verdict, judged
from harness.comparison.table import changed, shown
from harness.errors import RunError
from harness.metrics.measurement import Measurement
from harness.statistics.bootstrap import Interval
from harness.text import aligned, columns, printable, shortened

WriteTrace = Callable[..., Path]
WHOLE = Chance(possible=False, interval=None)


@pytest.mark.parametrize(
    ("value", "unit", "resource", "text"),
    [
        (None, "s", "", "-"),
        (math.nan, "s", "", "-"),
        (math.inf, "ratio", "", "-"),
        (0.585, "ratio", "cpu", "58.5 %"),
        (12.0, "ratio", "", "1200.0 %"),
        (3661.0, "s", "", "1h01m"),
        (82247.0, "count", "", "82,247"),
        (66.22131, "factor", "", "66.22"),
        (12345.678, "factor", "", "12,346"),
        (3.5, "core-hours", "cpu", "3.50 core·h"),
        (7.0, "resource-hours", "nvidia.com/gpu", "7 h"),
        (3 * 2**30, "resource-hours", "memory", "3 GiB·h"),
    ],
)
def test_values_read_at_a_glance(value: float | None, unit: str, resource: str, text: str) -> None:
    """Per cent, durations, counts and resource-time each in their own way; what cannot be said is a dash."""
    assert shown(value, unit, resource) == text


@pytest.mark.parametrize(
    ("base", "value", "better", "text"),
    [
        (10, 12, "higher", "+20.0 % △"),
        (10, 12, "lower", "+20.0 % ▽"),
        (10, 8, "lower", "-20.0 % △"),
        (10, 8, "", "-20.0 %"),
        (-10, -12, "higher", "-20.0 % ▽"),
        (1000, 1009, "higher", "~"),
        (1000, 1010, "higher", "+1.0 % △"),
        (0, 0, "lower", "~"),
        (0, 3, "lower", "from 0 ▽"),
        (0, 3, "", "from 0"),
        (None, 3, "lower", ""),
        (3, None, "lower", ""),
        (3, math.nan, "lower", ""),
    ],
)
def test_changes_say_how_much_and_whether_that_is_good(
    base: float | None, value: float | None, better: str, text: str
) -> None:
    """Less than one per cent is no change, and from nothing there is no percentage."""
    assert changed(against(base, value, better)) == text


def against(base: float | None, value: float | None, better: str, test: Chance = WHOLE) -> Change:
    """How one value is judged against another."""
    (row,) = judged([(Measurement("m", base, "s", better), [base, value])], [[test]])
    return row.changes[0]


@pytest.mark.parametrize(
    ("interval", "verdict", "text"),
    [
        (Interval(1.0, 3.0, 0.001, 64), Verdict.WORSE, "+20.0 % [+10.0, +30.0] ▼"),
        (Interval(-1.0, 5.0, 0.2, 64), Verdict.NONE, "+20.0 % [-10.0, +50.0] ~"),
        (Interval(0.1, 3.0, 0.06, 64), Verdict.NONE, "+20.0 % [+1.0, +30.0] ~"),
        (None, Verdict.NONE, "+20.0 % ~"),
    ],
)
def test_a_change_of_jobs_is_called_one_only_if_it_is_told_from_chance(
    interval: Interval | None, verdict: Verdict, text: str
) -> None:
    """0 outside the interval and a small p; where jobs are too few for either, nothing is said."""
    change = against(10, 12, "lower", Chance(possible=True, interval=interval))
    assert (change.verdict, changed(change)) == (verdict, text)


def test_many_tests_make_each_of_them_harder() -> None:
    """Holm's correction: p = 0.02 twice is 0.04 and 0.04; a third of 0.5 makes them 0.06."""
    test = Chance(possible=True, interval=Interval(1, 3, 0.02, 64))
    none = Chance(possible=True, interval=Interval(-1, 3, 0.5, 64))
    found = [(Measurement("m", 10, "s", "lower"), [10.0, 12.0])] * 3
    (first, second) = judged(found[:2], [[test], [test]])
    assert [first.changes[0].p, second.changes[0].p] == [0.04, 0.04]
    assert first.changes[0].verdict is Verdict.WORSE
    rows = judged(found, [[test], [none], [test]])
    assert [row.changes[0].p for row in rows] == pytest.approx([0.06, 0.5, 0.06])
    assert {row.changes[0].verdict for row in rows} == {Verdict.NONE}


def replayed(write_trace: WriteTrace, tmp_path: Path, label: str, **choices: Any) -> harness.Run:
    """A run of a small trace with two queues."""
    rows = ({"submit_time": number, "queue": "ab"[number % 2]} for number in range(8))
    return harness.replay(write_trace(*rows), label=label, output=tmp_path / "results", **choices)


def test_a_frame_has_one_column_a_run(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Names of columns are those of runs, also where a label is what a column is called."""
    runs = [replayed(write_trace, tmp_path, label) for label in ("one", "unit")]
    comparison = harness.compare(runs)
    assert comparison.names == ["one", runs[1].path.name]
    frame = comparison.to_polars("makespan", "jobs.*", scope="all")
    assert frame.columns == ["metric", "scope", "resource", "unit", "better", *comparison.names]
    assert frame.schema["one"] == pl.Float64
    assert frame.filter(metric="jobs.finished")["one"].to_list() == [8.0]


def test_utilization_and_fairness_are_measured_over_what_all_runs_share(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """A run that was cut short makes the others' averages those of its own span; other metrics stay."""
    whole = replayed(write_trace, tmp_path, "whole")
    cut = replayed(write_trace, tmp_path, "cut", until="5s")
    comparison = harness.compare([whole, cut])
    assert not comparison.shares_window
    assert comparison.window == cut.window
    rows = {row["metric"]: row for row in comparison.to_polars(scope="all").to_dicts()}
    for metric in ("utilization.allocated", "fairness.share_deviation"):
        assert rows[metric]["whole"] == rows[metric]["cut"]
    assert rows["jobs.finished"]["whole"] == 8
    assert rows["jobs.finished"]["cut"] == 0
    assert (
        harness.compare([whole]).to_polars("utilization.allocated")["whole"][0]
        != rows["utilization.allocated"]["whole"]
    )


def test_no_public_name_is_a_module() -> None:
    """Importing a module of ours would put it in the place of what is called like it."""
    modules = {path.stem for path in Path(harness.__file__).parent.iterdir()}
    assert modules.isdisjoint(harness.__all__)


def test_a_comparison_needs_runs_and_takes_folders(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Runs and their folders are the same; nothing at all is an error."""
    run = replayed(write_trace, tmp_path, "one")
    assert harness.compare([run.path]).table() == harness.compare([str(run.path)]).table()
    with pytest.raises(RunError, match="nothing to compare"):
        harness.compare([])


def test_half_bound_gangs_are_told(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Gangs that hold resources at the end without running would else be taken for use."""
    run = replayed(write_trace, tmp_path, "one")
    gang = {"job": "j\x1b1", "bound": 1, "pods": 2, "held": {"cpu": 1500}}
    run.info["outcome"]["half_bound_gangs"].append(gang)
    said = "one: 1 gang held 1500m of cpu at the end without all pods being bound: j\ufffd1 (1 of 2)"
    assert said in harness.compare([run]).table()
    del gang["held"]
    (run.path / "run.json").write_text(json.dumps(dict(run.info)))
    with pytest.raises(RunError, match="half_bound_gangs"):
        harness.compare([run.path])


def test_a_notebook_shows_the_same_without_markup_of_others(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Names are escaped; each further run has a column for its values and one for the changes."""
    trace = write_trace({"queue": "<script>"})
    first = harness.replay(trace, label="a", output=tmp_path / "results")
    second = harness.replay(trace, plugin=Greedy, label="b", output=tmp_path / "results")
    assert "<th>metric</th><th>a</th></tr>" in first._repr_html_()
    assert "<script>" not in first._repr_html_()
    page = harness.compare([first, second])._repr_html_()
    head, _, table = page.partition("<table>")
    assert head.startswith("<p>baseline a (plugin none): the first of 2 runs, by name (as ")
    assert head.endswith("<p>b</p><ul><li>plugin none -&gt; Greedy</li></ul>")
    assert table.startswith("<thead><tr><th>metric</th><th>a</th><th>b</th><th>b against a</th></tr>")
    assert "<script>" not in page
    lines = harness.compare([first, second]).table().split("▲ better")[0].split("───\n", 1)[1]
    assert page.count("<tr>") == 1 + lines.count("\n")


@given(st.text())
def test_printable_text_steers_nothing(text: str) -> None:
    """Whatever a name holds, no control character is left, and no letter is lost."""
    safe = printable(text)
    assert len(safe) == len(text)
    assert not any(unicodedata.category(char)[0] == "C" for char in safe)


@given(st.text(max_size=30), st.integers(1, 20))
def test_shortened_text_fits(text: str, most: int) -> None:
    """At most so many characters, the ends kept."""
    short = shortened(text, most)
    assert len(short) <= most
    assert short == text or "…" in short


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), min_size=1, max_size=5))
def test_columns_of_a_table_end_in_one_place(rows: list[tuple[str, str]]) -> None:
    """Every line is as wide as the rule under the head, unless its last cell is blank."""
    head, rule, *others = aligned([("name", "value"), *rows]).split("\n")
    assert len(others) == len(rows)
    for line, (_, last) in zip(others, rows, strict=True):
        if last == last.rstrip() and last:
            assert columns(line) == columns(rule)
    assert columns(head) == columns(rule)

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
from harness.analysis.comparison.changes import Evidence, Ground, Verdict, change_of
from harness.analysis.comparison.figures import changed, digits_of, shown, within
from harness.analysis.comparison.statistics.significance import Interval
from harness.base.errors import RunError
from harness.base.text import aligned, columns, counted, printable, shortened

WriteTrace = Callable[..., Path]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "-"),
        (math.nan, "s", "-"),
        (math.inf, "share", "-"),
        (0.585, "share", "58.5 %"),
        (12.0, "ratio", "1200.0 %"),
        (3661.0, "s", "1h01m"),
        (82247.0, "count", "82,247"),
        (66.22131, "factor", "66.22"),
        (12345.678, "factor", "12,346"),
        (0.01234567, "per 1000 h", "0.0123"),
        (3.5, "core·h", "3.50 core·h"),
        (7.0, "device·h", "7 device·h"),
        (3.0, "GiB", "3 GiB"),
    ],
)
def test_values_read_at_a_glance(value: float | None, unit: str, text: str) -> None:
    """Per cent, durations, counts and resource-time each in their own way; what cannot be said is a dash."""
    assert shown(value, unit) == text


def test_values_side_by_side_have_one_number_of_digits() -> None:
    """As many as the largest of them needs: none of whole numbers, or of five digits."""
    assert digits_of(3.0, 4.25, None) == 2
    assert digits_of(3.0, 12_345.678) == 0
    assert digits_of(2.0, 3.0) == 0
    assert shown(3.0, "core·h", digits_of(3.0, 4.25)) == "3.00 core·h"


def test_what_one_replay_cannot_carry_is_not_judged() -> None:
    """The difference is told and has no sign; of a congested queue it says so; none at all is equal."""
    whole, congested = Evidence(Ground.REPLAY), Evidence(Ground.CONGESTED)
    assert told_of(10, 12, whole) == (Verdict.OPEN, "+20.0 %")
    assert told_of(10, 12, congested) == (Verdict.OPEN, "+20.0 % ?")
    assert told_of(1000, 1001, whole) == (Verdict.OPEN, "+0.1 %")
    assert told_of(0, 3, whole) == (Verdict.OPEN, "+3s")
    assert told_of(10, 10, whole) == told_of(0, 0, congested) == (Verdict.SAME, "=")
    for base, value in ((None, 3), (3, None), (3, math.nan)):
        assert told_of(base, value, whole) == (Verdict.UNKNOWN, "")


def told_of(base: float | None, value: float | None, evidence: Evidence, p: float | None = None) -> Any:
    """The verdict of a wait against another, and how it is told."""
    change = change_of(base, value, "lower", evidence, p)
    return change.verdict, changed(change, "s")


def twins(low: float, high: float, *, ratio: bool = True) -> Evidence:
    """An interval over ten twins."""
    return Evidence(Ground.TWINS, Interval(low, high, 0.01, 10, ratio))


def test_a_change_is_called_one_only_if_it_is_told_from_chance() -> None:
    """0 outside the interval, a small p, and 1 % at least."""
    assert told_of(10, 12, twins(1.1, 1.3), 0.001) == (Verdict.WORSE, "+20.0 % [+10.0, +30.0] ▼")
    assert told_of(10, 8, twins(0.7, 0.9), 0.001) == (Verdict.BETTER, "-20.0 % [-30.0, -10.0] ▲")
    assert told_of(10, 12, twins(0.9, 1.5), 0.2) == (Verdict.NONE, "+20.0 % [-10.0, +50.0] ~")
    assert told_of(1000, 1009, twins(1.008, 1.01), 0.001) == (Verdict.NONE, "~")


def test_an_interval_without_0_that_is_not_called_a_change_says_why() -> None:
    """With the corrected p."""
    assert told_of(10, 12, twins(1.01, 1.3), 0.063) == (Verdict.NONE, "+20.0 % [+1.0, +30.0] p=0.063 ~")


def test_what_can_be_0_is_told_in_its_unit() -> None:
    """There are no per cents of nothing; a share differs by points, else its change is called relative."""
    absolute = twins(60, 180, ratio=False)
    assert told_of(0, 120, absolute, 0.01) == (Verdict.WORSE, "+2m00s [+1m00s, +3m00s] ▼")
    assert told_of(60, 180, absolute, 0.01) == (Verdict.WORSE, "+2m00s [+1m00s, +3m00s] ▼")
    change = change_of(0, 0.013, "lower", twins(0.01, 0.016, ratio=False), 0.01)
    assert changed(change, "share") == "+1.3 points [+1.0, +1.6] ▼"
    change = change_of(0, 137_049, "lower", twins(120_000, 150_000, ratio=False), 0.01)
    assert changed(change, "device·h") == "+137,049 device·h [+120,000, +150,000] ▼"
    change = change_of(0.5, 0.6, "lower", twins(1.1, 1.3), 0.01)
    assert changed(change, "share") == "+20.0 % relative [+10.0, +30.0] ▼"
    assert within(change, "share") == "+10.0 to +30.0 % relative"
    assert within(change, "s") == "+10.0 to +30.0 %"


def test_what_is_the_same_in_every_twin_has_a_sign_of_its_own() -> None:
    """There is no chance in it, so it is not told from chance either."""
    assert told_of(0, 120, twins(120, 120, ratio=False), 0.0) == (Verdict.WORSE, "+2m00s ▽")
    assert told_of(10, 5, twins(0.5, 0.5), 0.0) == (Verdict.BETTER, "-50.0 % △")
    assert told_of(10, 10, twins(1.0, 1.0), 1.0) == (Verdict.SAME, "=")


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
    """A run that was cut short cuts the others: all is measured over its span."""
    whole = replayed(write_trace, tmp_path, "whole")
    cut = replayed(write_trace, tmp_path, "cut", until="5s")
    comparison = harness.compare([whole, cut])
    assert not comparison.shares_window
    assert comparison.window == cut.window
    rows = {row["metric"]: row for row in comparison.to_polars(scope="all").to_dicts()}
    for metric in ("utilization.allocated", "fairness.share_deviation"):
        assert rows[metric]["whole"] == rows[metric]["cut"]
    assert rows["jobs.finished"]["whole"] == rows["jobs.finished"]["cut"] == 0
    assert (
        harness.compare([whole]).to_polars("utilization.allocated")["whole"][0]
        != rows["utilization.allocated"]["whole"]
    )


def test_what_a_run_file_says_over_its_own_window_stands_beside_the_table(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """A run that was cut short makes another's values those of its own span: both values have their names."""
    whole = replayed(write_trace, tmp_path, "whole")
    cut = replayed(write_trace, tmp_path, "cut", until="5s")
    text = harness.compare([whole, cut]).table("utilization.allocated", "jobs.finished")
    own = whole.metrics.filter(metric="utilization.allocated", scope="all")["value"][0]
    line = f"utilization.allocated cpu {100 * own:.1f} %, jobs.finished 8"
    (told,) = [each for each in text.split("\n") if "over its own" in each]
    assert told.startswith("whole over its own window of ")
    assert told.endswith(f"as in its metrics.parquet: {line}")
    assert "over its own" not in harness.compare([whole]).table()


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
    for alone in (run, run.path, str(run.path)):
        with pytest.raises(RunError, match="is a single run") as raised:
            harness.compare(alone)  # type: ignore[arg-type]
        assert raised.value.hint == "give a list of runs, such as [first, second]"


def test_half_bound_gangs_are_told(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Gangs that hold resources at the end without running would else be taken for use."""
    run = replayed(write_trace, tmp_path, "one")
    gang = {"job": "j\x1b1", "bound": 1, "pods": 2, "held": {"cpu": 1500}}
    run.info["outcome"]["half_bound_gangs"].append(gang)
    said = "one: 1 gang held 1500m cpu at the end, but not all of its pods were bound: j\ufffd1 (1 of 2)"
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
    assert head.startswith("<p>baseline a (plugin none): the first of 2 runs, in the given order</p>")
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


def test_one_of_something_is_not_many() -> None:
    """English has no other plural in what is counted here."""
    assert [counted(number, "node") for number in (0, 1, 1500)] == ["0 nodes", "1 node", "1,500 nodes"]


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), min_size=1, max_size=5))
def test_columns_of_a_table_end_in_one_place(rows: list[tuple[str, str]]) -> None:
    """Every line is as wide as the rule under the head, unless its last cell is blank."""
    head, rule, *others = aligned([("name", "value"), *rows]).split("\n")
    assert len(others) == len(rows)
    for line, (_, last) in zip(others, rows, strict=True):
        if last == last.rstrip() and last:
            assert columns(line) == columns(rule)
    assert columns(head) == columns(rule)

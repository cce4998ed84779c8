"""Outages and drains out of Slurm's accounting, as `sacctmgr -P show event` prints them."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from cli_environment import called

from harness.base.errors import ClusterError
from harness.readers.events.slurm import is_table, of_table

RECORDED = """\
Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
alpha||2026-11-22T03:35:01|Unknown||Cluster Registered TRES|
alpha|node1|2026-11-22T03:35:02|2026-11-22T03:36:00|INVAL|gres/gpu count (0 < 4)|slurm(64030)
alpha|node4|2026-11-22T03:41:13|Unknown|DOWN*|Not responding|slurm(64030)
alpha|node5|2026-11-22T03:40:13|2026-11-22T03:40:13|DOWN|power|root(0)
"""
"""Lines of a recorded answer of Slurm 22.05."""

HEAD = "Cluster|NodeName|TimeStart|TimeEnd|State\n"


def rows_of(path: Path, text: str, zone: str = "UTC") -> list[tuple[str, ...]]:
    path.write_text(text)
    return [
        (row["name"], row["field"], row["time"], row["until"])
        for row in of_table(path, ZoneInfo(zone)).rows()
    ]


def test_a_recorded_answer_becomes_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid node is cordoned, a dead one is removed, and what no row can say is named."""
    path = tmp_path / "events.txt"
    path.write_text(RECORDED)
    assert is_table(path)
    assert called(["cluster", "events", str(path)]) == 0
    told = capsys.readouterr()
    rows = [
        (row["name"], row["field"], row["time"][11:19], row["until"][11:19])
        for row in csv.DictReader(io.StringIO(told.out))
    ]
    assert rows == [
        ("node1", "cordon", "03:35:02", "03:36:00"),
        ("node5", "remove", "03:40:13", "03:40:14"),
        ("node4", "remove", "03:41:13", ""),
    ]
    assert "the cluster as a whole (1 event)" in told.err
    assert "outages that ended immediately get a length of one second (1 event)" in told.err
    assert "begins when Slurm notices it" in told.err


def test_maintenance_that_ended_immediately_is_counted(tmp_path: Path) -> None:
    """It kept no job from starting, so it has no row."""
    path = tmp_path / "events.txt"
    at = "2026-07-01T12:00:00"
    path.write_text(f"{HEAD}a|n|{at}|{at}|MAINT\na|n|{at}|{at}|DRAIN\na|n|{at}|{at}|DOWN\n")
    found = of_table(path, ZoneInfo("UTC"))
    assert [(row["field"], row["until"][11:19]) for row in found.rows()] == [("remove", "12:00:01")]
    assert "cordons that ended immediately have no row (2 events)" in found.notes
    assert "outages that ended immediately get a length of one second (1 event)" in found.notes


def test_times_are_those_of_a_zone_or_seconds(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    line = "a|n|2026-07-01T12:00:00|1782907200|DOWN\n"
    assert rows_of(path, HEAD + line, "Europe/Berlin") == [
        ("n", "remove", "2026-07-01T10:00:00+00:00", "2026-07-01T12:00:00+00:00")
    ]


def test_an_outage_may_end_in_the_hour_that_a_zone_repeats(tmp_path: Path) -> None:
    """At 03:00 the clocks went back to 02:00, so 02:50 is followed by 02:10."""
    line = "a|n|2026-10-25T02:50:00|2026-10-25T02:10:00|DOWN\n"
    assert rows_of(tmp_path / "events.txt", HEAD + line, "Europe/Berlin") == [
        ("n", "remove", "2026-10-25T00:50:00+00:00", "2026-10-25T01:10:00+00:00")
    ]


def test_spans_that_touch_are_one_and_states_are_told_apart(tmp_path: Path) -> None:
    """A node that does not respond is down even while it drains. Reserved and powered-down ones take jobs."""
    text = HEAD + "".join(
        f"a|n|{start}|{end}|{state}\n"
        for start, end, state in (
            (100, 200, "DRAINED"),
            (200, 300, "DRAINING+MAINT"),
            (250, 280, "DOWN*+DRAIN"),
            (280, 290, "IDLE*"),
            (400, 500, "RESERVED"),
            (600, "Unknown", "FAIL"),
            (500, 590, "IDLE+CLOUD+POWERED_DOWN"),
            (700, 800, "DOWN"),
        )
    )
    path = tmp_path / "events.txt"
    found = [(field, time[14:19], until[14:19]) for _, field, time, until in rows_of(path, text)]
    assert found == [("cordon", "01:40", "05:00"), ("remove", "04:10", "04:50"), ("remove", "10:00", "")]
    assert any("'RESERVED'" in note for note in of_table(path, ZoneInfo("UTC")).notes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + "a|n|soon|Unknown|DOWN\n", "line 2: TimeStart: 'soon' is not a time"),
        (HEAD + "a|n|200|100|DOWN\n", "line 2: ends before it begins"),
        (HEAD + "a|n|1|2|DOWN\nb|m|1|2|DOWN\n", "has several clusters: a, b"),
        (HEAD + "a|n|1|2\n", "has 4 columns instead of 5"),
        (HEAD, "has no rows"),
    ],
)
def test_what_is_no_such_table_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ClusterError, match=says):
        rows_of(tmp_path / "events.txt", text)


def test_a_zone_that_is_not_known_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.txt"
    path.write_text(RECORDED)
    assert called(["cluster", "events", str(path), "--timezone", "Mars"]) == 2
    assert "'Mars' is not a known time zone" in capsys.readouterr().err

"""What a calibration changes of a trace, in which order, and that it says so."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.base.errors import InputError, OptionError, TraceError
from harness.base.units import DAY, SECOND
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.trace.calibration import Calibration
from harness.trace.priorities import PriorityShare
from harness.trace.trace import Trace, open_trace

PLUGINS = load(only=["readers"])
_FOUR_DAYS = [{"submit_time": day * 86_400 + 1, "queue": f"q{day}"} for day in range(4)]


@pytest.fixture
def opened(write_trace: Callable[..., Path]) -> Callable[..., Trace]:
    """A trace of these rows."""
    return lambda *rows: open_trace(write_trace(*rows), PLUGINS)


def calibrated(trace: Trace, **texts: str) -> Trace:
    return Calibration.parse(**texts).of_trace(trace)


def column(trace: Trace, name: str) -> list[Any]:
    return trace.frame[name].to_list()


def test_a_window_keeps_its_start_and_not_its_end(opened: Callable[..., Trace]) -> None:
    """Submissions at the start are in, at the end out; time begins at the first that stays."""
    trace = calibrated(opened(*_FOUR_DAYS), window=f"{86_401}s..{3 * 86_400 + 1}s")
    assert column(trace, "queue") == ["q1", "q2"]
    assert trace.origin == DAY + SECOND
    assert trace.left_out == {"by --window 86401s..259201s": 2}


@pytest.mark.parametrize(("text", "kept"), [("2d..", 2), ("..1d", 1), ("0..9d", 4)])
def test_a_window_may_be_open(opened: Callable[..., Trace], text: str, kept: int) -> None:
    """An absent end is no bound."""
    assert calibrated(opened(*_FOUR_DAYS), window=text).frame.height == kept


def test_dates_of_a_window_are_those_of_the_traces_clock(tmp_path: Path) -> None:
    """A date means what a clock in the trace's own time zone showed."""
    times = pl.Series(["2020-06-01 23:30:00", "2020-06-02 00:30:00"]).str.to_datetime(time_unit="us")
    frame = pl.DataFrame(
        {
            "job_id": ["a", "b"],
            "submit_time": times.dt.replace_time_zone("Europe/Berlin"),
            "queue": ["q", "q"],
        }
    ).with_columns(pl.duration(seconds=pl.lit(1)).alias("duration"), pl.lit(1).alias("request.cpu"))
    frame.write_parquet(tmp_path / "t.parquet")
    trace = calibrated(open_trace(tmp_path / "t.parquet", PLUGINS), window="2020-06-02..2020-06-03")
    assert column(trace, "job_id") == ["b"]


def test_a_sample_keeps_jobs_whole(opened: Callable[..., Trace]) -> None:
    """Either all pod sets of a job stay or none."""
    rows = [{"job_id": f"j{number}", "pod_set": name} for number in range(40) for name in ("a", "b")]
    trace = calibrated(opened(*rows), sample="0.5@1")
    assert 0 < trace.frame.height < 80
    assert set(trace.frame.group_by("job_id").len()["len"]) == {2}


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.integers(0, 99))
def test_samples_of_one_seed_are_nested(one: float, other: float, seed: int) -> None:
    """A larger one keeps what a smaller one does, so that a sweep over shares changes one thing only."""
    frame = pl.DataFrame({"job_id": [str(number) for number in range(200)]})
    trace = Trace(Path("t"), frame, "duration", None, 0, "")
    small, large = (
        Calibration.parse(sample=f"{share}@{seed}").sample.changed(trace)[0]  # type: ignore[union-attr]
        for share in sorted((one, other))
    )
    assert set(small["job_id"]) <= set(large["job_id"])


def test_priorities_come_from_any_column(opened: Callable[..., Trace]) -> None:
    """Values that are listed get theirs, `*` all others; without it they keep what the trace states."""
    rows = [{"class": "a", "priority": 7}, {"class": "b", "priority": 8}, {"class": None, "priority": 9}]
    assert column(calibrated(opened(*rows), priority_from="class=a:100"), "priority") == [100, 8, 9]
    assert column(calibrated(opened(*rows), priority_from="class=a:100,*:-1"), "priority") == [100, -1, -1]


def test_a_share_of_each_queues_jobs_gets_a_priority(opened: Callable[..., Trace]) -> None:
    """Rounded to whole jobs in every queue; all others keep what the trace states."""
    rows = [{"queue": "a" if number % 4 else "b", "priority": 7} for number in range(40)]
    trace = calibrated(opened(*rows), priority_share="0.2:1000,0.1:500@3")
    counts = trace.frame.group_by("queue", "priority").len().sort("queue", "priority").rows()
    assert counts == [("a", 7, 21), ("a", 500, 3), ("a", 1000, 6), ("b", 7, 7), ("b", 500, 1), ("b", 1000, 2)]
    assert trace.calibration == {"priority_share": "0.2:1000,0.1:500@3"}
    assert column(trace, "priority") != column(
        calibrated(opened(*rows), priority_share="0.2:1000,0.1:500@4"), "priority"
    )


def test_the_rows_of_a_job_get_one_priority(opened: Callable[..., Trace]) -> None:
    """A job of several pod sets counts once, and is chosen as a whole."""
    rows = [{"job_id": f"j{number}", "pod_set": name} for number in range(10) for name in ("a", "b")]
    frame = calibrated(opened(*rows), priority_share="1/2:9").frame
    assert frame.group_by("job_id").agg(pl.col("priority").n_unique())["priority"].unique().to_list() == [1]
    assert frame["priority"].drop_nulls().to_list() == [9] * 10


@given(st.integers(1, 99), st.integers(1, 99), st.integers(0, 9))
def test_shares_of_one_seed_are_nested(one: int, other: int, seed: int) -> None:
    """A larger share makes important what a smaller one does."""
    frame = pl.DataFrame({"job_id": [str(number) for number in range(100)], "queue": ["q"] * 100})
    trace = Trace(Path("t"), frame, "duration", None, 0, "")
    important = []
    for share in sorted((one, other)):
        changed, _ = PriorityShare.parse(f"{share}/100:5@{seed}").changed(trace)
        important.append(set(changed.filter(pl.col("priority") == 5)["job_id"]))
        assert len(important[-1]) == share
    assert important[0] <= important[1]


def test_priorities_are_taken_before_tenants_change(opened: Callable[..., Trace]) -> None:
    """A queue that is a priority becomes one, and the user becomes the tenant."""
    rows = [{"queue": "express", "user": "ann"}, {"queue": "low", "user": None}]
    trace = calibrated(opened(*rows), tenants="column:user", priority_from="queue=express:9,low:1")
    assert column(trace, "priority") == [9, 1]
    assert column(trace, "queue") == ["ann", "unknown"]
    assert list(trace.calibration) == ["priority_from", "tenants"]


def test_top_tenants_are_those_with_most_jobs(opened: Callable[..., Trace]) -> None:
    """All others share one queue; among equals the first by name stays."""
    rows = [{"queue": name} for name in "cbbaaad"]
    assert column(calibrated(opened(*rows), tenants="top:3"), "queue") == [*"cbbaaa", "other"]


def test_a_job_of_several_pod_sets_counts_once_for_its_tenant(opened: Callable[..., Trace]) -> None:
    """Two jobs of five pod sets each are fewer than three of one, and these fewer than four."""
    rows = [
        {"queue": "a", "job_id": f"a{number}", "pod_set": f"set-{part}"}
        for number in range(2)
        for part in range(5)
    ]
    rows += [
        {"queue": name, "job_id": f"{name}{n}"}
        for name, jobs in {"b": 3, "c": 4}.items()
        for n in range(jobs)
    ]
    trace = opened(*rows)
    assert set(column(calibrated(trace, tenants="top:1"), "queue")) == {"c", "other"}
    assert set(column(calibrated(trace, tenants="top:2"), "queue")) == {"b", "c", "other"}


def test_hashed_tenants_are_the_same_in_every_trace(opened: Callable[..., Trace]) -> None:
    """A name is always in the same part, whatever else the trace holds."""
    names = [f"user-{number}" for number in range(30)]
    every = calibrated(opened(*({"queue": name} for name in names)), tenants="hash:4")
    some = calibrated(opened(*({"queue": name} for name in names[:5])), tenants="hash:4")
    assert column(every, "queue")[:5] == column(some, "queue")
    assert set(column(every, "queue")) == {"hash-0", "hash-1", "hash-2", "hash-3"}
    assert column(some, "queue") == ["hash-1", "hash-0", "hash-0", "hash-1", "hash-1"]


def test_names_of_tenants_become_what_kubernetes_accepts(opened: Callable[..., Trace]) -> None:
    """Lower case, digits and dashes; two names that would become one are refused."""
    rows = [{"queue": "Team_A"}, {"queue": "prod.eu"}, {"queue": "…"}]
    assert column(calibrated(opened(*rows), tenants="names"), "queue") == ["team-a", "prod-eu", "queue"]
    with pytest.raises(OptionError, match="would both be named 'a'"):
        calibrated(opened({"queue": "A"}, {"queue": "a"}), tenants="names")


def test_a_file_maps_queues_to_local_queues_and_namespaces(
    opened: Callable[..., Trace], tmp_path: Path
) -> None:
    """An empty cell leaves what the trace says, and so does a queue that the file does not name."""
    file = tmp_path / "map.csv"
    file.write_text("\ufeffqueue, local_queue, namespace\na,lq,team\nb,,team\nc,d,\nelsewhere,x,y\n", "utf-8")
    rows = [{"queue": name, "namespace": f"n{name}"} for name in "abce"]
    trace = calibrated(opened(*rows), tenants=f"map:{file}")
    assert trace.frame.select("namespace", "queue").rows() == [
        ("team", "lq"),
        ("team", "b"),
        ("nc", "d"),
        ("ne", "e"),
    ]
    file.write_text("queue,namespace\na,team\n")
    plain = calibrated(opened({"queue": "a"}, {"queue": "z"}), tenants=f"map:{file},top:1")
    assert plain.frame.select("namespace", "queue").rows() == [("team", "a"), (None, "other")]
    assert plain.calibration == {"tenants": f"map:{file},top:1"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: No such file"),
        (b"queue,namespace\n\xff", r"is not UTF-8 text: byte 16 \(line 2\) is 0xff"),
        (b"", "line 1: '' is not a valid header"),
        (b"queue\nq0\n", "line 1: 'queue' is not a valid header"),
        (b"queue,space\nq0,a\n", "line 1: 'queue,space' is not a valid header"),
        (b"queue,namespace\nq0\n", "line 2: 'q0' is not a queue with its replacement"),
        (b"queue,namespace\n,a\n", "line 2: ',a' is not a queue with its replacement"),
        (b"queue,namespace\nq0,a,b\n", "line 2: 'q0,a,b' is not a queue with its replacement"),
        (b"queue,namespace\nq0,a\nq0,b\n", "line 3: 'q0' occurs twice"),
        (b"queue,namespace\nx,a\n", "names no queue of the trace"),
    ],
)
def test_a_map_that_is_none_is_refused(
    opened: Callable[..., Trace], tmp_path: Path, text: bytes | None, says: str
) -> None:
    """With file and line."""
    file = tmp_path / "map.csv"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(OptionError, match=says) as caught:
        calibrated(opened(*_FOUR_DAYS), tenants=f"map:{file}")
    assert str(file) in caught.value.message
    if says.startswith("names no queue"):
        assert caught.value.hint == "there is: q0, q1, q2, q3"  # all of them, so there is no "..."


@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("window", "10d", "not understood"),
        ("window", "2d..1d", "ends before it starts"),
        ("window", "1d..2020-01-01", "mixes"),
        ("window", "1d..soon", "neither a duration nor a date"),
        ("window", "2026-02-01T00:00:00Z..", "has a UTC offset, but dates of a window"),
        ("window", "2020-01-01..", "are durations"),
        ("window", "9d..", "leaves no job"),
        ("sample", "2", "not a share"),
        ("sample", "0.5@x", "not a share"),
        ("priority_from", "queue", "not understood"),
        ("priority_from", "queue=q0:high", "not a whole number"),
        ("priority_from", "queue=q0:3000000000", "32 bits"),
        ("priority_from", "queue=q0:1,q0:2", "given twice"),
        ("priority_from", "queue=nobody:1", "never has the value 'nobody'"),
        ("priority_from", "duration=1:2", "only text and numbers can be selected by their values"),
        ("priority_share", "0.2", "'' is not a whole number"),
        ("priority_share", "some:1", "'some' is not a share"),
        ("priority_share", "0.6:1,0.6:2", "their sum at most 1"),
        ("priority_share", "0:1", "above 0"),
        ("priority_share", "0.1234567:1", "six decimals"),
        ("priority_share", "0.2:3000000000", "32 bits"),
        ("priority_share", "0.2:1@x", "not a whole number"),
        ("priority_from", "class=a:1", "no column 'class'"),
        ("tenants", "top:0", "number from 1 to"),
        ("tenants", "best:3", "not understood"),
        ("tenants", "column:team", "no such column"),
        ("tenants", "column:duration", "cannot be the name of a tenant"),
        ("scale_cluster", "0", "cannot be scaled"),
    ],
)
def test_what_cannot_be_is_refused(opened: Callable[..., Trace], option: str, text: str, says: str) -> None:
    """Each with the option, what was given, and what is wrong."""
    with pytest.raises(InputError, match=says):
        calibrated(opened(*_FOUR_DAYS), **{option: text})


def test_a_run_says_how_it_was_calibrated_and_so_does_a_comparison(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """The plan's settings have every step, so that equal file names never hide different jobs."""
    trace = write_trace(*_FOUR_DAYS)
    calibration = Calibration.parse(window="1d..", scale_cluster="2")
    changed = harness.replay(trace, calibration=calibration, output=tmp_path / "results")
    plain = harness.replay(trace, output=tmp_path / "results")
    assert changed.info["settings"]["calibration"] == {"window": "1d..", "scale_cluster": "2"}
    assert "calibration" not in plain.info["settings"]
    assert changed.path != plain.path
    told = harness.compare([changed, plain]).table()
    assert "--window 1d.. -> none" in told
    assert "--scale-cluster 2 -> 1" in told


def test_nothing_is_changed_without_being_asked(opened: Callable[..., Trace]) -> None:
    """The empty calibration answers the very same trace and cluster."""
    trace, cluster = opened(*_FOUR_DAYS), Cluster()
    assert Calibration().of_trace(trace) is trace
    assert Calibration(scale_cluster=Fraction(1)).of_cluster(cluster) is cluster


def test_a_faulty_window_is_a_fault_of_the_trace(opened: Callable[..., Trace]) -> None:
    """A step that leaves nothing names itself."""
    with pytest.raises(TraceError, match=r"--sample 1e-09@0: leaves no job"):
        calibrated(opened(*_FOUR_DAYS), sample="1e-9")

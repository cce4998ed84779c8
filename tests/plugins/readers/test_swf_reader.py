"""The Standard Workload Format: what its columns become, under each convention, and what is refused."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import OptionError, TraceError
from harness.plugins import load
from harness.trace.trace import Trace, open_trace

PLUGINS = load(only=["readers"])
HEADER = """\
; Version: 2.2
; Computer: IBM SP
; Installation: Somewhere
; Acknowledge: A. Person
; UnixStartTime: 1000000000
; MaxProcs: 338 (batch partition; 512 total)
; Queue: 1 first
; Queue: 2 second
"""
COLUMNS = (
    "job", "submit", "wait", "run", "allocated", "cpu", "used_memory", "requested", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think",
)  # fmt: skip
KNOWN = {
    "submit": 10, "wait": 5, "run": 100, "allocated": 4, "requested": 4, "requested_time": 200, "status": 1,
    "user": 3, "group": 7, "queue": 2,
}  # fmt: skip


def line(**columns: Any) -> str:
    """A record; columns that are not given are unknown."""
    return " ".join(str(columns.get(name, -1)) for name in COLUMNS)


def log(*records: dict[str, Any], header: str = HEADER) -> str:
    """A log of records that are known but for what they say."""
    return header + "".join(
        line(**{**KNOWN, "job": number, **record}) + "\n" for number, record in enumerate(records, start=1)
    )


def read(folder: Path, text: str, **options: Any) -> Trace:
    """The trace of a log."""
    path = folder / "log.swf"
    path.write_text(text)
    return open_trace(path, PLUGINS, options=options)


def faults(folder: Path, text: str) -> list[str]:
    """What is wrong with a log."""
    with pytest.raises(TraceError) as caught:
        read(folder, text)
    return [str(fault) for fault in caught.value.faults]


def test_a_record_becomes_a_job_of_one_pod(tmp_path: Path) -> None:
    """Every column of a full record, under the default conventions."""
    opened = read(tmp_path, log({"requested_memory": 512, "partition": 1}))
    start = datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
    assert opened.frame.to_dicts() == [
        {
            "job_id": "1",
            "submit_time": start + timedelta(seconds=10),
            "duration": timedelta(seconds=100),
            "queue": "2",
            "request.cpu": 4000,
            "request.memory": 4 * 512 * 1024,
            "user": "3",
            "recorded_start": start + timedelta(seconds=15),
            "recorded_end": start + timedelta(seconds=115),
            "group": "7",
            "status": 1,
            "requested_time": timedelta(seconds=200),
            "partition": "1",
        }
    ]
    assert (opened.kind, opened.time_zone, opened.rows_read) == ("timestamp", "UTC", 1)


def test_what_the_header_says_is_kept(tmp_path: Path) -> None:
    """Source, acknowledgement, and the size of the machine in millicores."""
    assert read(tmp_path, log({})).metadata == {
        "harness.source": "Somewhere, IBM SP, Standard Workload Format log log.swf",
        "harness.license": "no formal licence; acknowledge the Parallel Workloads Archive (Dror Feitelson) "
        "and A. Person",
        "harness.capacity.cpu": "338000",
    }


@pytest.mark.parametrize(
    ("header", "per_node", "cpu"),
    [
        ("; MaxNodes: 16\n", 0, 16_000),
        ("; MaxNodes: 16\n; MaxProcs: -1\n", 0, 16_000),
        ("; MaxNodes: 16 (of 20)\n; MaxProcs: 64\n", 0, 64_000),
        ("; MaxNodes: 16\n", 4, 64_000),
        ("; MaxNodes: -1\n", 0, None),
        ("; maxnodes: 16\n", 0, 16_000),
        ("; MaxNodes: 1,024 (of 2,048)\n", 0, 1_024_000),
        ("; MaxNodes: 16+16\n", 0, None),
        ("; MaxNodes: 16x4\n", 0, None),
        ("; MaxNodes: 16, of 20\n", 0, 16_000),
        ("; MaxNodes: 3\n", 0, None),
        ("; MaxNodes: 3\n", 2, 6_000),
    ],
)
def test_nodes_say_how_large_a_machine_is_where_processors_do_not(
    header: str, per_node: int, cpu: int | None, tmp_path: Path
) -> None:
    """A node has one processor, unless the user says how many."""
    opened = read(tmp_path, log({}, header=header), processors_per_node=per_node)
    assert opened.metadata.get("harness.capacity.cpu") == (None if cpu is None else str(cpu))
    why = "the header gives 3 nodes but no MaxProcs, and a job has 4 processors"
    remedy = "convert the log with --set processors_per_node=N"
    assert (f"the size of the machine is unknown: {why}; {remedy}" in opened.notes) == (
        ": 3" in header and not per_node
    )


def test_notes_of_the_header_are_notes_of_the_trace(tmp_path: Path) -> None:
    """Some change what columns mean; a note goes on over lines that have no key of their own."""
    header = (
        "; Note: no submit times;\n;       start times instead\n; MaxJobs: 3\n; Note: cleaned\n;\n; other\n"
    )
    found = [note for note in read(tmp_path, log({}, header=header)).notes if "header notes" in note]
    assert found == [
        "the log's header notes: no submit times; start times instead",
        "the log's header notes: cleaned",
    ]


def test_a_log_in_which_nobody_waited_is_told(tmp_path: Path) -> None:
    """Its submit times may be start times, as in NASA's log; one wait is enough to believe them."""
    told = "no job of the log waited: its submit times may be start times"
    assert told in read(tmp_path, log({"wait": 0}, {"wait": -1})).notes
    assert told not in read(tmp_path, log({"wait": 0}, {"wait": 5})).notes


def test_without_a_start_time_times_are_durations(tmp_path: Path) -> None:
    """The origin is the log's own zero."""
    opened = read(tmp_path, log({}, header=""))
    assert (opened.kind, opened.origin) == ("duration", 0)
    assert opened.frame["submit_time"].to_list() == [timedelta(seconds=10)]
    assert opened.frame["recorded_end"].to_list() == [timedelta(seconds=115)]
    assert "times are durations, because the header has no UnixStartTime" in opened.notes


def test_processors_are_those_requested_else_those_allocated(tmp_path: Path) -> None:
    """The default takes the request, and falls back where it is unknown; the other way round on demand."""
    text = log({"requested": 8}, {"requested": -1}, {"requested": 0, "allocated": 2}, {"allocated": -1})
    requested, allocated = read(tmp_path, text), read(tmp_path, text, processors="allocated")
    assert requested.frame["request.cpu"].to_list() == [8000, 4000, 2000, 4000]
    assert allocated.frame["request.cpu"].to_list() == [4000, 4000, 2000, 4000]
    said = "a job has the {} number of processors; {} this number, so the {} number is used"
    assert said.format("requested", "2 jobs lack", "allocated") in requested.notes
    assert said.format("allocated", "1 job lacks", "requested") in allocated.notes


def test_jobs_without_processors_are_left_out(tmp_path: Path) -> None:
    """Counted by reason."""
    opened = read(tmp_path, log({}, {"requested": -1, "allocated": 0}))
    assert opened.left_out == {"number of processors unknown": 1}
    assert (opened.rows_read, opened.frame.height) == (2, 1)


def test_jobs_can_end_at_the_time_they_requested(tmp_path: Path) -> None:
    """By default they run as long as recorded; the note counts those that exceeded their request."""
    text = log({"run": 300}, {"run": 300, "requested_time": -1}, {"run": 100})
    assert read(tmp_path, text).frame["duration"].dt.total_seconds().to_list() == [300, 300, 100]
    cut = read(tmp_path, text, cut_at_request="true")
    assert cut.frame["duration"].dt.total_seconds().to_list() == [200, 300, 100]
    assert "1 job ran longer than they requested and end at the requested time" in cut.notes
    assert cut.frame["recorded_end"].to_list() == read(tmp_path, text).frame["recorded_end"].to_list()


@pytest.mark.parametrize(
    ("tenant", "names"),
    [
        ("queue", ["2", "0"]),
        ("user", ["3", "5"]),
        ("group", ["7", "default"]),
        ("partition", ["default", "default"]),
    ],
)
def test_the_tenant_is_one_of_four_columns(tmp_path: Path, tenant: str, names: list[str]) -> None:
    """An unknown one is the queue `default`; the log's queue is kept where it is not the tenant."""
    opened = read(tmp_path, log({}, {"queue": 0, "user": 5, "group": -1}), tenant=tenant)
    assert opened.frame["queue"].to_list() == names
    assert ("swf_queue" in opened.frame.columns) == (tenant != "queue")


def test_cancelled_jobs_are_kept_or_dropped(tmp_path: Path) -> None:
    """Status 5; by default a cancelled job that ran is a job."""
    text = log({"status": 5}, {"status": 0})
    kept = read(tmp_path, text)
    assert (kept.frame.height, dict(kept.left_out)) == (2, {})
    assert "1 job was cancelled: they are replayed like other jobs" in kept.notes
    assert read(tmp_path, text, cancelled="drop").left_out == {"cancelled (status 5)": 1}


def test_jobs_of_length_zero_are_kept_or_dropped(tmp_path: Path) -> None:
    """0 seconds is a run time, unlike -1."""
    text = log({"run": 0}, {})
    assert read(tmp_path, text).frame["duration"].dt.total_seconds().to_list() == [0, 100]
    assert read(tmp_path, text, zero_length="drop").left_out == {"ran for 0 seconds": 1}


def test_jobs_without_a_run_time_are_left_out_or_take_no_time(tmp_path: Path) -> None:
    """-1 means that nobody knows."""
    text = log({"run": -1}, {})
    assert read(tmp_path, text).left_out == {"run time unknown (-1)": 1}
    zero = read(tmp_path, text, unknown_run="zero")
    assert zero.frame["duration"].dt.total_seconds().to_list() == [0, 100]
    assert zero.frame["recorded_end"].null_count() == 1
    assert "1 job has no run time: they run for 0 seconds" in zero.notes


def test_a_log_of_which_no_row_is_left_says_why(tmp_path: Path) -> None:
    """The columns of a trace are then missing, too, which nobody needs to know."""
    assert faults(tmp_path, log({"run": -1}, {"run": -1}, {"submit": -5})) == [
        "holds no jobs, because all rows are left out: 1 submit time unknown; 2 run time unknown (-1)"
    ]


def test_a_row_is_left_out_for_one_reason(tmp_path: Path) -> None:
    """Rows read are rows kept plus rows left out."""
    opened = read(
        tmp_path,
        log(
            {"status": 5, "run": -1},
            {"run": -1, "requested": -1, "allocated": -1},
            {"submit": -1},
            {"status": 2},
            {},
        ),
        cancelled="drop",
    )
    assert opened.left_out == {
        "only a part of a job, which has no other record (status 2, 3 or 4)": 1,
        "cancelled (status 5)": 1,
        "submit time unknown": 1,
        "run time unknown (-1)": 1,
    }
    assert opened.rows_read == opened.frame.height + sum(opened.left_out.values())


def test_memory_is_what_each_processor_requested(tmp_path: Path) -> None:
    """KiB per processor; a job that does not say asks for none; it can be ignored."""
    text = log({"requested_memory": 10, "requested": 3}, {})
    opened = read(tmp_path, text)
    assert opened.frame["request.memory"].to_list() == [30 * 1024, None]
    note = "memory is the requested amount, in KiB per processor; 1 job does not have this amount, so none "
    assert f"{note}is requested" in opened.notes
    ignored = read(tmp_path, text, memory="ignore")
    assert "request.memory" not in ignored.frame.columns
    assert "memory is not modelled: it is ignored" in ignored.notes


def test_memory_that_overflows_is_refused(tmp_path: Path) -> None:
    """Not another number."""
    (fault,) = faults(tmp_path, log({"requested_memory": 2**50, "requested": 2**20}))
    assert fault.startswith("column request.memory: is Int128, but must be int64: row 1 has ")


def test_columns_that_nobody_knows_are_absent(tmp_path: Path) -> None:
    """A log without users, groups or waits has no such columns."""
    opened = read(tmp_path, log({"user": -1, "group": -1, "wait": -1, "requested_time": -1}))
    assert opened.frame.columns == ["job_id", "submit_time", "duration", "queue", "request.cpu", "status"]


def test_fractions_of_a_second_are_exact_to_the_microsecond(tmp_path: Path) -> None:
    """Times may have decimals; they are not rounded to seconds."""
    opened = read(
        tmp_path, log({"submit": "1000000000.123457", "run": "0.000001", "cpu": "12.34"}, header="")
    )
    assert opened.frame["submit_time"].dt.total_microseconds().to_list() == [1_000_000_000_123_457]
    assert opened.frame["duration"].dt.total_microseconds().to_list() == [1]


def test_blanks_tabs_comments_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    """Records are words between white space; comments may stand anywhere."""
    plain = log({}, {}, {})
    first, second, third = plain.splitlines()[-3:]
    tabbed, wide = first.replace(" ", "\t"), second.replace(" ", "   ")
    odd = f"{HEADER}  {tabbed}  \r\n\n; note\n{wide}\n   \n{third}"
    assert read(tmp_path, odd).frame.equals(read(tmp_path, plain).frame)
    assert read(tmp_path, "\ufeff" + plain).frame.equals(read(tmp_path, plain).frame)


def test_a_gzipped_log_is_the_same_log(tmp_path: Path) -> None:
    """`.swf.gz` is read as it is."""
    text = log({}, {})
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert open_trace(path, PLUGINS).frame.equals(read(tmp_path, text).frame)


def test_malformed_lines_are_all_named(tmp_path: Path) -> None:
    """Each with its line number in the file, the column and the word."""
    text = log({}, {"user": "bob"}, {"run": "1e400"}, {"job": "1.5", "status": "nan"}, {"job": 10**17})
    text += "1 2 3\n" + line(job=9) + " 7\n"
    assert faults(tmp_path, text) == [
        "line 10: column 12 (user): 'bob' is not a whole number",
        "line 11: column 4 (run): '1e400' is out of range (-9,007,199,254 to 9,007,199,254)",
        "line 12: column 1 (job): '1.5' is not a whole number",
        "line 12: column 11 (status): 'nan' is not a whole number",
        f"line 13: column 1 (job): '1{'0' * 17}' is out of range ({-(2**53):,} to {2**53:,})",
        "line 14: has 3 columns instead of 18",
        "line 15: has 19 columns instead of 18",
    ]


def test_numbers_out_of_range_are_named(tmp_path: Path) -> None:
    """Also where every word is a number."""
    assert faults(tmp_path, log({}, {"wait": 10**11})) == [
        "line 10: column 3 (wait): '100000000000' is out of range (-9,007,199,254 to 9,007,199,254)"
    ]


def test_a_log_in_another_encoding_is_refused_by_line(tmp_path: Path) -> None:
    """Bytes that are no text are named; comments may hold anything."""
    path = tmp_path / "log.swf"
    good = log({}).encode().replace(b"A. Person", b"\xc5ke")
    path.write_bytes(good)
    assert open_trace(path, PLUGINS).frame.height == 1
    path.write_bytes(good.replace(b"1 10 5", b"1 \xff 5"))
    with pytest.raises(TraceError, match="line 9: is not UTF-8 text: byte 0xff at position 3"):
        open_trace(path, PLUGINS)


def test_the_same_job_twice_is_refused(tmp_path: Path) -> None:
    """Job numbers are ids."""
    assert faults(tmp_path, log({"job": 4}, {"job": 4})) == [
        "row 2 (job '4'), job_id: '4' (pod set 'main') already has a row"
    ]


@pytest.mark.parametrize("text", ["", "\n\n", HEADER])
def test_a_log_without_records_is_refused(tmp_path: Path, text: str) -> None:
    """Empty, blank, or only a header."""
    assert faults(tmp_path, text) == [
        "is empty" if not text else "has no lines" if text == "\n\n" else "holds no jobs"
    ]


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    """Cut off, or changed inside."""
    whole = gzip.compress(log(*[{}] * 500).encode())
    path = tmp_path / "log.swf.gz"
    for data in (whole[:-20], whole[:40], whole[:60] + b"\0\0\0\0" + whole[64:]):
        path.write_bytes(data)
        with pytest.raises(TraceError, match="is not a whole gzip file"):
            open_trace(path, PLUGINS)


def test_a_job_can_be_a_gang_of_nodes(tmp_path: Path) -> None:
    """With 8 processors a node, 24 are three pods; memory is that of each pod's processors."""
    text = log(*[{"requested": size, "requested_memory": 1} for size in (24, 8, 3, 12)])
    frame = read(tmp_path, text, processors_per_node="8").frame
    assert frame.select("pods", "request.cpu", "gang").rows() == [
        (3, 8000, True),
        (1, 8000, False),
        (1, 3000, False),
        (2, 6000, True),
    ]
    assert frame["request.memory"].to_list() == [8192, 8192, 3072, 6144]
    with pytest.raises(OptionError, match="option processors_per_node: -1 must be at least 1"):
        read(tmp_path, text, processors_per_node="-1")


def test_a_run_time_below_minus_one_is_no_run_time(tmp_path: Path) -> None:
    """A job that never ended has the difference of nothing and its start."""
    opened = read(tmp_path, log({"run": -1_359_980_917}, {}))
    assert opened.left_out == {"run time negative: the job never ended": 1}


def test_parts_without_a_record_of_their_job_are_counted_apart(tmp_path: Path) -> None:
    """Job 1 has a record for all of its parts. Job 2 has only parts."""
    rows = ({"job": 1, "status": 2}, {"job": 1}, {"job": 2, "status": 2}, {"job": 2, "status": 3})
    assert read(tmp_path, log(*rows)).left_out == {
        "only a part of a job, which has another record (status 2, 3 or 4)": 1,
        "only a part of a job, which has no other record (status 2, 3 or 4)": 2,
    }


def test_jobs_that_follow_others_are_noted(tmp_path: Path) -> None:
    """The trace has no dependencies: a job arrives at its submission, whatever came before it."""
    notes = read(tmp_path, log({}, {"preceding": 1, "think": 60})).notes
    assert "1 job follows another job (column 17), but all arrive at their submit time" in notes

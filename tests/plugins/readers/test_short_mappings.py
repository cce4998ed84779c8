"""The short form of mappings: columns alone, on text and on any other table, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness.base.errors import InputError, TraceError
from harness.plugins import load
from harness.trace.trace import open_trace

JOBS = (
    "JobID|Submit|Start|End|Account|User|NCPUS|ReqMem|Nodes\n"
    "7|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T01:01:00|physics|ann|4|1.5|2\n"
    "8|2024-01-01T00:00:10Z|2024-01-01T02:00:00+01:00|2024-01-01T01:00:30|bio|bob|1|8|1\n"
)
MAP = (
    "job_id=JobID, submit_time=Submit:iso, duration=End - Start:iso, recorded_start=Start:iso, "
    "queue=Account, user=User, request.cpu=NCPUS, request.memory=ReqMem:GiB, pods=Nodes"
)
CANONICAL = "job_id,submit_time,duration,queue,request.cpu,priority,site\na,0,5.5,q,2,7,x\nb,1,,q,1,,y\n"


def test_columns_are_mapped_with_their_units(read_text: Callable) -> None:
    """Times with an offset or not, sizes with a unit, and a duration between two times."""
    trace = read_text(JOBS, reader="csv", delimiter="|", map=MAP)
    first, second = trace.frame.to_dicts()
    assert first == {
        "job_id": "7",
        "submit_time": datetime(2024, 1, 1, tzinfo=UTC),
        "duration": timedelta(hours=1),
        "queue": "physics",
        "request.cpu": 4_000,
        "request.memory": 3 * 2**29,
        "pods": 2,
        "user": "ann",
        "recorded_start": datetime(2024, 1, 1, 0, 1, tzinfo=UTC),
    }
    assert second["recorded_start"] == datetime(2024, 1, 1, 1, tzinfo=UTC)
    assert second["duration"] == timedelta(seconds=30)
    assert "duration is End - Start:iso" in trace.notes


def test_the_schemas_own_names_need_no_mapping(read_text: Callable) -> None:
    """Numbers are seconds and cores; a row without a duration is left out and counted."""
    trace = read_text(CANONICAL)
    assert (trace.reader, dict(trace.left_out), trace.rows_read) == ("csv", {"without duration": 1}, 2)
    assert not any(" is " in note for note in trace.notes)  # "queue is queue" would say nothing
    (job,) = trace.frame.to_dicts()
    assert job == {
        "job_id": "a",
        "submit_time": timedelta(0),
        "duration": timedelta(seconds=5.5),
        "queue": "q",
        "request.cpu": 2_000,
        "priority": 7,
    }


def test_a_mapping_can_be_a_file(read_text: Callable, tmp_path: Path) -> None:
    """The same texts, by column of the schema."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("queue: \"'all'\"\nsite: site\nduration: duration:h\n")
    (job,) = read_text(CANONICAL, mapping=str(mapping)).frame.to_dicts()
    assert (job["queue"], job["site"], job["duration"]) == ("all", "x", timedelta(hours=5.5))
    mapping.write_text("- queue\n")
    with pytest.raises(TraceError, match="must be one YAML mapping"):
        read_text(CANONICAL, mapping=str(mapping))


@pytest.mark.parametrize(
    ("source", "unit", "text", "expected"),
    [
        ("duration", "hms", "1-02:30:00", timedelta(hours=26.5)),
        ("duration", "hms", "02:30.5", timedelta(seconds=150.5)),
        ("duration", "ms", "1500", timedelta(seconds=1.5)),
        ("submit_time", "unix", "1356996147", datetime(2012, 12, 31, 23, 22, 27, tzinfo=UTC)),
        ("submit_time", "%d.%m.%Y %H:%M", "31.12.2012 23:22", datetime(2012, 12, 31, 23, 22, tzinfo=UTC)),
        (
            "submit_time",
            "%Y-%m-%d %H:%M:%S.%f",
            "2024-03-01 07:01:55.25",
            datetime(2024, 3, 1, 7, 1, 55, 250_000, tzinfo=UTC),
        ),
        (
            "submit_time",
            "%d %b %Y %I:%M %p %z",
            "1 Mar 2024 12:05 am -0100",
            datetime(2024, 3, 1, 1, 5, tzinfo=UTC),
        ),
        ("request.cpu", "millicores", "250", 250),
        ("request.memory", "MB", "2", 2_000_000),
        ("gang", "", "yes", True),
    ],
)
def test_units(read_text: Callable, source: str, unit: str, text: str, expected: object) -> None:
    """Each as it is written in the mapping."""
    names = ["job_id", "submit_time", "duration", "queue", "request.cpu", "x"]
    line = f"a,0,1,q,1,{text}\n"
    trace = read_text(",".join(names) + "\n" + line, map=f"{source}=x:{unit}")
    assert trace.frame[source].to_list() == [expected]


def test_a_duration_can_be_the_same_in_all_rows(read_text: Callable) -> None:
    """For records that do not say how long anything ran."""
    trace = read_text(CANONICAL, map="duration='1h30m'")
    assert trace.frame["duration"].to_list() == [timedelta(hours=1.5)] * 2


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("job_id", "option map: 'job_id' is not COLUMN=SOURCE"),
        ("duration=duration:years", "'years' is not one of its units"),
        ("labels='site'", "labels: 'site': cannot be 'site' in every row"),
        ("duration='long'", "duration: 'long': 'long' is not a duration"),
        ("request.cpu='many'", "request.cpu: 'many': cannot be 'many' in every row"),
        ("job_id=priority - site", "subtracts one text value from another"),
        ("job_id=Job ID", "'Job ID' is not understood"),
        ("site=open('x')", r"calls open\(\), which the language does not have"),
        ("submit_time=site:%Y-%Q", "'%Y-%Q' is not a time format: %Q is none of the directives"),
        ("submit_time=site:%H:%M", "'%H:%M' is not a time format: it has no year"),
        ("submit_time=site:%d %b %Y %I:%M", "is not a time format: %I needs %p"),
    ],
)
def test_a_mapping_that_cannot_be_is_refused(read_text: Callable, mapping: str, message: str) -> None:
    """With its key, and what there is instead."""
    with pytest.raises(InputError, match=message):
        read_text(CANONICAL, map=mapping)


def test_faults_name_the_columns_of_the_file(faults_of_text: Callable) -> None:
    """And those that they are mapped to; a part of a device is none."""
    text = "A,B,E\n1,2024-01-01T00:00:00,x\n,2024-01-01T00:00:00,2023-01-01T00:00:00\n"
    mapping = "job_id=A, submit_time=B:iso, duration=E - B:iso, queue='q', request.cpu='1000'"
    assert faults_of_text(text, reader="csv", map=mapping) == [
        "row 1: duration: column E: 'x', in iso, is not a time such as 2017-10-09T07:01:55+02:00",
        "row 2: job_id: column A is empty",
        "row 2: duration: E - B:iso is before it began (E '2023-01-01T00:00:00', B '2024-01-01T00:00:00')",
    ]
    halves = "job_id,submit_time,duration,queue,request.nvidia.com/gpu\na,0,1,q,0.5\n"
    assert faults_of_text(halves, reader="csv") == [
        "row 1: request.nvidia.com/gpu: column request.nvidia.com/gpu: '0.5' is not a whole number"
    ]
    assert faults_of_text(text, reader="csv", map="job_id=Z")[0].startswith("column Z: is in no file")
    assert faults_of_text(text, reader="csv")[0] == (
        "job_id: is not mapped, and the table has no such column; it has A, B, E"
    )


def test_a_delimiter_is_one_character(read_text: Callable) -> None:
    """Or the word for a tab."""
    assert read_text(CANONICAL.replace(",", "\t"), reader="csv", delimiter="tab").frame.height == 1
    for delimiter in ("::", '"', "\n"):
        with pytest.raises(TraceError, match="is neither comma, tab, nor one character"):
            read_text(CANONICAL, delimiter=delimiter)


def test_without_a_header_columns_are_numbers(read_text: Callable) -> None:
    """The first line is a record like any other, and messages call columns by the same numbers."""
    text = "v1,s1,0,3600,4\nv2,s1,300,7200,2\n"
    mapping = "job_id=1, queue=2, submit_time=3, duration=4 - 3, request.cpu=5"
    trace = read_text(text, reader="csv", header="no", map=mapping)
    assert trace.frame.rows() == [
        ("v1", timedelta(0), timedelta(hours=1), "s1", 4_000),
        ("v2", timedelta(minutes=5), timedelta(minutes=115), "s1", 2_000),
    ]
    with pytest.raises(TraceError, match="column 9: is in no file; there is: 1, 2, 3, 4, 5"):
        read_text(text, reader="csv", header="no", map="job_id=9")
    with pytest.raises(TraceError) as told:
        read_text("v1,s1,0,3600,4\nv2,s1,x,7200,2\n", reader="csv", header="no", map=mapping)
    assert {str(fault) for fault in told.value.faults} == {
        "row 2: submit_time: column 3: 'x' is not a number",
        "row 2: duration: column 3: 'x' is not a number",
    }


def test_names_in_two_columns_and_shares_of_a_core(read_text: Callable) -> None:
    """As Alibaba's batch_task has them: tasks of a job, 100 for a core, and instances that run alone."""
    text = "t1,2,job_9,1,Terminated,10,70,100,0.5\nt1,1,job_10,1,Terminated,10,75,,\n"
    mapping = (
        "job_id=3 + 1, queue='batch', submit_time=6, duration=7 - 6, pods=2, gang='false', request.cpu=8:%"
    )
    frame = read_text(text, reader="csv", header="no", map=mapping).frame
    assert frame["job_id"].to_list() == ["job_9/t1", "job_10/t1"]
    assert frame["request.cpu"].to_list() == [1_000, None]
    assert frame["gang"].to_list() == [False, False]
    with pytest.raises(TraceError, match="column 3: 'job_9' is not a number"):
        read_text(text, reader="csv", header="no", map=mapping.replace("7 - 6", "3 - 6"))


def test_the_short_form_takes_any_table_and_the_whole_language(tmp_path: Path) -> None:
    """Parquet and JSON lines too; commas in parentheses and quotes part nothing; typed times need no unit."""
    jobs = {"id": [1, 2], "at": [datetime(2024, 1, 1, tzinfo=UTC)] * 2, "ran": [60, -1], "most": [9, 7]}
    pl.DataFrame(jobs).write_parquet(tmp_path / "t.parquet")
    pl.DataFrame(jobs).with_columns(pl.col("at").dt.epoch("s")).write_ndjson(tmp_path / "t.ndjson")
    mapping = "job_id=id, request.cpu='1', duration=first(unless(ran, -1), most), queue='a, b'"
    plugins = load(only=["readers"])
    for name, unit in (("t.parquet", ""), ("t.ndjson", ": unix")):
        options = {"map": f"{mapping}, submit_time=at{unit}"}
        frame = open_trace(tmp_path / name, plugins, reader="csv", options=options).frame
        assert frame["duration"].to_list() == [timedelta(seconds=60), timedelta(seconds=7)]
        assert frame["queue"].cast(pl.String).to_list() == ["a, b"] * 2
        assert frame["submit_time"].to_list() == jobs["at"]


def test_labels_of_nodes_are_pairs(read_text: Callable) -> None:
    """Between them stands a semicolon, or a comma in a cell in quotes; anything else is named."""
    text = 'a,"pool=a100;zone=b"\nb,"pool=a100, zone = b"\nc,\nd,pool=\n'
    mapping = "job_id=1, node_selector=2, submit_time='0s', duration='1h', queue='q'"
    with pytest.raises(TraceError, match="submit_time: '0s': cannot be"):
        read_text(text, reader="csv", header="no", map=mapping)
    text = 'a,1,"pool=a100;zone=b"\nb,2,"pool=a100, zone = b"\nc,3,\nd,4,pool=\n'
    mapping = (
        "job_id=1, node_selector=3, labels='app=x', request.cpu='1', submit_time=2, duration='1h', queue='q'"
    )
    frame = read_text(text, reader="csv", header="no", map=mapping).frame
    found = [None if each is None else dict(entries(each)) for each in frame["node_selector"].to_list()]
    both = {"pool": "a100", "zone": "b"}
    assert found == [both, both, None, {"pool": ""}]
    assert dict(entries(frame["labels"][0])) == {"app": "x"}
    with pytest.raises(TraceError, match="'a100' is not pairs such as pool=a100;zone=b"):
        read_text("a,1,a100\n", reader="csv", header="no", map=mapping)


def entries(value: Any) -> Any:
    """The entries of a map, whichever way this release of polars has them."""
    return value.items() if isinstance(value, dict) else [(each["key"], each["value"]) for each in value]


def test_amounts_that_a_division_loses_are_noted(read_text: Callable) -> None:
    """No nodes are known for b and c, so their cores are not; d has neither, and loses nothing."""
    text = "job_id,submit_time,duration,queue,cores,nodes\na,0,1,q,4,2\nb,0,1,q,4,0\nc,0,1,q,4,\nd,0,1,q,,\n"
    trace = read_text(text, reader="csv", map="request.cpu=cores / nodes")
    assert trace.frame["request.cpu"].to_list() == [2000, None, None, None]
    says = "request.cpu: 2 rows have an amount but no divisor, so no amount is known"
    assert [note for note in trace.notes if "divisor" in note] == [says]


@pytest.mark.parametrize(("first", "noted"), [(1_700_000_000, True), (86_400, False)])
def test_seconds_since_1970_without_a_unit_are_doubted(read_text: Callable, first: int, noted: bool) -> None:
    """They are taken as seconds since the trace's origin, which is then decades before the first job."""
    text = f"job_id,submit_time,duration,queue,request.cpu\na,{first},1,q,1\nb,{first + 5},1,q,1\n"
    notes = read_text(text, reader="csv").notes
    assert any("add their unit, such as unix" in note for note in notes) == noted


@pytest.mark.parametrize("first", ["v1,s1,0,3600,4", "v1,s1,0,0,4"])
def test_a_table_without_a_header_is_told_how_to_read_it(read_text: Callable, first: str) -> None:
    """Numbers are no names of columns, so the first line is probably a record."""
    with pytest.raises(TraceError) as caught:
        read_text(f"{first}\nv2,s1,300,7200,2\n", reader="csv")
    assert caught.value.hint is not None
    assert "harness trace convert FILE OUT.parquet --reader csv --set header=no" in caught.value.hint
    with pytest.raises(TraceError) as caught:
        read_text("id,queue\n1,2\n", reader="csv")
    assert "header=no" not in (caught.value.hint or "")


@pytest.mark.parametrize(("mark", "option"), [(";", "';'"), ("\t", "tab"), ("|", "'|'")])
def test_another_delimiter_is_told_with_its_option(read_text: Callable, mark: str, option: str) -> None:
    text = CANONICAL.replace(",", mark)
    with pytest.raises(TraceError) as caught:
        read_text(text, reader="csv")
    assert caught.value.hint is not None
    assert caught.value.hint.endswith(f"--reader csv --set delimiter={option}")
    with pytest.raises(TraceError, match="has 2 cells instead of 1") as caught:
        read_text(f"{text}a{mark}0{mark}1,5{mark}q{mark}1\n", reader="csv")
    assert caught.value.hint is not None
    assert caught.value.hint.endswith(f"--reader csv --set delimiter={option}")
    with pytest.raises(TraceError) as caught:
        read_text(f"a{mark}q{mark}0\n", reader="csv", header="no", map="job_id=1, queue=2")
    assert caught.value.hint is not None
    assert "--set delimiter=';'" in caught.value.hint


def test_a_time_without_its_unit_is_told_about_units(read_text: Callable) -> None:
    """The remedy is a unit, not the removal of the value."""
    text = "job_id,submit_time,duration,queue,request.cpu\na,2026-01-01T00:00:00Z,1,q,1\n"
    with pytest.raises(TraceError) as caught:
        read_text(text, reader="csv")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(
        '--set map="submit_time=submit_time:iso" reads times as in ISO 8601; a unit such as `: iso`'
    )
    assert len(read_text(text, reader="csv", map="submit_time=submit_time:iso").frame) == 1


def test_a_table_of_no_rows_is_told_as_such(read_text: Callable) -> None:
    with pytest.raises(TraceError, match="has no rows"):
        read_text("job_id,submit_time,duration,queue,request.cpu\n", reader="csv")


@pytest.mark.parametrize(
    ("size", "amount"),
    [
        ("4Gi", 2**32),
        ("1.5GiB", 3 * 2**29),
        ("512Mi", 2**29),
        ("8G", 2**33),
        ("4Gc", None),
        ("100Mn", 100 << 20),
        ("4GB", 2**32),
        ("16gb", 2**34),
        ("4194304kb", 2**32),
    ],
)
def test_sizes_may_be_written_as_in_kubernetes_slurm_and_pbs(
    read_text: Callable, size: str, amount: int | None
) -> None:
    """All letters are powers of 1024, with an i and a B or without."""
    text = f"job_id,submit_time,duration,queue,mem\na,0,1,q,{size}\nb,0,1,q,1M\n"
    trace = read_text(text, reader="csv", map="request.memory=size(mem)")
    assert trace.frame["request.memory"].to_list() == [amount, 2**20]
    lost = "request.memory: 1 row has an amount per CPU, so no amount is known"
    assert (lost in trace.notes) == (amount is None)


@pytest.mark.parametrize("columns", ["job_id=1, queue=2, submit_time=3, duration=4 - 3", "job_id=id"])
def test_a_table_without_a_header_line_is_recognized(read_text: Callable, columns: str) -> None:
    """Numbers are no columns unless header=no, so such a mapping names none; nor are names there."""
    with pytest.raises(TraceError, match=r"names none of its columns|column id: is in no file") as caught:
        read_text("v1,s1,0,60\nv2,s1,30,60\n", reader="csv", map=columns)
    assert "--set header=no" in caught.value.hint


def test_a_percent_sign_is_part_of_its_unit(read_text: Callable) -> None:
    """Only where the unit says so."""
    text = "job_id,submit_time,duration,queue,cpu\na,0,60,q,50 %\nb,0,60,q,12.5%\nc,0,60,q,200\n"
    frame = read_text(text, reader="csv", map="request.cpu=cpu:%").frame
    assert frame["request.cpu"].to_list() == [500, 125, 2000]
    with pytest.raises(TraceError, match="'50 %' is not a number"):
        read_text(text, reader="csv", map="request.cpu=cpu")


@pytest.mark.parametrize(("unit", "noted"), [("unix-ms", True), ("unix", False)])
def test_times_that_are_all_in_1970_are_doubted(read_text: Callable, unit: str, noted: bool) -> None:
    """As seconds are that are read as milliseconds."""
    text = "job_id,submit_time,duration,queue,request.cpu\na,1709287200,60,q,1\n"
    notes = read_text(text, reader="csv", map=f"submit_time=submit_time:{unit}").notes
    assert any("all jobs arrive before 1971" in note for note in notes) == noted


def test_cores_may_be_written_as_in_kubernetes(read_text: Callable) -> None:
    """An m is a thousandth."""
    text = "job_id,submit_time,duration,queue,cpu\na,0,60,q,500m\nb,0,60,q,1.5\nc,0,60,q,2\nd,0,60,q,\n"
    frame = read_text(text, reader="csv", map="request.cpu=cores(cpu)").frame
    assert frame["request.cpu"].to_list() == [500, 1500, 2000, None]
    with pytest.raises(TraceError, match="'2 mm' is not a number"):
        read_text(text.replace("500m", "2 mm"), reader="csv", map="request.cpu=cores(cpu)")


def test_numbers_with_a_decimal_comma_have_a_function(read_text: Callable) -> None:
    """Without it, and with a point beside the comma, they are refused: 1,500 may be a thousand and a half."""
    text = "job_id;submit_time;duration;queue;cpu\na;0;60;q;1,5\nb;0;60;q;2\n"
    options = {"reader": "csv", "delimiter": ";"}
    frame = read_text(text, map="request.cpu=comma(cpu)", **options).frame
    assert frame["request.cpu"].to_list() == [1500, 2000]
    with pytest.raises(TraceError, match="'1,5' is not a number") as caught:
        read_text(text, map="request.cpu=cpu", **options)
    assert "comma()" in caught.value.hint
    with pytest.raises(TraceError, match=r"'1\.000,5' is not a number"):
        read_text(text.replace("1,5", "1.000,5"), map="request.cpu=comma(cpu)", **options)


def test_numbers_with_commas_between_thousands_have_a_function(read_text: Callable) -> None:
    """A comma elsewhere is refused, because it may be a decimal comma."""
    text = 'job_id,submit_time,duration,queue,cpu\na,0,60,q,"1,024"\nb,0,60,q,2.5\nc,0,60,q,"1,234,567.5"\n'
    frame = read_text(text, reader="csv", map="request.cpu=thousands(cpu)").frame
    assert frame["request.cpu"].to_list() == [1_024_000, 2500, 1_234_567_500]
    with pytest.raises(TraceError, match="'1,0245' is not a number") as caught:
        read_text(text.replace("1,024", "1,0245"), reader="csv", map="request.cpu=thousands(cpu)")
    assert "thousands()" in caught.value.hint


@pytest.mark.parametrize("before", ["\n", "\r\n\r\n"])
def test_blank_lines_before_the_header_do_not_count(before: str, read_text: Callable) -> None:
    """The first line with text is the header, and the next one is the first row."""
    assert read_text(before + CANONICAL, reader="csv").frame.equals(read_text(CANONICAL).frame)


@pytest.mark.parametrize("size", ["4i", "4Bi", "4Gb", "4gn", "Gi"])
def test_what_is_no_size_is_refused(read_text: Callable, size: str) -> None:
    text = f"job_id,submit_time,duration,queue,mem\na,0,1,q,{size}\n"
    with pytest.raises(InputError, match="is not a size such as"):
        read_text(text, reader="csv", map="request.memory=size(mem)")

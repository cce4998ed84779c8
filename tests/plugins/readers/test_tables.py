"""Tables of any columns: what a mapping makes of them, and what errors say of mappings and cells."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from cli_environment import called

from harness.base.errors import OptionError, TraceError
from harness_plugins.readers.tables.mapping import named_mappings, read_mapping
from harness_plugins.readers.tables.reading import read

NAMES = "job_id: id\nsubmit_time: 'submitted : unix'\nduration: ran\nqueue: part\n"
SHARED = Path(__file__).parents[4] / "shared" / "tables"
EXCERPTS = Path(__file__).with_name("tables")
Make = Callable[..., pl.DataFrame]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """The trace of a table by a mapping: columns and keys as they are given."""

    def make(table: Any, columns: str = "", keys: str = "", name: str = "t.parquet") -> pl.DataFrame:
        path = tmp_path / name
        if isinstance(table, bytes):
            path.write_bytes(table)
        elif isinstance(table, pa.Table):
            pq.write_table(table, path)
        else:
            pl.DataFrame(table).write_parquet(path)
        mapping = tmp_path / "m.yaml"
        text = "".join(f"  {line}\n" for line in (NAMES + columns).splitlines())
        mapping.write_text(f"{keys}\ncolumns:\n{text}")
        return read(path, {"mapping": str(mapping), "also": ""}).frame

    return make


def jobs(**columns: list[Any]) -> dict[str, list[Any]]:
    """Two jobs, with further columns."""
    return {"id": [7, 8], "submitted": [100, 200], "ran": [60, 61], "part": ["a", "b"], **columns}


def test_amounts_of_a_job_are_divided_exactly_and_rounded_up(made: Make) -> None:
    """In the unit of the trace; by no nodes there is no amount."""
    table = jobs(nodes=[3, 0], cores=[10, 4], mem=[10.5, 1.0])
    found = made(table, "request.cpu: cores / nodes\nrequest.memory: 'mem / nodes : GiB'\n")
    assert found["request.cpu"].to_list() == [3334, None]
    assert found["request.memory"].to_list() == [-(-21 * 2**29 // 3), None]


def test_totals_become_pods_that_are_together_exactly_the_job(made: Make) -> None:
    """Larger shares stand on the first pods; a job that divides has one kind of pods."""
    table = jobs(nodes=[3, 2], cores=[10, 8], gpus=[4, 2])
    found = made(table, "pods: nodes\ntotal.cpu: cores\ntotal.nvidia.com/gpu: gpus\n")
    kinds = found.select("job_id", "pod_set", "pods", "request.cpu", "request.nvidia.com/gpu", "gang").rows()
    assert kinds == [
        ("7", "main", 1, 4000, 2, True),
        ("7", "main-2", 2, 3000, 1, True),
        ("8", "main", 2, 4000, 1, True),
    ]
    whole = found.select((pl.col("request.cpu") * pl.col("pods")).sum()).item()
    assert whole == 18_000


def test_functions_take_values_that_mean_none_away(made: Make) -> None:
    """Slurm's numbers for no limit, sizes and TRES as texts, and the first that is there."""
    table = jobs(
        limit=[2**32 - 1, 90],
        tres=["cpu=4,mem=246000M,gres/gpu=4,gres/gpu:v100=4", "1=20,1001=2"],
        size=["85G", "4Gc"],
        other=[None, 5],
        listed=[["a", "b"], ["c"]],
    )
    found = made(
        table,
        "requested_time: 'below(limit, 4294967294) : m'\nrequest.memory: tres(tres, 'mem')\n"
        "request.nvidia.com/gpu: tres(tres, 'gres/gpu', 1001)\nrequest.cpu: first(other, most(ran, 9))\n"
        "pods: count(listed)\nlimit.memory: size(size)\nuser: unless(part, 'b')\n",
    )
    assert found["requested_time"].to_list() == [None, timedelta(minutes=90)]
    assert found["request.memory"].to_list() == [246_000 * 2**20, 0]
    assert found["request.nvidia.com/gpu"].to_list() == [4, 2]
    assert found["request.cpu"].to_list() == [60_000, 5_000]
    assert found["pods"].to_list() == [2, 1]
    assert found["limit.memory"].to_list() == [85 * 2**30, None]
    assert found["user"].to_list() == ["a", None]


def test_typed_times_need_no_unit_and_an_offset_of_hours_is_one(made: Make) -> None:
    """Timestamps of a zone, spans, and texts such as `2023-06-01 09:00:05+09`."""
    zone = pa.timestamp("ns", "+05:30")
    at = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    table = pa.table(
        {
            "id": ["x"],
            "submitted": [1.5],
            "ran": pa.array([timedelta(seconds=5)], pa.duration("ns")),
            "part": pa.array(["p"]).dictionary_encode(),
            "began": pa.array([at], zone),
            "over": ["2024-01-02 12:04:07+09"],
        }
    )
    found = made(table, "recorded_start: began\nrecorded_end: over\n")
    assert found["submit_time"].to_list() == [datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)]
    assert found["duration"].to_list() == [timedelta(seconds=5)]
    assert found["recorded_start"].to_list() == [at]
    assert found["recorded_end"].to_list() == [at + timedelta(seconds=2)]


def test_times_of_a_zone_follow_its_summer_time(tmp_path: Path) -> None:
    """An hour that occurs twice is the earlier one, and counted; differences are of instants."""
    table = tmp_path / "t.csv"
    table.write_text(
        "id,s,b,e\n1,2020-11-01 00:30:00,2020-11-01 00:30:00.5,2020-11-01 03:30:00\n2,2020-11-01 01:30:00,,\n"
    )
    mapping = tmp_path / "m.yaml"
    mapping.write_text(
        "zone: America/Los_Angeles\ncolumns: {job_id: id, submit_time: s, duration: e - b, queue: \"'q'\"}\n"
    )
    found = read(table, {"mapping": str(mapping), "also": ""})
    assert found.frame["duration"].to_list() == [timedelta(hours=4) - timedelta(seconds=0.5)]
    assert found.left_out == {"without duration": 1}
    assert "1 time is in an hour that occurs twice, and the earlier time is used" in found.notes


def test_rows_are_left_out_by_the_condition_that_they_do_not_meet(tmp_path: Path) -> None:
    """Each part of an `and` counts its own; what is not there meets no comparison."""
    table = tmp_path / "t.ndjson"
    rows = [
        {"id": each, "submitted": each, "ran": each, "part": part, "n": n}
        for each, (part, n) in enumerate([("a", 1), ("b", 1), ("a", 5), ("a", None), ("c", 2)])
    ]
    table.write_text("\n".join(map(json.dumps, rows)))
    mapping = tmp_path / "m.yaml"
    mapping.write_text(
        "where: part in ('a', 'c') and not n > 4 and n is not None\ncolumns:\n" + indented(NAMES)
    )
    found = read(table, {"mapping": str(mapping), "also": ""})
    assert found.frame["job_id"].to_list() == ["0", "4"]
    assert found.left_out == {"part in ('a', 'c') does not hold": 1, "not n > 4 does not hold": 2}


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def test_the_latest_row_of_a_job_counts(made: Make) -> None:
    """By the greatest value; the last of equal ones."""
    table = {
        "id": [1, 2, 1, 1],
        "submitted": [1, 2, 3, 4],
        "ran": [5] * 4,
        "part": ["q"] * 4,
        "at": [1, 1, 9, 9],
    }
    found = made(table, keys="latest: at")
    assert found.select("job_id", pl.col("submit_time").dt.epoch("s")).rows() == [("2", 2), ("1", 4)]


def test_a_folder_is_one_table_whose_types_are_widened(tmp_path: Path) -> None:
    """Empty and absent columns, other integers and other zones go together, in the order of the names."""
    for name, table in {
        "a.parquet": {"id": [1], "submitted": [datetime(2024, 1, 1)], "ran": [1], "part": ["a"], "g": [None]},
        "b.parquet": {
            "id": [2],
            "submitted": [datetime(2024, 1, 1, tzinfo=UTC)],
            "ran": [1.5],
            "part": ["b"],
        },
        "c.parquet": {"id": [3], "submitted": [datetime(2024, 1, 2)], "ran": [2], "part": ["c"], "g": [7]},
    }.items():
        (tmp_path / "d").mkdir(exist_ok=True)
        pl.DataFrame(table).write_parquet(tmp_path / "d" / name)
    (tmp_path / "d" / "notes.txt").write_text("no table")
    mapping = tmp_path / "m.yaml"
    columns = NAMES.replace("'submitted : unix'", "submitted") + "request.nvidia.com/gpu: g\n"
    mapping.write_text("files: '*.parquet'\ncolumns:\n" + indented(columns))
    found = read(tmp_path / "d", {"mapping": str(mapping), "also": ""}).frame
    assert found["job_id"].to_list() == ["1", "2", "3"]
    assert found["request.nvidia.com/gpu"].to_list() == [None, None, 7]
    assert found["duration"].to_list() == [timedelta(seconds=each) for each in (1, 1.5, 2)]


def packed(text: str) -> dict[str, bytes]:
    """A text as files of several kinds."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        member = tarfile.TarInfo("t.tsv")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text.encode()))
    zstd = pa.BufferOutputStream()
    with pa.CompressedOutputStream(zstd, "zstd") as stream:
        stream.write(text.encode())
    return {
        "t.tsv": text.encode(),
        "t.tsv.gz": gzip.compress(text.encode()),
        "t.tsv.bz2": bz2.compress(text.encode()),
        "t.tsv.xz": lzma.compress(text.encode()),
        "t.tsv.zst": zstd.getvalue().to_pybytes(),
        "t.tsv.tar.gz": archive.getvalue(),
    }


PACKED = ("t.tsv.gz", "t.tsv.bz2", "t.tsv.xz", "t.tsv.zst")


@pytest.mark.parametrize("mark", ["\t", ";", "|"])
def test_a_mapping_need_not_name_the_delimiter(mark: str, made: Make) -> None:
    """A first line without a comma has another one; a comma in a cell is no delimiter then."""
    rows = "id,submitted,ran,part\na,0,60,q\n".replace(",", mark) + f"b{mark}5{mark}60{mark}x,y\n"
    assert made(rows.encode(), name="t.csv")["queue"].to_list() == ["q", "x,y"]


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_file_that_is_cut_off_is_named(name: str, made: Make) -> None:
    """As what it is, and never read in part."""
    content = packed("id\tsubmitted\tran\tpart\n1\t10\t5\tq\n" * 99)[name]
    with pytest.raises(TraceError, match=r"is not a whole (gzip|bzip2|xz|zstd) file"):
        made(content[:-6], name=name)


@pytest.mark.parametrize("name", ["t.tsv", *PACKED, "t.tsv.tar.gz"])
def test_texts_may_be_packed(name: str, made: Make) -> None:
    """With tabs by their suffix."""
    content = packed("id\tsubmitted\tran\tpart\n1\t10\t5\tq\n")[name]
    assert made(content, keys="delimiter: tab", name=name)["duration"].to_list() == [timedelta(seconds=5)]


def test_cells_in_quotes_may_hold_line_breaks(made: Make) -> None:
    """Rows with too few or too many cells, and a quote that never closes, are named."""
    text = 'id,submitted,ran,part\n1,10,5,"a\nb"\n\n2,11,6,"say ""q"""\n'
    assert made(text.encode(), name="t.csv")["queue"].to_list() == ["a\nb", 'say "q"']
    for wrong, says in {
        text + "3,4\n5,6,7,8,9\n": "row 3: has 2 cells instead of 4",
        text + '3,12,7,"c\n4,13,8,d\n': "line 6: begins a row with a quote that does not close",
        text + "3,12,7,\xe9\n": "line 6: is not UTF-8 text: byte 0xe9",
    }.items():
        with pytest.raises(TraceError, match=re.escape(says)):
            made(wrong.encode("latin-1"), name="t.csv")


def test_values_of_objects_inside_a_row_are_columns(made: Make) -> None:
    """However deep they are; a row without the object has no value."""
    rows = [
        {"id": "a", "submitted": 0, "ran": 5, "part": "p", "need": {"cpu": "2", "disk": {"gb": 1}}},
        {"id": "b", "submitted": 1, "ran": 6, "part": "p"},
    ]
    amounts = "request.cpu: col('need.cpu')\nrequest.ephemeral-storage: \"col('need.disk.gb') : GB\"\n"
    found = made(json.dumps(rows).encode(), amounts, name="t.json")
    assert found.select("request.cpu", "request.ephemeral-storage").rows() == [(2000, 10**9), (None, None)]


@pytest.mark.parametrize("form", ["columns", "index", "split", "table"])
def test_forms_in_which_pandas_writes_json_are_tables(made: Make, form: str) -> None:
    """`columns` is the default of `to_json`. An empty cell is null there."""
    names = ["id", "submitted", "ran", "part", "n"]
    rows = [["a", 10, 60, "x", 2], ["b", 20, 30, "y", None]]
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    document: Any = {
        "columns": {name: {"0": rows[0][at], "1": rows[1][at]} for at, name in enumerate(names)},
        "index": {"0": objects[0], "1": objects[1]},
        "split": {"columns": names, "index": [0, 1], "data": rows},
        "table": {"schema": {"fields": [{"name": "id", "type": "string"}]}, "data": objects},
    }[form]
    keys = "records: data" if form == "table" else ""
    found = made(json.dumps(document).encode(), "pods: n\n", keys=keys, name="t.json")
    assert found.select("job_id", "queue", "pods").rows() == [("a", "x", 2), ("b", "y", None)]


@pytest.mark.parametrize("form", ["columns", "index"])
def test_an_index_of_job_ids_is_a_column(made: Make, form: str) -> None:
    """Pandas writes the index as keys. Keys that count the rows from 0 are no column."""
    table = {"id": ["a", "b"], "submitted": [10, 20], "ran": [60, 30], "part": ["x", "y"]}
    document: Any = {name: dict(zip(("1001", "1002"), cells, strict=True)) for name, cells in table.items()}
    if form == "index":
        document = {key: {name: document[name][key] for name in table} for key in ("1001", "1002")}
    found = made(json.dumps(document).encode(), "user: index\n", name="t.json")
    assert found.select("job_id", "user").rows() == [("a", "1001"), ("b", "1002")]


def test_json_that_is_cut_off_is_named_with_the_place(made: Make) -> None:
    """A document ends somewhere in its last line. In a file of one object a line, the line is named."""
    row = '{"id": 1, "submitted": 1, "ran": 5, "part": "q"}'
    with pytest.raises(TraceError, match=r"line 2: is not JSON: .* \(column 11\)"):
        made(f"[{row},\n{row[:20]}".encode(), name="t.json")
    with pytest.raises(TraceError, match="line 2: is neither a JSON value nor part of a JSON document"):
        made(f"{row}\n{row[:20]}".encode(), name="t.json")


@pytest.mark.parametrize("row", [["a", 10, 60, "x", 2, "more"], ["a", 10, 60, "x"]])
def test_no_cell_of_a_json_row_of_another_length_is_lost(made: Make, row: list[Any]) -> None:
    """Such a file is no table of pandas, so its columns are not those of the mapping."""
    document = {"columns": ["id", "submitted", "ran", "part", "n"], "data": [row]}
    with pytest.raises(TraceError, match="is in no file; there is: columns, data"):
        made(json.dumps(document).encode(), "pods: n\n", name="t.json")


def test_nan_is_nothing_in_json_as_in_parquet(made: Make) -> None:
    """An infinite number is a fault."""
    row = '{"id": 1, "submitted": 1, "ran": 5, "part": "q", "m": %s}\n'
    found = made((row % "NaN" + row % "7.0").encode(), "request.memory: m\n", name="t.ndjson")
    assert found["request.memory"].to_list() == [None, 7]
    with pytest.raises(TraceError, match="line 2: contains inf, which is not a number"):
        made((row % "NaN" + row % "Infinity").encode(), name="t.ndjson")


def test_keys_of_tres_that_are_there_with_types_alone_are_summed(made: Make) -> None:
    """A job whose GPUs are said by type alone has them all; beside the whole number types count nothing."""
    texts = [
        "gres/gpu:v100=2,gres/gpu:a100=1",
        "gres/gpu=4,gres/gpu:v100=4",
        "cpu=1,gres/gpumem=7",
        "gpu:v100:2",
    ]
    table = {"id": list("abcd"), "submitted": [1] * 4, "ran": [1] * 4, "part": ["q"] * 4, "t": texts}
    found = made(table, "request.nvidia.com/gpu: tres(t, 'gres/gpu', 'gpu')\n")
    assert found["request.nvidia.com/gpu"].to_list() == [3, 4, 0, 2]


def test_columns_of_true_and_false_are_conditions(made: Make) -> None:
    """Also as texts, whatever their case; other words are named."""
    table = jobs(ok=[True, False], said=["True", "no"], other=["yes", "maybe"])
    for keys, kept in {
        "ok": ["7"],
        "not ok": ["8"],
        "said": ["7"],
        "said == False and not ok": ["8"],
    }.items():
        assert made(table, keys=f"where: {keys}")["job_id"].to_list() == kept
    with pytest.raises(TraceError, match="row 2: where: column other: 'maybe' is neither true nor false"):
        made(table, keys="where: other")


def test_names_of_columns_are_taken_as_they_are_written(made: Make) -> None:
    """Python's parser takes the micro sign for a Greek letter."""
    found = made({**jobs(), "µs": [5, 6]}, "requested_time: 'µs : us'\n")
    assert found["requested_time"].to_physical().to_list() == [5, 6]


def test_nanoseconds_are_rounded_as_numbers_are(made: Make) -> None:
    """To the nearest microsecond, typed or counted, also before 1970."""
    at = [1_500, -1_499]
    table = pa.table(
        {
            **jobs(),
            "n": at,
            "t": pa.array(at, pa.timestamp("ns", "UTC")),
            "d": pa.array([1_499, 1_500], pa.duration("ns")),
        }
    )
    found = made(table, "recorded_start: t\nrecorded_end: 'n : unix-ns'\nrequested_time: d\n")
    assert found["recorded_start"].to_physical().to_list() == [2, -1]
    assert found["recorded_end"].to_physical().to_list() == [2, -1]
    assert found["requested_time"].to_physical().to_list() == [1, 2]


def test_faults_that_only_the_schema_finds_name_the_file_and_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several files and after rows were left out; such as a name that two jobs have."""
    (tmp_path / "d").mkdir()
    for name, rows in {"a.csv": ["1,1,5,q", "2,1,5,z"], "b.csv": ["3,1,5,q", "9,1,5,z", "1,1,5,q"]}.items():
        (tmp_path / "d" / name).write_text("\n".join(["id,submitted,ran,part", *rows, ""]))
    columns = NAMES + "request.cpu: \"'1000'\"\n"
    (tmp_path / "m.yaml").write_text("where: part != 'z'\ncolumns:\n" + indented(columns))
    out = str(tmp_path / "out.parquet")
    command = ["trace", "convert", str(tmp_path / "d"), out, "--map", str(tmp_path / "m.yaml")]
    assert called(command) == 2
    assert "b.csv: row 3 (job '1'), job_id" in capsys.readouterr().err


def test_a_text_without_a_header_has_columns_by_number(tmp_path: Path) -> None:
    """`col(3)` is the third one."""
    table = tmp_path / "t.csv"
    table.write_text("j1,5,60,q\nj2,6,61,r\n")
    mapping = tmp_path / "m.yaml"
    mapping.write_text(
        "header: false\ncolumns:\n  job_id: col(1)\n  submit_time: 'col(2) : unix'\n"
        "  duration: col(3)\n  queue: col(4)\n"
    )
    found = read(table, {"mapping": str(mapping), "also": ""}).frame
    assert found["job_id"].to_list() == ["j1", "j2"]
    assert found["queue"].to_list() == ["q", "r"]


def test_records_inside_a_document_are_rows(made: Make) -> None:
    """With what the element around them says."""
    document = [{"part": "x", "tasks": [{"id": "a", "submitted": 1.25, "ran": 1, "m": [1, 2]}]}]
    found = made(json.dumps(document).encode(), keys="records: tasks", name="t.json")
    assert found["queue"].to_list() == ["x"]
    assert found["submit_time"].to_list() == [datetime(1970, 1, 1, 0, 0, 1, 250_000, tzinfo=UTC)]


def test_cells_that_mean_nothing_are_named_by_file_row_and_column(made: Make) -> None:
    """All of them at once, with their values; none becomes a number."""
    table = jobs(cores=["4", "many"], limit=["1-00:00:00", "soon"], nodes=[1, 0])
    with pytest.raises(TraceError) as error:
        made(table, "request.cpu: cores\nrequested_time: span(limit)\npods: nodes\n")
    assert [str(each) for each in error.value.faults] == [
        "row 2: request.cpu: column cores: 'many' is not a number",
        "row 2: requested_time: column limit: 'soon' is not a span such as P0DT0H30M0S or 1-02:03:04",
        "row 2: pods: column nodes: '0' is less than 1",
    ]


@pytest.mark.parametrize(
    ("columns", "keys", "says"),
    [
        (
            "pods: nodes * 2\n",
            "",
            "pods: 'nodes * 2' at character 1 is not in the language; the language has",
        ),
        ("pods: a / b / c\n", "", "divides inside a term"),
        ("pods: open('x')\n", "", "calls open(), which the language does not have"),
        ("pods: id.__class__\n", "", "is not in the language"),
        ("pods: size(a, b)\n", "", "has 2 arguments; size() takes 1"),
        ("pods: " + "+".join(["a"] * 20_000) + "\n", "", "characters; at most 10,000 are read"),
        ("pods: " + "+".join(["a"] * 200) + "\n", "", "nests more than 100 deep"),
        ("pods: " + "+".join(["a"] * 3_000) + "\n", "", "is not understood"),
        ("pods: " + "(" * 3_000 + "a" + ")" * 3_000 + "\n", "", "is not understood"),
        ("pods: 'a if b else c'\n", "", "is not in the language"),
        ("podz: nodes\n", "", "podz: is not a column of a trace"),
        ("labels: \"'nodes'\"\n", "", "labels: 'nodes': cannot be 'nodes' in every row"),
        ("total.cpu: a\nrequest.cpu: a\n", "", "total.cpu: cannot be combined with request.cpu"),
        ("", "where: id\n", "where: id: column id is a number, but must be true or false"),
        ("", "where: part + 1\n", "where: 'part + 1' at character 1 is not a condition"),
        ("", "where: part < 3 < 4\n", "is not a condition"),
        ("", "zone: Mars\n", "zone: 'Mars' is not a time zone"),
        ("", "wher: part\n", "wher: is not a key of a mapping"),
        ("", "delimiter: ab\n", "delimiter: 'ab' is neither comma, tab, nor one character"),
        ("pods: nothere\n", "", "column nothere: is in no file"),
        ("request.memory: 'ran : QB'\n", "", "request.memory: ran : QB: 'QB' is not one of its units"),
        (
            "request.cpu: 'ran : s'\n",
            "",
            "request.cpu: ran : s: 's' is not one of its units (cores, millicores, %)",
        ),
        ("user: ran / 2\n", "", "user: ran / 2: divides, but the column needs text"),
        ("request.cpu: count(part)\n", "", "column part is text, but count() takes a list"),
    ],
)
def test_what_is_not_of_the_language_is_named_with_its_key(
    columns: str, keys: str, says: str, made: Make
) -> None:
    """And what the language has instead; nothing is called, and nothing crashes."""
    with pytest.raises(TraceError) as error:
        made(jobs(), columns, keys)
    assert says in "\n".join(map(str, error.value.faults))


def test_a_mapping_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    """A name that is nearly known is offered."""
    with pytest.raises(OptionError, match="mapping pm10: there is no mapping of this name") as error:
        read_mapping("pm10")
    assert "did you mean 'pm100'" in (error.value.hint or "")
    with pytest.raises(OptionError, match="no file of this name"):
        read_mapping(str(tmp_path / "none.yaml"))


def test_named_mappings_say_where_data_are_from_and_what_is_a_guess() -> None:
    """All of them are of the language."""
    assert len(named_mappings()) == 13
    for name in named_mappings():
        about = read_mapping(name).about
        assert {"about", "source", "licence", "left_out", "conventions"} <= set(about), name
        assert "machine" in about or any("no machine" in each for each in about["conventions"]), name


def test_the_machine_of_a_mapping_is_the_load_and_the_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So many equal nodes: `trace info` has the load of them, and `cluster init` makes as many."""
    pl.DataFrame(jobs(cores=[3, 4])).write_parquet(tmp_path / "t.parquet")
    machine = "machine: {nodes: 3, node: {cpu: 4, memory: 8Gi}, source: its page}\n"
    columns = indented(NAMES + "request.cpu: cores\n")
    (tmp_path / "m.yaml").write_text(f"{machine}columns:\n{columns}")
    out = str(tmp_path / "out.parquet")
    command = ["trace", "convert", str(tmp_path / "t.parquet"), out, "--map", str(tmp_path / "m.yaml")]
    assert called(command) == 0
    said = "the machine is assumed to have 3 nodes of cpu 4, memory 8Gi (its page)"
    assert said in capsys.readouterr().out
    assert called(["trace", "info", out]) == 0
    assert re.search(r"\ncpu .* 12 +35.3 %", capsys.readouterr().out)
    assert called(["cluster", "init", out, "-o", str(tmp_path / "c.yaml")]) == 0
    made = list(yaml.safe_load_all((tmp_path / "c.yaml").read_text()))
    nodes = [each["status"]["allocatable"]["cpu"] for each in made if each["kind"] == "Node"]
    assert nodes == ["4"] * 3
    for wrong, says in {
        "{nodes: 3}": "machine: must have the keys",
        "{nodes: 0, node: {cpu: 1}}": "machine.nodes: 0 is not a number from 1 to",
        "{nodes: 1, node: {cpu: x}}": "machine.node.cpu: 'x'",
        "{nodes: 1, node: {cpu: 0}}": "machine.node.cpu: 0 must be above 0",
        "{nodes: 1, node: 4}": "machine.node: must have an amount for each resource",
    }.items():
        (tmp_path / "m.yaml").write_text(f"machine: {wrong}\ncolumns:\n{columns}")
        with pytest.raises(TraceError) as error:
            read_mapping(str(tmp_path / "m.yaml"))
        assert says in "\n".join(map(str, error.value.faults))


def test_convert_takes_a_name_and_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was applied is printed, and the trace keeps it."""
    columns = {
        "job_id": ["a"], "submit_time": [1e6], "start_time": [1e6], "end_time": [1e6], "run_time": [5.0],
        "wallclock_req": [9.0], "nodes_req": [1], "processors_req": [36], "gpus_req": [0], "mem_req": [0.0],
        "user": ["u"], "partition": ["p"],
    }  # fmt: skip
    paths = []
    for name in "ab":
        path = tmp_path / f"{name}.parquet"
        times = pl.col("submit_time", "start_time", "end_time")
        frame = pl.DataFrame({**columns, "job_id": [name]}).with_columns(pl.from_epoch(times.cast(pl.Int64)))
        frame.write_parquet(path)
        paths.append(str(path))
    out = str(tmp_path / "out.parquet")
    assert called(["trace", "convert", *paths, out, "--map", "nrel_eagle"]) == 0
    told = capsys.readouterr().out
    assert "2 records read, 2 rows written" in told
    assert "times have no zone and are assumed to be UTC" in told
    assert pl.read_parquet(out)["request.cpu"].to_list() == [36_000, 36_000]
    assert called(["trace", "convert", *paths, out]) == 2
    assert "--map reads several files of one table" in capsys.readouterr().err
    assert called(["trace", "convert", paths[0], out, "--map", "nrel_eagle", "--reader", "csv"]) == 2


READ_SO_FAR = Path("/proc/self/io")


@pytest.mark.skipif(not READ_SO_FAR.is_file(), reason="the system does not say how much a process reads")
def test_only_the_bytes_of_named_columns_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of F-DATA's kind, whose embeddings of 384 numbers are most of the file, less than a twentieth."""
    count = 3000
    numbers = np.random.default_rng(7).random((count, 384), dtype=np.float32)
    columns = {
        "jid": [f"jid_{number}" for number in range(count)],
        "adt": ["2023-06-01 09:00:05+09"] * count,
        "sdt": ["2023-06-01 09:01:05+09"] * count,
        "edt": ["2023-06-01 10:01:05+09"] * count,
        "duration": [3600.0] * count,
        "nnuma": [2] * count,
        "cnumat": [96] * count,
        "mszl": [2.0**64] * count,
        "elpl": [7200.0] * count,
        "usr": ["u"] * count,
        "embedding": pa.FixedSizeListArray.from_arrays(numbers.ravel(), 384),
    }
    path = tmp_path / "fdata_23_06.parquet"
    pq.write_table(pa.table(columns), path)
    out = str(tmp_path / "out.parquet")
    assert (
        called(["trace", "convert", str(path), out, "--map", "fdata"]) == 0
    )  # what is read once is in memory
    before = bytes_read()
    assert called(["trace", "convert", str(path), out, "--map", "fdata"]) == 0
    assert bytes_read() - before < path.stat().st_size / 20
    capsys.readouterr()


def bytes_read() -> int:
    """How many bytes this process has read of files."""
    return int(READ_SO_FAR.read_text().split("rchar: ")[1].split()[0])


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="no tables beside the checkout")
@pytest.mark.parametrize("name", named_mappings())
def test_facsimiles_of_published_tables_have_the_values_that_they_mean(name: str) -> None:
    """Every value of every row, by the named mapping and by the one that stands beside the facsimiles."""
    truth = SHARED / "facsimile" / "truth" / f"{name}.csv"
    for mapping in (name, str(SHARED / "mappings" / f"{name}.yaml")):
        agrees(SHARED / "facsimile" / "data", mapping, truth)


@pytest.mark.parametrize("name", named_mappings())
def test_excerpts_of_facsimiles_have_the_values_that_they_mean(name: str) -> None:
    """Some thirty rows each, of all kinds that published tables have."""
    agrees(EXCERPTS / name, name, EXCERPTS / name / "truth.csv")


def agrees(data: Path, mapping: str, wanted: Path) -> None:
    """What a mapping makes of a folder is the truth, value by value."""
    truth = pl.read_csv(wanted, infer_schema=False)
    found = read(data, {"mapping": mapping, "also": ""}).frame
    assert found.height == truth.height
    if truth["job_id"].null_count() == 0:
        found, truth = found.sort("job_id"), truth.sort("job_id")
        assert found["job_id"].to_list() == truth["job_id"].to_list()
    gpus = next((each for each in found.columns if each.endswith("/gpu")), "")
    for column, wanted_column in (
        ("submit_time", "submit_time_us"),
        ("duration", "duration_us"),
        ("requested_time", "requested_time_us"),
        ("recorded_start", "recorded_start_us"),
        ("recorded_end", "recorded_end_us"),
        ("pods", "pods"),
        ("request.cpu", "request_cpu_millicores"),
        ("request.memory", "request_memory_bytes"),
        (gpus, "request_gpu"),
    ):
        if column in found.columns:
            values, right = found[column].to_physical().cast(pl.Int64), truth[wanted_column].cast(pl.Int64)
            if column.startswith("request."):
                values, right = values.fill_null(0), right.fill_null(0)
            assert values.to_list() == right.to_list(), column


@pytest.mark.parametrize(
    ("columns", "keys", "kept"),
    [
        ("", "where: used >= asked", ["1", "3"]),
        ("", "where: used >= '9'", ["1", "2"]),
        ("", "where: at > '2024-01-01T08:30:00Z'", ["3"]),
        ("", "where: not (used == '10')", ["2", "3"]),
        ("", "where: flag == True", ["1"]),
        ("", "latest: at", ["1", "2", "3"]),
    ],
)
def test_texts_are_ordered_as_the_numbers_or_times_that_they_are(
    columns: str, keys: str, kept: list[str], made: Make
) -> None:
    """Never by their letters: ten is more than nine, and an offset counts."""
    at = ["2024-01-01T10:00:00+02:00", "2024-01-01T08:30:00Z", "2024-01-02"]
    table = {"id": [1, 2, 3], "submitted": [1] * 3, "ran": [1] * 3, "part": ["q"] * 3, "at": at}
    table |= {"used": ["10", "9", "2"], "asked": ["9", "10", "2"], "flag": [True, False, None]}
    assert made(table, columns, keys)["job_id"].to_list() == kept


def test_what_cannot_be_ordered_is_no_latest(made: Make) -> None:
    """A text that is neither a number nor a time is named, and no row is taken by its place alone."""
    table = {"id": [1, 1], "submitted": [1] * 2, "ran": [1] * 2, "part": ["q"] * 2, "at": ["5", "N/A"]}
    with pytest.raises(TraceError, match="row 2: latest: column at: 'N/A' is not a number"):
        made(table, keys="latest: at")
    with pytest.raises(TraceError, match="latest: at is empty in all rows"):
        made({**table, "at": [None, None]}, keys="latest: at")


def test_the_cost_of_a_term_grows_with_its_size_alone(made: Make) -> None:
    """What one term needs of another is worked out once: nests, long sums and long lists take no time."""
    nested = "ran"
    for value in range(12):
        nested = f"unless({nested}, {value})"
    table = {"id": ["1"], "submitted": ["1"], "ran": ["60"], "part": ["q"]}
    several = ", ".join(map(str, range(300)))
    found = made(
        table,
        f"requested_time: {nested}\nrequest.cpu: {'+'.join(['ran'] * 90)}\n",
        f"where: ran in ({several})",
    )
    assert found["requested_time"].to_list() == [timedelta(seconds=60)]
    assert found["request.cpu"].to_list() == [90 * 60_000]


def test_numbers_that_mean_none_may_be_as_large_as_they_are(made: Make) -> None:
    """2^64 - 1 is what some schedulers write; whole numbers beyond a double stay whole."""
    table = {"id": [2**53 + 1, 2**53 + 2], "submitted": [1] * 2, "ran": [1] * 2, "part": ["q"] * 2}
    table["m"] = ["18446744073709551615", "7"]
    found = made(
        table,
        "request.memory: unless(m, 18446744073709551615)\nrequest.cpu: below(m, 18446744073709551615)\n",
    )
    assert found["request.memory"].to_list() == [None, 7]
    assert found["request.cpu"].to_list() == [None, 7000]
    assert found["job_id"].to_list() == [str(2**53 + 1), str(2**53 + 2)]


def test_a_file_of_another_table_is_no_part_of_a_folder(tmp_path: Path) -> None:
    """Its rows would be left out in silence."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.csv").write_text("id,submitted,ran,part\n1,1,1,q\n")
    (tmp_path / "d" / "b.csv").write_text("JobID,Submit\n1,2\n")
    (tmp_path / "m.yaml").write_text("columns:\n" + indented(NAMES))
    with pytest.raises(TraceError, match=r"b\.csv: has none of the columns that the mapping names"):
        read(tmp_path / "d", {"mapping": str(tmp_path / "m.yaml"), "also": ""})


def test_a_time_that_the_clocks_skip_is_named(made: Make) -> None:
    """It does not exist, in a typed column as in a text."""
    at = datetime(2024, 3, 31, 2, 30)
    for values in ([at], [at.isoformat()]):
        table = {"id": [1], "submitted": [1], "ran": [1], "part": ["q"], "at": values}
        with pytest.raises(TraceError, match="does not exist in Europe/Berlin, because the clocks skip it"):
            made(table, "recorded_start: at\n", "zone: Europe/Berlin")


def test_where_no_row_is_left_the_reasons_are_named(made: Make) -> None:
    """With their counts."""
    with pytest.raises(TraceError, match="no row is left of 2: 2 part == 'z' does not hold"):
        made(jobs(), keys="where: part == 'z'")

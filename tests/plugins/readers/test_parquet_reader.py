"""Canonical Parquet as a reader: the version it reads, and files that are damaged."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.base.errors import TraceError
from harness.plugins import load
from harness.trace.trace import open_trace

PLUGINS = load(only=["readers"])


def with_metadata(path: Path, **metadata: str) -> Path:
    """The same file with key-value metadata."""
    table = pq.read_table(path)
    pq.write_table(
        table.replace_schema_metadata({f"harness.{key}": text for key, text in metadata.items()}), path
    )
    return path


def test_metadata_of_ours_is_kept_and_conventions_become_notes(write_trace: Callable[..., Path]) -> None:
    """What other tools keep in a file's metadata is theirs."""
    path = with_metadata(write_trace({}), schema="1", source="here", conventions='["as is"]')
    opened = open_trace(path, PLUGINS)
    assert opened.metadata == {"harness.schema": "1", "harness.source": "here"}
    assert opened.notes == ("as is",)


def test_a_newer_schema_is_refused(write_trace: Callable[..., Path]) -> None:
    """Rather than misread."""
    with pytest.raises(TraceError, match=r"metadata harness\.schema: is '2'; this release reads version 1"):
        open_trace(with_metadata(write_trace({}), schema="2"), PLUGINS)


@pytest.mark.parametrize(
    "metadata", [{"conventions": "{"}, {"conventions": "[1]"}, {"left_out": "[]"}, {"left_out": '{"a": "b"}'}]
)
def test_metadata_that_is_not_ours_under_our_names_is_refused(
    write_trace: Callable[..., Path], metadata: dict[str, str]
) -> None:
    """Conventions are a list of texts, what was left out are counts."""
    with pytest.raises(TraceError, match=r"metadata harness\.\w+: is not a JSON"):
        open_trace(with_metadata(write_trace({}), **metadata), PLUGINS)


def test_a_file_cut_in_half_is_refused(write_trace: Callable[..., Path]) -> None:
    """At any place."""
    path = write_trace(*[{}] * 50)
    whole = path.read_bytes()
    for end in (4, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(TraceError, match="is not a whole Parquet file"):
            open_trace(path, PLUGINS)


@pytest.mark.parametrize("name", ["t.parquet.gz", "t.parquet", "t"])
def test_a_gzipped_file_is_what_it_holds(write_trace: Callable[..., Path], tmp_path: Path, name: str) -> None:
    """By its first bytes, whatever it is called, with its metadata."""
    plain = with_metadata(write_trace({"user": "u"}, {}), schema="1", source="here")
    whole, packed = plain.read_bytes(), tmp_path / "packed" / name
    expected = open_trace(plain, PLUGINS)
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(whole))
    opened = open_trace(packed, PLUGINS)
    assert (opened.reader, opened.metadata) == ("parquet", expected.metadata)
    assert opened.frame.equals(expected.frame)


def test_a_gzipped_file_that_is_damaged_is_refused(write_trace: Callable[..., Path]) -> None:
    """Cut off, of no Parquet, or of far more rows than its bytes can be jobs."""
    path = write_trace(*[{}] * 50)
    packed = gzip.compress(path.read_bytes())
    path.write_bytes(packed[:-20])
    with pytest.raises(TraceError, match="is not a whole gzip file"):
        open_trace(path, PLUGINS)
    path.write_bytes(gzip.compress(b"job_id,queue"))
    with pytest.raises(TraceError, match="is not a whole Parquet file"):
        open_trace(path, PLUGINS)
    pq.write_table(pa.table({"job_id": pa.repeat("a", 2_000_000)}), path)
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(TraceError, match=r"says that it holds 2,000,000 rows in [\d,]+ bytes"):
        open_trace(path, PLUGINS)


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    """No guess which one is meant."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1], "b": [2]}).rename_columns(["a", "a"]), path)
    with pytest.raises(TraceError, match="several columns with this name"):
        open_trace(path, PLUGINS)


def test_a_file_without_rows_is_refused(write_trace: Callable[..., Path]) -> None:
    """Columns alone are no trace."""
    path = write_trace({"labels": "x"})
    pl.read_parquet(path).drop("labels").clear().write_parquet(path)
    with pytest.raises(TraceError, match="holds no jobs"):
        open_trace(path, PLUGINS)


def test_texts_of_a_dictionary_are_texts(write_trace: Callable[..., Path]) -> None:
    """Many tools write categories."""
    path = write_trace({"user": "u"}, {"user": None})
    texts = open_trace(path, PLUGINS).frame
    pl.read_parquet(path).with_columns(pl.col("user").cast(pl.Categorical)).write_parquet(path)
    opened = open_trace(path, PLUGINS).frame
    assert opened["user"].to_list() == ["u", None]
    assert opened.schema == texts.schema


JOBS = {
    "job_id": pa.array(["a", "b"]),
    "submit_time": pa.array([0, 1], pa.duration("us")),
    "duration": pa.array([5_000_000, 6_000_000], pa.duration("us")),
    "queue": pa.array(["q", "q"]),
    "request.cpu": pa.array([1000, 1000]),
}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
@pytest.mark.parametrize("with_dictionary", [True, False])
def test_each_part_of_a_file_may_have_its_own_dictionary(
    tmp_path: Path, kind: pa.DataType, with_dictionary: bool
) -> None:
    """Recurring texts are read as the dictionaries of the row groups, whose codes differ."""
    users = ["a", "b", None, "b", "c", "a"]
    jobs = {name: pa.concat_arrays([column] * 3) for name, column in JOBS.items()}
    table = pa.table(jobs | {"job_id": list("123456"), "user": pa.array(users).cast(kind)})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=2, use_dictionary=with_dictionary)
    assert open_trace(path, PLUGINS).frame["user"].to_list() == users


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([Decimal("1.5")] * 2, pa.decimal256(50, 2)),
        ([[], []], pa.list_(pa.int64(), 0)),
        ([[[]], []], pa.list_(pa.list_(pa.int64(), 0))),
        ([[("k", Decimal(1))], []], pa.map_(pa.string(), pa.decimal256(50, 0))),
        ([{"x": Decimal(1)}] * 2, pa.struct([("x", pa.decimal256(50, 0))])),
    ],
)
def test_a_further_column_that_cannot_be_read_does_not_matter(
    values: list[Any], kind: pa.DataType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is left aside and named; no panic of a library reaches the screen. A needed one is a fault."""
    path = tmp_path / "jobs.parquet"
    pq.write_table(pa.table({**JOBS, "x": pa.array(values, kind)}), path)
    trace = open_trace(path, PLUGINS)
    assert trace.frame.columns == list(JOBS)
    assert [note for note in trace.notes if note.startswith("column x is ignored, because ")]
    pq.write_table(pa.table({**JOBS, "user": pa.array(values, kind)}), path)
    with pytest.raises(TraceError) as told:
        open_trace(path, PLUGINS)
    (fault,) = told.value.faults
    assert str(fault).startswith("column user: ")
    assert "is not a readable type" in str(fault)
    assert "write it as the type that docs/traces.md names" in str(told.value.hint)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("zone", ["+05:30", "-08:00", "Z", "Mars/Phobos", "Europe/Berlin", "UTC", None])
def test_times_of_any_zone_are_instants(
    zone: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Parquet holds them as of UTC; where the zone is not known they are told so."""
    times = [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 1, tzinfo=UTC)]
    columns = {**JOBS, "submit_time": pa.array(times, pa.timestamp("us", zone))}
    columns["x"] = pa.array([[times[0]], []], pa.list_(pa.timestamp("ms", zone)))
    path = tmp_path / "jobs.parquet"
    pq.write_table(pa.table(columns), path)
    trace = open_trace(path, PLUGINS)
    assert trace.frame["submit_time"].to_physical().to_list() == [
        1_704_067_200_000_000,
        1_704_070_800_000_000,
    ]
    assert "x" in trace.frame.columns
    if zone in ("Z", "Mars/Phobos", "+05:30"):
        assert trace.time_zone == "UTC"
    assert capfd.readouterr().err == ""


def test_a_column_of_128_bits_cannot_be_read(tmp_path: Path) -> None:
    """The file is not damaged, but pyarrow reads none of its columns if it does not know one type."""
    path = tmp_path / "wide.parquet"
    pl.DataFrame({"n": pl.Series([1], dtype=pl.Int128)}).write_parquet(path)
    with pytest.raises(TraceError, match="has columns that cannot be read: Integers with more than 64 bits"):
        open_trace(path, PLUGINS)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse file names that are not UTF-8")
def test_a_file_name_need_not_be_utf8(write_trace: Callable[..., Path]) -> None:
    """Linux allows any bytes in a file name, but pyarrow opens only names in UTF-8."""
    path = write_trace({})
    other = path.rename(os.fsdecode(os.fsencode(path.parent) + b"/a\xff.parquet"))
    assert open_trace(other, PLUGINS).frame.height == 1

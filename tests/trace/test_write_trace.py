"""Canonical Parquet: the same bytes for the same trace, and nothing lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.base.errors import InputError
from harness.plugins import load
from harness.trace.trace import Trace, open_trace
from harness.trace.write import write_trace as write

PLUGINS = load(only=["readers"])


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> Trace:
    """A trace with conventions, a column of its own, and rows left out."""
    path = write_trace(
        {"pods": 2, "priority": 3, "user": "ä", "remark": 1.5}, {"submit_time": 1, "pods": None}
    )
    notes = ("first", "zweitens ✓")
    return replace(open_trace(path, PLUGINS), notes=notes, left_out={"cancelled": 3}, rows_read=5)


def test_what_is_written_is_read_again(trace: Trace, tmp_path: Path) -> None:
    """Rows, conventions and metadata survive; what was left out stays in the metadata."""
    target = tmp_path / "out.parquet"
    write(trace, target)
    again = open_trace(target, PLUGINS)
    assert again.frame.equals(trace.frame)
    assert again.frame.schema == trace.frame.schema
    assert again.notes == trace.notes
    assert again.metadata == {
        "harness.left_out": '{"cancelled": 3}',
        "harness.schema": "1",
        "harness.source": "trace.parquet",
    }


def test_the_same_trace_gives_the_same_bytes(trace: Trace, tmp_path: Path) -> None:
    """Twice written, and written again from what was written."""
    one, two, three = (tmp_path / f"{name}.parquet" for name in ("one", "two", "three"))
    write(trace, one)
    write(trace, two)
    write(replace(open_trace(one, PLUGINS), left_out={}), three)
    assert one.read_bytes() == two.read_bytes() == three.read_bytes()


def test_the_file_has_the_types_of_the_schema(tmp_path: Path) -> None:
    """Any reader of Parquet sees strings, timestamps and maps, not what polars makes of them."""
    source = tmp_path / "in.parquet"
    pq.write_table(
        pa.table(
            {
                "job_id": ["a"],
                "submit_time": pa.array([datetime(2020, 1, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC")),
                "duration": pa.array([timedelta(seconds=1)], pa.duration("s")),
                "queue": pa.array(["q"]).dictionary_encode(),
                "request.cpu": pa.array([1], pa.uint8()),
                "labels": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())),
            }
        ),
        source,
    )
    target = tmp_path / "out.parquet"
    write(open_trace(source, PLUGINS), target)
    schema = pq.read_schema(target)
    assert pa.types.is_map(schema.field("labels").type)
    assert {field.name: str(field.type) for field in schema if field.name != "labels"} == {
        "job_id": "string",
        "submit_time": "timestamp[us, tz=UTC]",
        "duration": "duration[us]",
        "queue": "string",
        "request.cpu": "int64",
    }
    assert schema.metadata[b"harness.schema"] == b"1"


def test_labels_are_a_map_in_the_file_whatever_the_frame_has(trace: Trace, tmp_path: Path) -> None:
    """Lists of entries, as older tools write maps, become maps; an absent map stays absent."""
    entry = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
    labels = pl.Series(
        "labels", [[{"key": "b", "value": "2"}, {"key": "a", "value": "1"}], None], dtype=entry
    )
    target = tmp_path / "out.parquet"
    write(replace(trace, frame=trace.frame.with_columns(labels)), target)
    assert pq.read_table(target)["labels"].to_pylist() == [[("a", "1"), ("b", "2")], None]


def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(trace: Trace, tmp_path: Path) -> None:
    """A missing folder, or a folder in the way."""
    with pytest.raises(InputError, match="cannot be written: there is no folder"):
        write(trace, tmp_path / "none" / "out.parquet")
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write(trace, tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken", "trace.parquet"]


def test_a_failed_write_leaves_the_old_file(trace: Trace, tmp_path: Path) -> None:
    """A file is whole or as it was before."""
    target = tmp_path / "out.parquet"
    target.write_text("before")
    odd = pl.Series("odd", [{}, {}], dtype=pl.Struct([]))  # Parquet has no structs without fields
    with pytest.raises(InputError, match="cannot be written"):
        write(replace(trace, frame=trace.frame.with_columns(odd)), target)
    assert target.read_text() == "before"

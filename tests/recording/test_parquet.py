"""Columns on their way to the files."""

from __future__ import annotations

import subprocess
import sys
from array import array
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from harness.base.arrays import as_series
from harness.base.tables.parquet import FEW, TableWriter, TimeKind

_SCHEMA = {
    "time": pl.Int64(),
    "job": pl.Int32(),
    "queue": pl.String(),
    "lost": pl.Duration("us"),
    "seen": pl.Datetime("ms", "Europe/Berlin"),
    "waited": pl.Duration("ms"),
    "share": pl.Float64(),
}
_ORIGIN = 1_700_000_000_000_000
_ROWS = {
    "queue": pl.Series(["a", None], dtype=pl.Categorical),
    "time": pl.Series([5, None]),
    "job": pl.Series([3, 4]),
    "lost": pl.Series([7, None]),
    "seen": pl.Series([datetime(2026, 3, 1, tzinfo=UTC), None]).dt.cast_time_unit("ms"),
    "waited": pl.Series([timedelta(seconds=1), None]).dt.cast_time_unit("ms"),
    "share": pl.Series([0.1, None]),
}


@pytest.mark.parametrize("chunks", [0, 1, 3])
@pytest.mark.parametrize("kind", [TimeKind(), TimeKind(_ORIGIN, timestamp=True, zone="Europe/Berlin")])
def test_a_short_table_in_memory_is_the_one_in_its_file(kind: TimeKind, chunks: int, tmp_path: Path) -> None:
    """With the same types and the same bytes, whether it was written at once or later."""
    rows = dict(_ROWS, seen=_ROWS["seen"].dt.convert_time_zone("Europe/Berlin"))
    found = []
    for name, files in (("now", True), ("later", False)):
        writer = TableWriter(tmp_path / name, _SCHEMA, kind, files=files)
        for _ in range(chunks):
            writer.write(rows)
        found.append(writer.close())
    now, later = found
    assert now is not None
    assert later is not None
    assert not (tmp_path / "later").exists()
    read = pl.read_parquet(tmp_path / "now", glob=False)
    assert read.schema == now.frame.schema
    assert read.equals(now.frame)
    assert read.height == 2 * chunks
    assert now.micros.equals(later.micros)
    assert now.micros.dtypes == [
        pl.Int64,
        pl.Int32,
        pl.String,
        pl.Int64,
        pl.Datetime("ms", "Europe/Berlin"),
        pl.Int64,
        pl.Float64,
    ]
    later.write(tmp_path / "later")
    assert (tmp_path / "later").read_bytes() == (tmp_path / "now").read_bytes()
    assert pq.read_metadata(tmp_path / "now").num_row_groups == chunks


def test_a_table_that_is_not_short_is_a_file_and_nothing_else(tmp_path: Path) -> None:
    """Also where short ones are to be no files; chunk by chunk, as it came."""
    writer = TableWriter(tmp_path / "t", {"n": pl.Int64()}, TimeKind(), files=False)
    for rows in (FEW - 1, 1, 1):
        writer.write({"n": pl.Series(range(rows))})
    assert writer.close() is None
    assert pq.read_metadata(tmp_path / "t").num_rows == FEW + 1
    assert pq.read_metadata(tmp_path / "t").num_row_groups == 3


@pytest.mark.parametrize("dtype", [pl.Enum(["a", "b"]), pl.Categorical()])
def test_what_a_file_may_give_back_as_another_type_is_read_from_it(
    dtype: pl.DataType, tmp_path: Path
) -> None:
    """A trace's own column can be of any type."""
    writer = TableWriter(tmp_path / "t", {"site": dtype}, TimeKind(), files=False)
    writer.write({"site": pl.Series(["b"])})
    assert writer.close() is None
    assert pl.read_parquet(tmp_path / "t")["site"].cast(pl.String).to_list() == ["b"]


def test_machine_numbers_become_a_column() -> None:
    """Of each width that is kept, wherever they lie in memory."""
    for code, name in (("q", "Int64"), ("i", "Int32"), ("b", "Int8")):
        column = as_series(array(code, [1, -1, 0]))
        assert (str(column.dtype), column.to_list()) == (name, [1, -1, 0])
    assert as_series(array("q")).to_list() == []
    assert as_series(np.array([[1.5, 2.5], [3.5, 4.5]])[:, 1]).to_list() == [2.5, 4.5]


def test_a_column_imports_neither_functions_of_pyarrow_nor_masked_arrays() -> None:
    """They take longer than a short replay."""
    code = (
        "import sys, numpy; from array import array; from harness.base.arrays import as_series; "
        "dear = {'pyarrow.compute', 'numpy.ma'} - set(sys.modules); "  # an older numpy imports all of itself
        "as_series(array('q', [1])); sys.exit(bool(dear & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

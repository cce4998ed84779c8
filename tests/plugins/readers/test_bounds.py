"""Small files that would fill the memory, or take for ever, are refused with their bound."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reader_samples import COLLECTIONS, INSTANCES, OPENB_SHORT, SWF

from harness.base.errors import OptionError, TraceError
from harness.plugins import load
from harness.readers.gangs import pods_of
from harness.readers.source import every_line
from harness.trace.trace import Trace, open_trace

PLUGINS = load(only=["readers"])


def read(path: Path, reader: str, options: Mapping[str, Any] | None = None) -> Trace:
    return open_trace(path, PLUGINS, reader=reader, options=options or {})


def packed(contents: bytes, times: int) -> bytes:
    """A gzip file of many members, which holds the contents so many times."""
    return gzip.compress(contents * 1000, mtime=0) * (times // 1000)


@pytest.mark.parametrize("line", [b"0" * 999 + b"\n", b"\n" * 1000, b"1 " * 500])
def test_a_gzip_file_that_would_fill_the_memory(tmp_path: Path, line: bytes) -> None:
    """100 kB that become 100 MB are no log; the message says from where on they are not."""
    path = tmp_path / "log.swf.gz"
    path.write_bytes(packed(line, 100_000))
    assert path.stat().st_size < 300_000
    with pytest.raises(TraceError, match=r"unpacks to more than 64 MiB") as caught:
        read(path, "swf")
    assert caught.value.hint is not None
    assert "gunzip" in caught.value.hint


def test_a_log_that_packs_well_is_read(tmp_path: Path) -> None:
    """Several members, and zeros after them, as some tools write."""
    path = tmp_path / "log.swf.gz"
    header, job = SWF.split("\n")[0], SWF.split("\n")[2]
    jobs = "\n".join(job.replace("11", str(number), 1) for number in range(5_000)).encode()
    path.write_bytes(gzip.compress(header.encode() + b"\n") + gzip.compress(jobs) + bytes(512))
    assert read(path, "swf").frame.height == 5_000


def test_many_lines_that_are_no_records_are_given_up(tmp_path: Path) -> None:
    """Tens of thousands of short lines: the first of them are named, the others are not kept."""
    path = tmp_path / "log.swf"
    path.write_bytes(b"1\n" * 100_000)
    with pytest.raises(TraceError, match="has 1 column instead of 18") as caught:
        read(path, "swf")
    assert len(caught.value.faults) == 1001
    assert "9,000 more faults" in str(caught.value.faults[-1])


@pytest.mark.parametrize(
    ("reader", "name", "contents"),
    [
        ("philly-log", "cluster_job_log", json.dumps([1] * 50_000)),
        ("kubernetes", "answer.json", json.dumps({"kind": "List", "items": [1] * 50_000})),
        ("google-2019", "collection_events.json", "1\n" * 50_000),
    ],
)
def test_many_values_that_are_no_jobs_are_given_up(
    tmp_path: Path, reader: str, name: str, contents: str
) -> None:
    """A fault is kept for some, not for each."""
    (tmp_path / name).write_text(contents)
    (tmp_path / "instance_events.json").write_text(INSTANCES)
    with pytest.raises(TraceError) as caught:
        read(tmp_path / name, reader)
    assert len(caught.value.faults) == 1001


@pytest.mark.parametrize("reader", ["swf", "openb", "google-2019"])
def test_a_line_without_an_end(tmp_path: Path, reader: str) -> None:
    """A record of more than a megabyte is none."""
    (tmp_path / "file").write_bytes(b"\n" + b"1 " * 600_000)
    options = {"instances": str(tmp_path / "file")} if reader == "google-2019" else {}
    with pytest.raises(TraceError, match=r"line 2: has 1,200,000 bytes; a record has at most 1,048,576"):
        read(tmp_path / "file", reader, options)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_are_the_same_however_they_are_cut(end: bytes) -> None:
    """Blocks end between lines, also where a line's end is of two bytes."""
    lines = [b"x" * (number % 97) for number in range(60_000)]
    data = end.join(lines)
    assert len(data) > 2 << 20
    assert list(every_line(data)) == data.splitlines()


def test_json_that_is_nested_without_end(tmp_path: Path) -> None:
    """A hundred levels are read, more are refused before anything else is."""
    path = tmp_path / "answer.json"
    for levels, says in ((90, "must be a Kubernetes object"), (110, "nested more than 100 levels deep")):
        path.write_text('{"kind": "List", "items": [' + "[" * levels + "]" * levels + "]}")
        with pytest.raises(TraceError, match=says):
            read(path, "kubernetes")


def test_a_parquet_file_of_more_rows_than_it_can_name(tmp_path: Path) -> None:
    """A few kilobytes that unfold to a hundred million rows."""
    path = tmp_path / "trace.parquet"
    with pq.ParquetWriter(path, pa.schema([("job_id", pa.string())]), compression="zstd") as writer:
        column = pa.DictionaryArray.from_arrays(pa.array([0]).take(pa.array([0] * 1_000_000)), ["a"])
        for _ in range(3):
            writer.write_table(pa.table({"job_id": column.cast(pa.string())}))
    assert path.stat().st_size < 10_000
    with pytest.raises(TraceError, match=r"says that it holds 3,000,000 rows in [\d,]+ bytes"):
        read(path, "parquet")


@pytest.mark.parametrize(("option", "value"), [("cores", "1e30"), ("cores", "0"), ("memory", "2Ei")])
def test_a_machine_of_a_size_that_no_machine_has(tmp_path: Path, option: str, value: str) -> None:
    """The option is named, with its bounds."""
    (tmp_path / "collection_events.json").write_text(COLLECTIONS)
    (tmp_path / "instance_events.json").write_text(INSTANCES)
    with pytest.raises(OptionError, match=f"option {option}: must be more than 0 and at most"):
        read(tmp_path / "collection_events.json", "google-2019", {option: value})


def test_an_instance_that_asks_for_more_than_can_be_counted(tmp_path: Path) -> None:
    """A request far beyond the largest machine names its row."""
    (tmp_path / "collection_events.json").write_text(COLLECTIONS)
    (tmp_path / "instance_events.json").write_text(INSTANCES.replace("0.25", "1e6"))
    with pytest.raises(TraceError, match=r"request.memory: .* row 1 has .*, which does not fit"):
        read(tmp_path / "collection_events.json", "google-2019", {"memory": "1Pi"})


def test_times_before_the_trace_are_no_times(tmp_path: Path) -> None:
    """Google's events count from the trace's start."""
    (tmp_path / "collection_events.json").write_text(COLLECTIONS.replace('"7"', '"-9223372036854775807"'))
    (tmp_path / "instance_events.json").write_text(INSTANCES)
    with pytest.raises(TraceError, match=r"line 1: time: -9223372036854775807 is negative"):
        read(tmp_path / "collection_events.json", "google-2019")


def test_megabytes_that_do_not_fit_64_bits_as_bytes(tmp_path: Path) -> None:
    """OpenDC's memory is multiplied by a million, which must not wrap."""
    tasks = {"id": [1], "submission_time": [0], "duration": [1], "cpu_count": [1], "mem_capacity": [2**53]}
    pl.DataFrame(tasks).write_parquet(tmp_path / "tasks.parquet")
    with pytest.raises(TraceError, match=r"column request.memory: .* row 1 has 9007199254740992000000"):
        read(tmp_path / "tasks.parquet", "opendc")


def test_arrivals_at_a_rate_that_has_no_end(tmp_path: Path) -> None:
    """Two pods in ten million years."""
    (tmp_path / "pods.csv").write_text(OPENB_SHORT)
    with pytest.raises(OptionError, match="option rate: 2 pods would arrive over more than a hundred years"):
        read(tmp_path / "pods.csv", "openb", {"rate": "1e-11"})


def test_a_job_of_more_processors_than_any_machine(tmp_path: Path) -> None:
    """A mistaken column: the line is named, and no divisor of it is looked for."""
    (tmp_path / "log.swf").write_text(SWF.replace("43306   32", "43306   3200000000"))
    with pytest.raises(TraceError, match=r"line 3: column 5 \(allocated\): '3200000000' is out of range"):
        read(tmp_path / "log.swf", "swf")


def test_parts_of_large_jobs_are_found_at_once() -> None:
    """The largest divisor that a node holds, of primes and of powers of ten alike."""
    jobs = pods_of(pl.Series([999_999_937, 10**9, 12, 7]), 10**8, "processors_per_node")
    assert jobs["each"].to_list() == [1, 10**8, 12, 7]
    assert jobs["pods"].to_list() == [999_999_937, 10, 1, 1]

"""Damaged files of every format: they are read, or refused by name, whatever happened to them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.cluster.model import Cluster
from harness.errors import TraceError
from harness.plugins import load
from harness.trace.jobs import Jobs
from harness.trace.summary import summarize
from harness.trace.trace import open_trace
from harness.trace.write import write_trace as write

PLUGINS = load(only=["readers"])

SWF = (
    b"; UnixStartTime: 1027839845\n; MaxProcs: 240\n"
    b"   11   342072     32  43306   32  43307    -1   32  43200    -1  1   4   1  -1 -1  1 -1 -1\n"
    b"   12   342343      5    553   40 552.21    -1   40  43200 15640  1   4   1  -1 -1  1 -1 -1\n"
    b"   13   342926   6042  10027   10  10030    -1   -1     -1    -1  5   3   2  -1  2  1 -1 -1\n"
)
PHILLY = (
    b"timestamp,duration,num_gpus,gpu_time,cluster\n"
    b"2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
    b"2017-10-09 06:13:03,2951.0,12,35412.0,6214e9\n"
)

pieces = st.sampled_from(
    [b"", b"\n", b"\r", b"\r\n", b" ", b"\t", b",", b";", b"-", b".", b"-1", b"e9", b"nan", b"inf", b"9" * 19,
     b"0x1", b"\xff", b"\xef\xbb\xbf", b"\0", b'"', b"; UnixStartTime: 1e9\n", b"_", "٣".encode()]
)  # fmt: skip
edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 12), pieces | st.binary(max_size=4)),
    min_size=1,
    max_size=5,
)
sloppy = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def edited(data: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """At each place so many bytes replaced by others."""
    for place, length, piece in changes:
        start = int(place * len(data))
        data = data[:start] + piece + data[start + length :]
    return data


def use(path: Path, reader: str | None = None) -> None:
    """Whatever can be done with a trace; only a named error may come of it."""
    try:
        opened = open_trace(path, PLUGINS, reader=reader)
    except TraceError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert refused.faults
        assert str(refused).startswith(str(path))
        return
    summary = summarize(opened)
    jobs = Jobs(opened, Cluster())
    assert summary.jobs == len(jobs) == sum(len(chunk) for chunk in jobs.chunks())
    assert opened.rows_read == opened.frame.height + sum(opened.left_out.values())
    copy = path.with_name("copy.parquet")
    write(opened, copy)
    assert open_trace(copy, PLUGINS).frame.equals(opened.frame)


@sloppy
@given(edits)
def test_a_mutated_log_is_read_or_refused(tmp_path: Path, changes: list[tuple[float, int, bytes]]) -> None:
    """Standard Workload Format."""
    path = tmp_path / "log.swf"
    path.write_bytes(edited(SWF, changes) or b"\n")
    use(path)


@sloppy
@given(edits)
def test_a_mutated_extract_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, int, bytes]]
) -> None:
    """The Philly extract."""
    path = tmp_path / "philly.csv"
    path.write_bytes(edited(PHILLY, changes) or b"\n")
    use(path, "philly")


@sloppy
@given(edits)
def test_a_mutated_gzip_file_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, int, bytes]]
) -> None:
    """The same under gzip, where any change breaks the checksum."""
    path = tmp_path / "log.swf.gz"
    path.write_bytes(edited(gzip.compress(SWF, mtime=0), changes) or b"\n")
    use(path)


@sloppy
@given(edits)
def test_mutated_parquet_is_read_or_refused(
    tmp_path: Path, write_trace: Callable[..., Path], changes: list[tuple[float, int, bytes]]
) -> None:
    """Canonical Parquet: pages, footers, anything."""
    path = write_trace(
        {"user": "u", "gang": True, "pods": 3, "priority": 1}, {"submit_time": 2, "user": "v", "pods": 1}
    )
    path.write_bytes(edited(path.read_bytes(), changes) or b"\n")
    use(path)


@pytest.mark.parametrize("reader", ["parquet", "philly", "swf"])
@given(data=st.binary(min_size=1, max_size=200))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_refused_by_every_reader(tmp_path: Path, reader: str, data: bytes) -> None:
    """Asked for by name, a reader gets what is not its format at all."""
    path = tmp_path / "any"
    path.write_bytes(data)
    use(path, reader)

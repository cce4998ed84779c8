"""The Philly extract: ids by submission, gangs of equal pods, and lines that are refused."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import OptionError, TraceError
from harness.plugins import load
from harness.trace.trace import Trace, open_trace

PLUGINS = load(only=["readers"])
HEAD = "timestamp,duration,num_gpus,gpu_time,cluster\n"
GPU = "request.nvidia.com/gpu"


def read(folder: Path, text: str, **options: Any) -> Trace:
    """The trace of an extract."""
    path = folder / "philly.csv"
    path.write_text(text)
    return open_trace(path, PLUGINS, options=options)


def of_sizes(*gpus: int) -> str:
    """An extract with a job of each size."""
    return HEAD + "".join(f"2017-10-09 07:01:55,2.0,{size},{2.0 * size},vc\n" for size in gpus)


def test_rows_are_numbered_in_order_of_submission(tmp_path: Path) -> None:
    """The sort is stable: of two at one second the first row is first."""
    opened = read(
        tmp_path,
        HEAD
        + "2017-10-09 07:01:55,66.0,1,66.0,b\n"
        + "2017-10-09 06:13:03,2951.5,2,5903.0,a\n"
        + "2017-10-09 07:01:55,1,1,1,c\n\n",
    )
    assert opened.frame.to_dicts() == [
        {
            "job_id": str(number),
            "submit_time": datetime(2017, 10, 9, hour, minute, second),
            "duration": timedelta(seconds=seconds),
            "queue": queue,
            GPU: gpus,
            "pods": 1,
            "gang": False,
        }
        for number, (hour, minute, second), seconds, queue, gpus in (
            (1, (6, 13, 3), 2951.5, "a", 2),
            (2, (7, 1, 55), 66, "b", 1),
            (3, (7, 1, 55), 1, "c", 1),
        )
    ]
    assert (opened.time_zone, opened.rows_read, dict(opened.left_out)) == (None, 3, {})


def test_a_job_larger_than_a_node_is_a_gang_of_equal_pods(tmp_path: Path) -> None:
    """Each pod has the largest divisor of the job's GPUs that a node can hold."""
    opened = read(tmp_path, of_sizes(1, 7, 8, 9, 12, 13, 16, 24, 32, 64, 128))
    pods = opened.frame.select(GPU, "pods", "gang").rows()
    assert pods == [
        (1, 1, False), (7, 1, False), (8, 1, False), (3, 3, True), (6, 2, True), (1, 13, True), (8, 2, True),
        (8, 3, True), (8, 4, True), (8, 8, True), (8, 16, True),
    ]  # fmt: skip


def test_the_size_of_a_node_is_an_option(tmp_path: Path) -> None:
    """With 4 GPUs a node, 8 are two pods."""
    opened = read(tmp_path, of_sizes(4, 8, 6), gpus_per_node="4")
    assert opened.frame.select(GPU, "pods").rows() == [(4, 1), (4, 2), (3, 2)]
    with pytest.raises(OptionError, match="gpus_per_node: 0 must be at least 1"):
        read(tmp_path, of_sizes(4), gpus_per_node="0")


def test_source_and_licence_are_kept(tmp_path: Path) -> None:
    """The licence asks for attribution."""
    metadata = read(tmp_path, of_sizes(1)).metadata
    assert "msr-fiddle/philly-traces" in metadata["harness.source"]
    assert metadata["harness.license"].startswith("CC-BY-4.0; Jeon et al.")


def test_malformed_lines_are_all_named(tmp_path: Path) -> None:
    """Each with its line, column and word."""
    text = HEAD + (
        "2017-10-09 07:01:55,66.0,1,66.0,a\n"
        "2017-10-09,66.0,1,66.0,a\n"
        "\n"
        "2017-10-09 07:01:55,x,1,66.0,a\n"
        "2017-10-09 07:01:55,-1,1,-1,a\n"
        "2017-10-09 07:01:55,66.0,1.5,99.0,a\n"
        "2017-10-09 07:01:55,66.0,2,66.0,a\n"
        "2017-10-09 07:01:55,66.0,1,66.0,\n"
        "2017-10-09 07:01:55,66.0,1\n"
        "2017-10-09 07:01:55,1e30,1,1e30,a\n"
        "2017-10-09 07:01:55,nan,1,nan,a\n"
    )
    with pytest.raises(TraceError) as caught:
        read(tmp_path, text)
    assert [str(fault) for fault in caught.value.faults] == [
        "line 3: timestamp: '2017-10-09' is not a time such as 2017-10-09 07:01:55",
        "line 5: duration: 'x' is not a number",
        "line 6: duration: '-1' is out of range (0 to 9,007,199,254)",
        "line 6: gpu_time: '-1' is out of range (0 to 9,007,199,254)",
        "line 7: num_gpus: '1.5' is not a whole number",
        "line 8: gpu_time: '66.0' is not duration x num_gpus: the row was damaged",
        "line 9: cluster: is empty",
        "line 10: has 3 columns instead of 5",
        "line 11: duration: '1e30' is out of range (0 to 9,007,199,254)",
        "line 11: gpu_time: '1e30' is out of range (0 to 9,007,199,254)",
        "line 12: duration: 'nan' is not a number",
        "line 12: gpu_time: 'nan' is not a number",
    ]


def test_rows_of_the_right_length_with_wrong_values_are_refused_too(tmp_path: Path) -> None:
    """Values are checked even where every line parses."""
    with pytest.raises(TraceError, match="line 2: num_gpus: '0' is out of range"):
        read(tmp_path, HEAD + "2017-10-09 07:01:55,66.0,0,0,a\n")


def test_other_columns_are_another_format(tmp_path: Path) -> None:
    """Asked for by name, the reader says what it wants."""
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(TraceError, match=r"header: has no column timestamp, .*; the columns are a, b"):
        open_trace(path, PLUGINS, reader="philly")

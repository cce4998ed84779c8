"""`harness export`: where it writes, and what it says when it cannot."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

import harness as library


@pytest.fixture
def run(write_trace: Callable[..., Path], tmp_path: Path) -> library.Run:
    """A run of one job."""
    return library.replay(write_trace({"submit_time": 60}), output=tmp_path / "results")


def test_a_trace_is_written_and_named(harness: Callable, folder: Path, run: library.Run) -> None:
    """Gzipped where the name says so, with the same bytes each time."""
    assert harness("export", run.path, "--format", "perfetto") == (0, "run.pftrace.gz\n", "")
    packed = (folder / "run.pftrace.gz").read_bytes()
    assert harness("export", run.path, "--format", "perfetto", "-o", "plain.pftrace").code == 0
    assert gzip.decompress(packed) == (folder / "plain.pftrace").read_bytes()
    assert harness("export", run.path, "--format", "perfetto").code == 0
    assert (folder / "run.pftrace.gz").read_bytes() == packed


def test_time_series_go_to_stdout(shell: Callable, run: library.Run) -> None:
    """With a word on stderr where the trace has no timestamps."""
    ended = shell(f"harness export '{run.path}' --format openmetrics --step 5s")
    assert ended.code == 0
    assert ended.out.startswith("# TYPE harness_queue_allocated gauge\n")
    assert ended.out.endswith("\n# EOF\n")
    assert "its origin is written as 1970-01-01 00:00:00 UTC" in ended.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "perfetto", "--step", "1m"], "only openmetrics is sampled"),
        (["--format", "openmetrics", "--step", "0"], "--step is 0"),
        (["--format", "openmetrics", "--from", "soon"], "'soon' is not a time of this run"),
        (["--format", "perfetto", "--from", "9d"], "no part of the run is between --from and --to"),
        (["--format", "perfetto", "-o", "no/such/folder.gz"], "cannot be written: No such file"),
        (["--format", "pdf"], "'pdf' is not one of 'perfetto', 'openmetrics'"),
        ([], "Missing option '--format'"),
    ],
)
def test_what_cannot_be_exported_is_named(
    harness: Callable, folder: Path, run: library.Run, options: list[str], message: str
) -> None:
    """Nothing is written then."""
    ended = harness("export", run.path, *options)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert not any(folder.iterdir())

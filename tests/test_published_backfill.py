"""EASY backfilling of CTC SP2's log, against what others published of it, and of SDSC Blue's."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import harness
from harness.base.units import SECOND
from harness.plugins import load
from harness.testing import pool
from harness.trace.trace import open_trace

LOGS = Path(__file__).parents[2] / "shared/traces"
LOG = LOGS / "swf-ctc-sp2-1996/CTC-SP2-1996-3.1-cln.swf.gz"
BLUE = LOGS / "swf-sdsc-blue-2000/SDSC-BLUE-2000-4.2-cln.swf.gz"
PUBLISHED = 25_526.80
"""Mean flow time, seconds."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ties", "flow", "slowdown", "within"),
    [
        ("submissions-first", 25_528.93, 49.359, 0.001),
        ("ends-first", 25_472.89, 49.190, 0.003),
        ("together", 25_197.21, 48.837, 0.014),
    ],
)
def test_easy_on_ctc_sp2_is_as_published(
    ties: str, flow: float, slowdown: float, within: float, tmp_path: Path
) -> None:
    """77,199 jobs that ran and asked for a time, cut at it, on 338 processors."""
    jobs = replayed(LOG, 338, ties, tmp_path)
    assert len(jobs) == 77_199
    assert mean_flow(jobs) == flow
    assert mean_slowdown(jobs) == slowdown
    assert abs(flow / PUBLISHED - 1) < within


@pytest.mark.slow
def test_easy_on_sdsc_blue_is_as_the_page_says(tmp_path: Path) -> None:
    """232,536 jobs on 1,152 processors; there is no published figure to hold it against."""
    jobs = replayed(BLUE, 1_152, "submissions-first", tmp_path)
    assert (len(jobs), mean_flow(jobs), mean_slowdown(jobs)) == (232_536, 12_022.60, 37.631)


def replayed(path: Path, processors: int, ties: str, tmp_path: Path) -> list[tuple[int, int, int]]:
    """Submission, start and end of each job of a log that ran and asked for a time, cut at it."""
    if not path.is_file():
        pytest.skip("the log is not part of the repository")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    asked = [line for line in lines if line.startswith(";") or int(line.split()[8]) > 0]
    log = tmp_path / "log.swf"
    log.write_text("\n".join(asked) + "\n")
    settings = {"cut_at_request": True, "zero_length": "drop", "tenant": "partition"}  # all in one queue
    run = harness.replay(
        open_trace(log, load(), options=settings),
        plugin="backfill",
        cluster=pool(cpu=processors * 1000),
        options={"ties": ties},
        output=tmp_path / "results",
    )
    return run.micros("jobs").select("submit_time", "start_time", "finish_time").collect().rows()


def mean_flow(jobs: list[tuple[int, int, int]]) -> float:
    """Seconds, to two decimals."""
    return round(sum(finish - submit for submit, _, finish in jobs) / len(jobs) / SECOND, 2)


def mean_slowdown(jobs: list[tuple[int, int, int]]) -> float:
    """Bounded by ten seconds, to three decimals."""
    bounded = [max(1, (finish - submit) / max(finish - start, 10 * SECOND)) for submit, start, finish in jobs]
    return round(sum(bounded) / len(jobs), 3)

"""EASY backfilling of CTC SP2's log, against what others published of it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import harness
from harness.plugins import load
from harness.testing import pool
from harness.trace.trace import open_trace
from harness.units import SECOND

LOG = Path(__file__).parents[2] / "shared/traces/swf-ctc-sp2-1996/CTC-SP2-1996-3.1-cln.swf.gz"
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
    if not LOG.is_file():
        pytest.skip("the log is not part of the repository")
    lines = gzip.decompress(LOG.read_bytes()).decode().splitlines()
    asked = [line for line in lines if line.startswith(";") or int(line.split()[8]) > 0]
    log = tmp_path / "ctc.swf"
    log.write_text("\n".join(asked) + "\n")
    settings = {"cut_at_request": True, "zero_length": "drop", "tenant": "partition"}  # all in one queue
    run = harness.replay(
        open_trace(log, load(), options=settings),
        plugin="backfill",
        cluster=pool(cpu=338_000),
        options={"ties": ties},
        output=tmp_path / "results",
    )
    jobs = run.micros("jobs").select("submit_time", "start_time", "finish_time").collect().rows()
    assert len(jobs) == 77_199
    assert round(sum(finish - submit for submit, _, finish in jobs) / len(jobs) / SECOND, 2) == flow
    bounded = [max(1, (finish - submit) / max(finish - start, 10 * SECOND)) for submit, start, finish in jobs]
    assert round(sum(bounded) / len(jobs), 3) == slowdown
    assert abs(flow / PUBLISHED - 1) < within

"""EASY backfilling on logs of the Parallel Workloads Archive, by requested times and by predictions.

Jobs that ran and asked for a time are replayed, cut at it, all in one queue.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.base.units import SECOND
from harness.plugins import load
from harness.runs.request import Request
from harness.studies.reproduced.case import Row, Source
from harness.testing.scripts import pool
from harness.trace.trace import open_trace

_ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload/"
_ASKED = 8
"""The column of a job's requested time."""

CTC = Source(
    "CTC-SP2-1996-3.1-cln.swf.gz",
    "9fa28ac16c4386fb81b72a91d8bd8888281df2948a9d912769d387c5ee285bb4",
    f"{_ARCHIVE}l_ctc_sp2/",
)
BLUE = Source(
    "SDSC-BLUE-2000-4.2-cln.swf.gz",
    "9aab21f3cfa108f3ecefa52391b384d996dcf4216f920186f47a734646b2c658",
    f"{_ARCHIVE}l_sdsc_blue/",
)
_TIES = "the published order of events of one second is not known event by event"
_NO_FIGURE = "no published figure that states its conventions was at hand"
_NO_TABLE = "the tables of Tsafrir et al. 2007 were not at hand, only their rule"


class Result(NamedTuple):
    """What comes of a log.

    Attributes:
        jobs: how many were replayed.
        flow: the mean from submission to end, seconds.
        slowdown: the mean slowdown, bounded by ten seconds.
    """

    jobs: int
    flow: float
    slowdown: float


def ctc(files: Mapping[str, Path]) -> list[Row]:
    """EASY on CTC SP2 in both orders of ties, and with users' last two run times."""
    found: list[Row] = []
    for ties in ("submissions-first", "ends-first"):
        result = easy(files[CTC.name], 338, ties=ties)
        found += [
            Row(f"mean flow time, {ties}, s", "25,526.80", f"{result.flow:,.2f}", _TIES),
            Row(f"mean bounded slowdown, {ties}", "49.571", f"{result.slowdown:.3f}", _TIES),
        ]
    return found


def blue(files: Mapping[str, Path]) -> list[Row]:
    """EASY on SDSC Blue Horizon in both orders of ties."""
    found: list[Row] = []
    for ties in ("submissions-first", "ends-first"):
        found += _unpublished(ties, easy(files[BLUE.name], 1_152, ties=ties), _NO_FIGURE)
    return found


def last_two_ctc(files: Mapping[str, Path]) -> list[Row]:
    """Users' last two run times as predictions on CTC SP2."""
    return _unpublished("last-two", easy(files[CTC.name], 338, estimate="last-two"), _NO_TABLE)


def last_two_blue(files: Mapping[str, Path]) -> list[Row]:
    """Users' last two run times as predictions on SDSC Blue Horizon."""
    return _unpublished("last-two", easy(files[BLUE.name], 1_152, estimate="last-two"), _NO_TABLE)


def _unpublished(what: str, result: Result, reason: str) -> list[Row]:
    return [
        Row(f"mean flow time, {what}, s", "", f"{result.flow:,.2f}", reason),
        Row(f"mean bounded slowdown, {what}", "", f"{result.slowdown:.3f}", reason),
    ]


def easy(
    path: Path, processors: int, *, ties: str = "submissions-first", estimate: str = "requested"
) -> Result:
    """Replay a log with EASY.

    Args:
        path: the log, packed.
        processors: of the machine.
        ties: the order of events of one second.
        estimate: the run times that the scheduler expects.
    """
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    asked = [line for line in lines if line.startswith(";") or int(line.split()[_ASKED]) > 0]
    plugins = load(block=["metrics"])
    with TemporaryDirectory(prefix="harness-") as folder:
        log = Path(folder, "log.swf")
        log.write_text("\n".join(asked) + "\n")
        run = Request(
            open_trace(
                log, plugins, options={"cut_at_request": True, "zero_length": "drop", "tenant": "partition"}
            ),
            plugin="backfill",
            cluster=pool(cpu=processors * 1000),
            options={"ties": ties, "estimate": estimate},
            output=Path(folder, "results"),
        ).run(plugins=plugins)
        jobs = run.micros("jobs").select("submit_time", "start_time", "finish_time").collect().rows()
    flow = sum(finish - submit for submit, _, finish in jobs) / len(jobs) / SECOND
    bounded = [max(1, (finish - submit) / max(finish - start, 10 * SECOND)) for submit, start, finish in jobs]
    return Result(len(jobs), round(flow, 2), round(sum(bounded) / len(jobs), 3))

"""Reproduces EASY backfilling on logs of the Parallel Workloads Archive.

Run times are requested or predicted. The replays contain the jobs that ran and requested a time. If a job
runs longer, it is cut off at the requested time. All jobs are in one queue. The published figures are those
of predictsim, a variant of pyss (jad-darrous/predictsim 174c453, `experiments/data/*/sim_analysis/metrics`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.base.units import SECOND
from harness.plugins import load
from harness.readers.source import contents
from harness.runs.request import Request
from harness.studies.reproduced.case import Row, Source
from harness.testing.scripts import pool
from harness.trace.shake import Shake, Twin
from harness.trace.trace import open_trace

_ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload/"
_ASKED = 8
"""The number of the column with the requested time of jobs."""

CTC = Source(
    "CTC-SP2-1996-3.1-cln.swf",
    "8e33a9b597e1ddda2d2164347bac08c9444e1a2620a7947df52f0a1622ec4cde",
    f"{_ARCHIVE}l_ctc_sp2/",
)
BLUE = Source(
    "SDSC-BLUE-2000-4.2-cln.swf",
    "13892839f430583231a14bb811fd50a31b5b529eb37faacdbbefb71e73390e3e",
    f"{_ARCHIVE}l_sdsc_blue/",
)
_PROCESSORS = {CTC: 338, BLUE: 1_152}
_PYSS = "submissions-first"
_TIES = "predictsim processes submissions before completions at the same time"
_SIX = "predictsim's log has 232,542 jobs, six more than the log used here"
_NO_MEAN = "predictsim's table has no mean if flow times add up to 2^31 seconds or more"
_NO_TABLE = "the rule of Tsafrir et al. 2007 is known, but their tables are not available"
_NO_SHAKING = "the method of Tsafrir et al. 2007 is known, but their figures are not available"
_TWINS = 10


class Result(NamedTuple):
    """The figures of one replay of a log.

    Attributes:
        flow: the mean time from submission to completion, in seconds.
        root: the root mean square of the same time, in seconds.
        slowdown: the mean bounded slowdown, with a bound of ten seconds.
    """

    jobs: int
    flow: float
    root: float
    slowdown: float


_Published = tuple[str, str, str]
"""The published figures for `Result`; "" if a figure is not published."""

_REQUESTED: Mapping[Source, _Published] = {
    CTC: ("25,526.80", "43,157.10", "49.571"),
    BLUE: ("", "29,563.83", "36.523"),
}
_PREDICTED: Mapping[Source, Mapping[str, _Published]] = {
    CTC: {"from-first": ("", "95,695.72", "64.647"), "requested": ("22,875.46", "53,925.09", "35.324")},
    BLUE: {"from-first": ("", "45,223.38", "33.548"), "requested": ("", "33,668.11", "26.584")},
}
"""Maps a log and a correction method to the figures for predictions by users' last two run times."""


def by_requests(files: Mapping[str, Path], log: Source) -> list[Row]:
    """Returns the figures of EASY with requested times, for both orders of simultaneous events."""
    found = []
    for ties in (_PYSS, "ends-first"):
        result = easy(files[log.name], log, ties=ties)
        found += _rows(
            ties, _REQUESTED[log], result, (_SIX if log is BLUE else "") if ties == _PYSS else _TIES
        )
    return found


def by_predictions(files: Mapping[str, Path], log: Source) -> list[Row]:
    """Returns the figures of EASY for three methods of correcting predictions that are too short.

    The run time of a job is predicted from the run times of the user's last two jobs.
    """
    found = []
    for correction in ("steps", "from-first", "requested"):
        result = easy(files[log.name], log, estimate="last-two", correction=correction)
        theirs = _PREDICTED[log].get(correction)
        reason = _NO_TABLE if theirs is None else _SIX if log is BLUE else ""
        found += _rows(f"correction={correction}", theirs or ("", "", ""), result, reason)
    return found


def shaken(files: Mapping[str, Path], log: Source) -> list[Row]:
    """Returns the figures of EASY with requested times, for ten twins whose arrivals differ by up to 30 s."""
    twins = [easy(files[log.name], log, twin=twin) for twin in Shake(_TWINS).twins]
    figures = {
        f"mean flow time of {_TWINS} twins, s": [each.flow for each in twins],
        f"mean bounded slowdown of {_TWINS} twins": [each.slowdown for each in twins],
    }
    return [
        Row(name, "", f"{mean(each):,.2f} ± {stdev(each):,.2f}", _NO_SHAKING)
        for name, each in figures.items()
    ]


def _rows(what: str, theirs: _Published, ours: Result, reason: str) -> list[Row]:
    flow, root, slowdown = theirs
    none = reason if not any(theirs) else _NO_MEAN
    return [
        Row(f"{what}: mean flow time, s", flow, f"{ours.flow:,.2f}", reason if flow else none),
        Row(f"{what}: root mean square flow time, s", root, f"{ours.root:,.2f}", reason),
        Row(f"{what}: mean bounded slowdown", slowdown, f"{ours.slowdown:.3f}", reason),
    ]


def easy(path: Path, log: Source, *, twin: Twin | None = None, ties: str = _PYSS, **options: str) -> Result:
    """Replays a log with EASY.

    `twin` is replayed instead of the log. `ties` is the order of events in the same second. `options` are
    further options of `backfill`.
    """
    lines = contents(path).decode().splitlines()
    asked = [line for line in lines if line.startswith(";") or int(line.split()[_ASKED]) > 0]
    plugins = load(block=["metrics"])
    reading = {
        "cut_at_request": True,
        "zero_length": "drop",
        "tenant": "partition",
        "processors": "requested",
    }
    with TemporaryDirectory(prefix="harness-") as folder:
        shortened = Path(folder, "log.swf")
        shortened.write_text("\n".join(asked) + "\n")
        run = Request(
            open_trace(shortened, plugins, options=reading),
            plugin="backfill",
            cluster=pool(cpu=_PROCESSORS[log] * 1000),
            options={"ties": ties, **options},
            twin=twin,
            output=Path(folder, "results"),
        ).run(plugins=plugins)
        jobs = run.micros("jobs").select("submit_time", "start_time", "finish_time").collect().rows()
    flows = [(finish - submit) / SECOND for submit, _, finish in jobs]
    bounded = [max(1, (finish - submit) / max(finish - start, 10 * SECOND)) for submit, start, finish in jobs]
    root = sqrt(sum(flow * flow for flow in flows) / len(jobs))
    return Result(len(jobs), round(mean(flows), 2), round(root, 2), round(mean(bounded), 3))

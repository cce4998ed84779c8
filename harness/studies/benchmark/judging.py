"""Judges the runs of a policy without executing the policy, and explains its worst results."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from harness.analysis.explanation.explain import explain
from harness.base.errors import HarnessError
from harness.base.units import SECOND, format_duration
from harness.plugins import Plugins
from harness.plugins.measurement import Measurement
from harness.policy import PolicyFactory
from harness.runs.request import Request
from harness.runs.run import Run
from harness.studies.benchmark.checking import Expected, info_of, judge

_JOBS = 3
_LABEL = "evaluated"


@dataclass(frozen=True)
class Twin:
    """A version of a task's trace with slightly shifted arrivals, for the processes that replay and judge it.

    Attributes:
        requests: the replays of the twin by built-in policies, one for each way to apply quotas. The first
            replay uses the policy `none`.
        infos: for each of these replays, the entries of `run.json` that do not depend on decisions.
    """

    requests: Sequence[Request]
    infos: Sequence[Mapping[str, Any]]

    @classmethod
    def by(cls, requests: Iterable[Request], plugins: Plugins) -> Twin:
        """Creates a twin from its replays.

        Raises:
            InputError: a replay is not possible.
        """
        kept: list[tuple[Request, Expected]] = []
        for request in requests:
            plan = request.plan(plugins)
            expected = Expected(info_of(plan), partial(request.plan, plugins))
            if not any(known.has_quotas_of(expected.info) for _, known in kept):
                kept.append((request, expected))
        return cls([request for request, _ in kept], [expected.info for _, expected in kept])

    def expected(self, plugins: Plugins) -> Iterator[Expected]:
        """Yields the replays that may have produced a run of this twin."""
        for request, info in zip(self.requests, self.infos, strict=True):
            yield Expected(info, partial(request.plan, plugins))

    def of(self, policy: str | PolicyFactory, options: Mapping[str, Any], output: Path) -> Request:
        """Returns the replay of this twin by another policy."""
        return replace(
            self.requests[0], plugin=policy, options=options, label=_LABEL, output=output, keep="all"
        )


def judged(twins: bytes, folder: Path, plugins: Plugins, *, brief: bool) -> dict[str, Any]:
    """Returns the judgement of a policy's runs as plain values.

    `twins` has the pickled twins of the task. `folder` has a subfolder for each twin, which is named by the
    twin's number. If `brief` is true, the independent checker and the explanation of jobs are skipped.

    Returns: Either `error`, or the measurements of each twin as `rows`, with texts about the first twin as
        `queue` and `jobs`.
    """
    every: list[list[Measurement]] = []
    runs: list[Path] = []
    given: Sequence[Twin] = pickle.loads(twins)  # noqa: S301 - from the process that began the server
    for number, twin in enumerate(given, start=1):
        found = sorted((folder / str(number)).glob("*/*/run.json"))
        if len(found) != 1:
            return {"error": f"twin {number} has {len(found)} runs"}
        runs.append(found[0].parent)
        judgement = judge(runs[-1], twin.expected(plugins), plugins, check=not brief)
        if judgement.faults:
            return {"error": f"twin {number} is refused: {'; '.join(judgement.faults)}"}
        every.append(judgement.rows)
    return {
        "rows": [[list(row) for row in rows if row.scope == "all"] for rows in every],
        "queue": _worst_queue(every[0]),
        "jobs": {} if brief else _told(runs[0]),
    }


def _worst_queue(rows: Sequence[Measurement]) -> str:
    """Returns a sentence about the queue whose jobs are delayed most; "" if no job was delayed."""
    delays = {
        row.scope.partition("=")[2]: row.value
        for row in rows
        if row.metric == "delay.mean" and row.scope.startswith("queue=") and row.value
    }
    if not delays:
        return ""
    name = max(delays, key=lambda queue: (delays[queue], queue))
    delay = format_duration(round(delays[name] * SECOND))
    return f"jobs of queue {name} are delayed most, by {delay} on average"


def _told(path: Path) -> dict[str, str]:
    run = Run.open(path)
    end = pl.col("finish_time").fill_null(run.window.end)
    jobs = run.micros("jobs").with_columns(held_up=end - pl.col("submit_time") - pl.col("duration"))
    names = jobs.sort("held_up", "job_id", descending=[True, False]).head(_JOBS).select("job_id").collect()
    found = {}
    for name in names["job_id"]:
        try:
            found[name] = explain(run, name).text()
        except HarnessError as error:
            found[name] = error.message
    return found

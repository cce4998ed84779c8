"""Whole replays, as a user runs them: reading, replaying, measuring and writing."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import harness
from harness.api import read_cluster, read_trace
from harness.base.files import hold, whole
from harness.engine import Engine
from harness.engine.engine import Outcome
from harness.plugins import load
from harness.runs import replaying
from harness.runs.recording.recorder import ParquetRecorder
from harness.studies.experiments.evaluation import Made
from harness.studies.experiments.sweep import State

from .many_jobs import write_jobs

TRACES = Path(__file__).parents[2] / "traces"
PHILLY = TRACES / "philly.parquet"
JOBS = 200_000
LONGER = 4  # times
QUEUES = 20
ITEMS: dict[str, dict[str, Any]] = {
    "philly": {"plugins": ["none"], "settings": {"until": "1h"}},
    "mix": {"plugins": ["fairsharing"], "settings": {"window": "0h..9h55m"}},
}
COLD, REPEATS = 10, 40
_APART = (
    (Engine, "run"),
    (ParquetRecorder, "close"),
    *((replaying, name) for name in ("seal_tables", "_measured", "_with_metrics", "_written")),
    (whole, "_put_into_place"),
    (hold, "remove"),
)
"""What is no part of a second replay's own cost: events, tables and putting them in place, metrics."""


class Philly:
    """The bundled trace, with its cluster."""

    unit = "jobs/CPU-s"
    timeout = 600

    def setup(self) -> None:
        """Where runs go."""
        self.folder = tempfile.TemporaryDirectory()

    def teardown(self) -> None:
        """Remove them."""
        self.folder.cleanup()

    def track_none(self) -> float:
        """Jobs replayed in a CPU-second with the plugin `none`."""
        began = time.process_time()
        run = harness.replay(PHILLY, plugin="none", output=self.folder.name)
        return float(run.jobs.height / (time.process_time() - began))


class OneMore:
    """One more item of a sweep, in a process that has made others: identity, measuring and storing."""

    unit = "CPU-ms"
    timeout = 600
    params = ("philly", "mix")
    param_names = ("trace",)

    def track_beside_events(self, trace: str = "philly") -> float:
        """The median of several beside their events, the first ones left out.

        Args:
            trace: `philly`, whose first job is replayed with `none`, or `mix`, 200 jobs of which are with
                `fairsharing`.
        """
        spent, events = [], []

        def made(state: State, item: Made | None) -> None:
            spent.append(time.process_time())

        def timed(engine: Engine, *args: Any, **options: Any) -> Outcome:
            began = time.process_time()
            outcome = run(engine, *args, **options)
            events.append(time.process_time() - began)
            return outcome

        spec = {
            "experiment": trace,
            "trace": str(TRACES / f"{trace}.parquet"),
            **ITEMS[trace],
            "vary": {"scale-arrivals": [1 + number / 1000 for number in range(COLD + REPEATS)]},
        }
        run = Engine.run
        with tempfile.TemporaryDirectory() as folder, patch.object(Engine, "run", timed):
            harness.sweep(spec, output=folder, workers=1, watch=made)
        beside = [
            end - begin - of_events
            for begin, end, of_events in zip(spent[:-1], spent[1:], events[-len(spent) + 1 :], strict=True)
        ]
        return 1000 * median(beside[COLD:])


class Again:
    """A second replay in one process, with the trace and its cluster in memory."""

    unit = "CPU-ms"
    timeout = 600

    def track_beside_events(self, until: str = "1h") -> float:
        """The median of several beside their events, metrics and writing: identity, checks, and making jobs.

        Args:
            until: how much of Philly is replayed.
        """
        aside = 0.0

        def apart(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(function)
            def timed(*args: Any, **options: Any) -> Any:
                nonlocal aside
                began = time.process_time()
                try:
                    return function(*args, **options)
                finally:
                    aside += time.process_time() - began

            return timed

        spent = []
        plugins = load()
        trace = read_trace(PHILLY, plugins)
        cluster = read_cluster(None, trace)
        with ExitStack() as patched, tempfile.TemporaryDirectory() as folder:
            for holder, name in _APART:
                patched.enter_context(patch.object(holder, name, apart(getattr(holder, name))))
            for _ in range(COLD + REPEATS):
                aside, began = 0.0, time.process_time()
                harness.replay(
                    trace,
                    plugin="none",
                    cluster=cluster,
                    until=until,
                    plugins=plugins,
                    output=folder,
                    force=True,
                )
                spent.append(time.process_time() - began - aside)
        return 1000 * median(spent[COLD:])


class Memory:
    """Memory of whole replays of serial jobs on a pool that keeps up with them."""

    unit = "MB"
    timeout = 600

    def setup(self) -> None:
        """A trace, and one that is longer."""
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        self.short = write_jobs(folder / "short.parquet", JOBS, queues=QUEUES)
        self.long = write_jobs(folder / "long.parquet", LONGER * JOBS, queues=QUEUES)

    def teardown(self) -> None:
        """Remove it."""
        self.folder.cleanup()

    def track_peak(self) -> float:
        """Of the whole process, for the short trace."""
        return self._peak(self.short)

    def track_peak_per_million_jobs(self) -> float:
        """By how much the peak is higher for each further million jobs; what is alive does not grow."""
        short = self._peak(self.short)
        return (self._peak(self.long) - short) * 1_000_000 / ((LONGER - 1) * JOBS)

    def _peak(self, trace: Path) -> float:
        harness.replay(trace, plugin="none", output=Path(self.folder.name) / "results")
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

"""A finished replay, which consists of a folder of tables and a record of how they were made."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from harness.base.arguments import wrong
from harness.base.errors import RunError
from harness.base.tables.parquet import FEW, ShortTable, in_micros
from harness.base.text import first_of
from harness.engine.livelock import Livelock
from harness.plugins.measurement import Measurement, Window
from harness.runs.epochs import Epoch, Step, epochs, integrated, steps
from harness.runs.folder import TABLES, check_present, check_table, read_info, reading, tables_of
from harness.runs.older import as_now, with_numbers

if TYPE_CHECKING:
    from harness.engine.livelock import Livelock
    from harness.runs.request import Request

ISOLATED = "isolated"
"""The key in `run.json` for sentences about replays of single quotas."""

IDLE = "idle_causes"
"""The key in `run.json` for sentences about the judged causes of waiting."""

WINDOWS = "windows"
"""The key in `run.json` for measurements over windows other than the run's own."""

REFUSED = "refused_at_arrival"
"""The key in `run.json` for the rows of jobs that were rejected on arrival.

Each range of rows is stored as its first and last row.
"""

_BATCH = 1 << 18  # rows
_NAMED = 3
_KEEP_ALL = "replay it with keep='all'"


Keep: TypeAlias = Literal["all", "metrics", "nothing"]
"""Which parts of a run to keep: all tables, only the metrics and `run.json`, or no file."""


class Run:
    """A finished replay.

    Args:
        path: the folder of the run, or None if nothing was kept.
        info: the content of `run.json`.
        stored: whether the run already existed when it was requested.
        measured_again: whether the run existed with other metrics and was measured again.
        metrics: the table of metrics, if nothing was kept.
        checked: tables that are known to be unchanged.
        short: tables that are in memory, whether or not they are also in files.

    Attributes:
        request: the request of the run in the process that made it, or None for runs that were opened or come
            from another process.
        memory: a cache of values that were read from the tables. It is None outside of `asked_much` blocks.
    """

    def __init__(
        self,
        path: Path | None,
        info: Mapping[str, Any],
        *,
        stored: bool = False,
        measured_again: bool = False,
        metrics: pl.DataFrame | None = None,
        checked: Iterable[str] = (),
        short: Mapping[str, ShortTable] | None = None,
    ) -> None:
        self._path = path
        self.info = info
        self._metrics = metrics
        self.stored = stored
        self.measured_again = measured_again
        self.request: Request | None = None
        self.memory: dict[Hashable, Any] | None = None
        self._checked = set(checked)
        self._short = short or {}

    @classmethod
    def open(cls, path: str | Path, *, stored: bool = False) -> Run:
        """Open a run from its folder.

        Raises:
            RunError: the folder is not a run, is incomplete, or has a different schema.
            OptionError: `path` is not a path.
        """
        if not isinstance(path, (str, PathLike)):
            raise wrong("path", "the folder of a run, as a string or a Path", path)
        folder = Path(path)
        info = read_info(folder)
        check_present(folder, info)
        return cls(folder, info, stored=stored)

    def __getstate__(self) -> dict[str, Any]:
        # A request may contain a whole trace, and values that can't be pickled.
        return {**self.__dict__, "request": None}

    def __repr__(self) -> str:
        ended = ", stopped" if self.stopped is not None else ""
        jobs = f"{self.info['outcome']['jobs']:,} jobs{ended}"
        return f"<Run {self.info['run']} of {self.info['trace']['name']}, {jobs}>"

    def _repr_html_(self) -> str:
        """Returns the metrics over all jobs as HTML, for a notebook."""
        from html import escape

        from harness.analysis.comparison import Comparison

        if self._path is None:
            return f"<p>{escape(repr(self))}</p>{self.metrics.filter(scope='all')._repr_html_()}"
        return f"<p>{escape(repr(self))}</p>{Comparison([self])._repr_html_()}"

    @property
    def path(self) -> Path:
        """The run's folder.

        Raises:
            RunError: nothing was kept.
        """
        if self._path is None:
            raise RunError(f"run {self.info['run']} has no folder: its tables were not kept", hint=_KEEP_ALL)
        return self._path

    @property
    def kept(self) -> Keep:
        """The parts that are stored: `all` tables or only the `metrics`.

        With `nothing`, the metrics are in memory.
        """
        return "nothing" if self._path is None else self.info.get("kept", "all")

    @property
    def label(self) -> str:
        """The name of the run in tables."""
        return str(self.info["label"])

    @property
    def window(self) -> Window:
        """The time from the first submission to the last end, release or decision."""
        return Window(*self.info["window"])

    @property
    def stopped(self) -> Livelock | None:
        """The livelock of preemptions that ended the run early, or None."""
        found = self.info["outcome"].get("stopped")
        if found is None:
            return None
        # This imports the whole engine, which readers of a run do not need.

        return Livelock.read(found)

    @property
    def cut_at(self) -> int | None:
        """The time at which `--until` or a livelock cut the run short, or None if it ran to its end."""
        if self.stopped is not None:
            return self.window.end
        until: int | None = self.info["settings"].get("until_us")
        return until if until == self.window.end else None

    @property
    def is_record(self) -> bool:
        """True if the run repeats the recorded events of a trace instead of simulating them."""
        return bool(self.info["policy"].get("record"))

    @property
    def without_run_times(self) -> str:
        """A sentence that says why the run times of some jobs are unknown, or "" if all are known.

        Unknown run times make the waits of other jobs and the losses meaningless.
        """
        return str(self.info.get("unfinished", {}).get("unknown", ""))

    @property
    def windows(self) -> dict[str, list[Measurement]]:
        """Maps the name of a window to the measurements over it. The run's own window is not included.

        A comparison measures twins over windows that all compared runs share (`harness.studies.twins`). See
        also `shared_window` of the metrics.
        """
        found: Mapping[str, list[list[Any]]] = self.info.get(WINDOWS, {})
        return {key: [Measurement(*row) for row in rows] for key, rows in found.items()}

    @property
    def unmeasured(self) -> Mapping[str, str]:
        """Maps each failed metric to a sentence that names its plugin and the failure."""
        return dict(self.info.get("unmeasured", {}))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences about metrics that were measured on request, and about jobs that kept waiting."""
        asleep: Sequence[str] = self.info["outcome"].get("asleep", ())
        return (*self.info.get(ISOLATED, ()), *self.info.get(IDLE, ()), *([_slept(asleep)] if asleep else []))

    @property
    def capacity(self) -> Mapping[str, int]:
        """The capacity of the whole cluster by resource."""
        return dict(self.info["cluster"]["capacity"])

    @cached_property
    def epochs(self) -> list[Epoch]:
        """The spans of time between changes of the cluster, in order. Without changes, there is one span."""
        return epochs(self.info["cluster"])

    def capacity_steps(self, resource: str) -> list[Step]:
        """Returns the steps of a resource's capacity over time, or a single step if it never changes."""
        return steps(self.epochs, lambda cluster: cluster["capacity"].get(resource))

    def nominal_steps(self, quota: str, resource: str) -> list[Step]:
        """Returns how a queue's nominal quota changes over time. The amount is None without the queue."""
        return steps(
            self.epochs, lambda cluster: cluster["queues"].get(quota, {}).get("nominal", {}).get(resource)
        )

    def capacity_time(self, resource: str, window: Window, lacking: int | None = None) -> int | None:
        """Returns the integral of a resource's capacity over a window, or None if it is ever unlimited.

        `lacking` is the capacity if the cluster does not name the resource. By default, the capacity is
        unlimited.
        """
        return integrated(self.epochs, resource, window, lacking)

    @property
    def resources(self) -> list[str]:
        """The resources that jobs of the trace request, sorted."""
        return list(self.info["trace"]["resources"])

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """One row for each job, in order of arrival."""
        return self._read("jobs")

    @cached_property
    def decisions(self) -> pl.DataFrame:
        """One row for each decision, earliest first."""
        return self._read("decisions")

    @cached_property
    def stints(self) -> pl.DataFrame:
        """Spans of time in which pods held resources in the same state."""
        return self._read("stints")

    @cached_property
    def timeline(self) -> pl.DataFrame:
        """The state of each queue after every change."""
        return self._read("timeline")

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """One row for each measured value. `harness.plugins.scopes` explains the scopes."""
        if self._metrics is not None:  # The metrics were measured just now.
            return self._metrics
        return as_now(self._read("metrics"), self.info["cluster"])

    def _read(self, table: str) -> pl.DataFrame:
        with reading(self._path or Path(self.info["run"])):
            return self.scan(table).collect()

    def check(self) -> None:
        """Check that all tables are unchanged.

        Raises:
            RunError: a table is damaged.
        """
        for table in () if self._path is None else tables_of(self.info):
            self.file(table)

    def file(self, table: str) -> Path:
        """Returns the file of one of `TABLES` after checking that the file is unchanged.

        Raises:
            RunError: the table is damaged, or was not kept.
        """
        self._has(table)
        if table not in self._checked:
            check_table(self.path, self.info, table)
            self._checked.add(table)
        path = self.path / f"{table}.parquet"
        if table in self._short and not path.exists():
            self._short[table].write(path)
        return path

    def scan(self, table: str) -> pl.LazyFrame:
        """Returns one of `TABLES` as a lazy frame.

        Raises:
            RunError: the table is damaged, or was not kept.
        """
        if table == "metrics" and self._metrics is not None:
            return self._metrics.lazy()
        if table in self._short:
            return self._short[table].frame.lazy()
        frame = pl.scan_parquet(self.file(table), glob=False)
        if table == "decisions" and self.info["schema"] == "2":
            return with_numbers(frame, self.scan("jobs"))
        return frame

    def micros(self, table: str) -> pl.LazyFrame:
        """Returns one of `TABLES` with all times as integers, in microseconds since the trace's origin.

        Durations (`duration`, `lost` and others) are integers too.
        """
        if table in self._short:
            return self._short[table].micros.lazy()
        if self.memory is not None and self.info["schema"] != "2" and self.rows(table) <= FEW:
            return self._few(table).lazy()
        frame = self.scan(table)
        return frame.select(in_micros(frame.collect_schema(), self.info["trace"]["origin_us"]))

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yields columns of one of `TABLES` in ordered batches, with the same times as `micros`.

        Use this method for tables that don't fit into memory. It yields at least one batch, which is empty if
        the table is empty.
        """
        names = list(columns)
        if table in self._short:
            yield self._short[table].micros[names]
        elif self.memory is not None and self.rows(table) <= FEW:
            yield self._few(table)[names]
        elif self.memory is not None and (table == "jobs" or self.rows(table) <= _BATCH):
            yield from self._remembered(table, names)
        else:
            yield from self._pieces(table, names)

    def columns(self, table: str, *names: str) -> pl.DataFrame:
        """Returns columns of one of `TABLES` in a single frame, with the same times as `micros`."""
        first, *others = self.batches(table, names)
        return pl.concat([first, *others]) if others else first

    @contextmanager
    def asked_much(self) -> Iterator[None]:
        """Caches values that were read from short tables in `memory` until the `with` block ends."""
        before, self.memory = self.memory, {} if self.memory is None else self.memory
        try:
            yield
        finally:
            self.memory = before

    def rows(self, table: str) -> int:
        """Returns the number of rows of one of `TABLES`.

        Raises:
            RunError: the table is damaged, or was not kept.
        """
        if table in self._short:
            return self._short[table].micros.height
        known, key = {} if self.memory is None else self.memory, ("rows", table)
        if key not in known:
            with reading(self.path):
                known[key] = pl.scan_parquet(self.file(table), glob=False).select(pl.len()).collect().item()
        return int(known[key])

    def _few(self, table: str) -> pl.DataFrame:
        assert self.memory is not None
        key = ("few", table)
        if key not in self.memory:
            self.memory[key] = pl.concat(self._pieces(table, None))
        found: pl.DataFrame = self.memory[key]
        return found

    def _remembered(self, table: str, names: list[str]) -> Iterator[pl.DataFrame]:
        """Yields batches from columns in memory. For a long table, only numbers and times stay in memory."""
        assert self.memory is not None
        known: dict[str, pl.Series] = self.memory.setdefault(("columns", table), {})
        missing = [name for name in names if name not in known]
        if self.rows(table) > _BATCH:
            schema = self.scan(table).collect_schema()
            missing = [name for name in missing if schema[name].is_numeric() or schema[name].is_temporal()]
        if missing:
            known.update(pl.concat(self._pieces(table, missing), rechunk=True).to_dict())
        others = [name for name in names if name not in known]
        read = self._pieces(table, others) if others else None
        for begin in range(0, max(1, self.rows(table)), _BATCH):
            piece = {name: known[name].slice(begin, _BATCH) for name in names if name in known}
            piece.update(next(read).to_dict() if read else {})
            yield pl.DataFrame([piece[name] for name in names])

    def _pieces(self, table: str, names: list[str] | None) -> Iterator[pl.DataFrame]:
        """Yields batches that are read from the file. None stands for all columns."""
        with reading(self.path):
            file = pl.scan_parquet(self.file(table), glob=False)
            rows = self.rows(table)
            wanted = file if names is None else file.select(names)
            wanted = wanted.select(in_micros(wanted.collect_schema(), self.info["trace"]["origin_us"]))
            for begin in range(0, max(1, rows), _BATCH):
                yield wanted.slice(begin, _BATCH).collect()

    def _has(self, table: str) -> None:
        if self.kept != "all" and table in TABLES and (table != "metrics" or self._path is None):
            what = "only its metrics were kept" if self.kept == "metrics" else "its tables were not kept"
            raise RunError(f"run {self.info['run']} has no table of {table}: {what}", hint=_KEEP_ALL)


def _slept(jobs: Sequence[str]) -> str:
    wait, ask = (
        ("1 job waits", "it requests") if len(jobs) == 1 else (f"{len(jobs):,} jobs wait", "they request")
    )
    return (
        f"when the replay ends, {wait} although all resources that {ask} are free: "
        f"{first_of(jobs, _NAMED)}. `harness explain` shows whether a limit forbids a start. Otherwise, "
        "the policy slept: a cycle starts only after an arrival or a completion, or if the policy requests a "
        "Wake"
    )

"""What metrics of plugins do wrong is theirs: the run is kept, and they are named."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import harness
from harness import plugins
from harness.errors import OptionError, RunError
from harness.metrics.measurement import Measurement
from harness.plugins import Plugins
from harness.runs.measuring import measure
from harness.runs.run import Keep

WriteTrace = Callable[..., Path]


def with_metric(compute: Callable[..., Iterable[Any]]) -> Plugins:
    """The built-in plugins, and one with a metric."""
    hook = types.SimpleNamespace(
        harness_register_metrics=harness.hookimpl(lambda register: register("own", compute, help="own"))
    )
    return plugins.load(extra={"third": hook})


def raising(error: BaseException) -> Callable[..., Iterable[Any]]:
    def compute(run: harness.Run, window: Any) -> Iterable[Measurement]:
        yield Measurement("before", 1, "count")
        raise error

    return compute


def giving(*row: Any) -> Callable[..., Iterable[Any]]:
    return lambda run, window: [Measurement(*row)]


def test_what_is_not_kept_is_there_while_it_is_measured(write_trace: WriteTrace, tmp_path: Path) -> None:
    """A metric may ask for a table in any way, also for its file, and gets what would have been kept."""
    seen: list[list[Any]] = []

    def compute(run: harness.Run, window: Any) -> Iterable[Measurement]:
        of_run: list[Any] = []
        for table in ("jobs", "decisions", "stints", "timeline"):
            frames = [
                run.scan(table).collect(),
                run.micros(table).collect(),
                pl.read_parquet(run.file(table)),
            ]
            of_run += [(frame.schema, frame.rows()) for frame in (*frames, *run.batches(table, ["queue"]))]
        seen.append(of_run)
        return []

    keeps: list[Keep] = ["all", "metrics", "nothing"]
    for keep in keeps:
        harness.replay(write_trace({}), output=tmp_path / keep, plugins=with_metric(compute), keep=keep)
    whole, *others = seen
    assert len(whole) == 16
    assert others == [whole, whole]


@pytest.mark.parametrize(
    ("compute", "said"),
    [
        (raising(ZeroDivisionError("no")), "ZeroDivisionError: no (test_measuring.py:"),
        (raising(OptionError("which prices?")), "OptionError: which prices? (test_measuring.py:"),
        (raising(RunError("another run")), "RunError: another run (test_measuring.py:"),
        (raising(FileNotFoundError("prices.csv")), "FileNotFoundError: prices.csv"),
        (raising(MemoryError()), "MemoryError: "),
        (raising(SystemExit(3)), "SystemExit: 3 (test_measuring.py:"),
        (lambda run: [], "TypeError: "),
        (lambda run, window: None, "TypeError: "),
        (lambda run, window: [("a", 1)], "AttributeError: "),
        (giving("m", "one", "count"), "ValueError: could not convert"),
        (giving(7, 1, "count"), "TypeError: "),
        (giving("m", 1, None), "TypeError: "),
        (giving("m", 1, "s", "", "quueue=prod"), "OptionError: nothing is measured for scope 'quueue=prod'"),
    ],
)
def test_a_metric_that_fails_leaves_the_run_with_all_others(
    compute: Callable[..., Iterable[Any]], said: str, write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Whatever it does: it and its plugin are named, and nothing of it is kept."""
    trace, loaded = write_trace({}), with_metric(compute)
    with pytest.warns(UserWarning, match="metric 'own' of plugin 'third' failed: .*kept without it"):
        run = harness.replay(trace, output=tmp_path, plugins=loaded)
    assert run.unmeasured["own"].startswith(f"metric 'own' of plugin 'third' failed: {said}")
    run = harness.Run.open(run.path)
    run.check()
    assert list(run.unmeasured) == ["own"]
    assert {"makespan", "disruption.lost"} <= set(run.metrics["metric"])
    assert "before" not in run.metrics["metric"]
    assert f"none: {run.unmeasured['own']}" in harness.compare([run]).table()
    again = harness.replay(trace, output=tmp_path, plugins=with_metric(giving("m", 1, "count")))
    assert again.stored
    assert (again.unmeasured, again.metrics.filter(metric="m")["value"].to_list()) == ({}, [1.0])


def test_a_run_that_cannot_be_read_is_no_fault_of_a_metric(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Nothing that was measured of it would be worth keeping."""
    run = harness.replay(write_trace({}), output=tmp_path)
    (run.path / "stints.parquet").write_bytes(b"")
    with pytest.raises(RunError, match="stints"):
        measure(harness.Run.open(run.path), plugins.load().metrics)

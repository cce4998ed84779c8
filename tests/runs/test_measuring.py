"""What metrics of plugins do wrong is theirs: the run is kept, and they are named."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import harness
from harness.base.errors import OptionError, RunError
from harness.plugins import Plugins
from harness.plugins import loading as plugins
from harness.plugins.measurement import Measurement
from harness.runs.measuring import measure
from harness.runs.run import Keep

WriteTrace = Callable[..., Path]


def with_metric(compute: Callable[..., Iterable[Any]], name: str = "own") -> Plugins:
    """The built-in plugins, and one with a metric."""
    hook = types.SimpleNamespace(
        harness_register_metrics=harness.hookimpl(
            lambda register: register(harness.MetricSpec(name, compute, help="own"))
        )
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


FAULTS: list[tuple[Callable[..., Iterable[Any]], str]] = [
    (raising(ZeroDivisionError("no")), "ZeroDivisionError: no (test_measuring.py:"),
    (raising(OptionError("which prices?")), "OptionError: which prices? (test_measuring.py:"),
    (raising(RunError("another run")), "RunError: another run (test_measuring.py:"),
    (raising(FileNotFoundError("prices.csv")), "FileNotFoundError: prices.csv"),
    (raising(MemoryError()), "MemoryError: "),
    (raising(SystemExit(3)), "SystemExit: 3 (test_measuring.py:"),
    (lambda run: [], "TypeError: "),
    (lambda run, window: None, "TypeError: "),
    (lambda run, window: [("a", 1)], "TypeError: ('a', 1) is not a Measurement"),
    (giving("m", "one", "count"), "TypeError: m is 'one', which is not a number"),
    (giving("m", "7", "count"), "TypeError: m is '7', which is not a number"),
    (giving("m", True, "count"), "TypeError: m is True, which is not a number"),
    (giving(7, 1, "count"), "TypeError: "),
    (giving("m", 1, None), "TypeError: "),
    (giving("", 1, "s"), "ValueError: Measurement(metric='', value=1, unit='s'"),
    (giving(" ", 1, "s"), "ValueError: Measurement(metric=' '"),
    (giving("m", 1, "s", "up"), "ValueError: m: 'better' is 'up', not one of 'higher', 'lower', ''"),
    (giving("m", float("nan"), "s"), "ValueError: m is nan; an undefined value must be None"),
    (giving("m", float("-inf"), "s"), "ValueError: m is -inf; an undefined value"),
    (
        lambda run, window: [Measurement("m", 1, "s", resource="cpu")] * 2,
        "ValueError: m of cpu of all is measured twice",
    ),
    (giving("makespan", 1, "s"), "ValueError: makespan of all is also measured by metric 'waiting'"),
    (giving("m", 1, "s", "", "quueue=prod"), "OptionError: no metric is measured for scope 'quueue=prod'"),
]
"""Metrics that do something wrong, and what is said of it."""


def test_whatever_a_metric_does_it_is_named(write_trace: WriteTrace, tmp_path: Path) -> None:
    """With its plugin, and nothing of it is kept."""
    run = harness.replay(write_trace({}), output=tmp_path, plugins=plugins.load(block=["metrics"]))
    for compute, said in FAULTS:
        specs = [each for each in with_metric(compute).metrics if each.name in ("own", "waiting")]
        rows, failed = measure(run, specs)
        assert list(failed) == ["own"]
        assert failed["own"].startswith(f"metric 'own' of plugin 'third' failed: {said}")
        assert "makespan" in {row.metric for row in rows}
        assert not {row.metric for row in rows} & {"before", "m"}


@pytest.mark.parametrize(("compute", "said"), [FAULTS[each] for each in (0, 2, 5, 21)])
def test_a_metric_that_fails_leaves_the_run_with_all_others(
    compute: Callable[..., Iterable[Any]], said: str, write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Whatever it does: it and its plugin are named, and nothing of it is kept."""
    trace, loaded = write_trace({}), with_metric(compute)
    with pytest.warns(
        UserWarning, match="metric 'own' of plugin 'third' failed: .*keeps the run without this metric"
    ):
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


def test_numbers_of_all_kinds_are_values(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Of numpy, fractions and decimals too."""
    values = [2, 2.0, np.float32(2), np.int64(2), Fraction(4, 2), Decimal(2)]
    rows = [Measurement(f"m{number}", value, "count") for number, value in enumerate(values)]  # type: ignore[arg-type]
    run = harness.replay(write_trace({}), output=tmp_path, plugins=with_metric(lambda run, window: rows))
    assert run.metrics.filter(pl.col("metric").str.contains(r"^m\d$"))["value"].to_list() == [2.0] * 6


def test_a_metric_cannot_change_what_is_recorded_of_the_run(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Neither in its folder nor for the next metric: each has a record of its own."""
    seen: list[int] = []

    def change(run: harness.Run, window: Any) -> Iterable[Measurement]:
        outcome: Any = run.info["outcome"]
        seen.append(outcome["jobs"])
        outcome["jobs"] = 7
        yield Measurement(f"m{len(seen)}", 1, "count")

    hook = types.SimpleNamespace(
        harness_register_metrics=harness.hookimpl(
            lambda register: [
                register(harness.MetricSpec(name, change, help="own")) for name in ("one", "two")
            ]
        )
    )
    run = harness.replay(write_trace({}), output=tmp_path, plugins=plugins.load(extra={"third": hook}))
    assert seen == [1, 1]
    assert run.info["outcome"]["jobs"] == 1
    assert harness.Run.open(run.path).info["outcome"]["jobs"] == 1


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_what_ours_measure_stays_ours(name: str, write_trace: WriteTrace, tmp_path: Path) -> None:
    """Whatever the other metric is called: it fails, and there is one row of a metric, scope and resource."""
    loaded = with_metric(giving("wait.total.p95", 10**6, "s", "lower"), name)
    with pytest.warns(
        UserWarning, match=f"metric '{name}' .* wait.total.p95 of all is also measured by metric 'w"
    ):
        run = harness.replay(write_trace({}), output=tmp_path, plugins=loaded)
    (value,) = run.metrics.filter(metric="wait.total.p95", scope="all")["value"]
    assert value == 0
    assert not run.metrics.select("metric", "scope", "resource").is_duplicated().any()


def test_of_two_metrics_of_others_the_first_by_name_counts(write_trace: WriteTrace, tmp_path: Path) -> None:
    """In whichever order they were registered; what failed has measured nothing."""

    def registered(register: harness.Register[harness.MetricSpec]) -> None:
        register(harness.MetricSpec("c", giving("m", 3, "count"), help="third"))
        register(harness.MetricSpec("b", giving("m", 2, "count"), help="second"))
        register(harness.MetricSpec("a", raising(ValueError("no")), help="first"))

    hook = types.SimpleNamespace(harness_register_metrics=harness.hookimpl(registered))
    with pytest.warns(UserWarning, match="failed"):
        run = harness.replay(write_trace({}), output=tmp_path, plugins=plugins.load(extra={"third": hook}))
    assert run.metrics.filter(metric="m")["value"].to_list() == [2]
    assert run.unmeasured["c"].endswith("ValueError: m of all is also measured by metric 'b'")
    assert list(run.unmeasured) == ["a", "c"]


def test_a_run_that_cannot_be_read_is_no_fault_of_a_metric(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Nothing that was measured of it would be worth keeping."""
    run = harness.replay(write_trace({}), output=tmp_path)
    (run.path / "stints.parquet").write_bytes(b"")
    with pytest.raises(RunError, match="stints"):
        measure(harness.Run.open(run.path), plugins.load().metrics)

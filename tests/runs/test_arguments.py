"""What Python's callers give of another type is refused in words that name the argument."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness
from harness import Request, Run, api
from harness.base.errors import SpecError

SPEC = {"experiment": "e", "plugins": ["none"]}
TAKES = {
    "force": "True or False",
    "plugins": "the result of harness.plugins.load()",
    "watch": "a function",
    "workers": "a whole number of processes",
    "runs": "a list of runs or their folders",
    "requests": "a list of Requests",
    "baseline": "the label or folder of a run, as a string",
    "shake": "a whole number of twins",
    "idle_causes": "True or False",
    "isolated": "True or False",
    "gantt": "a string such as",
    "path": "the folder of a run",
    "spec": "the path of a specification, or its fields as a mapping",
    "executor": "an executor with a method submit",
    "cluster": "the path of the output of kubectl get for a cluster, or a Cluster",
    "history": "the path of a trace, or a Trace",
    "submit": "the path of a manifest",
    "futures": "a whole number",
    "seed": "a whole number",
    "horizon": "a duration such as '7d'",
    "now": "a whole number of microseconds since 1970",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of the bundled trace's first hours."""
    trace = Path(__file__).parents[2] / "traces" / "mix.parquet"
    return harness.replay(trace, plugin="none", until="1h", output=tmp_path_factory.mktemp("results"))


def refused(name: str, call: Callable[[], object]) -> None:
    """An OptionError names the argument, what it takes, and what was given."""
    with pytest.raises(
        harness.OptionError, match=rf"^{name} must be {re.escape(TAKES[name])}.*, not (None|a value of)"
    ):
        call()


@pytest.mark.parametrize(("name", "value"), [("force", "no"), ("plugins", 5), ("watch", 5)])
def test_of_a_replay(name: str, value: Any, write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """Nothing is replayed; `force="no"` does not count as true."""
    refused(
        name, lambda: harness.replay(write_trace({}), plugin="none", output=tmp_path / "r", **{name: value})
    )
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("baseline", 5),
        ("shake", True),
        ("shake", 1.5),
        ("workers", "2"),
        ("idle_causes", "yes"),
        ("isolated", "yes"),
        ("plugins", "none"),
    ],
)
def test_of_a_comparison(name: str, value: Any, run: Run) -> None:
    """Also where it would be of no use, such as processes where nothing is replayed."""
    refused(name, lambda: harness.compare([run], **{name: value}))


@pytest.mark.parametrize("runs", [None, 5, [1, 2], {"a": 1}])
def test_runs_are_several_runs_or_folders(runs: Any) -> None:
    """For all that takes some."""
    for call in (harness.compare, harness.idle_causes, harness.isolated, harness.make_report):
        refused("runs", lambda call=call: call(runs))  # type: ignore[misc]


def test_a_run_is_opened_from_a_path(run: Run) -> None:
    """A text or a path."""
    refused("path", lambda: Run.open(5))  # type: ignore[arg-type]
    assert Run.open(str(run.path)).label == Run.open(run.path).label == "none"


def test_a_report_takes_texts(run: Run) -> None:
    """As far as it asks for some."""
    refused("gantt", lambda: harness.make_report([run], gantt=5))  # type: ignore[arg-type]


def test_several_requests(write_trace: Callable[..., Path]) -> None:
    """One is not several, and what is none is no request."""
    request = Request(write_trace({}))
    for requests in (None, request, [request, 5], "abc"):
        refused("requests", lambda given=requests: api.replay_all(given))  # type: ignore[misc]
    refused("workers", lambda: api.replay_all([request], workers=1.5))  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [harness.sweep, harness.tune])
def test_of_experiments(call: Callable[..., object], tmp_path: Path) -> None:
    """Their specification, and who makes them."""
    for spec in (5, None, [1]):
        refused("spec", lambda given=spec: call(given))  # type: ignore[misc]
    for name, value in (("workers", 1.5), ("workers", True), ("executor", 5), ("plugins", 5)):
        refused(name, lambda how={name: value}: call(SPEC, output=tmp_path, **how))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cluster", 5),
        ("cluster", None),
        ("history", 5),
        ("submit", 5),
        ("futures", "9"),
        ("seed", None),
        ("horizon", None),
        ("now", "1d"),
        ("executor", 5),
        ("workers", 0.5),
    ],
)
def test_of_a_forecast(name: str, value: Any) -> None:
    """Each of them."""
    refused(name, lambda: harness.forecast(**{"cluster": "cluster.yaml", name: value}))


def test_whole_numbers_may_be_those_of_numpy(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """They are whole numbers."""
    request = Request(write_trace({}), plugin="none", output=tmp_path)
    assert len(api.replay_all([request], workers=np.int64(1))) == 1  # type: ignore[arg-type]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
@pytest.mark.parametrize("call", [harness.sweep, harness.tune, harness.forecast])
def test_executors_that_fork_are_refused(call: Callable[..., object]) -> None:
    """Their processes lack the threads of this one, and wait for them for ever."""
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as forks,
        pytest.raises(harness.OptionError, match="executor forks its processes") as raised,
    ):
        call({}, executor=forks) if call is not harness.forecast else call("cluster.yaml", executor=forks)
    assert raised.value.hint == "give the executor mp_context=multiprocessing.get_context('spawn')"


def test_other_executors_are_taken(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """Those that begin processes anew, or have none."""
    spec = {**SPEC, "trace": str(write_trace({}))}
    with ThreadPoolExecutor(1) as threads:
        assert len(harness.sweep(spec, output=tmp_path, executor=threads).items) == 1
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawning) as spawns, pytest.raises(SpecError):
        harness.sweep({}, executor=spawns)

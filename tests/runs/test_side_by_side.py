"""Requests in several processes: the runs and errors of one, and nothing left by what ends early."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_environment import LONG
from policies import Greedy, Priority

import harness
from harness import Request
from harness.api import read_trace, replay_all
from harness.base import errors
from harness.base.errors import (
    DecisionError,
    Fault,
    HarnessError,
    OptionError,
    PluginError,
    ReplayError,
    TraceError,
)
from harness.plugins import load
from harness.runs import processes
from harness.runs import worker_count as workers
from harness.runs.side_by_side import carry_out
from harness.runs.worker_count import workers_for

POOL = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: pool}
spec: {count: 2, template: {status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10}}}}
"""


class Killed(Greedy):
    """Its process is ended while it decides, as for want of memory."""

    def cycle(self, now: int) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class Left(Greedy):
    """Its process ends itself."""

    def cycle(self, now: int) -> Any:
        os._exit(3)


class Wrong(Greedy):
    """Decides what cannot be."""

    def cycle(self, now: int) -> Any:
        yield harness.Wake(0)


class PanicException(BaseException):
    """As code beneath Python panics; no error of a policy."""


class Panics(Greedy):
    """Something beneath it gives up."""

    def cycle(self, now: int) -> Any:
        raise PanicException("index out of bounds")


class Exits(Greedy):
    """Ends the program."""

    def cycle(self, now: int) -> Any:
        sys.exit()


class Endless(Greedy):
    """Never comes to an end."""

    def cycle(self, now: int) -> Any:
        Path(self.options["mark"]).touch()
        while True:
            time.sleep(0.01)

    options = (harness.Option("mark", "", "a file that says that it has begun"),)


@pytest.fixture
def world(
    write_trace: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Request]:
    """Requests for a small trace on two nodes; this module can be imported by other processes."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    trace = write_trace(*({"submit_time": number // 2, "priority": number % 3} for number in range(60)))
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(POOL)
    return partial(Request, trace, cluster=cluster, output=tmp_path / "results")


def here(name: str) -> Any:
    """A class of this module as other processes find it, whatever pytest calls the module."""
    import importlib

    return getattr(importlib.import_module("test_side_by_side"), name)


def content(run: harness.Run) -> tuple[str, dict[str, bytes], dict[str, Any]]:
    """All that a run is made of but for what may differ between repeats."""
    tables = {path.name: path.read_bytes() for path in run.path.iterdir() if path.suffix == ".parquet"}
    return run.path.name, tables, {**run.info, "provenance": None}


def hidden(folder: Path) -> list[Path]:
    return list(folder.rglob(".harness-*"))


def test_eight_requests_in_two_processes_give_the_bytes_of_one(
    world: Callable[..., Request], tmp_path: Path
) -> None:
    """Files and values in memory, registered plugins and classes, all kinds of settings, in their order."""
    paths = world()
    assert isinstance(paths.trace, Path)
    trace = read_trace(paths.trace, load())
    requests = [
        world(plugin="none"),
        world(plugin="default-preemption", on_preemption="checkpoint=3s,restore=1s"),
        world(plugin="auto", scale_arrivals="1/3", until="20s"),
        world(plugin=Greedy, label="greedy"),
        world(plugin=Priority, grace_period="2s"),
        replace(world(plugin="none", label="memory"), trace=trace, cluster=None),
        replace(world(plugin="kueue-classic"), trace=trace, cluster=None),
        world(plugin="none", label="metrics", keep="metrics"),
    ]
    outputs = [tmp_path / "one", tmp_path / "two"]
    seen: set[int] = set()
    told = [
        replay_all(
            [replace(request, output=output) for request in requests],
            workers=count,
            watch=lambda number, now, jobs: seen.add(number),
        )
        for count, output in enumerate(outputs, 1)
    ]
    for one, two in zip(*told, strict=True):
        assert content(one) == content(two)
    assert [run.label for run in told[1]] == [request.called for request in requests]
    assert seen <= set(range(8))
    assert hidden(tmp_path) == []
    again = replay_all([replace(request, output=outputs[1]) for request in requests], workers=1)
    assert [run.stored for run in again] == [True] * 8
    assert replay_all([], workers=2) == []


def test_what_fails_is_named_and_the_others_are_kept(world: Callable[..., Request], tmp_path: Path) -> None:
    """A wrong decision, a killed process, one that ended, no trace; in one process as well."""
    absent = replace(world(label="absent"), trace=Path("absent.parquet"))
    failing = [world(plugin=here("Wrong"), label="wrong"), absent]
    ending = [world(plugin=here("Killed"), label="killed"), world(plugin=here("Left"), label="left")]
    fine = [world(label="first"), world(label="last")]
    for count, requests in ((1, [fine[0], *failing, fine[1]]), (2, [fine[0], *ending, *failing, fine[1]])):
        with pytest.raises(ReplayError) as raised:
            replay_all([replace(each, force=True) for each in requests], workers=count)
        error = raised.value
        told = dict(line.split(": ", 1) for line in error.message.split("\n"))
        assert told["wrong"].startswith("policy wrong ")
        assert told["absent"].startswith("absent.parquet: ")
        assert [run and run.label for run in error.runs] == [
            request.label if request in fine else None for request in requests
        ]
        assert isinstance(error.errors[requests.index(failing[0])], DecisionError)
        assert isinstance(error.errors[requests.index(absent)], TraceError)
        if count == 2:
            assert told["killed"] == (
                "its process was ended by SIGKILL (the system does that if memory runs out)"
            )
            assert told["left"] == "its process ended with exit code 3"
        assert sorted(path.name.split("-")[0] for path in (tmp_path / "results" / "trace").iterdir()) == [
            "none@first",
            "none@last",
        ]
    with pytest.raises(DecisionError):
        replay_all([failing[0]])


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_defect_says_in_which_replay_it_was(world: Callable[..., Request], workers: int) -> None:
    """It is none of our errors, so that its text names nothing; alone or among others."""
    panics = world(plugin=here("Panics"), label="panics")
    for requests in ([panics], [world(label="fine"), panics]):
        with pytest.raises(here("PanicException"), match="index out of bounds") as raised:
            replay_all(requests, workers=workers)
        assert raised.value.__notes__[-1] == "in the replay panics"


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_replay_that_calls_exit_is_named_and_the_others_are_kept(
    world: Callable[..., Request], workers: int
) -> None:
    """It ended all of them, with exit code 0."""
    with pytest.raises(ReplayError, match=r"^exits: policy exits failed at 0 .*: SystemExit: ") as raised:
        replay_all([world(plugin=here("Exits"), label="exits"), world(label="fine")], workers=workers)
    assert [run and run.label for run in raised.value.runs] == [None, "fine"]


def test_exit_wherever_a_plugin_calls_it_is_an_outcome(world: Callable[..., Request]) -> None:
    """Also where it is asked for what it ignores, before the replay."""

    def ignored(cluster: Any, options: Any) -> Any:
        sys.exit(3)

    def hook(register: Any) -> None:
        register(harness.PolicySpec("exits", Greedy, help="for tests", ignored_fields=ignored))

    plugins = load(extra={"exits": SimpleNamespace(harness_register_policies=harness.hookimpl(hook))})
    outcome = carry_out([world(plugin="exits")], plugins, workers=1)[0]
    assert isinstance(outcome, PluginError)
    assert outcome.message == (
        "policy 'exits' of plugin 'exits' failed in its function ignored_fields: SystemExit: 3"
    )


def test_what_cannot_leave_this_process_is_replayed_in_it(world: Callable[..., Request]) -> None:
    """A class in a function; where several processes are asked for, it is named."""

    class Local(Greedy):
        pass

    requests = [world(plugin=Local, label="one"), world(label="two")]
    assert [run.label for run in replay_all(requests)] == ["one", "two"]
    with pytest.raises(OptionError, match=r"request one cannot be sent to another process: .*Local"):
        replay_all(requests, workers=2)
    extra = load(extra={"local": sys})
    with pytest.raises(OptionError, match="plugins cannot be sent to another process: "):
        replay_all([world(), world(label="two")], workers=2, plugins=extra)
    with pytest.raises(OptionError, match="workers: 0 is not a number of processes"):
        replay_all(requests, workers=0)


def test_a_caller_who_stops_ends_what_is_being_replayed(
    world: Callable[..., Request], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, whatever it is doing, and nothing of it is left; what was over is kept."""
    monkeypatch.setattr(processes, "_PATIENCE", 2 * LONG)  # else they are killed
    marks = [tmp_path / "a", tmp_path / "b"]
    endless = [world(plugin=here("Endless"), label=mark.name, options={"mark": str(mark)}) for mark in marks]
    began = 0.0

    class StoppedError(Exception):
        """The caller has seen enough."""

    def over(number: int, run: object) -> None:
        nonlocal began
        assert (number, isinstance(run, harness.Run)) == (2, True)
        end = time.monotonic() + LONG
        while not all(mark.exists() for mark in marks):
            assert time.monotonic() < end
            time.sleep(0.02)
        assert hidden(tmp_path)
        began = time.monotonic()
        raise StoppedError

    with pytest.raises(StoppedError):
        carry_out([*endless, world(label="fine")], load(), workers=2, over=over)
    assert time.monotonic() - began < LONG
    assert hidden(tmp_path) == []
    assert [path.name.split("-")[0] for path in (tmp_path / "results" / "trace").iterdir()] == ["none@fine"]


SCRIPT = """
import sys
from harness import Request, replay_all
from harness.base.errors import ReplayError
from harness.plugins import load
from policies import Greedy

class Mine(Greedy):
    pass

def main():
    requests = [Request("trace.parquet", plugin=Mine, label=label) for label in "ab"]
    print(requests[0].plan(load()).code[1].sha256)
    print(*(run.info["policy"]["code"] for run in replay_all(requests, workers=2)), sep="\\n")

GUARD
    try:
        main()
    except ReplayError as error:
        sys.exit(f"{error}; {error.hint}")
"""


@pytest.mark.parametrize("piped_too", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_script_replays_side_by_side_under_a_guard(
    piped_too: bool, world: Callable[..., Request], tmp_path: Path
) -> None:
    """A class of the script is the same policy in all processes; without the guard an error says so."""
    for name, guard in (("good", 'if __name__ == "__main__":'), ("bad", "if True:")):
        (tmp_path / f"{name}.py").write_text(SCRIPT.replace("GUARD", guard))

    def ran(program: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, program],
            input=given,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )

    good = ran("good.py")
    assert good.returncode == 0, good.stderr
    sha256, *codes = good.stdout.splitlines()
    assert codes == [str({"sha256": sha256})] * 2
    bad = ran("bad.py")
    assert bad.returncode == 1
    assert "its process ended before the replay had begun" in bad.stderr
    assert "under: if __name__ == '__main__'" in bad.stderr
    if not piped_too:
        return
    piped = ran("-", (tmp_path / "good.py").read_text())
    assert piped.returncode == 1
    assert "its process ended before the replay had begun" in piped.stderr
    assert "not in a file (<stdin>) that another process can read, so use workers=1" in piped.stderr


BEGINS = """
import signal
from multiprocessing import get_context
from harness.runs.processes import signals_blocked

def told():
    print(*sorted(each.name for each in signal.pthread_sigmask(signal.SIG_BLOCK, [])), flush=True)

if __name__ == "__main__":
    for _ in range(2):
        process = get_context("spawn").Process(target=told)
        with signals_blocked():
            process.start()
        process.join()
"""


def test_processes_begin_with_signals_blocked(tmp_path: Path) -> None:
    """The first one, too: a ctrl-C while it loads what it needs would be told as a defect."""
    (tmp_path / "begins.py").write_text(BEGINS)
    told = subprocess.check_output([sys.executable, tmp_path / "begins.py"], text=True)
    assert told == "SIGHUP SIGINT SIGTERM\n" * 2


def test_every_error_can_go_to_another_process() -> None:
    """With what it says, its hint, and all that is its own."""
    own = [each for each in vars(errors).values() if isinstance(each, type)]
    kinds = [each for each in own if issubclass(each, HarnessError)]
    assert len(kinds) > 12
    for kind in kinds:
        faulty = issubclass(kind, errors.FaultyInputError)
        made = kind("it", [Fault("here", "what")], hint="do") if faulty else kind("it", hint="do")  # type: ignore[arg-type, call-arg]
        again = pickle.loads(pickle.dumps(made))
        assert (type(again), str(again), vars(again)) == (kind, str(made), vars(made))


def test_there_are_as_many_processes_as_cores_and_memory_allow(
    world: Callable[..., Request], monkeypatch: pytest.MonkeyPatch, write_trace: Callable[..., Path]
) -> None:
    """One for one request, and for traces that are replayed sooner than a process begins."""
    paths = world()
    assert isinstance(paths.trace, Path)
    trace = read_trace(paths.trace, load())
    rows = trace.frame.select("job_id", "duration").sample(20_000, with_replacement=True, seed=1)
    long = replace(trace, frame=rows)
    monkeypatch.setattr(workers, "_cores", lambda: 6)
    monkeypatch.setattr(workers, "_free_memory", lambda: None)
    assert workers_for([paths] * 8) == 1
    paths.trace.write_bytes(bytes(workers.FEW_BYTES))
    assert workers_for([paths] * 8) == 6
    assert workers_for([paths] * 3) == 3
    assert workers_for([paths]) == 1
    assert workers_for([replace(paths, trace=trace)] * 8) == 1
    assert workers_for([replace(paths, trace=long)] * 8) == 6
    for free, most in ((0, 1), (900 << 20, 2), (1 << 40, 6)):
        monkeypatch.setattr(workers, "_free_memory", lambda free=free: free)
        assert workers_for([replace(paths, trace=long)] * 8) == most


def test_free_memory_is_that_of_the_machine_and_of_the_control_group(tmp_path: Path) -> None:
    """Whichever is less; a group without a limit does not count."""
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (groups / "memory").mkdir(parents=True)
    proc.mkdir()
    assert workers._free_memory(proc, groups) is None
    (proc / "meminfo").write_text("MemTotal:  10000 kB\nMemAvailable:    5000 kB\n")
    assert workers._free_memory(proc, groups) == 5000 * 1024
    (groups / "memory.max").write_text("max\n")
    (groups / "memory.current").write_text("1000000\n")
    assert workers._free_memory(proc, groups) == 5000 * 1024
    (groups / "memory.max").write_text("3000000\n")
    assert workers._free_memory(proc, groups) == 2_000_000
    assert workers._cores() >= 1

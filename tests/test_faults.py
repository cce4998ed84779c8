"""Every call of a command may fail, and it may be killed anywhere: see `tests/faults`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from faults.__main__ import main
from faults.exploring import Explorer, some
from faults.race import race
from faults.system_calls import available
from faults.worlds import WORLDS, Driver

SEED = int(os.environ.get("FAULTS_SEED", "1"))
SAMPLE = {"replay": (2, 1, 1), "replay again without exchange": (1, 0, 0), "convert": (1, 1, 1)}
"""Command -> how many of its calls about files, about memory, and of our functions fail in the suite."""

pytestmark = pytest.mark.skipif(not available(), reason="the kernel has no user notification of seccomp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands run, in `here` below it."""
    return tmp_path_factory.mktemp("faults").resolve()


@pytest.fixture(scope="module")
def driver(folder: Path) -> Iterator[Driver]:
    """Runs commands with faults."""
    made = Driver(folder / "here")
    yield made
    made.close()


@pytest.fixture(scope="module")
def explorers(folder: Path, driver: Driver) -> Callable[[str], Explorer]:
    """The explorer of a command, made once."""
    return cache(lambda world: Explorer(folder, world, driver))


@pytest.mark.parametrize("world", SAMPLE)
def test_a_fault_is_told_and_leaves_everything_whole(
    world: str, explorers: Callable[[str], Explorer]
) -> None:
    """Whatever fails, or kills: the exit code says it, runs are whole or absent, the next call repairs it."""
    explorer = explorers(world)
    for kind, most in zip(("files", "memory", "functions"), SAMPLE[world], strict=True):
        if most:
            found = explorer.explore(kind, some(explorer.faults(kind), most, SEED))
            assert found.wrong == [], f"FAULTS_SEED={SEED}"
            assert found.outcomes.total() == most


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "memory", "functions"])
@pytest.mark.parametrize("world", WORLDS)
def test_every_fault_of_every_command(world: str, kind: str, folder: Path, driver: Driver) -> None:
    """Each call that is made, with each error that it can have, and a kill before it."""
    explorer = Explorer(folder, world, driver)
    assert explorer.explore(kind, explorer.faults(kind)).wrong == []


def test_a_fault_is_what_it_says(explorers: Callable[[str], Explorer]) -> None:
    """The command hears the error from the system, at the call that was chosen and at no other."""
    explorer = explorers("convert")
    for fault in explorer.faults("files"):
        if fault.error == "ENOSPC" and fault.call.kind == "sync":
            ended = explorer.run_with("files", fault.at, fault.error)
            assert ended.err.startswith("Error: made.parquet cannot be written: No space left on device")
            assert (explorer.here / "made.parquet").read_bytes() == explorer.before["made.parquet"]
            break
    else:
        pytest.fail("nothing is written to disk before it takes its place")


@pytest.mark.slow
def test_a_trial_goes_on_where_its_log_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the log is not tried again, and counts."""
    log = tmp_path / "faults.jsonl"
    words = ["--world", "init", "--calls", "files", "--seed", "1", "--log", str(log)]
    for most in ("2", "3", "3"):
        monkeypatch.setattr("sys.argv", ["faults", *words, "--most", most])
        assert main() == 0
        assert len(log.read_text().splitlines()) == int(most)


@pytest.mark.parametrize(
    "seconds", [pytest.param(1, marks=pytest.mark.nightly), pytest.param(600, marks=pytest.mark.slow)]
)
def test_a_reader_sees_a_whole_run_whoever_writes(seconds: float, tmp_path: Path) -> None:
    """Two processes replace it over and over, and are killed now and then."""
    found = race(tmp_path.resolve(), seconds, SEED)
    assert found.wrong == [], f"FAULTS_SEED={SEED}"
    assert found.outcomes["read"]

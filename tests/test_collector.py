"""In processes of our own the garbage collector runs seldom, and not once more when they end."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from policies import Greedy

import harness
from harness import Request
from harness.api import replay_all
from harness.runs.processes import Processes

_MANY = 100_000
"""So many objects are made before the collector looks, at least."""

_AT_IMPORT = gc.get_threshold()[0]


class AtImport:
    """Says how often the collector ran when a process imported this module."""

    def begun(self, _: object) -> Callable[[int], int]:
        """Nothing that a process has to do first."""
        return lambda _: _AT_IMPORT

    def failed(self, _: int, error: BaseException) -> int:
        """It does not fail."""
        raise error


_SCRIPT = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_threshold()[0], gc.get_freeze_count()))
from harness.cli import main
sys.argv = ["harness", "--version"]
main()
"""


class Patient(Greedy):
    """Says how often the collector runs where it is made, which is before the replay."""

    options = (harness.Option("mark", "", "a file that says it"),)

    def __init__(self, cluster: Any, view: Any, options: Any) -> None:
        super().__init__(cluster, view, options)
        Path(options["mark"]).write_text(str(gc.get_threshold()[0]))


def test_the_command_leaves_what_it_made_to_the_system() -> None:
    """The last that happens before Python looks for garbage is that there is nothing left to look at."""
    ran = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    between, left_alone = map(int, ran.stdout.splitlines()[-1].split())
    assert between > _MANY
    assert left_alone > 10_000


_MODULES = """
import gc
from harness.base import collector
collector.leave_modules_alone()
counts = [gc.get_freeze_count()]
collector.collect_seldom()
for _ in range(2):
    collector.leave_modules_alone()
    counts.append(gc.get_freeze_count())
    circles = [[] for _ in range(1000)]
print(*counts)
"""


def test_what_is_there_before_the_first_replay_of_a_process_of_ours_is_not_looked_at() -> None:
    """In a process of somebody else it is; and what replays leave behind is looked at in both."""
    ran = subprocess.run([sys.executable, "-c", _MODULES], capture_output=True, text=True, check=True)
    theirs, first, second = map(int, ran.stdout.split())
    assert theirs == 0
    assert first > 1000
    assert second <= first


def test_so_do_processes_that_replay_for_another_one(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """And the one that began them stays as it is."""
    before = gc.get_threshold()
    marks = [tmp_path / name for name in ("one", "two")]
    trace = write_trace({}, {})
    replay_all(
        [
            Request(
                trace, plugin=Patient, options={"mark": str(mark)}, label=mark.name, output=tmp_path / "r"
            )
            for mark in marks
        ],
        workers=2,
    )
    assert all(int(mark.read_text()) > _MANY for mark in marks)
    assert gc.get_threshold() == before


def test_so_do_processes_of_a_pool_before_they_import_what_they_run() -> None:
    """Such as those that make the items of a sweep: to import it makes most of the objects."""
    processes = Processes(AtImport(), 1)
    try:
        (found,) = processes.map([1])
    finally:
        processes.end()
    assert found > _MANY

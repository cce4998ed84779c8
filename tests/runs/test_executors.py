"""The one interface of executors: what they do with tasks whose process dies, and with what is not wanted."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import OptionError
from harness.runs.executors import Here, ProcessDiedError, why_failed
from harness.runs.processes import Processes


@dataclass(frozen=True)
class Deadly:
    """Doubles numbers; the process of 1 is ended the first time, and that of 2 each time."""

    folder: Path

    def begun(self, report: Callable[..., None] | None) -> Callable[[int], int]:
        return self._do

    def failed(self, task: int, error: BaseException) -> int:
        assert isinstance(error, ProcessDiedError)
        assert (error.code, error.begun) == (-signal.SIGKILL, True)
        return -task

    def _do(self, task: int) -> int:
        mark = self.folder / str(task)
        if task in (1, 2) and not (task == 1 and mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * task


@pytest.fixture
def deadly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The work, of a module that other processes can import."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return importlib.import_module("test_executors").Deadly(tmp_path)


def test_a_task_whose_process_died_is_carried_out_once_more_alone(deadly: Any) -> None:
    """The others are done meanwhile; with `again=False`, it has failed at once."""
    tasks = list(range(6))
    processes: Processes[int, int] = Processes(deadly, 2)
    assert sorted(processes.map(tasks)) == [-2, 0, 2, 6, 8, 10]
    assert sorted(processes.map([3, 4])) == [6, 8]  # processes stay for the next tasks
    processes.end()
    once: Processes[int, int] = Processes(deadly, 1, again=False)
    assert sorted(once.map([2, 3])) == [-2, 6]
    once.end()
    assert list(Here(deadly).map([3, 4])) == [6, 8]


def test_an_error_that_concerns_all_tasks_is_raised() -> None:
    """An error of one task is the result of that task."""
    with pytest.raises(OptionError, match="all of them"):
        why_failed(OptionError("all of them"))
    assert why_failed(ValueError("this one")) == "the executor failed: ValueError: this one"
    assert why_failed(ProcessDiedError(-9, begun=True)).startswith("its process was killed, perhaps because")

"""What is said of a run that is not there, while others beside it are being written."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.base.errors import RunError
from harness.runs.run import Run


def test_a_missing_run_is_told_while_folders_beside_it_come_and_go(tmp_path: Path) -> None:
    """Another process that finishes a run beside it just then changes nothing of that."""
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            for number in range(20):
                (tmp_path / f".harness-{number}").mkdir()
            for number in range(20):
                (tmp_path / f".harness-{number}").rmdir()

    others = threading.Thread(target=come_and_go)
    others.start()
    try:
        for _ in range(500):
            with pytest.raises(RunError, match="there is no such folder"):
                Run.open(tmp_path / "none-0")
    finally:
        over.set()
        others.join()


def test_a_run_that_is_there_is_named_instead(tmp_path: Path) -> None:
    """The first one beside it, or in a folder beside it; nothing hidden. Longer names come first."""
    for name in (".harness-0", "trace/none-1", "trace/none-2"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.json").write_text("{}")
    for asked in ("none-0", "trace/none-0"):
        with pytest.raises(RunError) as refused:
            Run.open(tmp_path / asked)
        assert refused.value.hint == f"give the folder of a run, such as {tmp_path / 'trace' / 'none-1'}"
    for asked in ("trace/none-2*", "none-2*"):
        with pytest.raises(RunError) as refused:
            Run.open(tmp_path / asked)
        assert refused.value.hint == f"give the folder of a run, such as {tmp_path / 'trace' / 'none-2'}"

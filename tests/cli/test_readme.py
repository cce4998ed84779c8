"""What README shows first works as it stands."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_what_if_of_the_first_screen_says_what_differs(
    harness: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command replays each patch of a bundled trace's cluster, and its output begins as shown."""
    first = "\n".join(README.split("\n")[:40]).split("```")
    command, shown = first[1].strip(), first[3].strip().split("\n")
    assert "--patch" in command
    monkeypatch.chdir(ROOT)
    ended = harness(*shlex.split(command)[1:], "--until", "2h", "-q", "-o", tmp_path)
    assert ended.code == 0, ended.err
    answer, _, *table = shown
    said, _, *printed = ended.out.split("\n")
    assert said.startswith("Where preempted jobs lose all their progress"), "too short to differ in anything"
    assert answer.startswith("Which one to take cannot be said: ")
    head = table[: table.index("")]
    assert printed[: len(head)] == head
    assert next(line for line in printed if line.startswith("metric")).split() == table[len(head) + 1].split()

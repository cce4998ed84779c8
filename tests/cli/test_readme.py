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
    """The command replays a patch of a bundled trace's cluster; its output has what is shown of its head."""
    blocks = README.split("```\n")
    place = next(number for number, block in enumerate(blocks) if block.startswith("harness replay"))
    command, shown = blocks[place].strip(), blocks[place + 2].strip("\n").split("\n")
    assert "--patch" in command
    monkeypatch.chdir(ROOT)
    words = command.replace("--until 7d --shake 10", "--until 2h").split()
    ended = harness(*shlex.split(" ".join(words))[1:], "-q", "-o", tmp_path)
    assert ended.code == 0, ended.err
    said, _, *printed = ended.out.split("\n")
    assert said.startswith("If preempted jobs lose all their progress"), "too short to differ in anything"
    head = shown[: shown.index("")]
    assert printed[1 : 1 + len(head)] == head
    columns = next(line for line in shown if line.startswith("metric"))
    assert next(line for line in printed if line.startswith("metric")).split() == columns.split()


def test_the_front_page_fits_two_screens() -> None:
    """At most 110 lines of at most 120 characters."""
    lines = README.splitlines()
    assert len(lines) <= 110
    assert max(map(len, lines)) <= 120

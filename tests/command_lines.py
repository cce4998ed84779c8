"""Command lines as they stand in help and documentation, carried out without a shell."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_environment import called, clean_environment


def expanded(command: str) -> tuple[list[str], str | None]:
    """The words of a command as a shell makes them, and the file that its output goes to."""
    words: list[str] = []
    for word in shlex.split(command, comments=True):
        paths = Path().glob(word) if "*" in word and "=" not in word else ()
        found = sorted(str(path) for path in paths if not path.name.startswith("."))  # as a shell has it
        words += found or [word]
    if ">" in words:
        return words[: words.index(">")], words[words.index(">") + 1]
    return words, None


def carried_out(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """How a command ends, what it prints and what else it says; ours in this process."""
    words, to = expanded(command)
    capsys.readouterr()
    if words[0] != "harness":
        line = [sys.executable, *words[1:]]
        ran = subprocess.run(line, env=clean_environment(), capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout, ran.stderr
    code = called(words[1:])
    out, err = capsys.readouterr()
    if to is not None:
        Path(to).write_text(out)
    return code, out, err

"""Command lines as they stand in help and documentation, carried out without a shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from cli_environment import called, clean_environment

from harness.cli import cli


def subcommands(
    command: click.Command = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, the group itself first."""
    name = " ".join(("harness", *path))
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            yield from subcommands(inner, (*path, each))


def examples() -> list[str]:
    """The examples of every command, each once."""
    found = []
    for _, command in subcommands():
        _, _, lines = (command.epilog or "").partition("Examples:\n")
        found += [line.strip() for line in lines.split("\n") if line.strip()]
    return list(dict.fromkeys(found))


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


def brief(command: str) -> str:
    """The same with two twins or futures in place of many, and an hour of a demo in place of days."""
    if command.startswith("harness demo"):
        command = re.sub(r" --until \w+|$", " --until 1h", command, count=1)
    if command.startswith("harness forecast") and "--futures" not in command:
        command += " --futures 2"
    return re.sub(r"--(shake|futures) \d+", r"--\1 2", command)


def undrawn(command: str) -> str:
    """The same with a report in Markdown, which has words in place of charts: to draw these takes seconds."""
    drawn = re.match(r"harness (experiment )?report (?!.*--format)", command)
    return command + (" --format markdown" if drawn else "")


def carried_out(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """How a command ends, what it prints and what else it says; ours in this process, as on one core.

    Processes that it began by itself would spend seconds on imports, each time.
    """
    words, to = expanded(command)
    capsys.readouterr()
    if words[0] != "harness":
        line = [sys.executable, *words[1:]]
        ran = subprocess.run(line, env=clean_environment(), capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout, ran.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
        code = called(words[1:])
    out, err = capsys.readouterr()
    if to is not None:
        Path(to).write_text(out)
    return code, out, err

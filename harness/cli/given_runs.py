"""Arguments of commands that accept one run or two, although a shell may expand a pattern to more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from harness.base.errors import RunError

_NUMBERS = {1: ("one", "run"), 2: ("two", "runs")}


def given_runs(
    command: str, words: Sequence[str], count: int, others: int = 0
) -> tuple[list[Path], list[str]]:
    """Returns the `count` runs of the arguments, and the other arguments, which may be `others` at most.

    Raises:
        RunError: the arguments have more runs. The error lists them with the commands that made them.
        click.UsageError: a run is missing, or the arguments have something else that the command can't use.
    """
    number, noun = _NUMBERS[count]
    runs = [Path(word) for word in words if (Path(word) / "run.json").is_file()]
    rest = [word for word in words if Path(word) not in runs]
    if len(runs) < count:
        runs, rest = [Path(word) for word in words[:count]], list(words[count:])
    if len(runs) > count:
        runs = list(dict.fromkeys(runs))  # Two patterns may stand for the same runs.
    if len(rest) > others:
        raise click.UsageError(f"Got unexpected extra argument ({rest[others]})")
    if len(runs) < count:
        raise click.UsageError(f"{command} accepts {number} {noun}, but this is only one")
    if len(runs) > count:
        runs.sort(key=lambda run: (run / "run.json").stat().st_mtime, reverse=True)
        lines = [f"  {run}: {_command(run)}" for run in runs]
        example = " ".join(["harness", command, *map(str, sorted(runs[:count])), *rest])
        raise RunError(
            "\n".join(
                [f"{command} accepts {number} {noun}, but these are {len(runs):,}, the latest first:", *lines]
            ),
            hint=f"name {number} of them: {example}",
        )
    return runs, rest


def _command(run: Path) -> str:
    from harness.runs.folder import read_info

    return str(read_info(run)["provenance"].get("command") or "made in Python")

"""Runs the commands of a case and says what is wrong with how they ended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from fuzz.cases import Case
from harness.analysis.metrics.resource_time import resource_time
from harness.plugins.measurement import Window
from harness.runs.run import Run

CPU_SECONDS = 20
MEGABYTES = 2000

_OURS = re.compile(
    r"this is a bug in harness|made a wrong decision|"
    r"\b(policy|reader|plugin|section|metric) \S+( of \S+)? (failed|cannot be made|answered no|returned no)"
)
"""What is said where something of our own failed; nothing that is built in may."""


_BESIDE = ("made.cluster.yaml",)
"""What is written before the trace that it belongs to."""


class Ended(NamedTuple):
    """How a command ended; without a code it was stopped."""

    code: int | None
    out: str
    err: str


class Verdict(NamedTuple):
    """What is wrong with how the commands of a case ended, each with the command; and how they ended."""

    wrong: list[str]
    codes: list[int | None]


Call = Callable[[list[str]], Ended]
"""Runs one command in the folder of the case."""


def verdict(case: Case, chains: list[list[list[str]]], folder: Path, call: Call) -> Verdict:
    """Writes the files of a case and runs commands of it."""
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    wrong: list[str] = []
    codes = []
    for chain in chains:
        for command in chain:
            words = _expanded(command, folder)
            if words is None:
                break
            before = _there(folder)
            ended = call(words)
            codes.append(ended.code)
            said = [*_wrong(words, ended), *_left(words, ended, before, folder)]
            wrong += [f"{words}: {each}" for each in said]
            if ended.code:
                break
    return Verdict(wrong, codes)


def _expanded(command: list[str], folder: Path) -> list[str] | None:
    """A command with the runs that there are in it; None where it needs one and there is none."""
    runs = [str(path.relative_to(folder)) for path in sorted(folder.glob("out/*/*"))]
    if any(word in ("{runs}", "{run}", "{first}", "{last}") for word in command) and not runs:
        return None
    words: list[str] = []
    for word in command:
        if word == "{runs}":
            words += runs
        else:
            words.append(runs[-1] if word == "{last}" else runs[0] if word in ("{run}", "{first}") else word)
    return words


def _there(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def _wrong(words: list[str], ended: Ended) -> list[str]:
    """What is wrong with a command's exit code and words."""
    if ended.code not in (0, 1, 2):
        return [f"exit code {ended.code}: {ended.err.strip()[-1500:]}"]
    found = []
    if "Traceback" in ended.err:
        found.append(f"a traceback: {ended.err.strip()[-1500:]}")
    if _OURS.search(ended.err):
        found.append(f"a defect: {ended.err.strip()[-1500:]}")
    answered = words[:2] == ["trace", "check"] and "--json" in words and ended.code == 2 and ended.out != ""
    if ended.code and not answered and "Error: " not in ended.err:
        found.append(f"exit code {ended.code} without a message: {ended.err[-500:]!r}")
    tabled = words[0] == "compare" and "--fail-on" in words  # an undecided condition hides no table
    if ended.code == 2 and ended.out and not (answered or tabled or words[0] == "plugins"):
        found.append(f"output before an error: {ended.out[:300]!r}")
    if answered or (ended.code == 0 and _asks_json(words) and "--help" not in words and "-h" not in words):
        try:
            document = json.loads(ended.out, parse_constant=_refused)
        except ValueError as error:
            found.append(f"no JSON ({error}): {ended.out[:300]!r}")
        else:
            if answered and not document["faults"]:  # what it is asked for: its message is in the document
                found.append(f"exit code 2 without a fault: {ended.out[:300]!r}")
    return found


def _asks_json(words: list[str]) -> bool:
    """Whether a document is asked for: of `--json` and `--format`, one option, the last one counts."""
    said = [place for place, word in enumerate(words) if word in ("--json", "--format")]
    return bool(said) and "json" in (words[said[-1]].removeprefix("--"), *words[said[-1] + 1 :][:1])


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _left(words: list[str], ended: Ended, before: set[Path], folder: Path) -> list[str]:
    """What is wrong with the files that a command left."""
    new = sorted(_there(folder) - before)
    if ended.code:
        kept = [path for path in new if ended.code == 2 and path.name not in _BESIDE]
        several = words[0] == "validate" or sum(word in ("-p", "--plugin") for word in words) > 1
        if several:  # what comes before the error is whole
            kept = [path for path in kept if not (path.parent / "run.json").is_file()]
        return [f"left {', '.join(str(path.relative_to(folder)) for path in kept)}"] if kept else []
    return [each for path in new if path.name == "run.json" for each in _added_up(path.parent)]


def _added_up(path: Path) -> list[str]:
    """What of a run does not add up."""
    found = []
    run = Run.open(path)
    window: Window = run.window
    for resource in run.resources:
        parts = resource_time(run, window, resource)
        became = (parts.useful, parts.lost, parts.idle_held, parts.unfinished)
        if parts.allocated != sum(became) or min(parts.allocated, *became) < 0:
            found.append(f"{path.name}: {resource} was {parts.allocated}, of which became {became}")
        span = window.end - window.start
        capacity = run.capacity.get(resource)
        if capacity is not None and parts.demanded is not None:
            most = capacity * span
            if not 0 <= parts.demanded <= most or parts.allocated > most:
                found.append(f"{path.name}: {resource} {parts} of {capacity} x {span}")
    for table in ("jobs", "decisions", "stints", "timeline", "metrics"):
        pq.read_table(path / f"{table}.parquet").validate(full=True)
    for row in run.metrics.iter_rows(named=True):
        value = row["value"]
        if value is not None and (value != value or value in (float("inf"), float("-inf"))):
            found.append(f"{path.name}: {row['metric']} {row['scope']} is {value}")
        elif value is not None and value < 0:
            found.append(f"{path.name}: {row['metric']} {row['scope']} {row['resource']} is {value}")
    return found

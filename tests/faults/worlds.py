"""What faults are tried on: commands, what must be there before them, and what they leave."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from faults.system_calls import Call

_TESTS = Path(__file__).parents[1]
NODES = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: pool}
spec:
  count: 2
  template:
    status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10}}
"""


class Ended(NamedTuple):
    """How a command ended, what it wrote, and the calls that were counted."""

    code: int
    out: str
    err: str
    calls: list[Call]


class Driver:
    """A server that runs commands in a folder, see `driver.py`.

    Args:
        folder: where commands run; it need not be there yet.
        logs: where their output goes; beside the folder by default.
    """

    def __init__(self, folder: Path, logs: Path | None = None) -> None:
        path = os.pathsep.join([str(_TESTS), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        settled = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.driver", folder, logs or folder.parent],
            env={**os.environ, **settled, "PYTHONHASHSEED": "0", "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, args: list[str], **fault: Any) -> Ended:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"args": args, "fault": fault}), file=self._process.stdin, flush=True)
        found = json.loads(self._process.stdout.readline())
        return Ended(found["code"], found["out"], found["err"], [Call(*call) for call in found["calls"]])

    def load(self, args: list[str]) -> Ended:
        """Run a command, and have what it loads from then on."""
        return self(args, calls="modules")

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


@dataclass(frozen=True)
class World:
    """A command that faults are tried on.

    Attributes:
        args: the command.
        before: commands that come first.
        lacks: system calls that there are not, and what the system says instead.
    """

    args: list[str]
    before: list[list[str]] = field(default_factory=list)
    lacks: dict[str, str] = field(default_factory=dict)


_REPLAY = ["replay", "trace.parquet", "--cluster", "cluster.yaml", "-q"]
_RUN = "results/trace/none-*"
WORLDS = {
    "replay": World([*_REPLAY, "-p", "none"]),
    "replay again": World([*_REPLAY, "--force"], [_REPLAY]),
    "replay again without exchange": World([*_REPLAY, "--force"], [_REPLAY], {"renameat2": "EINVAL"}),
    "replay of a stored run": World(_REPLAY, [_REPLAY]),
    "compare": World(["compare", "RUN", "OTHER"], [_REPLAY, [*_REPLAY, "-p", "none@other"]]),
    "report": World(
        ["report", "RUN", "--format", "markdown", "-o", "page.md"],
        [_REPLAY, ["report", "RUN", "--format", "markdown", "-o", "page.md"]],
    ),
    "convert": World(
        ["trace", "convert", "trace.parquet", "made.parquet"],
        [["trace", "convert", "trace.parquet", "made.parquet"]],
    ),
    "explain": World(["explain", "RUN", "j3"], [_REPLAY]),
    "init": World(["cluster", "init", "trace.parquet", "-o", "made.yaml"]),
}


def make(folder: Path) -> None:
    """A trace and a cluster, in a fresh folder."""
    folder.mkdir()
    times = [0, 1, 2, 2, 4, 9]
    frame = pl.DataFrame(
        {
            "job_id": [f"j{number}" for number in range(len(times))],
            "submit_time": [time * 1_000_000 for time in times],
            "duration": [5_000_000] * len(times),
            "queue": ["a", "b"] * 3,
            "request.cpu": [1000, 2000] * 3,
        }
    )
    frame = frame.with_columns(pl.col("submit_time", "duration").cast(pl.Duration("us")))
    frame.write_parquet(folder / "trace.parquet")
    (folder / "cluster.yaml").write_text(NODES)


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its name, runs without what may differ between repeats."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
            if path.name == "run.json":
                found[str(path.relative_to(folder))] = _repeatable(path.read_bytes())
    return found


def _repeatable(info: bytes) -> bytes:
    """A run's `run.json` without when and how long; where it is not whole yet, as it is."""
    try:
        return json.dumps(json.loads(info) | {"provenance": None}).encode()
    except ValueError:
        return info


def hidden(name: str) -> bool:
    """Whether a file is not in its place yet."""
    return ".harness-" in name


def plain(name: str) -> str:
    """A file's name without what is drawn at random."""
    return re.sub(r"\.harness-[0-9a-f]+", ".harness-*", name)

"""Runs commands of harness in processes of their own, with a fault at one of their calls: a server for tests.

It has loaded what commands need before it forks, so that a command takes a fraction of a second and its
calls are those of its work, not of its start.

Usage: python -m faults.driver FOLDER LOGS; then requests on the standard input and answers on the standard
output, each a line of JSON.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from faults.system_calls import ERRORS, Fault, supervised

FILES = set(ERRORS) - {"memory"}


def main(folder: Path, logs: Path) -> None:
    for entry in entry_points(group="harness"):
        entry.load()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        found = answer(folder, logs, request)
        if request["fault"].get("calls") == "modules":
            _load(name for _, _, name in found["calls"])
        print(json.dumps(found), flush=True)


def _load(modules: Iterable[str]) -> None:
    """Have modules from now on, so that no command has to load them again."""
    for name in modules:
        with contextlib.suppress(Exception):  # some only exist as parts of others
            importlib.import_module(name)
    gc.freeze()


def answer(folder: Path, logs: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out one request.

    Args:
        folder: where the command runs; files below it count.
        logs: where its output goes.
        request: `args` of the command, and `fault`: `calls` is what counts (`files`, `memory`, `functions`,
            or `modules`, which are loaded in this process afterwards), `at` the number of the call that
            fails, `error` with what (None kills), `always` see `Fault`.
    """
    fault = request.get("fault", {})
    streams = [logs / name for name in ("out", "err")]
    counts = fault.get("calls", "files")

    def run() -> int:
        os.chdir(folder)
        for number, log in enumerate(streams, start=1):
            os.dup2(os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
        if counts == "functions":
            return _with_failing_function(request["args"], fault["at"], logs)
        if counts == "modules":
            return _telling_modules(request["args"], logs)
        return _called(request["args"])

    kinds = FILES if counts == "files" else {"memory"} if counts == "memory" else set()
    code, calls = supervised(
        run, folder, kinds, Fault(fault.get("at", -1), fault.get("error"), fault.get("always", {}))
    )
    found = {"code": code, "calls": [list(call) for call in calls]}
    if counts in ("functions", "modules"):
        names = (logs / counts).read_text().splitlines()
        found["calls"] = [["call", counts.removesuffix("s"), name] for name in names]
    return found | {log.name: log.read_text() for log in streams}


def _called(args: list[str]) -> int:
    from harness.cli import main

    try:
        main(args)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.stdout.flush()
    return 0


def _telling_modules(args: list[str], logs: Path) -> int:
    """The modules that the command loads."""
    before = set(sys.modules)
    code = _called(args)
    (logs / "modules").write_text("\n".join(name for name in sys.modules if name not in before))
    return code


def _with_failing_function(args: list[str], at: int, logs: Path) -> int:
    """The first call of one of our functions, counted in the order of first calls, has no memory for it."""
    import harness.cli
    import harness_plugins

    ours = tuple(str(Path(package.__path__[0])) for package in (harness, harness_plugins))
    seen: dict[CodeType, None] = {}
    entry = harness.cli.main.__code__  # without memory for this one nothing of ours is there to say so

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code in seen or code is entry or not code.co_filename.startswith(ours):
            return
        seen[code] = None
        if len(seen) == at + 1:
            raise MemoryError

    sys.setprofile(watch)
    try:
        return _called(args)
    finally:
        sys.setprofile(None)
        names = (f"{Path(code.co_filename).name}:{code.co_qualname}" for code in seen)
        (logs / "functions").write_text("\n".join(names))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

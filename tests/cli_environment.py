"""How tests call the command: in this process, or in one of its own with an environment that is known."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.cli import main

LONG = 600
"""Seconds after which something hangs, also on a machine that has twenty times as much to do as it can."""


def clean_environment() -> dict[str, str]:
    """This process's environment without what changes output, and with our command first on the path."""
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR", "FORCE_COLOR")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "PATH": path, "TERM": "xterm"}


def called(args: list[str]) -> int:
    """Calls what the console script calls; answers the exit code."""
    try:
        main(args)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else -1
    return 0

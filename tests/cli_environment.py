"""The environment in which tests call the command in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def clean_environment() -> dict[str, str]:
    """This process's environment without what changes output, and with our command first on the path."""
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR", "FORCE_COLOR")}
    return {**kept, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}", "TERM": "xterm"}

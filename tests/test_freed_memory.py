"""The command lets polars keep freed memory for some seconds, unless the user asked for something else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_NAME = "_RJEM_MALLOC_CONF"
_SCRIPT = (
    "import os, sys\nfrom harness.cli import main\n"
    "assert 'polars' not in sys.modules\n"
    "sys.argv = ['harness', '--version']\n"
    "try:\n    main()\nexcept SystemExit:\n    pass\n"
    f"print(os.environ.get({_NAME!r}))"
)


@pytest.mark.parametrize(
    ("asked", "found"), [({}, "dirty_decay_ms:10000"), ({_NAME: "dirty_decay_ms:0"}, "dirty_decay_ms:0")]
)
def test_the_command_keeps_freed_memory_unless_asked(asked: dict[str, str], found: str) -> None:
    """Before polars is there, it is told so; what the environment asks for stays as it is."""
    environment = {name: value for name, value in os.environ.items() if name != _NAME} | asked
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.splitlines()[-1] == found

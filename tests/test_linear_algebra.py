"""The command's linear algebra runs in one thread, unless the user asked for something else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_THREADS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_SCRIPT = (
    "import os, sys\nfrom harness.cli import main\n"
    "sys.argv = ['harness', '--version']\n"
    "try:\n    main()\nexcept SystemExit:\n    pass\n"
    f"print(*(os.environ.get(name) for name in {_THREADS}))"
)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, "1 None None"),
        ({"OPENBLAS_NUM_THREADS": "3"}, "3 None None"),
        ({"OMP_NUM_THREADS": "2"}, "None None 2"),
    ],
)
def test_the_command_has_one_thread_unless_asked(asked: dict[str, str], found: str) -> None:
    """No thread waits for products of matrices; what the environment asks for stays as it is."""
    environment = {name: value for name, value in os.environ.items() if name not in _THREADS} | asked
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.splitlines()[-1] == found

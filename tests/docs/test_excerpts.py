"""What README shows of a command's output is what the command prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_readmes_first_comparison_is_what_its_command_prints(tmp_path: Path) -> None:
    """What differs, and six rows of the table, in the order of the output."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command, shown = re.findall(
        r"```\n(harness replay [^\n]*--patch [^\n]*)\n```.*?```\n(.*?)```", readme, re.DOTALL
    )[0]
    words = [sys.executable, "-m", *shlex.split(command), "-q", "-o", str(tmp_path)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    printed = iter(ended.stdout.split("\n"))
    missing = [line for line in shown.splitlines() if line not in printed]
    assert not missing

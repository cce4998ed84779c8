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
    """The answer, what differs and the table; remarks under it are left out there."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command, shown = re.findall(
        r"```\n(harness replay [^\n]*--patch [^\n]*)\n```\n\n```\n(.*?)```", readme, re.DOTALL
    )[0]
    words = [sys.executable, "-m", *shlex.split(command), "-q", "-o", str(tmp_path)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(shown)

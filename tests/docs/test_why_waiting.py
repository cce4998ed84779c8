"""The page for a cluster's user: what it shows is what commands print, and its lists are whole.

`test_commands.py` executes its commands, and `test_assistants.py` the tool calls of the page of assistants.
"""

from __future__ import annotations

import json
import re
import shlex
from importlib.resources import files
from pathlib import Path

import pytest
from cli_environment import called

import harness
from harness.studies.forecasting.job_kinds import KINDS
from harness.studies.simulation.answer import EXIT_CODES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/why-waiting.md").read_text(encoding="utf-8")
DUMP, JOB = "docs/examples/live.json.gz", "docs/examples/notebooks.yaml"

SHOWN = re.findall(r"\n    harness (simulate [^\n]*)\n(?:(?!    )[^`]*\n)?```\n(.*?)```", PAGE, re.DOTALL)
"""Command and what the page shows of its output."""


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_what_the_page_shows_is_printed(
    command: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Line by line and in order; three dots cut a line."""
    monkeypatch.chdir(ROOT)
    called(shlex.split(command))
    printed = iter(capsys.readouterr().out.splitlines())
    for line in shown.splitlines():
        whole, cut = line.removesuffix("..."), line.endswith("...")
        assert any(each.startswith(whole) if cut else each == whole for each in printed), line


def test_the_page_shows_the_answer_to_a_job_and_what_would_fit() -> None:
    """So that the test above has them."""
    assert ["--largest" in command for command, _ in SHOWN] == [False, True]


def test_the_page_lists_all_kinds_of_jobs() -> None:
    """And no other one."""
    (listed,) = re.findall(r"## Which jobs\n\n[^:]*:\n\n(.*?)\.\n", PAGE, re.DOTALL)
    assert sorted(re.split(r",\s+|\s+and\s+", listed)) == sorted(KINDS)


def test_the_page_lists_all_that_a_job_can_wait_for_and_all_exit_codes() -> None:
    """As the published schema of the answers does."""
    text = (files("harness.studies.simulation") / "schema.json").read_text(encoding="utf-8")
    waits = json.loads(text)["$defs"]["answer"]["properties"]["waitsFor"]["enum"]
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [each for each in waits if each]
    codes = re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE)
    assert sorted(map(int, codes)) == sorted({*EXIT_CODES.values(), 2})


def test_python_answers_as_the_page_says() -> None:
    """With answers, an exit code and a document."""
    found = harness.simulate(ROOT / DUMP, ROOT / JOB)
    assert (len(found.answers), found.exit_code, found.to_json()["exit_code"]) == (1, 3, 3)

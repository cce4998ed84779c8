"""The tests of docs/testing-policies.md pass, and its tables have the names of the kit.

The guide for plugins, whose policy they test, lists every method of a policy as it is called.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
from cli_environment import clean_environment
from doc_pages import ROOT
from small_clusters import queues

import harness.testing
from harness.policy import Policy
from harness.testing.checks import RULES

PAGE = (ROOT / "docs" / "testing-policies.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "plugins" / "README.md").read_text(encoding="utf-8")


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    """All of its code is one file beside the policy of the guide."""
    (tmp_path / "shortest.py").write_text(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0])
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "test_policy.py").write_text("\n\n".join(blocks))
    (tmp_path / "cluster.yaml").write_text(queues({"a": {"cpu": "4"}}))
    second, number = pl.duration(seconds=1, time_unit="us"), pl.int_range(9, dtype=pl.Int64)
    columns = {"job_id": number.cast(pl.String), "submit_time": second * number, "duration": second * 60}
    amounts = {"request.cpu": 1000 * (1 + number % 4)}
    pl.select(**columns, queue=pl.lit("a"), **amounts).write_parquet(tmp_path / "jobs.parquet")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_policy.py"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False
    )
    tests = sum(block.count("def test_") for block in blocks)
    assert ran.returncode == 0, ran.stdout
    assert f"{tests - 1 + 5} passed" in ran.stdout  # one test has five seeds


def test_the_page_has_every_name_of_the_kit() -> None:
    """Those that tests write down, and every rule that they can ask for."""
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))
    assert set(harness.testing.__all__) - {"JobRow", "Row", "Stint"} <= named
    assert set(RULES) <= named


def test_the_guide_lists_every_call_as_the_engine_makes_it() -> None:
    """With all arguments: authors copy them."""
    table = GUIDE.split("\n| call | meaning |\n")[1].split("\n\n")[0]
    calls = set(re.findall(r"`(\w+\([\w, ]+\))`", inspect.getdoc(Policy) or ""))
    assert len(calls) > 5
    assert calls <= set(re.findall(r"`(\w+\([\w, ]+\))`", table))

"""`docs/examples/every_hook.py` has every hook, and each does something."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from cli_environment import called

from harness.plugins import hookspecs
from harness.plugins.loading import installed_kinds

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module as the plugin of a distribution."""
    about = tmp_path / "site" / "every_hook-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: every-hook\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[harness]\nevery-hook = every_hook\n")
    monkeypatch.syspath_prepend(str(about.parent))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)
    installed_kinds.cache_clear()  # a process of tests has had others, and will have
    yield
    installed_kinds.cache_clear()
    sys.modules.pop("every_hook", None)


def test_no_hook_is_left_out(installed: None) -> None:
    """A new hook is shown there as well."""
    hooks = {name for name in vars(hookspecs) if name.startswith("harness_")}
    assert {name for name in vars(import_module("every_hook")) if name.startswith("harness_")} == hooks


def test_each_hook_does_something(installed: None, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace is read, replayed with the policy, measured and reported; a case answered; a kind checked."""
    Path("short.seconds").write_text("60\n90.5\n")
    case = {"id": "1", "component": "every/sum", "features": [], "objects": [], "given": {"numbers": [1, 2]}}
    Path("case.jsonl").write_text(json.dumps({**case, "expect": {"sum": 3}}) + "\n")
    Path("team.yaml").write_text(
        "apiVersion: example.org/v1\nkind: Team\nmetadata: {name: a}\nspec: {weight: 0}\n"
    )

    def shown(*args: str, code: int = 0) -> str:
        capsys.readouterr()
        assert called([*args]) == code
        out, err = capsys.readouterr()
        return f"{out}{err}"

    assert "hello" in shown("every")
    replayed = shown("replay", "short.seconds", "-p", "every-fifo")
    assert "every hook: every-fifo begins" in replayed
    assert "every hook: every-fifo has 2 jobs" in replayed
    (run,) = Path("results").glob("*/every-fifo-*")
    assert "every.jobs" in shown("compare", str(run), "--metric", "every.jobs")
    shown("report", str(run), "-o", "report.md")
    assert "How long runs lasted" in Path("report.md").read_text()
    assert "100 %" in shown("conform", "case.jsonl")
    assert "spec.weight" in shown("cluster", "check", "team.yaml", code=2)

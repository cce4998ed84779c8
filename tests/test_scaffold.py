"""`harness plugins new`: what it refuses, and what it writes; test_installed_plugins.py installs it."""

from __future__ import annotations

import ast
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from cli_environment import called
from package_imports import internal_imports

from harness.plugins.scaffold.package import KINDS


def new(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Calls the command: its exit code and what it wrote."""
    capsys.readouterr()
    code = called(["plugins", "new", *args])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["Big"], "'Big' cannot be the name of a plugin"),
        (["3rd"], "lowercase letters and digits, with a letter first"),
        (["a-"], "cannot be the name of a plugin"),
        (["../up"], "cannot be the name of a plugin"),
        (["x" * 41], "cannot be the name of a plugin"),
        (["for"], "because Python uses it"),
        (["json", "--metric"], "because Python uses it"),
        (["pip"], "because Python uses it"),
        (["nul"], "because Windows reserves it for a device"),
        (["com1", "--reader"], "because Windows reserves it for a device"),
        (["replay"], "a distribution harness-replay already exists"),
        (["polars"], "a module polars already exists"),
        (["harness"], "a module harness already exists"),
        (["kueue-classic"], "is taken by the plugin kueue"),
        (["kueue", "--section"], "is taken by the plugin kueue"),
        (["parquet", "--reader"], "is taken by the plugin readers"),
        (["swf", "--reader"], "is taken by the plugin readers"),
    ],
)
def test_names_that_cannot_be_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    said: str,
) -> None:
    """With the reason, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    code, out, err = new(capsys, *args)
    assert (code, out) == (2, "")
    assert said in err
    assert not list(tmp_path.iterdir())


def test_what_is_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder, a file, a link that leads nowhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "yours").write_text("kept")
    (tmp_path / "theirs").symlink_to("nowhere")
    for name in ("mine", "yours", "theirs"):
        code, _, err = new(capsys, name)
        assert code == 2
        assert f"{name} already exists" in err
    assert not list((tmp_path / "mine").iterdir())
    assert (tmp_path / "yours").read_text() == "kept"


def test_two_kinds_at_once_are_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with all options that are given twice; a policy where none is given."""
    monkeypatch.chdir(tmp_path)
    assert "a metric first" in new(capsys, "first", "--policy", "--metric")[1]
    assert "a policy second" in new(capsys, "second")[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_builds_on_stable_names(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every blank is filled in, and what it imports of `harness` is there and stays."""
    monkeypatch.chdir(tmp_path)
    assert new(capsys, "my-own", f"--{kind}")[0] == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if "{{" in path.read_text() or path.suffix == ".tmpl"]
    project = tomllib.loads((tmp_path / "my-own" / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["harness"] == {"my-own": "my_own"}
    sources = [path for path in files if path.suffix == ".py"]
    assert {path.name for path in sources} >= {"__init__.py", "test_my_own.py"}
    for path in sources:
        assert internal_imports(path) == []
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("harness"):
                module = import_module(node.module or "")
                assert all(hasattr(module, each.name) for each in node.names)

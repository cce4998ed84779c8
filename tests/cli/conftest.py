"""Runs the command line as a user does: in this process, in one of its own, and with plugins of others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest
from cli_environment import LONG, called, clean_environment


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder, in which the command is called."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def harness(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Calls the command in this process, by way of what the console script calls."""

    def run(*args: object) -> Ended:
        capsys.readouterr()
        code = called([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run


@pytest.fixture
def shell(folder: Path) -> Callable[..., Ended]:
    """Runs a line in a shell that finds the command, in the fresh folder."""

    def run(line: str, **environment: str) -> Ended:
        ran = subprocess.run(
            ["bash", "-c", line],
            cwd=folder,
            env=clean_environment() | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONG,
        )
        return Ended(ran.returncode, ran.stdout, ran.stderr)

    return run


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Path]]:
    """Installs a module as the plugin of another distribution; answers its folder, for PYTHONPATH."""
    before = set(sys.modules)

    def make(name: str, source: str) -> Path:
        site = tmp_path / f"site-{name}"
        about = site / f"{name}-1.0.dist-info"
        about.mkdir(parents=True)
        (site / f"{name}.py").write_text(dedent(source))
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[harness]\n{name} = {name}\n")
        monkeypatch.syspath_prepend(str(site))
        return site

    yield make
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]

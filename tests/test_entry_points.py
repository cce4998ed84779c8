"""Plugins that are installed or removed while a process runs are noticed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.plugins.loading import installed


def _install(folder: Path, name: str) -> Path:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[fruit]\n{name} = {name}:plugin\n")
    return about


def _names() -> list[str]:
    return [entry.name for entry, _, _ in installed("fruit")]


@pytest.mark.parametrize("long_ago", [True, False])
def test_what_comes_and_goes_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, long_ago: bool
) -> None:
    """Whether it is in a folder that has long been as it is, or in one that changes just now."""

    def settle() -> None:
        if long_ago:
            os.utime(tmp_path, (0, times.pop()))

    times = [10_000, 20_000, 30_000, 40_000]
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    settle()
    assert _names() == []
    apple = _install(tmp_path, "apple")
    settle()
    assert _names() == ["apple"]
    assert installed("fruit")[0][1:] == ("apple", "1.0")
    _install(tmp_path, "pear")
    settle()
    assert sorted(_names()) == ["apple", "pear"]
    shutil.rmtree(apple)
    settle()
    assert _names() == ["pear"]


def test_what_is_there_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of a folder that stays as it is are read once."""
    _install(tmp_path, "plum")
    os.utime(tmp_path, (5000, 5000))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert installed("fruit") is installed("fruit")

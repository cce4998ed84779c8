"""Random worlds with every plugin: nothing aborts, nothing hangs, and the checker finds nothing.

`WORLDS=0:1000 python -m pytest -m slow tests/testing` tries these seeds under every loss model and grace
period; `python -m worlds` (in `tests/`) does the same and can go on where it was stopped.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path

import pytest
from worlds.__main__ import main, worlds
from worlds.trial import loaded, one_each, tried

from harness.testing.worlds import random_world

PLUGINS = loaded()
FEW = (0, 1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (2, 4)))
FIRST, END = (int(seed) for seed in os.environ.get("WORLDS", "0:1000").split(":"))


@pytest.mark.parametrize("seed", FEW)
def test_small_worlds_with_every_plugin(seed: int, tmp_path: Path) -> None:
    """Each under one of the settings; what is wrong comes with the command that shows it."""
    wrong = [
        each
        for trial in one_each(seed)
        for each in tried(random_world(seed), trial, tmp_path / "results", PLUGINS)["wrong"]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seed", FEW)
def test_small_worlds_in_which_nodes_change(seed: int, tmp_path: Path) -> None:
    """They go, return, come, are cordoned, tainted, relabelled and resized, and nothing is wrong."""
    wrong = [
        each
        for trial in one_each(seed)
        for each in tried(random_world(seed, node_events=True), trial, tmp_path / "results", PLUGINS)["wrong"]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, END))
def test_a_world_under_every_setting(seed: int) -> None:
    """Six plugins, three loss models, with grace and without."""
    (answer,) = worlds([seed])
    assert not answer["wrong"], "\n".join(answer["wrong"])


def test_a_campaign_goes_on_where_its_log_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is in the log is not tried again, and counts."""
    log = tmp_path / "log.jsonl"
    monkeypatch.setattr(sys, "argv", ["worlds", "3", "4", "--plugin", "none", "--log", str(log)])
    assert main() == 0
    assert [json.loads(line)["seed"] for line in log.read_text().splitlines()] == [3]
    said = capsys.readouterr().out
    assert "worlds 1; the longest replay took" in said
    monkeypatch.setattr("worlds.__main__.tried", None)
    assert main() == 0
    assert capsys.readouterr().out == said


def test_what_hangs_is_ended_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that shows it."""
    monkeypatch.setattr("worlds.trial.LIMIT", 1e-6)
    gc.disable()  # what is raised in a callback of the collector is told as a failure of the test
    try:
        found = tried(random_world(3), next(one_each(3)), tmp_path / "results", PLUGINS)
    finally:
        gc.enable()
    assert "TimeoutError: took more than 1e-06 CPU-s" in found["wrong"][0]
    assert "harness replay world.parquet" in found["wrong"][0]

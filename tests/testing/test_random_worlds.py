"""Random worlds with every plugin: nothing aborts, nothing hangs, and the checker finds nothing.

`WORLDS=0:1000 python -m pytest -m slow tests/testing` tries these seeds under every loss model and grace
period; `python -m worlds` (in `tests/`) does the same and can go on where it was stopped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from worlds.__main__ import worlds
from worlds.trial import loaded, one_each, tried

from harness.testing.worlds import random_world

PLUGINS = loaded()
FIRST, END = (int(seed) for seed in os.environ.get("WORLDS", "0:1000").split(":"))


@pytest.mark.parametrize("tens", range(6))
def test_sixty_worlds_with_every_plugin(tens: int, tmp_path: Path) -> None:
    """Each under one of the settings; what is wrong comes with the command that shows it."""
    wrong = [
        each
        for world in map(random_world, range(10 * tens, 10 * tens + 10))
        for trial in one_each(world.seed)
        for each in tried(world, trial, tmp_path / "results", PLUGINS)["wrong"]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, END))
def test_a_world_under_every_setting(seed: int) -> None:
    """Six plugins, three loss models, with grace and without."""
    (answer,) = worlds([seed])
    assert not answer["wrong"], "\n".join(answer["wrong"])

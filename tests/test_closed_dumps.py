"""Dumps that close the loop: what an API server shows of a replay goes on as the replay does.

`DUMPS=0:1000 python -m pytest -m slow tests/test_closed_dumps.py` tries the worlds of these seeds, by default
200; `python -m dumps` (in `tests/`) says of some of them what differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

import pytest
from dumps.kinds import KINDS
from dumps.loop import Loop
from dumps.observed import Event
from dumps.worlds import PLUGINS, DumpWorld, dump_world

LOOP = Loop()
FEW = (2, 3, 7, 8, 16, 33)
LIKE_ANOTHER = ("fairsharing", "auto")
FIRST, END = (int(seed) for seed in os.environ.get("DUMPS", "0:200").split(":"))


def differing(plugin: str, seeds: Iterable[int]) -> str:
    """What differs in the worlds of some seeds, each with the command that shows it."""
    told = {seed: LOOP.ends(dump_world(seed, plugin)).told() for seed in seeds}
    return "\n".join(
        f"python -m dumps {seed} --plugin {plugin}\n{text}" for seed, text in told.items() if text
    )


@pytest.mark.parametrize(
    "plugin",
    [pytest.param(each, marks=pytest.mark.nightly if each in LIKE_ANOTHER else ()) for each in PLUGINS],
)
def test_a_dump_goes_on_as_the_replay_whose_scheduler_restarts(plugin: str) -> None:
    """Every later admission, start, binding, eviction and end, with its time and node."""
    differs = differing(plugin, FEW)
    assert not differs, differs


@pytest.mark.slow
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("first", range(FIRST, END, 10))
def test_every_dump_goes_on_as_the_replay_whose_scheduler_restarts(plugin: str, first: int) -> None:
    """The same of many worlds."""
    differs = differing(plugin, range(first, min(END, first + 10)))
    assert not differs, differs


def test_dumps_of_these_worlds_are_in_the_middle_of_everything() -> None:
    """Each of these is in the dump of some world that is tried."""
    missing = dict(KINDS)
    for seed in FEW:
        for plugin in PLUGINS[:3]:
            _, objects = LOOP.restarted(dump_world(seed, plugin))
            missing = {name: holds for name, holds in missing.items() if not holds(objects)}
    assert not missing, list(missing)


def test_a_restart_makes_a_difference() -> None:
    """Else nothing would be forgotten: the same worlds, whose scheduler restarts before anything happens."""
    several = [dump_world(seed, "default-preemption") for seed in range(12)]
    early = [replace(world, at=0) for world in several]

    def later(world: DumpWorld, since: int) -> list[Event]:
        return [each for each in LOOP.restarted(world)[0] if each.time + world.at > since]

    pairs = zip(several, early, strict=True)
    assert any(
        [each._replace(time=each.time + late.at) for each in later(late, late.at)] != later(soon, late.at)
        for late, soon in pairs
    )

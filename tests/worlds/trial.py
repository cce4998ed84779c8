"""One world, replayed with a plugin under some settings: whether it ends in time, and what is wrong."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from harness.base.units import SECOND
from harness.plugins import Plugins, load
from harness.testing.worlds import PLUGINS, World

LIMIT = 20
"""CPU-seconds that a replay may take."""

LOSSES = ("restart", "resume", "checkpoint=7s,restore=2s")
GRACES = (0, 30 * SECOND)
SETTINGS = tuple(product(LOSSES, GRACES))


class Trial(NamedTuple):
    """A replay to be made."""

    plugin: str
    on_preemption: str
    grace_period: int
    metrics: bool


def every(seed: int) -> Iterator[Trial]:
    """Every plugin under every setting; metrics are computed for one of six."""
    for place, plugin in enumerate(PLUGINS):
        for number, (losses, grace) in enumerate(SETTINGS):
            yield Trial(plugin, losses, grace, (seed + place) % len(SETTINGS) == number)


def one_each(seed: int) -> Iterator[Trial]:
    """Every plugin under one of the settings, in turn; metrics are computed for every sixth world."""
    for place, plugin in enumerate(PLUGINS):
        losses, grace = SETTINGS[(seed + place) % len(SETTINGS)]
        yield Trial(plugin, losses, grace, (seed + place) % 36 == 0)


def loaded() -> dict[bool, Plugins]:
    """The plugins, with metrics and without."""
    return {True: load(), False: load(block=["metrics"])}


def tried(world: World, trial: Trial, folder: Path, plugins: dict[bool, Plugins]) -> dict[str, Any]:
    """What came of a replay: figures, and what is wrong."""
    changed = {"on_preemption": trial.on_preemption, "grace_period": trial.grace_period}
    found: dict[str, Any] = {"plugin": trial.plugin, "decisions": 0, "evictions": 0, "stopped": False}
    before, wrong = process_time(), []
    try:
        with limited(LIMIT):
            run = world.replay(trial.plugin, folder, plugins=plugins[trial.metrics], **changed)
        found["cpu"] = round(process_time() - before, 3)
        wrong = [str(broken) for broken in world.faults(run)]
        actions = run.decisions["action"]
        found["decisions"] = actions.len()
        found["evictions"] = int(actions.is_in(["preempt", "evict"]).sum())
        found["stopped"] = run.stopped is not None
    except Exception as error:
        wrong = [f"{type(error).__name__}: {error}"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found["wrong"] = [
        f"{world!r}: {each}\n    {world.command(trial.plugin, **changed)}" for each in wrong[:5]
    ]
    return found


class _TooLongError(BaseException):
    """Not even an `Exception`: nothing that handles errors may take it for one of its own."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what takes more CPU time than this, which raises TimeoutError then."""

    def stop(number: int, frame: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    # Again and again: what is raised in a finalizer or a callback of the collector is lost.
    signal.setitimer(signal.ITIMER_PROF, seconds, min(seconds, 1))
    try:
        yield
    except _TooLongError:
        raise TimeoutError(f"took more than {seconds} CPU-s") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

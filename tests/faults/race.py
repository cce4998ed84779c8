"""Two writers that replace one run over and over and are killed now and then, and a reader all the while."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from threading import Thread

from faults.exploring import Found
from faults.worlds import WORLDS, Driver, content, make
from harness.base.errors import RunError
from harness.runs.run import TABLES, Run

_REPLAY = WORLDS["replay again"].args


def race(folder: Path, seconds: float, seed: int) -> Found:
    """Let them race for so long.

    Args:
        folder: for all that is written.
        seconds: of real time.
        seed: of what is killed, and where.
    """
    here, found = folder / "here", Found()
    drivers = []
    for name in ("first", "second"):
        (folder / name).mkdir()
        drivers.append(Driver(here, folder / name))
    make(here)
    for driver in drivers:
        driver.load(_REPLAY)
    calls = len(drivers[0](_REPLAY).calls)
    (run,) = here.glob("results/trace/none-*")
    reference = _read(run)
    end = time.monotonic() + seconds
    writers = [
        Thread(target=_write, args=(driver, random.Random(f"{seed} {place}"), calls, end, found))
        for place, driver in enumerate(drivers)
    ]
    for writer in writers:
        writer.start()
    while time.monotonic() < end:
        try:
            whole = _read(run) == reference
        except RunError as error:
            found.wrong.append(f"seed {seed}: the reader was told: {error}")
        else:
            found.outcomes["read"] += 1
            if not whole:
                found.wrong.append(f"seed {seed}: the reader saw another run")
    for writer in writers:
        writer.join()
    drivers[0](_REPLAY)
    if any(".harness-" in name for name in content(here)):
        found.wrong.append(f"seed {seed}: something is left behind: {sorted(content(here))}")
    for driver in drivers:
        driver.close()
    return found


def _write(driver: Driver, draw: random.Random, calls: int, end: float, found: Found) -> None:
    """Replace the run until the time is over; every other time be killed somewhere."""
    counted: Counter[str] = Counter()
    while time.monotonic() < end:
        at = draw.randrange(calls) if draw.random() < 0.5 else -1
        ended = driver(_REPLAY, at=at)
        counted["written" if ended.code == 0 else "killed" if ended.code == -9 else "failed"] += 1
        if ended.code not in (0, -9):
            found.wrong.append(f"a writer ended with {ended.code}: {ended.err!r}")
    found.outcomes += counted


def _read(run: Path) -> list[int]:
    """Every table of a run, as one number each."""
    opened = Run.open(run)
    return [int(opened.scan(table).collect().hash_rows(1).sum()) for table in TABLES]

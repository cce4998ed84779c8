"""Tries faults and prints what came of them; see the package."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from faults.exploring import Explorer, Injected, some
from faults.race import race
from faults.worlds import WORLDS, Driver

KINDS = ("files", "memory", "functions")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--world", action="append", choices=list(WORLDS), help="a command; all")
    parser.add_argument("--calls", action="append", choices=KINDS, help="what fails; all")
    parser.add_argument("--most", type=int, help="so many faults of a command, as different as can be; all")
    parser.add_argument("--at", type=int, help="only the call of this number")
    parser.add_argument("--error", help="only this error, such as ENOSPC, or KILL")
    parser.add_argument("--workers", type=int, default=1, help="how many at once")
    parser.add_argument("--log", type=Path, help="what came of faults, one a line; those in it are done")
    parser.add_argument("--race", type=float, metavar="SECONDS", help="two writers and a reader instead")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name).resolve()
        if given.race:
            found = race(folder, given.race, given.seed)
            print(_told("race", found.outcomes), *found.wrong, sep="\n  ")
            return bool(found.wrong)
        return _explored(folder, given)


def _explored(folder: Path, given: argparse.Namespace) -> int:
    """Try what is asked for; answers the exit code."""
    lines: list[dict[str, Any]] = []
    if given.log is not None and given.log.exists():
        lines = [json.loads(line) for line in given.log.read_text().splitlines()]
    done = {(line["world"], line["calls"], line["at"], line["error"]) for line in lines}
    every: list[tuple[str, str, Injected]] = []
    driver = Driver(folder / "here")
    for world in given.world or WORLDS:
        explorer = Explorer(folder, world, driver)
        for kind in given.calls or KINDS:
            faults = [
                fault
                for fault in explorer.faults(kind)
                if given.at in (None, fault.at) and given.error in (None, fault.error)
            ]
            every += [(world, kind, fault) for fault in some(faults, given.most or len(faults), given.seed)]
    driver.close()
    random.Random(given.seed).shuffle(every)  # so that what was tried is spread evenly whenever it is ended
    wanted = [each for each in every if (*each[:2], each[2].at, each[2].error) not in done]
    lock = Lock()

    def record(line: dict[str, Any]) -> None:
        with lock:
            lines.append(line)
            print(*line["wrong"], sep="\n", end="\n" * bool(line["wrong"]), flush=True)
            if given.log is not None:
                with given.log.open("a") as log:
                    log.write(json.dumps(line) + "\n")

    left = iter(wanted)

    def following() -> tuple[str, str, Injected] | None:
        with lock:
            return next(left, None)

    with ThreadPoolExecutor(given.workers) as pool:
        folders = [folder / str(place) for place in range(given.workers)]
        for future in [pool.submit(_work, each, following, record) for each in folders]:
            future.result()
    for world, kind in dict.fromkeys((line["world"], line["calls"]) for line in lines):
        found = [line for line in lines if (line["world"], line["calls"]) == (world, kind)]
        print(_told(f"{world}, {kind}", Counter(line["outcome"] for line in found)))
    print(_told(f"in all, of {len(every):,}", Counter(line["outcome"] for line in lines)))
    return any(line["wrong"] for line in lines)


def _work(
    folder: Path,
    following: Callable[[], tuple[str, str, Injected] | None],
    record: Callable[[dict[str, Any]], None],
) -> None:
    """Try faults in a folder of one's own until none is left."""
    folder.mkdir()
    driver = Driver(folder / "here")
    explorers: dict[str, Explorer] = {}
    while (each := following()) is not None:
        world, kind, fault = each
        if world not in explorers:
            explorers[world] = Explorer(folder, world, driver)
        outcome, wrong = explorers[world].tried(kind, fault)
        record(
            {"world": world, "calls": kind, "at": fault.at, "error": fault.error, "call": fault.call.name}
            | {"outcome": outcome, "wrong": wrong}
        )
    driver.close()


def _told(what: str, outcomes: Counter[str]) -> str:
    named = ", ".join(f"{name} {count:,}" for name, count in sorted(outcomes.items()))
    return f"{what}: {outcomes.total():,} faults: {named}"


if __name__ == "__main__":
    sys.exit(main())

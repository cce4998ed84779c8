"""Tries faults and prints what came of them; see the package."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from faults.exploring import Explorer, Found, some
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
    parser.add_argument("--race", type=float, metavar="SECONDS", help="two writers and a reader instead")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    total = Found()
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name).resolve()
        if given.race:
            total = race(folder, given.race, given.seed)
            _say("race", total)
            return bool(total.wrong)
        driver = Driver(folder / "here")
        for world in given.world or WORLDS:
            explorer = Explorer(folder, world, driver)
            for kind in given.calls or KINDS:
                faults = [
                    fault
                    for fault in explorer.faults(kind)
                    if given.at in (None, fault.at) and given.error in (None, fault.error)
                ]
                found = explorer.explore(kind, some(faults, given.most or len(faults), given.seed))
                _say(f"{world}, {kind}", found)
                total.outcomes += found.outcomes
                total.wrong += found.wrong
        driver.close()
    _say("in all", Found(total.outcomes))
    return bool(total.wrong)


def _say(what: str, found: Found) -> None:
    outcomes = ", ".join(f"{name} {count:,}" for name, count in sorted(found.outcomes.items()))
    print(f"{what}: {found.outcomes.total():,} faults: {outcomes}", *found.wrong, sep="\n  ", flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Tries the worlds of a range of seeds; see the package."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from harness.testing.worlds import random_world
from worlds.trial import Trial, every, loaded, one_each, tried


def worlds(
    seeds: Iterable[int], plugin: str | None = None, trials: Callable[[int], Iterator[Trial]] = every
) -> Iterator[dict[str, Any]]:
    """What came of each world under all settings, one after the other in this process."""
    plugins = loaded()
    for seed in seeds:
        world = random_world(seed)
        answer: dict[str, Any] = {"seed": seed, "replays": 0, "cpu": 0.0, "longest": 0.0, "wrong": []}
        counts: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(prefix="worlds-") as name:
            for trial in trials(seed):
                if plugin not in (None, trial.plugin):
                    continue
                found = tried(world, trial, Path(name) / "results", plugins)
                answer["wrong"] += found["wrong"]
                cpu = found.get("cpu", 0.0)
                answer["longest"] = max(answer["longest"], cpu)
                answer["cpu"] = round(answer["cpu"] + cpu, 3)
                counts["replays"] += 1
                counts["decisions"] += found["decisions"]
                counts["evictions"] += found["evictions"]
                counts["stopped"] += found["stopped"]
        yield answer | counts


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m worlds", description=__doc__)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("end", type=int, nargs="?", help="the seed to stop before")
    parser.add_argument("--plugin", help="only this one")
    parser.add_argument("--brief", action="store_true", help="under one setting each, not under all six")
    parser.add_argument("--log", type=Path, help="answers, one a line; seeds in it are not tried again")
    given = parser.parse_args()
    os.fsync = lambda descriptor: None  # type: ignore[assignment]  # thousands of runs need not survive
    seeds = range(given.first, given.end if given.end is not None else given.first + 1)
    lines = given.log.read_text().splitlines() if given.log is not None and given.log.exists() else []
    before = [json.loads(line) for line in lines]
    done = {answer["seed"] for answer in before}
    sums: Counter[str] = Counter()
    longest, wrong = 0.0, 0
    wanted = [seed for seed in seeds if seed not in done]
    for answer in chain(before, worlds(wanted, given.plugin, one_each if given.brief else every)):
        if given.log is not None and answer["seed"] not in done:
            with given.log.open("a") as log:
                log.write(json.dumps(answer) + "\n")
        sums.update({key: answer[key] for key in ("replays", "decisions", "evictions", "stopped")}, worlds=1)
        longest = max(longest, answer["longest"])
        wrong += bool(answer["wrong"])
        print(*answer["wrong"], sep="\n", end="\n" * bool(answer["wrong"]), flush=True)
    figures = ", ".join(f"{name} {count:,}" for name, count in sums.items())
    print(f"{figures}; the longest replay took {longest:.1f} CPU-s; {wrong:,} worlds with something wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
